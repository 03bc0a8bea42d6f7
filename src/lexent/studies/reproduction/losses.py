"""Sections about training codes for retrieval: what each loss adds, and how many latents are enough."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from lexent.evaluation import measures as scoring
from lexent.evaluation.training_split import training_split_beside
from lexent.lexicon import Concept, Concepts, Lexicon
from lexent.lexicon.lexicon import LexiconInfo
from lexent.studies.analyses.table import Table, chance
from lexent.studies.reproduction import plots
from lexent.studies.reproduction.held import held, quality, scorer
from lexent.studies.reproduction.section import Figure, Result, Section
from lexent.studies.reproduction.study import Study
from lexent.training.pair_sources import judged_pairs
from lexent.training.pairs import Pairs
from lexent.training.ssr.config import RetrievalConfig
from lexent.training.stream import StateStream

if TYPE_CHECKING:
    from lexent.lexicon import Lexicon
    from lexent.recipes import Recipe
    from lexent.sae.autoencoder import SparseAutoencoder
    from lexent.training.pairs import Pairs

TRAINED_K = 16
"""Latents a token has in the lexicons that are trained here: they are small."""
LOSSES: dict[str, dict[str, Any]] = {
    "reconstruction alone": {"alpha": 0.0, "beta": 0.0, "gamma": 0.0, "gains": False},
    "+ dead latents (aux)": {"beta": 0.0, "gamma": 0.0, "gains": False},
    "+ contrast of tokens": {"gamma": 0.0, "gains": False},
    "+ pairs (supervised)": {},
}
"""Each has the losses of those before it."""
SHARES = (0.25, 0.5, 1.0, 2.0)
"""Of the usual number of latents."""
LIGHT: dict[str, Any] = {"whole": False, "batch": 16, "hard": 2, "document_tokens": 128, "rebuilt": 2048, "k_aux": 256}


def lessons(study: Study) -> tuple[Pairs, str]:
    """Pairs to learn from, with BM25 negatives, and where they are from.

    They are of the train split, or else documents' titles, or where they have none their first sentences.
    Never a judgement of the split that is measured.
    """
    from lexent.training.hard_negatives import mined

    most = study.sizes.lessons
    train = training_split_beside(study.source, study.collection)
    if train is None:
        where = "titles of documents, each of which asks for its text; the collection has no train split"
        titled = [(doc.title, doc.text) for doc in study.collection.documents if doc.title.strip() and doc.text.strip()]
        if not titled:
            titled = [pair for doc in study.collection.documents if (pair := _first_sentence(doc.text)) is not None]
            where = (
                "first sentences of documents, each of which asks for the rest; there is no train split and no title"
            )
        pairs = [*dict.fromkeys(titled)][:most]
        others = [text for text in study.collection.texts if text.strip()]
    else:
        known, where = judged_pairs(train), "the train split"
        places = zip(known.query.tolist(), known.positive.tolist(), strict=True)
        pairs = [(known.queries[query], known.documents[document]) for query, document in places][:most]
        others = list(known.documents)
    found = Pairs.of(pairs, documents=others[: max(most - len({text for _, text in pairs}), 0)])
    return mined(found, ["bm25"], encoder=study.encoder), where


def _first_sentence(text: str) -> tuple[str, str] | None:
    """A text's first sentence and the rest of it; None where either has fewer than three words."""
    first, _, rest = text.strip().partition(". ")
    return (first, rest) if min(len(first.split()), len(rest.split())) >= 3 else None


def _start(study: Study, pairs: Pairs, *, latents: int) -> SparseAutoencoder:
    """An autoencoder after one pass of reconstruction, without the loss for dead latents: every run begins there."""
    from lexent.training.reconstruction.trainer import TrainConfig, Trainer

    texts = [*pairs.documents, *pairs.queries]
    config = TrainConfig(
        d_sae=latents, k=min(TRAINED_K, latents), batch=min(2048, max(16, 2 * len(texts))), aux_weight=0.0
    )
    return Trainer(StateStream(texts, study.encoder, level="tokens", passes=1), config).run()


def _trained(study: Study, pairs: Pairs, start: SparseAutoencoder, **losses: Any) -> tuple[Lexicon, Any]:
    from lexent.training.ssr.trainer import PairTrainer

    size = start.config.d_sae
    config = RetrievalConfig(**{**LIGHT, "d_sae": size, "k": start.config.k, "steps": study.sizes.steps, **losses})
    trainer = PairTrainer(study.encoder, pairs, config, tokens=start)
    report = study.progress
    last = trainer.run(progress=None if report is None else lambda now: report("training", now.step, study.sizes.steps))
    info = LexiconInfo(f"small-{size}", study.encoder.id, study.encoder.fingerprint, "tokens", match="maxsim")
    concepts = Concepts([Concept(latent, f"concept {latent}") for latent in range(size)])
    return Lexicon(trainer.result()[0], concepts, info), last


def _row(study: Study, lexicon: Lexicon, last: Any) -> tuple[Result, Any]:
    """What a trained lexicon is worth on the documents that are held."""
    recipe: Recipe = study.matches[0].recipe.having(k=lexicon.sae.config.k)
    documents = held(study)
    found = scorer(documents.codes(lexicon, recipe.k, progress=study.progress)[0], lexicon, recipe)
    asked = documents.queries(lexicon, recipe, found)
    scores = quality(found, asked, documents.collection, measures=study.measures)
    facts = {"fvu": last.fvu, "dead": last.dead, "accuracy": last.accuracy}
    return {"values": scores.means, **facts, "latents": lexicon.token_size}, scores.per_query


def _ablation(study: Study) -> Result:
    pairs, where = lessons(study)
    start = _start(study, pairs, latents=study.sizes.latents)
    rows: list[Result] = []
    before: Any = None
    for name, losses in LOSSES.items():
        row, scores = _row(study, *_trained(study, pairs, start, **losses))
        row["p"] = None if before is None else {each: scoring.p_value(scores[each], before[each]) for each in scores}
        rows.append({"name": name, **row})
        before = scores
    return {"rows": rows, **_setting(study, pairs, where)}


def _widths(study: Study) -> Result:
    pairs, where = lessons(study)
    rows = []
    for share in SHARES:
        latents = max(round(share * study.sizes.latents), TRAINED_K)
        start = _start(study, pairs, latents=latents)
        rows.append({"name": f"{latents:,}", **_row(study, *_trained(study, pairs, start))[0]})
    return {"rows": rows, **_setting(study, pairs, where)}


def _setting(study: Study, pairs: Pairs, where: str) -> Result:
    documents = held(study).collection
    return {
        "pairs": len(pairs),
        "where": where,
        "steps": study.sizes.steps,
        "documents": len(documents.documents),
        "queries": len(documents.queries),
    }


def _tables(result: Result, *, title: str, first: str) -> list[Table]:
    measures = list(result["rows"][0]["values"])
    rows = []
    for row in result["rows"]:
        cells: list[Any] = [row["name"], *row["values"].values()]
        if "p" in row:
            cells.append("" if row["p"] is None else chance(row["p"][measures[0]]))
        rows.append((*cells, row["fvu"], f"{row['dead']:.0%}", f"{row['accuracy']:.0%}"))
    tested = (f"p, {measures[0]}",) if "p" in result["rows"][0] else ()
    head = (first, *measures, *tested, "FVU", "dead", "accuracy")
    size = f"{result['documents']:,} documents and {result['queries']:,} queries"
    note = (
        f"trained here, {result['steps']} steps on {result['pairs']:,} pairs from {result['where']}; measured on "
        f"{size}; {TRAINED_K} latents a token; accuracy: of the last batch"
        f"{'; p: against the row above' if tested else ''}"
    )
    return [Table(title, head, tuple(rows), note)]


def _ablation_figures(result: Result) -> list[Figure]:
    measure = next(iter(result["rows"][0]["values"]))
    values = {row["name"]: row["values"][measure] for row in result["rows"]}
    return [Figure(partial(plots.bars, values, label=measure), f"{measure} as losses are added")]


def _width_figures(result: Result) -> list[Figure]:
    measure = next(iter(result["rows"][0]["values"]))
    points = [(row["latents"], row["values"][measure]) for row in result["rows"]]
    draw = partial(plots.lines, {"ssr": points}, x_label="latents", y_label=measure)
    return [Figure(draw, f"{measure} against the number of latents")]


SMALL = (
    "Small lexicons, trained in minutes on this machine: their order is to be read, not their height. A real one has "
    "16 times the latents and is trained on far more texts; for that see the page on training."
)
SECTIONS = (
    Section(
        "losses",
        "What each loss adds",
        "Is it worth it to revive dead latents, to set tokens against each other, and to learn from pairs?",
        _ablation,
        partial(_tables, title="losses, one after the other", first="losses"),
        _ablation_figures,
        reading=SMALL,
        papers=("ssr",),
        sizes=("tokens", "latents", "steps", "lessons"),
    ),
    Section(
        "latents",
        "How many latents",
        "How does quality change with the number of latents?",
        _widths,
        partial(_tables, title="lexicons of other sizes, all losses", first="latents"),
        _width_figures,
        reading=SMALL,
        papers=("ssr",),
        sizes=("tokens", "latents", "steps", "lessons"),
    ),
)
