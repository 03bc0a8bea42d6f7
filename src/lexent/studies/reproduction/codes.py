"""Sections about codes, explanations and names: are they faithful, and are they true?"""

from __future__ import annotations

from functools import partial
from typing import Any

from lexent.studies.analyses.table import Table, chance
from lexent.studies.faithfulness import faithfulness
from lexent.studies.fidelity import fidelity
from lexent.studies.naming.judges import EmbeddingJudge, WordsJudge
from lexent.studies.reproduction import plots
from lexent.studies.reproduction.section import Figure, Result, Section
from lexent.studies.reproduction.study import Study
from lexent.undefined import shown

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
        progress=study.progress,
    )
    return {"report": found.to_json()}


def _fidelity_tables(result: Result) -> list[Table]:
    report = result["report"]
    states, retrieved = [], []
    for row in report["rows"]:
        name, active = (row["lexicon"], row["k"]), row["documents"]["active"]
        errors = row["documents"]["nmse"], row["queries"]["nmse"], f"{row['documents']['cosine']:.3f}"
        spread = f"{active['mean']:.1f}", f"{active['p5']} to {active['p95']}"
        states.append(
            (
                *name,
                *errors,
                *spread,
                f"{row['queries']['active']['mean']:.1f}",
                f"{row['documents']['live'] / row['size']:.0%}",
            )
        )
        if row["measures"]:
            cells: list[Any] = []
            for measure, value in row["measures"].items():
                kept_share = shown(row["kept"][measure], ".3f")
                cells += [value, row["dense"][measure], kept_share, chance(row["p_values"][measure])]
            retrieved.append((*name, *cells, shown(row["spearman"], ".3f")))
    head = ("lexicon", "k", "NMSE", "NMSE, queries", "cosine", "active", "5 to 95 %", "active, queries", "live")
    kept = tuple(cell for name in report["dense"] for cell in (name, "dense", "kept", "p"))
    return [
        Table(
            "states rebuilt from their concepts",
            head,
            tuple(states),
            "; ".join(
                (
                    "active: concepts a state has, the mean and its spread",
                    "live: concepts that any has",
                    *report["notes"],
                )
            ),
        ),
        Table(
            "retrieval with rebuilt vectors",
            ("lexicon", "k", *kept, "Spearman"),
            tuple(retrieved),
            "kept: the share of dense; p: paired t-test against it; Spearman: of whole rankings with those of dense",
        ),
    ]


def _fidelity_figures(result: Result) -> list[Figure]:
    rows = result["report"]["rows"]
    measure = next(iter(result["report"]["dense"]))
    errors: dict[str, list[tuple[float, float]]] = {}
    kept: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        errors.setdefault(row["lexicon"], []).append((row["k"], row["documents"]["nmse"]))
        if measure in row["kept"]:
            kept.setdefault(row["lexicon"], []).append((row["k"], row["kept"][measure]))
    panels = [("NMSE of documents", errors), (f"share of dense {measure} kept", kept)]
    draw = partial(plots.panels, [panel for panel in panels if panel[1]], x_label="k, concepts a state")
    return [Figure(draw, "Error and retrieval of rebuilt states against k")]


def _faithfulness(study: Study) -> Result:
    found = faithfulness(
        study.collection,
        recipe=[system.recipe for system in study.systems],
        lexicon=study.bench.given,
        encoder=study.encoder,
        queries=study.sizes.queries,
        draws=study.sizes.draws,
        progress=study.progress,
    )
    return {"report": found.to_json()}


def _faithfulness_tables(result: Result) -> list[Table]:
    tables = []
    orders = ("explained", "random", "any", "weakest")
    for each in result["report"]["recipes"]:
        for name, called in (("score", "scores"), ("place", "1 / rank")):
            rows = []
            for trial in sorted(each["trials"], key=lambda trial: (trial["watched"], trial["way"], trial["side"])):
                areas = (f"{trial['curves'][order][f'{name}_area']:.3f}" for order in orders)
                tests = (chance(trial["p_values"][order][name]) for order in ("random", "any"))
                rows.append((trial["watched"], trial["way"], trial["side"], *areas, *tests))
            title = f"{each['recipe']}: areas under the curves of {called}"
            sizes = f"{each['pairs']} queries, {each['concepts']:.0f} concepts an explanation"
            note = f"{sizes}; p: explained against the other, paired t-test over queries"
            head = ("watched", "way", "side", *orders, "p, random", "p, any")
            tables.append(Table(title, head, tuple(rows), "; ".join(part for part in (note, each["note"]) if part)))
    return tables


def _faithfulness_figures(result: Result) -> list[Figure]:
    report = result["report"]
    return [
        Figure(
            partial(plots.curves, recipe["trials"], report["shares"], watched=watched),
            f"{recipe['recipe']}, {named}: score and 1/rank as concepts go (deletion) or come (insertion)",
        )
        for recipe in report["recipes"]
        for watched, named in (("dense", "watched in the dense retriever"), ("index", "watched in the index"))
        if any(trial["watched"] == watched for trial in recipe["trials"])
    ]


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
        reports.append(exams.report(questions, [words, embedding], likeness=[words], progress=study.progress).to_dict())
    return {"texts": len(held), "documents": len(texts), "reports": reports}


def _names_tables(result: Result) -> list[Table]:
    tables = []
    for report in result["reports"]:
        rows = tuple(
            (
                outcome["task"],
                outcome["group"],
                outcome["judge"],
                outcome["n"],
                f"{outcome['value']:.3f}",
                f"{outcome['low']:.3f} to {outcome['high']:.3f}",
                "" if outcome["control"] is None else f"{outcome['control']:.3f}",
                f"{outcome['chance']:.3f}",
                chance(outcome["p"]),
            )
            for outcome in report["outcomes"]
        )
        head = ("task", "group", "judge", "questions", "right", "95 %", "control", "chance", "p")
        title = f"{report['lexicon']}: names tested on {result['texts']:,} of {result['documents']:,} documents"
        tables.append(Table(title, head, rows, "control: the same with other concepts' names; p: against the control"))
    return tables


def _names_figures(result: Result) -> list[Figure]:
    return [
        Figure(
            partial(plots.dots, [outcome for outcome in report["outcomes"] if outcome["group"] == "all"]),
            f"{report['lexicon']}: share of right answers (detection: AUC) with 95 % intervals, beside the control",
        )
        for report in result["reports"]
    ]


SECTIONS = (
    Section(
        "fidelity",
        "Are the codes faithful?",
        "How much of the encoder's states, and of retrieval with them, do their concepts keep?",
        _fidelity,
        _fidelity_tables,
        _fidelity_figures,
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
        _faithfulness_tables,
        _faithfulness_figures,
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
        _names_tables,
        _names_figures,
        reading="The judges are offline: one compares words, the other is the encoder itself, which judges its own "
        "features. CL-SR's figures are by a large language model and by people; what they share with ours is the "
        "control and the level of chance.",
        sizes=("texts", "concepts", "questions"),
        version=2,
    ),
)
