"""Sections about codes, explanations and names: are they faithful, and are they true?"""

from __future__ import annotations

from functools import partial
from typing import Any

from lexent.nan_safe import p_text, shown
from lexent.studies.analyses.table import Column, Table, at
from lexent.studies.faithfulness import faithfulness
from lexent.studies.fidelity import fidelity
from lexent.studies.naming.judges import EmbeddingJudge, WordsJudge
from lexent.studies.reproduction import plots
from lexent.studies.reproduction.section import Figure, Result, Section
from lexent.studies.reproduction.study import Study

KS = {"pooled": (32, 48, 64, 128), "tokens": (4, 8, 16)}
"""The papers' and around them."""


def _fidelity(study: Study) -> Result:
    lexicons = {system.lexicon.hash: system.lexicon for system in study.systems}
    found = fidelity(
        study.collection,
        lexicon=list(lexicons.values()),
        k=KS[study.systems[0].recipe.level],
        encoder=study.encoder,
        measures=study.measures,
        sample=study.sizes.tokens,
    )
    return {"report": found.to_json()}


def _show_fidelity(result: Result) -> list[Table | Figure]:
    report = result["report"]
    rows, measure = report["rows"], next(iter(report["dense"]))
    three_places = partial(shown, spec=".3f")
    name: list[Column] = [("lexicon", "lexicon"), ("k", "k")]
    states: list[Column] = [
        ("NMSE", at("documents", "nmse")),
        ("NMSE, queries", at("queries", "nmse")),
        ("cosine", "{documents[cosine]:.3f}"),
        ("active", "{documents[active][mean]:.1f}"),
        ("5 to 95 %", "{documents[active][p5]} to {documents[active][p95]}"),
        ("active, queries", "{queries[active][mean]:.1f}"),
        ("live", lambda row: f"{row['documents']['live'] / row['size']:.0%}"),
    ]
    retrieved: list[Column] = []
    for each in report["dense"]:
        retrieved += [
            (each, at("measures", each)),
            ("dense", at("dense", each)),
            ("kept", at("kept", each, then=three_places)),
            ("p", at("p_values", each, then=p_text)),
        ]
    retrieved.append(("Spearman", at("spearman", then=three_places)))
    active = "active: concepts a state has, the mean and its spread; live: concepts that any has"
    kept = "kept: the share of dense; p: paired t-test against it; Spearman: of whole rankings with those of dense"
    panels: dict[str, dict[str, Any]] = {"NMSE of documents": {}, f"share of dense {measure} kept": {}}
    for row in rows:
        for panel, value in zip(panels.values(), (row["documents"]["nmse"], row["kept"].get(measure)), strict=True):
            if value is not None:
                panel.setdefault(row["lexicon"], []).append((row["k"], value))
    drawn = plots.panels([panel for panel in panels.items() if panel[1]], x_label="k, concepts a state")
    searched = [row for row in rows if row["measures"]]
    return [
        Table.of("states rebuilt from their concepts", rows, name + states, "; ".join((active, *report["notes"]))),
        Table.of("retrieval with rebuilt vectors", searched, name + retrieved, kept),
        Figure(drawn, "Error and retrieval of rebuilt states against k"),
    ]


def _faithfulness(study: Study) -> Result:
    found = faithfulness(
        study.collection,
        recipe=[system.recipe for system in study.systems],
        lexicon=study.bench.given,
        encoder=study.encoder,
        queries=study.sizes.queries,
        draws=study.sizes.draws,
    )
    return {"report": found.to_json()}


def _show_faithfulness(result: Result) -> list[Table | Figure]:
    report = result["report"]
    items: list[Table | Figure] = []
    for found in report["recipes"]:
        trials = sorted(found["trials"], key=lambda trial: (trial["watched"], trial["way"], trial["side"]))
        sizes = f"{found['pairs']} queries, {found['concepts']:.0f} concepts an explanation"
        note = f"{sizes}; p: explained against the other, paired t-test over queries"
        for name, called in (("score", "scores"), ("place", "1 / rank")):
            columns: list[Column] = [(each, each) for each in ("watched", "way", "side")]
            columns += [(order, f"{{curves[{order}][{name}_area]:.3f}}") for order in plots.ORDERS]
            columns += [(f"p, {order}", at("p_values", order, name, then=p_text)) for order in ("random", "any")]
            title = f"{found['recipe']}: areas under the curves of {called}"
            items.append(Table.of(title, trials, columns, "; ".join(filter(None, (note, found["note"])))))
        for watched, where in (("dense", "watched in the dense retriever"), ("index", "watched in the index")):
            if any(trial["watched"] == watched for trial in trials):
                caption = f"{where}: score and 1/rank as concepts go (deletion) or come (insertion)"
                drawn = plots.curves(found["trials"], report["shares"], watched=watched)
                items.append(Figure(drawn, f"{found['recipe']}, {caption}"))
    return items


def _names(study: Study) -> Result:
    import numpy as np

    from lexent.studies.naming import exam as exams

    sizes = study.sizes
    texts = study.collection.texts
    drawn = np.sort(np.random.default_rng(0).permutation(len(texts))[: sizes.texts])
    held = [texts[at] for at in drawn]
    plan = exams.Plan(concepts=sizes.concepts, questions=sizes.questions)
    words, embedding = WordsJudge(held), EmbeddingJudge(study.encoder, name=f"embedding ({study.encoder.id})")
    reports = []
    for lexicon in {system.lexicon.hash: system.lexicon for system in study.systems}.values():
        questions = exams.prepare(held, plan, lexicon=lexicon, encoder=study.encoder, collection=study.collection)
        reports.append(exams.report(questions, [words, embedding], likeness=[words]).to_dict())
    return {"texts": len(held), "documents": len(texts), "reports": reports}


def _show_names(result: Result) -> list[Table | Figure]:
    columns: list[Column] = [
        *((each, each) for each in ("task", "group", "judge")),
        ("questions", "n"),
        ("right", "{value:.3f}"),
        ("95 %", "{low:.3f} to {high:.3f}"),
        ("control", at("control", then=partial(shown, spec=".3f"))),
        ("chance", "{chance:.3f}"),
        ("p", at("p", then=p_text)),
    ]
    note = "control: the same with other concepts' names; p: against the control"
    caption = "share of right answers (detection: AUC) with 95 % intervals, beside the control"
    found: list[Table | Figure] = []
    for report in result["reports"]:
        title = f"{report['lexicon']}: names tested on {result['texts']:,} of {result['documents']:,} documents"
        found.append(Table.of(title, report["outcomes"], columns, note))
        drawn = plots.dots([outcome for outcome in report["outcomes"] if outcome["group"] == "all"])
        found.append(Figure(drawn, f"{report['lexicon']}: {caption}"))
    return found


SECTIONS = (
    Section(
        "fidelity",
        "Are the codes faithful?",
        "How much of the encoder's states, and of retrieval with them, do their concepts keep?",
        _fidelity,
        _show_fidelity,
        reading="States are rebuilt from their concepts. NMSE is the squared error over that of a guess that knows "
        "only the mean. Retrieval is by the cosine of rebuilt vectors on both sides. CL-SR's NMSE is of other "
        "embeddings, and not to be compared digit by digit.",
        sizes=("tokens",),
    ),
    Section(
        "faithfulness",
        "Are explanations faithful?",
        "Does a document fall when the concepts that explain it are taken away, and faster than at random?",
        _faithfulness,
        _show_faithfulness,
        reading="In the index a score is the sum of its concepts' parts, so its fall is arithmetic and only ranks can "
        "surprise. The dense retriever knows nothing of concepts: there a concept is taken from the text's own vector "
        "through the decoder, and all that no concept explains stays. Low areas under deletion and high ones under "
        "insertion are faithful. Random takes the same concepts in random order; any takes concepts of the text "
        "whether they explain the hit or not. The papers do not report this.",
        sizes=("queries", "draws"),
    ),
    Section(
        "names",
        "Are the names true?",
        "Do the names tell which texts have a concept, and which passage a person is looking at?",
        _names,
        _show_names,
        reading="The judges are offline: one compares words, the other is the encoder itself, which judges its own "
        "features. CL-SR's figures are by a large language model and by people; what they share with ours is the "
        "control and the level of chance.",
        sizes=("texts", "concepts", "questions"),
        version=2,
    ),
)
