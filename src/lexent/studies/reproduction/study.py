"""What is reproduced: a paper with the tables that it reports (papers.toml), a collection, and systems."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lexent import recipes
from lexent.artifact import lexent_version
from lexent.errors import MismatchError, NotFoundError
from lexent.evaluation import cache
from lexent.evaluation.baselines import DenseMaxSim
from lexent.evaluation.collections import Collection, load
from lexent.evaluation.progress import Progress
from lexent.evaluation.systems import BASELINES, Bench, EncoderLike, Latent, LexiconLike, System, TokenMatch
from lexent.studies.analyses.table import Table

if TYPE_CHECKING:
    from lexent.encoders import Encoder


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper: its recipes, what it measured on, and its tables by the section that they belong to."""

    name: str
    title: str
    source: str
    recipes: tuple[str, ...]
    setting: str
    """The encoder and the data of the paper's figures."""
    tables: dict[str, tuple[Table, ...]]


def _read() -> dict[str, Paper]:
    found = tomllib.loads(resources.files(__package__).joinpath("papers.toml").read_text(encoding="utf-8"))
    papers = {}
    for name, values in found.items():
        tables = {section: tuple(map(Table.from_json, several)) for section, several in values["tables"].items()}
        papers[name] = Paper(**{**values, "name": name, "recipes": tuple(values["recipes"]), "tables": tables})
    return papers


PAPERS: dict[str, Paper] = _read()


def paper_of(name: str) -> Paper:
    """The paper of that name."""
    if name not in PAPERS:
        raise NotFoundError(f'no paper "{name}"; papers: {", ".join(PAPERS)}')
    return PAPERS[name]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of the samples, where all would take long. The report states them."""

    queries: int = 200
    """Queries whose explanations are tested."""
    draws: int = 5
    """Random orders of each explanation."""
    tokens: int = 1000
    """Documents whose token states are rebuilt."""
    texts: int = 2000
    """Documents that names are tested on."""
    concepts: int = 200
    """Concepts whose names are tested."""
    questions: int = 100
    """Questions of each other test of names."""
    limit: int = 1000
    """Documents of the LIMIT collection that is made."""
    latents: int = 1024
    """Latents of the lexicons that are trained."""
    steps: int = 150
    """Steps of their training."""
    lessons: int = 500
    """Pairs and documents that they are trained on."""


@dataclass(frozen=True, slots=True)
class Study:
    """All that the sections of a report read."""

    paper: Paper
    source: str | Path | Collection
    collection: Collection
    bench: Bench
    systems: tuple[Latent, ...]
    """The paper's recipes that match by concepts of whole documents."""
    others: tuple[Latent, ...]
    """The other recipes, where there are lexicons for them."""
    measures: tuple[str, ...]
    content: str
    """A hash of all texts and judgements."""
    sizes: Sizes = field(default_factory=Sizes)
    progress: Progress | None = None
    matches: tuple[TokenMatch, ...] = ()
    """The paper's recipes that match tokens."""

    @staticmethod
    def of(
        paper: str,
        collection: str | Path | Collection,
        *,
        encoder: EncoderLike = None,
        lexicon: LexiconLike = None,
        measures: tuple[str, ...] = ("nDCG@10", "R@100"),
        split: str | None = None,
        sizes: Sizes | None = None,
        progress: Progress | None = None,
    ) -> Study:
        """The study of a paper, by its name, on a collection."""
        chosen = paper_of(paper)
        bench = Bench(encoder=encoder, lexicon=lexicon)
        own = [bench.recipe(name) for name in chosen.recipes]
        loaded = load(collection, split=split)
        return Study(
            paper=chosen,
            source=collection,
            collection=loaded,
            bench=bench,
            systems=tuple(each for each in own if isinstance(each, Latent)),
            others=() if chosen.name in ("ssr", "uhd") else tuple(_others(bench, chosen)),
            measures=measures,
            content=cache.key({"qrels": loaded.qrels}, [*loaded.query_texts, *loaded.texts]),
            sizes=sizes or Sizes(),
            progress=progress,
            matches=tuple(each for each in own if isinstance(each, TokenMatch) and each.able),
        )

    @property
    def encoder(self) -> Encoder:
        """The encoder of the study."""
        return self.bench.encoder

    @property
    def own(self) -> list[Latent | TokenMatch]:
        """The paper's recipes."""
        return [*self.systems, *self.matches]

    @property
    def every(self) -> list[System]:
        """The paper's recipes, the other recipes, and the baselines; beside MaxSim over codes that over states."""
        states = [DenseMaxSim(self.encoder)] if self.matches else []
        return [*self.own, *self.others, *states, *(self.bench.system(name) for name in BASELINES)]

    def key(self, section: str, *, version: int, every: bool = False, sizes: tuple[str, ...] = ()) -> str:
        """A hash over everything that a section's result depends on.

        every: it measures the other recipes too. sizes: those of `Sizes` that count there.
        """
        latent = [*self.own, *(self.others if every else ())]
        parts = {
            "section": section,
            "version": version,
            "lexent": lexent_version(),
            "paper": self.paper.name,
            "collection": (self.collection.name, self.collection.split),
            "content": self.content,
            "encoder": self.encoder.fingerprint,
            "systems": [(system.name, system.recipe.to_dict(), _hash(system)) for system in latent],
            "names": [_names(system) for system in self.systems] if section in ("names", "categories") else None,
            "measures": self.measures,
            "sizes": {name: getattr(self.sizes, name) for name in sizes},
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def head(self) -> dict[str, Any]:
        """What the report is about."""
        return {
            "paper": self.paper.name,
            "title": self.paper.title,
            "source": self.paper.source,
            "setting": self.paper.setting,
            "collection": self.collection.name,
            "split": self.collection.split,
            "documents": len(self.collection.documents),
            "queries": len(self.collection.queries),
            "encoder": self.encoder.id,
            "recipes": {system.name: system.recipe.to_dict() for system in self.own},
            "lexicons": {
                system.name: {"name": system.lexicon.name, "hash": system.lexicon.hash, "size": system.lexicon.size}
                for system in [*self.own, *self.others]
            },
        }


def _others(bench: Bench, paper: Paper) -> list[Latent]:
    found = []
    for name in recipes.RECIPES:
        if name not in paper.recipes:
            try:
                found.append(bench.latent(name))
            except (MismatchError, NotFoundError):  # no lexicon of that level for this encoder
                continue
    return found


def _hash(system: Latent | TokenMatch) -> str:
    """Changes when codes would, also where its encoder was trained with it."""
    lexicon = system.lexicon
    return lexicon.hash if lexicon.own_encoder is None else f"{lexicon.hash} {lexicon.encoder_fingerprint}"


def _names(system: Latent) -> str:
    labels = "\n".join(f"{concept.label}\t{concept.category}" for concept in system.lexicon.concepts)
    return hashlib.sha256(labels.encode()).hexdigest()
