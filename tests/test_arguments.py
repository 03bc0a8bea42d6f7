"""Every public function checks what it is given: a value that it cannot use is a LexentError, whatever its type."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lexent
import small
from commands import program
from lexent import recipes
from lexent.corpus import read
from lexent.encoders import ArrayEncoder, TinyEncoder
from lexent.encoders.encoder import encode
from lexent.engine import Index
from lexent.errors import InputError, LexentError, NotFoundError
from lexent.evaluation import Collection
from lexent.explain import why
from lexent.recipes import BM25, Recipe
from lexent.search import Fast, Feedback
from lexent.search.fusion import Fusion
from lexent.training.reconstruction.trainer import TrainConfig

WRONG: list[Any] = [
    *(None, True, 0, -1, 12, 1.5, float("nan"), "", "zzz", "12", b"zzz", object(), print),
    *("\ud800", ["\ud800"], [{"text": "zzz", "\ud800": 1}], {"\ud800": 1}, {"zzz": 1e300}, 1e300),
    *([], [None], [12], ["zzz"], [object()], {}, {"zzz": object()}, {1: 2}, {"zzz"}, np.zeros(3), Path("zzz")),
]
"""Values of every type. A parameter takes some of them; the others must be refused by a LexentError."""

COLLECTION = Collection("small", small.documents(12), {"q": "yeast dough"}, {"q": {"d0": 1}})


class Place:
    """An index, and folders that nobody used before."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._numbers = folder, count()
        self.index = small.build(folder / "index", small.documents(12), extras=["dense"])
        self.hit = self.index.search("yeast dough")[0]
        self.fused = self.index.search_fused("yeast dough")
        self.lexicon = small.lexicon()
        self.backup = folder / "backup.tar"
        self.index.backup(self.backup)
        self.states = encode(TinyEncoder(), ["yeast dough"], kind="query")

    def fresh(self) -> Path:
        return self.folder / f"new-{next(self._numbers)}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("arguments"))
    yield made
    made.index.close()


PARTS: dict[str, Any] = {"encoder": TinyEncoder(), "lexicon": small.lexicon()}
SMALL = TrainConfig(d_sae=8, k=2, batch=2)
TEXTS = ["flour and yeast", "dough in the oven", "a king and a rook", "pawn and bishop", "dream at night"]

CALLS: dict[str, Callable[[Place], tuple[Callable[..., Any], dict[str, Any]]]] = {
    "index": lambda at: (lexent.index, {"source": TEXTS, "out": at.fresh(), **PARTS}),
    "Index.build": lambda at: (Index.build, {"documents": small.documents(3), "out": at.fresh(), **PARTS}),
    "open": lambda at: (lexent.open, {"path": at.index.path, **PARTS}),
    "restore": lambda at: (lexent.restore, {"file": at.backup, "out": at.fresh()}),
    "Index.restore": lambda at: (Index.restore, {"file": at.backup, "out": at.fresh()}),
    "Index.backup": lambda at: (at.index.backup, {"file": at.fresh()}),
    "Index": lambda at: (Index, {"path": at.index.path, **PARTS}),
    "Index.search": lambda at: (at.index.search, {"query": "yeast"}),
    "Index.search_fused": lambda at: (at.index.search_fused, {"query": "yeast"}),
    "Index.search_many": lambda at: (at.index.search_many, {"queries": ["yeast"]}),
    "Index.dense_search": lambda at: (at.index.dense_search, {"query": "yeast"}),
    "Index.query": lambda at: (at.index.query, {"text": "yeast"}),
    "Index.concepts": lambda at: (at.index.concepts, {"query": at.index.query("yeast")}),
    "Index.explain": lambda at: (at.index.explain, {"query": "yeast", "id": "d1"}),
    "Index.document": lambda at: (at.index.document, {"id": "d1"}),
    "Index.add": lambda at: (at.index.add, {"source": [{"id": str(at.fresh()), "text": "salt"}]}),
    "Index.upsert": lambda at: (at.index.upsert, {"source": [{"id": "d1", "text": "salt"}]}),
    "Index.delete": lambda at: (at.index.delete, {"ids": [], "missing": True}),
    "Index.compact": lambda at: (at.index.compact, {}),
    "Index.rename": lambda at: (at.index.rename, {"concept": 3, "label": at.fresh().name}),
    "Hit.explain": lambda at: (at.hit.explain, {}),
    "Hit.tokens": lambda at: (at.hit.tokens, {"concept": at.hit.explain().contributions[0].concept}),
    "Hit.to_dict": lambda at: (at.hit.to_dict, {}),
    "Results.to_dict": lambda at: (at.index.search("yeast").to_dict, {}),
    "FusedResults.to_dict": lambda at: (at.fused.to_dict, {}),
    "FusedHit.to_dict": lambda at: (at.fused[0].to_dict, {}),
    "Explanation.top": lambda at: (at.hit.explain().top, {"n": 1}),
    "why": lambda at: (why, {"index": at.index, "query": "yeast", "doc_id": "d1"}),
    "read": lambda at: (read, {"source": [{"id": "1", "text": "salt"}]}),
    "Document": lambda at: (lexent.Document, {"id": "1", "text": "salt"}),
    "Recipe": lambda at: (Recipe, {"name": "mine"}),
    "Recipe.from_dict": lambda at: (Recipe.from_dict, {"values": recipes.get("clsr").to_dict()}),
    "Recipe.setting": lambda at: (recipes.get("clsr").setting, {"name": "k1"}),
    "Recipe.k_for": lambda at: (recipes.get("ssr").k_for, {"kind": "query"}),
    "Recipe.power_for": lambda at: (recipes.get("ssr").power_for, {"kind": "query"}),
    "BM25": lambda at: (lambda **given: Recipe("mine", weighting=BM25(**given)), {"k1": 1.0, "b": 0.4, "k2": 1.0}),
    "Feedback": lambda at: (Feedback, {}),
    "Fast": lambda at: (Fast, {}),
    "Fusion": lambda at: (Fusion, {}),
    "TrainConfig": lambda at: (TrainConfig, {}),
    "RetrievalConfig": lambda at: (lexent.RetrievalConfig, {}),
    "load_lexicon": lambda at: (lexent.load_lexicon, {"lexicon": small.lexicon()}),
    "load_encoder": lambda at: (lexent.load_encoder, {"encoder": "tiny"}),
    "Lexicon.find": lambda at: (at.lexicon.find, {"text": "concept"}),
    "Lexicon.resolve": lambda at: (at.lexicon.resolve, {"name": 3}),
    "Lexicon.label": lambda at: (at.lexicon.label, {"latent": 3}),
    "Lexicon.concept": lambda at: (at.lexicon.concept, {"latent": 3}),
    "Lexicon.neighbours": lambda at: (at.lexicon.neighbours, {"latent": 3}),
    "Lexicon.codes": lambda at: (at.lexicon.codes, {"states": at.states, "k": 2}),
    "Lexicon.save": lambda at: (at.lexicon.save, {"out": at.fresh()}),
    "Lexicon.check": lambda at: (at.lexicon.check, {"encoder": TinyEncoder()}),
    "Lexicon.random": lambda at: (lexent.Lexicon.random, {"encoder": TinyEncoder(), "size": 8, "k": 2}),
    "TinyEncoder.batches": lambda at: (_consumed(TinyEncoder().batches), {"texts": TEXTS, "kind": "query"}),
    "TinyEncoder.tokenize": lambda at: (TinyEncoder().tokenize, {"texts": TEXTS, "kind": "query"}),
    "ArrayEncoder.batches": lambda at: (
        _consumed(ArrayEncoder({"salt": np.ones((2, 3), np.float32)}).batches),
        {"texts": ["salt"], "kind": "query"},
    ),
    "evaluate": lambda at: (
        lexent.evaluate,
        {"collection": COLLECTION, "baselines": ["bm25"], "depth": 5, **PARTS},
    ),
    "tune": lambda at: (
        lexent.tune,
        {"collections": COLLECTION_TO_TUNE, "over": ["k1"], "grid": {"k1": [1.0]}, "queries": 1, **PARTS},
    ),
    "train": lambda at: (
        lexent.train,
        {"texts": TEXTS, "out": at.fresh(), "encoder": TinyEncoder(), "config": SMALL, "passes": 1},
    ),
}
COLLECTION_TO_TUNE = Collection("small", small.documents(12), {"q": "yeast dough"}, {"q": {"d0": 1}}, "train")
NO_NAMES = [wrong for wrong in WRONG if wrong is not None and not isinstance(wrong, str | Path)] + [""]
"""For encoders: a name would be looked for at length, and None loads the default one."""


def _consumed(batches: Callable[..., Any]) -> Callable[..., Any]:
    """Errors of a generator show when it is read."""

    def run(texts: Any, kind: Any, level: Any = "tokens", specials: Any = True) -> Any:
        return list(batches(texts, kind=kind, level=level, specials=specials))

    return run


def parameters() -> list[tuple[str, str]]:
    found = []
    signatures = {"BM25": BM25, "Index.build": Index.build, "Index.search": Index.search}
    for name in CALLS:
        code = signatures.get(name)
        if code is None:
            code = _function(name)
        found += [
            (name, parameter.name)
            for parameter in inspect.signature(code).parameters.values()
            if parameter.name != "self" and parameter.kind is not parameter.VAR_KEYWORD
        ]
    return found


def _function(name: str) -> Callable[..., Any]:
    """What a name of CALLS calls, without an index: to read its parameters."""
    from lexent.explain.contributions import Explanation
    from lexent.search.fused import FusedHit, FusedResults
    from lexent.search.results import Hit, Results

    kinds = {"Hit": Hit, "Results": Results, "FusedResults": FusedResults, "FusedHit": FusedHit, "Index": Index}
    kinds |= {"Explanation": Explanation, "Lexicon": lexent.Lexicon, "Recipe": Recipe}
    kinds |= {"TinyEncoder": TinyEncoder, "ArrayEncoder": ArrayEncoder}
    kind, _, method = name.partition(".")
    if method:
        return getattr(kinds[kind], method)
    others = {"why": why, "read": read, "Feedback": Feedback, "Fast": Fast, "Fusion": Fusion, "Recipe": Recipe}
    others |= {"TrainConfig": TrainConfig, "Document": lexent.Document, "Index": Index}
    return others.get(name) or getattr(lexent, name)


@pytest.mark.parametrize(("name", "parameter"), parameters())
def test_a_wrong_value_is_a_lexent_error(place: Place, name: str, parameter: str, monkeypatch: Any) -> None:
    monkeypatch.chdir(place.folder)
    refused = 0
    for wrong in NO_NAMES if parameter == "encoder" else WRONG:
        function, good = CALLS[name](place)
        try:
            function(**{**good, parameter: wrong})
        except LexentError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"{name}({parameter}={wrong!r}) raised {type(error).__name__}: {error}") from error
    assert refused, f"{name} takes anything for {parameter}"


@pytest.mark.parametrize("name", list(CALLS))
def test_the_calls_are_good_without_the_wrong_value(place: Place, name: str) -> None:
    function, good = CALLS[name](place)
    function(**good)


def test_every_public_function_is_tried() -> None:
    tried = {name.partition(".")[0] for name in CALLS}
    assert set(lexent.__all__) - {"LexentError", "__version__"} <= tried
    methods = {name for name, _ in inspect.getmembers(Index, callable) if not name.startswith("_")}
    assert methods - {"close", "info", "refresh", "verify", "retune", "open", "name_concepts"} == {
        name.partition(".")[2] for name in CALLS if name.startswith("Index.")
    }


# --- single strings, numbers of NumPy, and what errors say -------------------------------------------------------


def test_a_single_id_is_one_document(tmp_path: Path) -> None:
    rows = [{"id": id, "text": f"flour and yeast {id}"} for id in ("1", "2", "12", "3")]
    with lexent.index(rows, out=tmp_path / "i", **PARTS) as index:
        assert index.delete("12") == 1
        assert [index.document(id).id for id in ("1", "2", "3")] == ["1", "2", "3"]
        with pytest.raises(NotFoundError, match='no document "12"'):
            index.delete("12")
        assert index.delete(id for id in ("1", "2")) == 2
        with pytest.raises(InputError, match=r'ids\[0\] is 3; allowed: a string; write \["3"\]'):
            index.delete([3])  # type: ignore[list-item]
        with pytest.raises(InputError, match="ids is 3; allowed: the id of a document, or a list of ids"):
            index.delete(3)  # type: ignore[arg-type]
        assert len(index) == 1


def test_single_names_are_lists_of_one(tmp_path: Path) -> None:
    with small.build(tmp_path / "i", extras="dense") as index:
        assert index.info()["extras"] == ["dense"]
        one, several = (index.search("yeast", like=like, k=3) for like in ("d4", ["d4"]))
        assert [hit.id for hit in one] == [hit.id for hit in several]
        assert one.added == several.added
        assert one.added
        fused = [[hit.id for hit in index.search_fused("yeast", fuse=fuse)] for fuse in ("bm25", ["bm25"])]
        assert fused[0] == fused[1]


@pytest.mark.parametrize("query", [None, 12, ["yeast", "dough"], b"yeast"])
def test_a_query_that_is_no_string_says_what_to_call(tmp_path: Path, query: Any, place: Place) -> None:
    with pytest.raises(InputError, match=r"the query is .*; allowed: a string; for several .* index.search_many"):
        place.index.search(query)
    with pytest.raises(InputError, match=r"for one query call index\.search"):
        place.index.search_many("yeast")


def test_half_a_surrogate_pair_is_named(tmp_path: Path, place: Place) -> None:
    """In queries, documents and metadata; also one that the command line got as a byte that is not UTF-8."""
    bad = "sort \ud800 it"
    found = r"character \d is half a surrogate pair \('\\ud800'\), which UTF-8 cannot hold; allowed: valid Unicode"
    for search in (place.index.search, place.index.search_fused, place.index.query, place.index.dense_search):
        with pytest.raises(InputError, match=rf"the query: {found}"):
            search(bad)
    with pytest.raises(InputError, match=rf"queries\[1\]: {found}"):
        place.index.search_many(["yeast", bad])
    for source in ([bad], [{"text": bad}], [lexent.Document("x", bad)], [{"text": "yeast", bad: 1}]):
        with pytest.raises(InputError, match=found):
            place.index.add(source)
        with pytest.raises(InputError, match=found):
            lexent.index(source, out=place.fresh(), **PARTS)
    with pytest.raises(InputError, match=r"path that is valid Unicode"):
        lexent.index(["yeast"], out=tmp_path / bad, **PARTS)
    done = program("search", place.index.path, b"sort \xff it")
    assert done.returncode == 2
    assert done.stderr.startswith("error: the query holds bytes that are not UTF-8 (at character 6)")


@pytest.mark.parametrize("k", [0, -3, True, 2.0, "5", None])
def test_k_is_one_or_more(place: Place, k: Any) -> None:
    for search in (place.index.search, place.index.search_fused, place.index.dense_search):
        with pytest.raises(InputError, match=r"k is .*; allowed: .*1 or more"):
            search("yeast", k=k)
    with pytest.raises(InputError, match=r"k is .*; allowed: .*1 or more"):
        place.index.search_many(["yeast"], k=k)


def test_numbers_of_numpy_are_numbers(place: Place) -> None:
    assert len(place.index.search("yeast", k=np.int64(2))) == 2
    assert place.index.search("yeast", steer={np.int64(3): np.float32(0)})
    assert place.lexicon.resolve(np.int32(3)).id == 3
    assert Recipe("mine", k=np.int64(4), power=np.float32(0.5)).k == 4


def test_settings_of_the_wrong_type_are_refused(place: Place) -> None:
    with pytest.raises(InputError, match='k1 is "x"; allowed: a number'):
        lexent.open(place.index.path, retune={"k1": "x"}, **PARTS)
    with pytest.raises(InputError, match='no setting "kay1"; did you mean "k1"'):
        recipes.get("clsr").changed(kay1=3)
    with pytest.raises(InputError, match="latent is -1; allowed: from 0 to 95"):
        place.lexicon.label(-1)


@pytest.mark.parametrize("wrong", [1e300, 1000.5, float("inf"), float("nan"), -1.0])
def test_weights_have_a_limit(place: Place, wrong: float) -> None:
    """The server's limits hold for the Python API too: beyond them scores would be infinite or no numbers."""
    index, limit = place.index, r"from 0 .*to 1,000"
    with pytest.raises(InputError, match=rf"k1 is .*; allowed: {limit}"):
        lexent.open(index.path, retune={"k1": wrong}, **PARTS)
    with pytest.raises(InputError, match=r"k2 is .*; allowed: above 0, at most 1,000, or none"):
        Recipe("mine", weighting=BM25(k2=wrong))
    with pytest.raises(InputError, match=rf'the factor of "#3" is .*; allowed: {limit}'):
        index.search("yeast", steer={"#3": wrong})
    with pytest.raises(InputError, match=rf'the weight of "bm25" is .*; allowed: {limit}'):
        index.search_fused("yeast", fuse={"bm25": wrong})
    with pytest.raises(InputError, match=rf"weight of the feedback is .*; allowed: {limit}"):
        Feedback(weight=wrong)


def test_the_highest_weights_give_finite_scores(place: Place) -> None:
    with lexent.open(place.index.path, retune={"k1": 1000, "k2": 1000}, **PARTS) as index:
        found = index.search("yeast dough", steer={"#3": 1000}, feedback=Feedback(weight=1000))
        assert np.isfinite([hit.score for hit in found]).all()
        assert np.isfinite([hit.score for hit in index.search_fused("yeast dough", fuse={"bm25": 1000})]).all()
        assert len(found)


def test_factors_of_one_concept_multiply_up_to_the_limit(place: Place) -> None:
    assert place.index.search("yeast", steer={"#3": 10, 3: 100})
    with pytest.raises(InputError, match=r"the factors of concept #3 multiply to 1e\+06; allowed: at most 1,000"):
        place.index.search("yeast", steer={"#3": 1000, 3: 1000})
