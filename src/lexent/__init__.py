"""Turn any dense text retriever into a readable, steerable, exact search engine.

    index = lexent.index("papers.jsonl", out="papers.lexent")
    hits = index.search("do statins prevent dementia?", k=10)
    print(hits[0].explain())

Every name is loaded when it is first used, so that `import lexent` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lexent.artifact import lexent_version
    from lexent.build import index
    from lexent.corpus.sources import read
    from lexent.engine import Index
    from lexent.errors import LexentError
    from lexent.evaluation.evaluate import evaluate
    from lexent.evaluation.tuning import tune
    from lexent.lexicon import Lexicon
    from lexent.lexicon import load as load_lexicon
    from lexent.models import load_encoder
    from lexent.recipes import Recipe
    from lexent.search.feedback import Feedback
    from lexent.search.modes import Fast
    from lexent.search.results import Hit, Results
    from lexent.training.reconstruction.train import train
    from lexent.training.reconstruction.trainer import TrainConfig
    from lexent.training.ssr.config import RetrievalConfig
    from lexent.types import Document

    open = Index.open
    restore = Index.restore
    __version__ = lexent_version()

_PLACES = {
    "Document": "lexent.types:Document",
    "Fast": "lexent.search.modes:Fast",
    "Feedback": "lexent.search.feedback:Feedback",
    "Hit": "lexent.search.results:Hit",
    "Index": "lexent.engine:Index",
    "Lexicon": "lexent.lexicon:Lexicon",
    "LexentError": "lexent.errors:LexentError",
    "Recipe": "lexent.recipes:Recipe",
    "Results": "lexent.search.results:Results",
    "RetrievalConfig": "lexent.training.ssr.config:RetrievalConfig",
    "TrainConfig": "lexent.training.reconstruction.trainer:TrainConfig",
    "evaluate": "lexent.evaluation.evaluate:evaluate",
    "index": "lexent.build:index",
    "load_encoder": "lexent.models:load_encoder",
    "load_lexicon": "lexent.lexicon:load",
    "open": "lexent.engine:Index.open",
    "read": "lexent.corpus.sources:read",
    "restore": "lexent.engine:Index.restore",
    "train": "lexent.training.reconstruction.train:train",
    "tune": "lexent.evaluation.tuning:tune",
}

__all__ = [
    "Document",
    "Fast",
    "Feedback",
    "Hit",
    "Index",
    "LexentError",
    "Lexicon",
    "Recipe",
    "Results",
    "RetrievalConfig",
    "TrainConfig",
    "__version__",
    "evaluate",
    "index",
    "load_encoder",
    "load_lexicon",
    "open",
    "read",
    "restore",
    "train",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from lexent.artifact import lexent_version

        return lexent_version()
    if name not in _PLACES:
        raise AttributeError(f'module "lexent" has no attribute "{name}"; it has: {", ".join(__all__)}')
    module, _, path = _PLACES[name].partition(":")
    found: Any = import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
