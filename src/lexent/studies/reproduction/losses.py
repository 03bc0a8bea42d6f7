"""Sections about training codes for retrieval: what each loss adds, and how many latents are enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lexent.evaluation import measures as scoring
from lexent.evaluation.progress import report
from lexent.evaluation.training_split import training_split_beside
from lexent.lexicon import Concept, Concepts, Lexicon
from lexent.lexicon.lexicon import LexiconInfo
from lexent.nan_safe import p_text
from lexent.studies.analyses.table import Column, Table, measured
from lexent.studies.reproduction import plots
from lexent.studies.reproduction.encoded_corpus import encoded_corpus
from lexent.studies.reproduction.section import Figure, Result, Section, first_measure
from lexent.studies.reproduction.study import Study
from lexent.training.pair_sources import judged_pairs
from lexent.training.pairs import Pairs
from lexent.training.ssr.config import RetrievalConfig
from lexent.training.stream import StateStream

if TYPE_CHECKING:
    from lexent.recipes import Recipe
    from lexent.sae.autoencoder import SparseAutoencoder

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
    last = trainer.run(progress=lambda now: report("training", now.step, study.sizes.steps))
    info = LexiconInfo(f"small-{size}", study.encoder.id, study.encoder.fingerprint, "tokens", match="maxsim")
    concepts = Concepts([Concept(latent, f"concept {latent}") for latent in range(size)])
    return Lexicon(trainer.result()[0], concepts, info), last


def _compared(study: Study, runs: dict[str, tuple[int, dict[str, Any]]]) -> Result:
    """Lexicons on the documents that are held. runs: a name to the number of latents and the losses."""
    pairs, where = lessons(study)
    documents = encoded_corpus(study)
    starts: dict[int, SparseAutoencoder] = {}
    rows: list[Result] = []
    before: scoring.Scores | None = None
    for name, (latents, losses) in runs.items():
        if latents not in starts:
            starts[latents] = _start(study, pairs, latents=latents)
        lexicon, last = _trained(study, pairs, starts[latents], **losses)
        recipe: Recipe = study.matches[0].recipe.having(k=lexicon.sae.config.k)
        scores = documents.searched(lexicon, recipe, study)[2]
        row = {"name": name, "values": scores.means, "latents": lexicon.token_size}
        row["p"] = before and scores.p_values(before)
        rows.append({**row, "fvu": last.fvu, "dead": last.dead, "accuracy": last.accuracy})
        before = scores
    return {
        "rows": rows,
        "pairs": len(pairs),
        "where": where,
        "steps": study.sizes.steps,
        "documents": len(documents.collection.documents),
        "queries": len(documents.collection.queries),
    }


def _losses(study: Study) -> Result:
    return _compared(study, {name: (study.sizes.latents, losses) for name, losses in LOSSES.items()})


def _latents(study: Study) -> Result:
    sizes = [max(round(share * study.sizes.latents), TRAINED_K) for share in SHARES]
    return _compared(study, {f"{latents:,}": (latents, {}) for latents in sizes})


def _table(result: Result, *, title: str, first: str) -> Table:
    measure = first_measure(result)
    columns: list[Column] = [
        (first, "name"),
        *measured(result["rows"][0]["values"]),
        (f"p, {measure}", lambda row: p_text(row["p"] and row["p"][measure])),
        ("FVU", "fvu"),
        ("dead", "{dead:.0%}"),
        ("accuracy", "{accuracy:.0%}"),
    ]
    note = (
        "trained here, {steps} steps on {pairs:,} pairs from {where}; measured on {documents:,} documents and "
        "{queries:,} queries; "
    ).format_map(result)
    note += f"{TRAINED_K} latents a token; accuracy: of the last batch; p: against the row above"
    return Table.of(title, result["rows"], columns, note)


def _show_losses(result: Result) -> list[Table | Figure]:
    measure = first_measure(result)
    values = {row["name"]: row["values"][measure] for row in result["rows"]}
    drawn = Figure(plots.bars(values, label=measure), f"{measure} as losses are added")
    return [_table(result, title="losses, one after the other", first="losses"), drawn]


def _show_latents(result: Result) -> list[Table | Figure]:
    measure = first_measure(result)
    points = [(row["latents"], row["values"][measure]) for row in result["rows"]]
    drawn = plots.lines({"ssr": points}, x_label="latents", y_label=measure)
    table = _table(result, title="lexicons of other sizes, all losses", first="latents")
    return [table, Figure(drawn, f"{measure} against the number of latents")]


SMALL = (
    "Small lexicons, trained in minutes on this machine: their order is to be read, not their height. A real one has "
    "16 times the latents and is trained on far more texts; for that see the page on training."
)
SECTIONS = (
    Section(
        "losses",
        "What each loss adds",
        "Is it worth it to revive dead latents, to set tokens against each other, and to learn from pairs?",
        _losses,
        _show_losses,
        reading=SMALL,
        papers=("ssr",),
        sizes=("tokens", "latents", "steps", "lessons"),
    ),
    Section(
        "latents",
        "How many latents",
        "How does quality change with the number of latents?",
        _latents,
        _show_latents,
        reading=SMALL,
        papers=("ssr",),
        sizes=("tokens", "latents", "steps", "lessons"),
        version=2,
    ),
)
