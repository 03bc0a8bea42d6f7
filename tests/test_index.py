"""An index on disk: what is written is what is read, and damage or bad input is refused by name."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import small
from lexent import recipes
from lexent.encoders import TinyEncoder
from lexent.engine import Index
from lexent.errors import ArtifactError, InputError, MismatchError, NotFoundError, WriteError
from lexent.indexing.manifest import stamped, verify
from lexent.indexing.segment import Segment
from lexent.search import DocumentScorer
from lexent.types import Document

NAMES = "chunks codes df doublings known lengths packed_with records shorts"
ARRAYS = NAMES.split(" ")
FOLDER = "segments/000001"
STORED = ["documents.sqlite", "document-checksums.npy", "concept-words.npz", *(f"{array}.npy" for array in ARRAYS)]
FILES = sorted(["names-1.npz", *(f"{FOLDER}/{name}" for name in STORED)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A built index, closed."""
    small.build(tmp_path / "a.lexent").close()
    return tmp_path / "a.lexent"


def reopened(path: Path) -> Index:
    return Index.open(path, lexicon=small.lexicon())


def answers(index: Index) -> list[dict[str, object]]:
    return [results.to_dict() for results in index.search_many(["yeast dough", "night light", "king and queen"], k=7)]


def test_what_is_saved_and_opened_gives_the_same_answers(tmp_path: Path) -> None:
    built = small.build(tmp_path / "a")
    opened = reopened(tmp_path / "a")
    assert answers(built) == answers(opened)
    assert len(opened) == 40
    assert opened.document("d5") == small.documents()[5]
    assert opened.encoder.id == "tiny"


def test_the_index_equals_a_searcher_in_memory(path: Path) -> None:
    """The whole way by hand, without an index: represent, transform, search."""
    from lexent.pipeline import Pipeline
    from lexent.weighting import transform

    recipe, encoder, lexicon = recipes.get("latent-terms"), TinyEncoder(), small.lexicon()
    texts = [document.content for document in small.documents()]
    pooled = Pipeline(encoder, lexicon, recipe).represent(texts, kind="document")
    scorer = DocumentScorer.from_vectors(pooled, recipe)
    asked = Pipeline(encoder, lexicon, recipe).represent(["yeast dough"], kind="query")
    positions, scores = scorer.top(transform(asked, power=recipe.power_for("query"), cap=recipe.query_cap), 7)
    hits = reopened(path).search("yeast dough", k=7)
    assert [hit.id for hit in hits] == [f"d{position}" for position in positions[0]]
    assert [hit.score for hit in hits] == scores[0].tolist()


def test_documents_come_in_chunks_and_stay_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = small.build(tmp_path / "whole")
    monkeypatch.setattr("lexent.indexing.builder.DOCUMENTS_PER_CHUNK", 7)
    seen: list[int] = []
    parts = small.build(tmp_path / "parts", progress=seen.append)
    assert answers(parts) == answers(whole)
    assert sum(seen) == 40


def test_info_and_manifest(path: Path) -> None:
    info = reopened(path).info()
    assert info["documents"] == 40
    assert info["encoder"]["id"] == "tiny"
    assert info["recipe"]["name"] == "latent-terms"
    assert 0 < info["live_concepts"] <= info["concepts"] == 96
    manifest = json.loads((path / "manifest.json").read_text())
    assert sorted(manifest["files"]) == FILES
    assert info["bytes"] == sum((path / name).stat().st_size for name in FILES)


def test_a_recipe_travels_with_its_index(tmp_path: Path) -> None:
    recipe = recipes.get("latent-terms").changed(
        k1=1.5, b=0.9, idf="okapi", pool="max", document_cap=5, query_cap=3, prune=0.1, power=0.7
    )
    small.build(tmp_path / "a", recipe=recipe)
    opened = reopened(tmp_path / "a")
    assert opened.recipe == recipe
    assert opened.manifest.counts.postings <= 5 * 40
    assert len(opened.search("yeast dough oven").concepts) <= 3


# --- bad input ---------------------------------------------------------------------------------------------------


def test_an_empty_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no documents to index"):
        small.build(tmp_path / "a", [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("id", ["", "   "])
def test_an_empty_id_is_refused(tmp_path: Path, id: str) -> None:
    with pytest.raises(InputError, match=r"document 2 has the id .*begins: 'second'"):
        small.build(tmp_path / "a", [Document("a", "first"), Document(id, "second")])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("chunk", [2, 100])
def test_doubled_ids_are_refused_with_both_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr("lexent.indexing.builder.DOCUMENTS_PER_CHUNK", chunk)
    docs = [Document(id, "text") for id in ("a", "b", "c", "d", "b", "a")]
    with pytest.raises(InputError, match='documents 2 and 5 have the same id "b"'):
        small.build(tmp_path / "x", docs)
    assert list(tmp_path.iterdir()) == []


def test_text_and_metadata_that_cannot_be_kept_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"document 1, id 'a': character 5 is half a surrogate pair \('\\ud800'\)"):
        small.build(tmp_path / "a", [Document("a", "bad \ud800 text")])
    with pytest.raises(InputError, match=r'document 1, id "a".*metadata'):
        small.build(tmp_path / "a", [Document("a", "text", metadata={"x": object()})])


def test_odd_documents_are_kept(tmp_path: Path) -> None:
    long = "dough " * 170_000  # 1 MB
    docs = [
        Document("long", long),
        Document("empty", ""),
        Document("odd ' id/é\n", "rook 🙂\x00 pawn"),
        Document("?", "!"),
    ]
    index = small.build(tmp_path / "100% odd #?name", docs)
    assert index.document("long").text == long
    assert index.document("odd ' id/é\n").text == "rook 🙂\x00 pawn"
    assert index.search("rook pawn", k=100)[0].id == "odd ' id/é\n"
    assert index.search("dough")[0].id == "long"


def test_an_unknown_document_shows_what_ids_look_like(path: Path) -> None:
    with pytest.raises(NotFoundError, match='no document "nope" among 40; ids look like "d0", "d1", "d2"'):
        reopened(path).document("nope")


# --- other parts -------------------------------------------------------------------------------------------------


class OtherEncoder(TinyEncoder):
    id = "other"
    fingerprint = "other-1"


def test_another_encoder_is_refused(path: Path) -> None:
    with pytest.raises(MismatchError, match=r'encoder "tiny" \(tiny-1\); given: "other" \(other-1\).*build it again'):
        Index.open(path, encoder=OtherEncoder(), lexicon=small.lexicon())


def test_another_lexicon_is_refused(path: Path) -> None:
    with pytest.raises(MismatchError, match="was built with the lexicon"):
        Index.open(path, lexicon=small.lexicon(seed=1))


def test_an_encoder_and_a_lexicon_that_do_not_belong_together(tmp_path: Path) -> None:
    with pytest.raises(MismatchError, match=r'trained for the encoder "tiny".*lexent train'):
        small.build(tmp_path / "a", encoder=OtherEncoder())
    assert list(tmp_path.iterdir()) == []


def test_opening_loads_no_encoder(path: Path) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["encoder"]["source"] = str(path / "no-such-model")
    (path / "manifest.json").write_text(json.dumps(stamped(manifest)))
    index = reopened(path)
    assert index.document("d1").title == "stars"
    with pytest.raises(NotFoundError, match=r"cannot load the encoder.*--encoder NAME_OR_FOLDER"):
        index.search("dough")


def test_the_lexicon_is_found_again_by_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small.lexicon().save(tmp_path / "mine")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    before = answers(small.build(tmp_path / "a", lexicon="mine"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert answers(Index.open(tmp_path / "a")) == before
    (tmp_path / "mine").rename(tmp_path / "moved")
    with pytest.raises(NotFoundError, match=r"was built with the lexicon .*mine.* not found here.*--lexicon"):
        Index.open(tmp_path / "a").search("dough")
    assert answers(Index.open(tmp_path / "a", lexicon=tmp_path / "moved")) == before


# --- damage ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_a_missing_or_cut_file_is_refused_by_name(path: Path, name: str) -> None:
    data = (path / name).read_bytes()
    (path / name).write_bytes(data[: len(data) // 2])
    with pytest.raises(ArtifactError, match=f"{name} has .* bytes, the manifest says .*build the index again"):
        reopened(path)
    (path / name).unlink()
    with pytest.raises(ArtifactError, match=f"{name} is missing"):
        reopened(path)


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_byte_is_found_by_verify(path: Path, name: str) -> None:
    reopened(path).verify()
    data = bytearray((path / name).read_bytes())
    data[-7] ^= 0x10
    (path / name).write_bytes(data)
    with pytest.raises(ArtifactError, match=f"{name} changed since it was written"):
        verify(path)


def test_no_flipped_byte_crashes_an_open_or_a_search(path: Path) -> None:
    random = np.random.default_rng(0)
    for name in FILES:
        whole = (path / name).read_bytes()
        for _ in range(10):
            data = bytearray(whole)
            data[random.integers(len(data))] ^= 1 << int(random.integers(8))
            (path / name).write_bytes(data)
            try:
                index = reopened(path)
                index.search("yeast dough light", k=40)
                index.close()
            except (ArtifactError, NotFoundError):
                pass
        (path / name).write_bytes(whole)
    reopened(path).verify()


def test_arrays_of_another_form_are_refused(path: Path) -> None:
    folder = path / "segments/000001"
    good = np.load(folder / "codes.npy")
    for bad in (good.astype(np.uint32), good.reshape(1, -1), good[1:]):
        np.save(folder / "codes.npy", bad)
        with pytest.raises(ArtifactError, match=r"codes\.npy is uint|do not fit together"):
            Segment.open(folder, size=96, n_documents=40, length_units=0)
    np.save(folder / "codes.npy", good)
    chunks = np.load(folder / "chunks.npy")
    chunks[1, 1] -= 1
    np.save(folder / "chunks.npy", chunks)
    with pytest.raises(ArtifactError, match="do not fit together"):
        Segment.open(folder, size=96, n_documents=40, length_units=0)


def test_a_newer_format_and_a_broken_manifest(path: Path) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**manifest, "format": 99, "lexent": "7.0"}))
    with pytest.raises(ArtifactError, match=r"lexent 7\.0, format 99; .*pip install -U lexent"):
        reopened(path)
    (path / "manifest.json").write_text(json.dumps({**manifest, "format": 1, "lexent": "0.1"}))
    with pytest.raises(ArtifactError, match=r"format 1; this version reads from 6 on; build the index again"):
        reopened(path)
    (path / "manifest.json").write_text(json.dumps({**manifest, "counts": {}}))
    with pytest.raises(ArtifactError, match=r"manifest\.json changed since it was written"):
        reopened(path)
    (path / "manifest.json").write_text(json.dumps(stamped({**manifest, "counts": {}})))
    with pytest.raises(ArtifactError, match=r"manifest\.json cannot be read"):
        reopened(path)


# --- the disk ----------------------------------------------------------------------------------------------------


def test_an_interrupted_build_leaves_the_old_index(path: Path) -> None:
    before = answers(reopened(path))

    def interrupted() -> Iterator[Document]:
        yield from small.documents(10)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Index.build(interrupted(), out=path, encoder=TinyEncoder(), lexicon=small.lexicon(), overwrite=True)
    assert answers(reopened(path)) == before
    assert [entry.name for entry in path.parent.iterdir()] == ["a.lexent"]


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
import small
from pathlib import Path

def killed():
    yield from small.documents(10)
    os.kill(os.getpid(), signal.SIGKILL)

small.build(Path(sys.argv[1]), killed(), overwrite=True)
"""


def run(script: str, path: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, str(path), str(Path(__file__).parent), *more]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_killed_build_leaves_the_old_index(path: Path) -> None:
    before = answers(reopened(path))
    assert run(KILLED, path).returncode == -signal.SIGKILL
    assert answers(reopened(path)) == before
    small.build(path, small.documents(12), overwrite=True)
    assert len(reopened(path)) == 12
    assert [entry.name for entry in path.parent.iterdir()] == ["a.lexent"]


FULL = """
import resource, sys
sys.path.insert(0, sys.argv[2])
import small
from pathlib import Path

docs = small.documents(2000)
whole = small.build(Path(sys.argv[1] + ".whole"), docs)  # also compiles the kernels: their cache is no part of this
sizes = {name: file.size for name, file in whole.manifest.files.items()}
limit = sizes["segments/000001/" + sys.argv[3]] - 1
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
small.build(Path(sys.argv[1]), docs, overwrite=True)
"""


@pytest.mark.parametrize("name", ["documents.sqlite", "shorts.npy"])
def test_a_full_disk_leaves_the_old_index(path: Path, name: str) -> None:
    """No file may grow to the size that the named one needs."""
    before = answers(reopened(path))
    done = run(FULL, path, name)
    assert "WriteError: no space left to write" in done.stderr
    assert "what was there before is untouched" in done.stderr
    assert answers(reopened(path)) == before
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["a.lexent", "a.lexent.whole"]


def test_a_closed_index_says_so(path: Path) -> None:
    index = Index.open(path, encoder=TinyEncoder(), lexicon=small.lexicon())
    index.close()
    uses = [lambda: index.search("night"), lambda: index.search(""), lambda: index.document("d1")]
    for use in [*uses, lambda: index.search_fused("night"), lambda: index.query("night")]:
        with pytest.raises(InputError, match=r"the index .* is closed; open it again: lexent\.open"):
            use()


def test_rows_without_ids_get_free_numbers(tmp_path: Path) -> None:
    index = small.build(tmp_path / "a", [Document("0", "night"), Document("3", "light"), Document("x", "moon")])
    assert index.add(["yeast dough", "king of stars"]) == 2
    assert index.add([{"text": "bed of light"}]) == 1
    assert {id: index.document(id).text for id in ("4", "5", "6")} == {
        "4": "yeast dough", "5": "king of stars", "6": "bed of light",
    }  # fmt: skip
    with pytest.raises(InputError, match="upsert was given rows without ids"):
        index.upsert(["night"])
    assert index.document("0").text == "night"


def test_an_index_is_not_replaced_unasked(path: Path) -> None:
    with pytest.raises(InputError, match=r"already holds a lexent index.*overwrite=True"):
        small.build(path)
    (path.parent / "file").write_text("x")
    with pytest.raises(InputError, match="it is a file"):
        small.build(path.parent / "file")
    with pytest.raises(WriteError, match="cannot write"):
        small.build(path.parent / "file" / "below")


def test_an_open_index_survives_its_replacement(path: Path) -> None:
    index = reopened(path)
    before = answers(index)
    small.build(path, small.documents(5), overwrite=True)
    assert answers(index) == before


def test_searches_from_many_threads(path: Path) -> None:
    index = reopened(path)
    expected = index.search("yeast dough", k=9).to_dict()
    found: list[object] = []
    threads = [
        threading.Thread(target=lambda: found.extend(index.search("yeast dough", k=9).to_dict() for _ in range(5)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 40
