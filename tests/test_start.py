"""The first seconds: NumPy answers as the kernels do, nothing waits for them, and torch is not needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexent import compiled, cpu
from lexent.encoders.encoder import encode
from lexent.engine import Index
from lexent.errors import ArtifactError, InputError, LexentError
from lexent.indexing.segment import Codes, Tombstones
from lexent.kernel_groups import GROUPS
from lexent.lexicon.concepts import MadeConcepts
from lexent.models import load_encoder, load_lexicon
from lexent.search.document_scorer import DocumentScorer
from lexent.types import RowCodes
from lexent.weighting.pooling import pool, strongest
from small import build
from test_binary import RECIPE as BINARY_RECIPE
from test_kernels import RECIPES, SIZE, documents, packed, queries

every_recipe = st.sampled_from([*RECIPES, BINARY_RECIPE])
TEXTS = ["do statins prevent dementia?", "Wind loads on bridges. " * 30, "x", ""]


def both(work: Callable[[], list[Any]]) -> tuple[list[Any], list[Any]]:
    """What a step gives by kernels, and by NumPy."""
    with compiled.forced("compiled"):
        by_kernels = work()
    with compiled.forced("numpy"):
        return by_kernels, work()


def assert_same(found: tuple[list[Any], list[Any]]) -> None:
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


# --- equal answers ---------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6), n=st.integers(0, 3000), recipe=every_recipe, chunk=st.sampled_from([1, 300, 65_536]),
)  # fmt: skip
def test_numpy_packs_the_same_bytes(seed: int, n: int, recipe: Any, chunk: int) -> None:
    codes = documents(seed, n if chunk > 1 else n % 40)
    assert_same(both(lambda: list(packed(codes, recipe, chunk=chunk).arrays.values())))


def test_numpy_packs_the_same_bytes_of_a_full_chunk() -> None:
    codes = documents(2, 65_536, size=60)
    assert_same(both(lambda: list(packed(codes, _bm25(), size=60).arrays.values())))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 3000), recipe=every_recipe, chunk=st.sampled_from([300, 65_536]))
def test_numpy_searches_as_the_kernels_do(seed: int, n: int, recipe: Any, chunk: int) -> None:
    segment = packed(documents(seed, n), recipe, chunk=chunk)
    asked = queries(seed, 6, SIZE, signs=seed % 2 == 0)
    allowed = [np.random.default_rng(seed).random(n) < 0.3]
    gone = np.random.default_rng(seed + 1).random(n) < 0.2

    def work() -> list[Any]:
        scorer = DocumentScorer([segment], recipe, size=SIZE + 3, tombstones=[Tombstones.of(segment, gone)])
        top, some = (scorer.top_weighted(asked, 10, allowed=mask, threads=1) for mask in (None, allowed))
        read = scorer.documents(np.arange(0, n, 1 + n // 90))
        every = Codes.concatenate(list(segment.unpack()))
        return [
            top.positions, top.scores, some.positions, some.scores, read.ids, read.values, read.offsets,
            *scorer.scores(*asked.of(1)), *scorer.contributions(n // 2, *asked.of(2)), every.ids, every.codes,
            scorer.df_within(np.arange(SIZE, dtype=np.int32), allowed), scorer.df,
        ]  # fmt: skip

    assert_same(both(work))


@pytest.mark.parametrize("recipe", [RECIPES[0], BINARY_RECIPE], ids=lambda recipe: recipe.name)
def test_a_chunk_that_is_not_kept_decoded_gives_the_same(recipe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lexent.topk.numpy_scores.KEPT_ELEMENTS", 10)
    monkeypatch.setattr("lexent.topk.numpy_scores.LISTS_AT_A_TIME", 7)
    monkeypatch.setattr("lexent.indexing.postings.numpy_lists.FLAGS_AT_A_TIME", 4000)
    test_numpy_searches_as_the_kernels_do.hypothesis.inner_test(5, 2500, recipe, 65_536)  # type: ignore[attr-defined]


@pytest.mark.parametrize("recipe", [RECIPES[0], BINARY_RECIPE], ids=lambda recipe: recipe.name)
@pytest.mark.parametrize("name", ["records", "codes"])
def test_numpy_refuses_lists_outside_their_chunk(recipe: Any, name: str) -> None:
    segment = packed(documents(1, 700), recipe)
    arrays = {**segment.arrays, name: segment.arrays[name].copy()}
    if name == "records":
        arrays[name] += 4 * 10**6
    else:
        arrays[name][:] = 255  # words of bitmaps that claim more bytes than there are
    broken = type(segment)(arrays, segment.size)
    with compiled.forced("numpy"), pytest.raises(ArtifactError, match="damaged"):
        list(broken.unpack())


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(0, 12), maximum=st.booleans())
def test_numpy_pools_as_the_kernel_does(seed: int, n: int, maximum: bool) -> None:
    random = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(random.integers(0, 9, n))]).astype(np.int64)
    ids = np.argsort(random.random((offsets[-1], 20)), axis=1)[:, :6].astype(np.int32)
    values = (random.random(ids.shape) * (random.random(ids.shape) < 0.8)).astype(np.float32)
    codes = RowCodes(ids, values, offsets)

    def work() -> list[Any]:
        made = pool(codes, size=20, how="max" if maximum else "sum")
        coarse = np.round(made.values, 1)  # so that many are equal
        return [made.ids, made.values, made.offsets, strongest(coarse, made.offsets, 4)]

    assert_same(both(work))


def test_numpy_encodes_and_codes_as_the_kernels_do() -> None:
    encoder, lexicon = load_encoder(engine="light"), load_lexicon(None)

    def work() -> list[Any]:
        states = encode(encoder, TEXTS, kind="document")
        codes = lexicon.codes(states, k=8)
        return [states.numpy(), codes.ids, codes.values]

    (states, ids, values), (states_2, ids_2, values_2) = both(work)
    np.testing.assert_allclose(states, states_2, atol=2e-5)
    np.testing.assert_allclose(values, values_2, atol=2e-4)
    assert (ids == ids_2).mean() > 0.995  # but for ties


def test_a_text_has_the_same_states_alone_and_beside_others() -> None:
    encoder = load_encoder(engine="light")
    with compiled.forced("numpy"):
        alone = [encode(encoder, [text], kind="query").numpy() for text in TEXTS]
        np.testing.assert_array_equal(np.concatenate(alone), encode(encoder, TEXTS, kind="query").numpy())


def test_an_index_has_the_same_hits_either_way(tmp_path: Path) -> None:
    def work() -> list[Any]:
        with build(tmp_path / compiled.requested()) as index:
            hits = index.search("galaxy and comet light", k=30).hits
            given = [part.value for hit in hits for part in hit.explain().contributions]
            return [np.array([hit.id for hit in hits]), np.array([hit.score for hit in hits]), np.array(given)]

    by_kernels, by_numpy = both(work)
    assert by_kernels[0].tolist() == by_numpy[0].tolist()
    for one, other in zip(by_kernels[1:], by_numpy[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


# --- nothing waits ---------------------------------------------------------------------------------------------------


def run(code: str, *words: object, **environment: str) -> str:
    own = {name: value for name, value in os.environ.items() if name != "LEXENT_KERNELS"}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, env=own | environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_first_search_loads_no_numba(tmp_path: Path) -> None:
    build(tmp_path / "notes.lexent").close()
    code = (
        "import sys; sys.path.insert(0, sys.argv[2]); import lexent; from small import lexicon;"
        "index = lexent.open(sys.argv[1], lexicon=lexicon()); hits = index.search('bread and salt').hits;"
        "hits[0].explain(); heavy = ('numba', 'torch', 'scipy', 'transformers', 'sentence_transformers');"
        "print(len(hits), [name for name in heavy if name in sys.modules])"
    )
    found = run(code, tmp_path / "notes.lexent", Path(__file__).parent, NUMBA_CACHE_DIR=str(tmp_path / "none"))
    assert found.split(maxsplit=1)[1].strip() == "[]"
    assert int(found.split()[0]) > 0
    assert not (tmp_path / "none").exists()


def test_kernels_are_made_ready_beside_the_work(tmp_path: Path) -> None:
    """A child compiles, a thread loads; the process goes on with NumPy until then, and ends at once when it is done."""
    code = """
import time
from lexent.weighting.pooling import KERNELS
assert not KERNELS.use(1.5)
assert not KERNELS.use(1.5)  # more than PATIENCE_S in all: now they are made ready
start = time.perf_counter()
while not KERNELS.use(0.01) and time.perf_counter() - start < 100:
    time.sleep(0.1)
print(KERNELS.is_ready, KERNELS.is_compiled())
"""
    folder = tmp_path / "compiled"
    assert run(code, NUMBA_CACHE_DIR=str(folder)).split() == ["True", "True"]
    assert list(folder.rglob("kernels.pool*.nbc"))


def test_a_process_ends_without_waiting_for_the_compiler(tmp_path: Path) -> None:
    code = "import time; from lexent.topk.kernels import KERNELS; KERNELS.prepare(); time.sleep(1.5); print('done')"
    start = perf_counter()
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path / "compiled")).strip() == "done"
    assert perf_counter() - start < 15  # the kernels of a search take half a minute


def test_a_step_of_bulk_waits_for_its_kernels() -> None:
    group = compiled.KernelGroup("none", "none", compile_s=7, exercise=lambda: None, entries=lambda: [None])
    with compiled.forced("auto"):
        assert group.use(7.1)
        assert not group.use(0.1)
        assert not group.use(compiled.LOADED_S + 0.1)  # there is nothing on the disk to load
    with compiled.forced("compiled"):
        assert group.use(0)
    with compiled.forced("numpy"):
        assert not group.use(10**6)


def test_the_mode_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEXENT_KERNELS", "steam")
    with pytest.raises(InputError, match=r'LEXENT_KERNELS.*"steam".*auto, compiled, numpy'):
        compiled.requested()


def test_what_is_compiled_ahead_is_what_searches_take(tmp_path: Path) -> None:
    """After `compile`, building and searching an index compiles nothing that has a twin in NumPy."""
    for group in GROUPS:
        group.compile()
        assert group.is_ready
        assert group.is_compiled()
    from lexent.indexing.postings import packing
    from lexent.sae import first_pass
    from lexent.topk import heap, random_access, weighted
    from lexent.weighting import kernels

    entries = [
        packing.invert, packing.plan, packing.write, packing.build_known, packing.document_sums, packing.unpack_chunk,
        weighted.top_k, heap.sort_heap, random_access.all_scores, random_access.codes_of, random_access.latents_of,
        random_access.count_within, kernels.pool, kernels.strongest, first_pass._code_tiles,
    ]  # fmt: skip
    code = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
from lexent.kernel_groups import GROUPS
from lexent.lexicon.concepts import MadeConcepts
for group in GROUPS:
    group.compile()
entries = [entry for group in GROUPS for entry in group._entries()]
before = [len(entry.signatures) for entry in entries]
from pathlib import Path
import numpy as np
from small import build
from lexent.models import load_encoder, load_lexicon
with build(Path(sys.argv[1])) as index:
    index.search("bread", k=3, filter={{"n": {{"lt": 20}}}})
    index.delete(["d1"])
    index.search("bread and salt").hits[0].explain()
    index.compact()
light, lexicon = load_encoder(engine="light"), load_lexicon(None)
from lexent.encoders.encoder import encode
lexicon.codes(encode(light, ["bread"], kind="query"), k=8)
after = [len(entry.signatures) for entry in entries]
print([entry.py_func.__name__ for entry, n, m in zip(entries, before, after) if m > n])
"""
    assert entries
    assert run(code, tmp_path / "notes.lexent", LEXENT_KERNELS="compiled").strip() == "[]"


def test_concepts_are_made_when_they_are_asked_for() -> None:
    concepts = load_lexicon(None).concepts
    every = concepts._all
    assert isinstance(every, MadeConcepts)
    assert concepts[5] is concepts[5 - len(concepts)]
    assert [one.id for one in concepts[2:9:3]] == [2, 5, 8]
    assert len(every._made) == 3
    for place in (len(concepts), -len(concepts) - 1):
        with pytest.raises(IndexError):
            concepts[place]
    assert [one.id for one in concepts] == list(range(len(concepts)))


def test_wrong_arguments_are_refused_before_models_are_loaded(tmp_path: Path) -> None:
    build(tmp_path / "notes.lexent").close()
    with Index.open(tmp_path / "notes.lexent", encoder="nowhere", lexicon="nowhere") as index:
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"k": 0}, "k is 0"),
            ({"filter": {"colour": "red"}}, "colour"),
            ({"mode": "fast"}, "no fast mode"),
            ({"steer": {"bread": "much"}}, "much"),
        ]
        for given_, named in wrong:
            with pytest.raises(LexentError, match=named):
                index.search("bread", **given_)
        with pytest.raises(LexentError, match="nowhere"):
            index.search("bread")


# --- without torch ---------------------------------------------------------------------------------------------------

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "sentence_transformers", "sklearn", "scipy"):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Blocked())
from lexent.cli import main
sys.argv[0] = "lexent"
main()
"""


def test_the_main_paths_need_no_torch(tmp_path: Path) -> None:
    texts = {
        "statins": "Statins did not prevent dementia in older adults.",
        "bridges": "Wind loads on bridges.",
        "mice": "Lovastatin slowed memory loss in mice.",
    }
    for name, chosen in (("notes", ["statins", "bridges"]), ("more", ["mice"])):
        rows = [json.dumps({"id": key, "text": texts[key]}) for key in chosen]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    index = tmp_path / "notes.lexent"

    def lexent(*words: object) -> str:
        return run(BLOCKED, *words, LEXENT_PROGRESS="0", LEXENT_CACHE=str(tmp_path / "cache"))

    lexent("index", tmp_path / "notes.jsonl", "--out", index)
    lexent("add", index, tmp_path / "more.jsonl")
    found = json.loads(lexent("search", index, "cholesterol and memory", "-k", 3, "--json"))
    assert found["hits"][0]["id"] in ("statins", "mice")
    assert "dementia" in lexent("search", index, "do statins prevent dementia", "--explain")
    assert "statins" in lexent("explain", index, "do statins prevent dementia", "statins")
    assert "rank" in lexent("search", index, "statins", "--fuse", "bm25")
    lexent("delete", index, "bridges")
    lexent("compact", index)
    assert "light" in lexent("doctor")
    assert "query" in lexent("demo", "--entries", 12, "-q", "read a compressed file")


@pytest.mark.parametrize("verb", ["train", "adapt"])
def test_what_needs_torch_names_the_extra(tmp_path: Path, verb: str) -> None:
    (tmp_path / "notes.jsonl").write_text(json.dumps({"id": "a", "text": "Wind loads on bridges."}))
    words = {"train": ["train", tmp_path / "notes.jsonl", "--out", tmp_path / "new"]}
    words["adapt"] = ["adapt", "train", "scifact", "--out", tmp_path / "new"]
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, *map(str, words[verb])], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 7, done.stderr
    assert 'pip install "lexent[train]"' in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("error")]) == 1


# --- threads ---------------------------------------------------------------------------------------------------------


def test_threads_can_be_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEXENT_THREADS", "NUMBA_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert cpu.threads() == cpu.cores() >= 1
    monkeypatch.setenv("NUMBA_NUM_THREADS", "5")
    assert cpu.threads() == 5
    monkeypatch.setenv("LEXENT_THREADS", "3")
    assert cpu.threads() == 3
    for wrong in ("0", "two", "-1", "1.5"):
        monkeypatch.setenv("LEXENT_THREADS", wrong)
        with pytest.raises(InputError, match=r"LEXENT_THREADS.*at least 1.*export LEXENT_THREADS="):
            cpu.threads()


def test_a_query_starts_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    started: list[str] = []
    before = threading.Thread.start

    def start(self: threading.Thread) -> None:
        started.append(self.name)
        before(self)

    encoder, lexicon = load_encoder(engine="light"), load_lexicon(None)
    documents = [{"id": str(n), "text": text} for n, text in enumerate(TEXTS[:3])]
    import lexent

    monkeypatch.setenv("LEXENT_THREADS", "2")
    for mode in ("numpy", "compiled"):
        with (
            compiled.forced(mode),
            lexent.index(  # type: ignore[arg-type]
                documents, out=tmp_path / mode, encoder=encoder, lexicon=lexicon
            ) as index,
        ):
            index.search("bridges")
            monkeypatch.setattr(threading.Thread, "start", start)
            assert index.search("wind and statins").hits
            monkeypatch.setattr(threading.Thread, "start", before)
    assert started == []


def test_blas_has_one_thread_meanwhile_and_its_own_number_after() -> None:
    library = cpu._openblas()
    if library is None:
        pytest.skip("NumPy multiplies by another library here")
    before = library.get()
    with ThreadPoolExecutor(4) as pool:

        def inside(_: int) -> int:
            with cpu.one_blas_thread():
                sleep(0.01)
                return library.get()

        assert set(pool.map(inside, range(40))) == {1}
    assert library.get() == before


def _bm25() -> Any:
    from lexent.recipes import Recipe

    return Recipe(name="bm25")
