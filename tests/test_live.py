"""An index that changes: whatever was added, replaced, deleted, merged or retuned, it equals one that is built anew."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import living
import small
from lexent import recipes
from lexent.engine import Index
from lexent.errors import InputError, MismatchError, NotFoundError
from lexent.indexing import writer
from lexent.indexing.manifest import DeletedPart, SegmentPart
from lexent.indexing.reader import IndexReader
from lexent.lexicon import user_labels
from lexent.types import Document
from living import Model, opened, state

SETTINGS: list[dict[str, Any]] = [
    {"k1": 3.0},
    {"k1": 0.0},
    {"b": 0.0},
    {"b": 0.95},
    {"idf": "okapi"},
    {"idf": "clsr"},
    {"idf": "none"},
    {"formula": "dot"},
    {"formula": "count"},
    {"k2": 2.0},
    {"power": 1.0},
    {"power": 0.3},
    {"query_power": 1.0},
    {"document_cap": 6},
    {"query_cap": 3},
    {"query_k": 2},
    {"function_words": 1.0},
    {"prune": 0.2},
    {"k1": 2.0, "b": 0.3, "idf": "okapi-floor0", "power": 0.7, "document_cap": 9, "query_cap": 5, "prune": 0.05},
]


@pytest.fixture(autouse=True, scope="module")
def unsynced() -> Iterator[None]:
    """Nothing here is about what a disk keeps, and waiting for it would be most of the time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # quicker for what is so small
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield
    torch.set_num_threads(threads)


def changed(path: Path) -> tuple[Index, Model]:
    """An index of several segments, with deleted documents in more than one, and what it should hold."""
    docs = small.documents(40)
    model = Model.of(docs[:16])
    index = small.build(path, docs[:16])
    changes: list[list[Any]] = [
        ["add", [values_of(document) for document in docs[16:26]]],
        ["delete", ["d3", "d4", "d17"]],
        ["add", [values_of(document) for document in docs[26:40]]],
        ["upsert", [values_of(Document("d5", "king of stars", metadata={"n": 12})), values_of(docs[30])]],
    ]
    for change in changes:
        living.apply(index, change)
        model = model.then(change)
    assert len(index.manifest.segments) == 4
    assert sum(part.deleted is not None for part in index.manifest.segments) == 3
    return index, model


def values_of(document: Document) -> dict[str, Any]:
    return {name: getattr(document, name) for name in ("id", "text", "title", "metadata")}


# --- any sequence of changes -------------------------------------------------------------------------------------

new_ids = st.one_of(
    st.sampled_from([f"d{number}" for number in range(40)]), st.text("aé√😀 '\"\n", min_size=1, max_size=3)
)
texts = st.lists(st.sampled_from(living.WORDS), max_size=10).map(" ".join)
metadata = st.fixed_dictionaries({"n": st.integers(0, 20)}, optional={"tag": st.sampled_from(["x", "y"])})
documents = st.builds(
    Document, id=new_ids.filter(str.strip), text=texts, title=st.sampled_from(["", "bread"]), metadata=metadata
)
batches = st.lists(documents, min_size=1, max_size=6, unique_by=lambda document: document.id)


class Living(RuleBasedStateMachine):
    """Changes an index and a model of it; a second index stands for a reader that refreshes now and then."""

    @initialize(first=batches, cap=st.sampled_from([None, 12]), words=st.sampled_from([0.0, 1.75]), extra=st.booleans())
    def start(self, first: list[Document], cap: int | None, words: float, extra: bool) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.fanout, writer.MERGE_FANOUT = writer.MERGE_FANOUT, 3
        self.model = Model.of(first)
        self.model.recipe = self.model.recipe.changed(document_cap=cap, words=words)
        extras = ("dense",) if extra else ()
        self.index = small.build(self.folder / "a", first, recipe=self.model.recipe, extras=extras)
        self.reader = opened(self.folder / "a")
        self.expected: dict[str, Any] = {}
        self.seen: dict[str, Any] = {}

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            writer.MERGE_FANOUT = self.fanout
            shutil.rmtree(self.folder)

    def change(self, name: str, given: Any) -> None:
        change = [name, [values_of(one) for one in given] if name in ("add", "upsert") else given]
        living.apply(self.index, change)
        self.model = self.model.then(change)
        assert living.files(self.folder / "a") == living.named(self.index)

    @rule(given=batches)
    def add(self, given: list[Document]) -> None:
        there = [document.id for document in given if document.id in self.model.documents]
        if there:
            with pytest.raises(InputError, match="already has a document"):
                self.index.add(given)
            given = [document for document in given if document.id not in there]
        if given:
            self.change("add", given)

    @rule(given=batches)
    def upsert(self, given: list[Document]) -> None:
        self.change("upsert", given)

    @precondition(lambda self: self.model.documents)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        there = list(self.model.documents)
        self.change("delete", data.draw(st.lists(st.sampled_from(there), min_size=1, max_size=len(there), unique=True)))

    @rule()
    def compact(self) -> None:
        self.change("compact", None)
        assert len(self.index.manifest.segments) == bool(self.model.documents)

    @rule(given=st.sampled_from(SETTINGS))
    def retune(self, given: dict[str, Any]) -> None:
        old, new = self.model.recipe.document_cap, given.get("document_cap")
        if new and old and new > old:
            with pytest.raises(InputError, match="document_cap"):
                self.index.retune(**given)
        else:
            self.change("retune", given)

    @rule()
    def refresh(self) -> None:
        old = self.reader.manifest
        assert self.reader.refresh() == (old != self.index.manifest)
        assert not self.reader.refresh()
        self.seen = self.expected

    @rule()
    def write_from_the_other(self) -> None:
        """The reader becomes the writer, without a refresh before."""
        self.index, self.reader, self.seen = self.reader, self.index, self.expected
        self.change("upsert", [Document("from the other", "night and light", metadata={"n": 11})])

    @invariant()
    def equals_a_fresh_build(self) -> None:
        if not hasattr(self, "model"):
            return
        self.expected = self.model.fresh(self.folder / "fresh")
        self.seen = self.seen or self.expected
        assert state(self.index) == self.expected
        assert state(self.reader) == self.seen


Living.TestCase.settings = settings(
    max_examples=8, stateful_step_count=10, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLiving = Living.TestCase


# --- settings ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Model]:
    """An index as `changed` makes it, not to be written to."""
    path = tmp_path_factory.mktemp("several") / "a"
    return path, changed(path)[1]


@pytest.mark.parametrize(
    "given", SETTINGS, ids=lambda given: " ".join(f"{name}={value}" for name, value in given.items())
)
def test_other_settings_equal_a_fresh_build_with_them(
    several: tuple[Path, Model], tmp_path: Path, given: dict[str, Any]
) -> None:
    path, model = several
    expected = model.then(["retune", given]).fresh(tmp_path / "fresh")
    before = (path / "manifest.json").read_bytes()
    seen = state(opened(path, retune=given))
    assert seen == {**expected, "counts": None}
    assert (path / "manifest.json").read_bytes() == before
    shutil.copytree(path, tmp_path / "b")
    opened(tmp_path / "b").retune(**given)
    assert state(opened(tmp_path / "b")) == expected


def test_settings_of_an_open_index_hold_for_what_is_added(tmp_path: Path) -> None:
    _, model = changed(tmp_path / "a")
    given: dict[str, Any] = {"power": 1.0, "document_cap": 7, "k1": 2.0}
    index = opened(tmp_path / "a", retune=given)
    extra = ["add", [values_of(Document("x", "night light dream king", metadata={"n": 3}))]]
    living.apply(index, extra)
    assert index.recipe.document_cap == 7
    expected = model.then(extra)
    assert state(index) == {**expected.then(["retune", given]).fresh(tmp_path / "fresh"), "counts": None}
    assert state(opened(tmp_path / "a")) == expected.fresh(tmp_path / "fresh")


def test_what_is_added_takes_the_settings_on_the_disk(tmp_path: Path) -> None:
    """Another process retuned the index since this one opened it."""
    index, model = changed(tmp_path / "a")
    given = {"document_cap": 4}
    opened(tmp_path / "a").retune(**given)
    extra = ["add", [values_of(Document("x", "night light dream king queen dough oven", metadata={"n": 3}))]]
    living.apply(index, extra)
    assert state(index) == model.then(["retune", given]).then(extra).fresh(tmp_path / "fresh")


def test_a_cap_on_documents_cannot_be_raised(tmp_path: Path) -> None:
    index = small.build(tmp_path / "a", recipe=recipes.get("latent-terms").changed(document_cap=5))
    before = state(index)
    with pytest.raises(InputError, match=r"document_cap is 6, but the index keeps only 5 .*at most 5.*build it again"):
        index.retune(document_cap=6)
    with pytest.raises(InputError, match="document_cap is 6"):
        opened(tmp_path / "a", retune={"document_cap": 6})
    with pytest.raises(InputError, match='"pool" cannot change on an existing index; what can: k1, b'):
        index.retune(pool="max")
    with pytest.raises(InputError, match="k1 is -1; allowed: from 0 to 1,000"):
        index.retune(k1=-1)
    for name, given in (("k1", 1e308), ("k1", math.inf), ("b", math.nan), ("power", 1e39), ("query_cap", 10**30)):
        with pytest.raises(InputError, match=rf"{name} is .*; allowed: from "):
            index.retune(**{name: given})
    assert state(opened(tmp_path / "a")) == before == state(index)


# --- readers -----------------------------------------------------------------------------------------------------


def test_a_reader_keeps_its_view_until_it_refreshes(tmp_path: Path, server: living.Server) -> None:
    index, model = changed(tmp_path / "a")
    before, hits = state(index), index.search("king of stars", k=20)
    told = [hit.explain() for hit in hits]
    changes: list[list[Any]] = [
        ["add", [values_of(Document("x", "king king stars", metadata={"n": 1}))]],
        ["delete", [hits[0].id, hits[1].id]],
        ["upsert", [values_of(Document(hits[2].id, "other words", metadata={"n": 19}))]],
        ["compact", None],
        ["retune", {"power": 1.0, "k1": 2.0}],
    ]
    for change in changes:
        assert server.start("living", "change", str(tmp_path / "a"), change).end() == 0
        model = model.then(change)
        assert state(index) == before
    assert index.document(hits[0].id).text == hits[0].text
    assert index.search("king of stars", k=20) == hits
    assert index.refresh()
    assert state(index) == model.fresh(tmp_path / "fresh")
    with pytest.raises(NotFoundError, match="no document"):
        index.document(hits[0].id)
    assert [hit.explain() for hit in hits] == told
    assert hits[0].tokens(told[0].contributions[0].concept).document.shares
    assert not index.refresh()


def test_readers_see_only_states_that_were(tmp_path: Path, server: living.Server) -> None:
    """Threads and processes read, open and refresh while a process writes: always one of its states, never an error."""
    path, stop = tmp_path / "a", tmp_path / "stop"
    small.build(path, small.documents(20)).close()
    chance, models, changes = random.Random(5), [Model.of(small.documents(20))], []
    for _ in range(30):
        changes.append(living.some_change(chance, models[-1]))
        models.append(models[-1].then(changes[-1]))
    seen: list[Any] = []
    wrong: list[BaseException] = []

    def read() -> None:
        torch.set_num_threads(1)  # of this thread: with others, query weights differ in the last digit
        try:
            seen.extend(looks(path, stop))
        except BaseException as error:
            wrong.append(error)

    children = [server.start("test_live", "look", str(path), str(stop)) for _ in range(2)]
    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    work = server.start("test_live", "work", str(path), changes)
    assert work.end() == 0, work.log.read_text()
    stop.touch()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[0]
    for child in children:
        assert child.end() == 0, child.log.read_text()
        seen += living.lines(child, "saw")
    were = []
    for model in models:
        with small.build(
            tmp_path / "fresh", list(model.documents.values()), recipe=model.recipe, overwrite=True
        ) as one:
            were.append(look_once(one))
    unknown = [one for one in seen if one not in were]
    assert not unknown, (unknown[0], [one for one in were if one[0] == unknown[0][0]])
    assert len({str(one) for one in seen}) > 5
    assert look_once(opened(path)) == were[-1]


def look_once(index: Index) -> list[Any]:
    """What a reader sees, as JSON has it. Another thread may replace the searcher meanwhile: it is taken once."""
    searcher = index.searcher
    found = searcher.search_many([living.QUERIES[1]], k=10)[0]
    there = searcher.search_many([living.QUERIES[2]], k=5, where={"n": {"lt": 15}})[0]
    return [
        len(searcher),
        *([[hit.id, hit.score, hit.text, hit.explain().rest] for hit in hits] for hits in (found, there)),
    ]


def looks(path: Path, stop: Path) -> list[Any]:
    seen, index, last = [], opened(path), False
    while not last:
        last = stop.exists()
        seen.append(look_once(index))
        assert look_once(index) == seen[-1]
        if len(seen) % 3:
            index.refresh()
        else:
            index.verify()
            index = opened(path)
    return seen


def look(path: str, stop: str) -> None:
    """In a child process."""
    for one in looks(Path(path), Path(stop)):
        living.say("saw", one)


def work(path: str, changes: list[Any]) -> None:
    """In a child process."""
    os.fsync = lambda handle: None
    index = opened(Path(path))
    for change in changes:
        living.apply(index, change)


def test_threads_share_an_index_that_refreshes(tmp_path: Path) -> None:
    """One object, searched from several threads while it is changed through itself."""
    index, model = changed(tmp_path / "a")
    wrong: list[BaseException] = []
    stop = threading.Event()

    def read() -> None:
        try:
            while not stop.is_set():
                for hit in index.search("king and queen", k=5, filter={"n": {"gte": 0}}):
                    assert sum(part.value for part in hit.explain().contributions) == pytest.approx(hit.score)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    chance = random.Random(1)
    for _ in range(10):
        change = living.some_change(chance, model)
        living.apply(index, change)
        model = model.then(change)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[0]
    assert state(index) == model.fresh(tmp_path / "fresh")


def test_an_index_built_anew_shows_after_a_refresh(tmp_path: Path) -> None:
    """It counts its changes from the start again."""
    index = small.build(tmp_path / "a")
    before = state(index)
    small.build(tmp_path / "a", small.documents(5), overwrite=True)
    assert state(index) == before
    assert index.refresh()
    assert living.ids(index) == ["d0", "d1", "d2", "d3", "d4"]
    small.build(tmp_path / "a", lexicon=small.lexicon(seed=1), overwrite=True)
    for change in (index.refresh, lambda: index.add([Document("x", "king")])):
        with pytest.raises(MismatchError, match="built anew with another encoder or lexicon; open it again"):
            change()
    assert len(index) == 5
    assert len(Index.open(tmp_path / "a", lexicon=small.lexicon(seed=1))) == 40


# --- filters -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [{"n": {"gte": 12, "lt": 31}}, {"n": 12}, {"n": [1, 18, 30, 39]}, {"not": {"n": 12}}])
@pytest.mark.parametrize("k", [3, 100])
def test_a_filter_gives_the_best_of_the_matching(several: tuple[Path, Model], where: dict[str, Any], k: int) -> None:
    path, model = several
    index = opened(path)

    def holds(n: int) -> bool:
        wanted = where.get("n", where.get("not"))
        if "not" in where:
            return n != 12
        if isinstance(wanted, dict):
            return bool(12 <= n < 31)
        return n in wanted if isinstance(wanted, list) else n == wanted

    for query in living.QUERIES:
        every = index.search(query, k=1000)
        expected = [(hit.id, hit.score) for hit in every if holds(hit.metadata["n"])][:k]
        assert [(hit.id, hit.score) for hit in index.search(query, k=k, filter=where)] == expected
    assert any(holds(document.metadata["n"]) for document in model.documents.values())


def test_a_filter_on_an_unknown_field(several: tuple[Path, Model]) -> None:
    with pytest.raises(InputError, match='no document has the field "year"; fields: n'):
        opened(several[0]).search("king", filter={"year": 2019})


# --- merging -----------------------------------------------------------------------------------------------------


def test_the_number_of_segments_stays_small(tmp_path: Path) -> None:
    index = small.build(tmp_path / "a", small.documents(1))
    docs, most = small.documents(40), 0
    for document in docs[1:]:
        index.add([document])
        most = max(most, len(index.manifest.segments))
    assert most <= 2 * writer.MERGE_FANOUT
    assert len(index) == 40
    index.delete([f"d{number}" for number in range(30)])
    assert sum(part.documents for part in index.manifest.segments) <= 20
    assert living.files(tmp_path / "a") == living.named(index)
    assert state(index) == Model.of(docs[30:]).fresh(tmp_path / "fresh")


def test_any_sizes_and_deletions_leave_few_segments() -> None:
    """The policy alone: at most FANOUT - 1 segments of each size, one more while it is full."""
    for seed in range(20):
        chance = random.Random(seed)
        parts: list[SegmentPart] = []
        total, moved = 0, 0
        for number in range(400):
            count = chance.choice([1, 1, 3, 40, 1 + chance.randrange(5000)])
            total += count
            parts.append(SegmentPart(name=f"{number:06}", documents=count, passages=count, length_units=0))
            for place in range(len(parts) if chance.random() < 0.2 else 0):
                parts[place] = shrunk(parts[place], chance)
            parts = [part for part in parts if live(part)]
            while (due := writer.due_for_merging(parts)) is not None:
                start, stop = due
                kept = sum(live(part) for part in parts[start:stop])
                moved += kept
                merged = [SegmentPart(name="000000", documents=kept, passages=kept, length_units=0)] if kept else []
                parts = [*parts[:start], *merged, *parts[stop:]]
            assert len(parts) <= writer.MERGE_FANOUT * (math.log(max(total, 2), writer.MERGE_FANOUT) + 1)
            assert all(2 * live(part) >= part.documents for part in parts)
        assert moved <= total * (math.log(total, writer.MERGE_FANOUT) + 2)


def live(part: SegmentPart) -> int:
    return part.documents - (part.deleted.documents if part.deleted else 0)


def shrunk(part: SegmentPart, chance: random.Random) -> SegmentPart:
    gone = part.documents - live(part) + chance.randrange(live(part) + 1)
    deleted = DeletedPart(documents=gone, passages=gone, length_units=0, mask="deleted-1.npy", df="deleted-1-df.npy")
    return part.model_copy(update={"deleted": deleted})


# --- what cannot be done, and odd cases --------------------------------------------------------------------------


def test_an_empty_index_stays_usable(tmp_path: Path) -> None:
    index = small.build(tmp_path / "a")
    assert index.delete(f"d{number}" for number in range(40)) == 40
    for one in (index, opened(tmp_path / "a")):
        assert len(one) == 0
        assert list(one.search("yeast dough")) == []
        assert one.info()["documents"] == one.info()["segments"] == 0
        one.verify()
    index.compact()
    index.retune(power=1.0, k1=2.0)
    assert list(opened(tmp_path / "a", retune={"power": 0.4}).search("yeast dough")) == []
    with pytest.raises(NotFoundError, match='no document "d1" among 0'):
        index.document("d1")
    assert index.add(small.documents(9)) == 9
    model = Model.of(small.documents(9)).then(["retune", {"power": 1.0, "k1": 2.0}])
    assert state(index) == model.fresh(tmp_path / "fresh")
    assert living.files(tmp_path / "a") == living.named(index)


def test_unknown_ids_delete_nothing(tmp_path: Path) -> None:
    index, model = changed(tmp_path / "a")
    before = state(index)
    for wanted in (["d1", "nope", "d2"], ["d3"], ["\ud800"]):
        with pytest.raises(NotFoundError, match="no document"):
            index.delete(wanted)
    assert state(index) == before == state(opened(tmp_path / "a"))
    assert index.delete(["d1", "nope", "d1"], missing=True) == 1
    assert index.delete([]) == 0
    assert state(index) == model.then(["delete", ["d1"]]).fresh(tmp_path / "fresh")


def test_an_id_that_is_there_adds_nothing(tmp_path: Path) -> None:
    index, _ = changed(tmp_path / "a")
    before, generation = state(index), index.manifest.generation
    with pytest.raises(InputError, match='already has a document "d5"; replace it with --upsert'):
        index.add([Document("new", "king"), Document("d5", "king")])
    for method in (index.add, index.upsert):
        with pytest.raises(InputError, match='documents 1 and 3 have the same id "new"'):
            method(
                [Document("new", "king"), Document("d5" if method == index.upsert else "b", "b"), Document("new", "c")]
            )
        with pytest.raises(InputError, match="document 2 has the id ''"):
            method([Document("new", "king"), Document("", "queen")])
        assert method([]) == 0
        assert method(iter(())) == 0
    assert state(index) == before == state(opened(tmp_path / "a"))
    assert index.manifest.generation == generation
    assert living.files(tmp_path / "a") == living.named(index)


def test_documents_that_come_in_chunks_are_all_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lexent.indexing.builder.DOCUMENTS_PER_CHUNK", 4)
    index, model = changed(tmp_path / "a")
    before = state(index)

    def failing() -> Iterator[Document]:
        yield from (Document(f"x{number}", "king queen", metadata={"n": 1}) for number in range(10))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.upsert(failing())
    assert state(index) == before == state(opened(tmp_path / "a"))
    assert living.files(tmp_path / "a") == living.named(index)
    change = [
        "upsert",
        [values_of(Document(f"d{number}", f"king {number}", metadata={"n": 1})) for number in range(30)],
    ]
    living.apply(index, change)
    assert state(index) == model.then(change).fresh(tmp_path / "fresh")


def test_ids_of_any_characters(tmp_path: Path) -> None:
    odd = [
        "é",
        "e\u0301",
        "日本",
        "😀",
        "a b",
        "x" * 5000,
        "'; --",
        "%",
        "..",
        "a/b",
        "A",
        "a",
        "1",
        "01",
        "\t-",
        "\x00n",
    ]
    index = small.build(tmp_path / "a", [Document(id, f"king {id[:20]}", metadata={"n": 1}) for id in odd[:8]])
    index.add([Document(id, f"queen {id[:20]}", metadata={"n": 2}) for id in odd[8:]])
    index.upsert([Document("é", "night", metadata={"n": 3})])
    index.delete(["a", "01"])
    expected = [id for id in odd if id not in ("é", "a", "01")] + ["é"]
    assert living.ids(index) == expected
    assert index.document("e\u0301").text == "king e\u0301"
    index.compact()
    assert living.ids(opened(tmp_path / "a")) == expected


def test_files_dicts_and_strings_can_be_added(tmp_path: Path) -> None:
    index = small.build(tmp_path / "a")
    (tmp_path / "more.jsonl").write_text('{"id": "from-file", "text": "rye bread dough"}\n')
    assert index.add(tmp_path / "more.jsonl") == 1
    assert index.add([{"id": "from-dict", "text": "rye bread dough", "year": 2020}]) == 1
    assert index.add([]) == 0
    assert {hit.id for hit in index.search("rye", k=2)} == {"from-file", "from-dict"}


def test_a_slow_refresh_does_not_go_back_a_generation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, other = small.build(tmp_path / "a"), opened(tmp_path / "a")
    other.delete(["d1"])
    real, waiting, go_on = IndexReader.open, threading.Event(), threading.Event()

    def slow(path: Path) -> IndexReader:
        found = real(path)
        if threading.current_thread() is thread:
            waiting.set()
            go_on.wait(5)
        return found

    monkeypatch.setattr(IndexReader, "open", staticmethod(slow))
    thread = threading.Thread(target=index.refresh)
    thread.start()
    assert waiting.wait(5)
    other.delete(["d2"])
    second = threading.Thread(target=index.refresh)
    second.start()
    second.join(0.2)  # where it does not wait for the slow one, it is done by now
    go_on.set()
    thread.join()
    second.join()
    assert index.manifest == other.manifest


def name_some(path: str, concepts: list[int]) -> None:
    """In a child process: gives names, with a break between reading the others and writing."""
    real = user_labels.write

    def slow(*given: Any) -> None:
        time.sleep(0.05)
        real(*given)

    user_labels.write = slow
    index = opened(Path(path))
    for concept in concepts:
        index.rename(concept, f"own name of {concept}")


def test_names_that_two_processes_give_are_all_kept(tmp_path: Path) -> None:
    server = living.shared_server(tmp_path)
    small.build(tmp_path / "a").close()
    children = [server.start("test_live", "name_some", str(tmp_path / "a"), given) for given in ([1, 2, 3], [5, 6, 7])]
    for child in children:
        assert child.end() == 0, child.log.read_text()
    labels = json.loads((tmp_path / "a" / "labels.json").read_text())["labels"]
    assert labels == {str(concept): f"own name of {concept}" for concept in (1, 2, 3, 5, 6, 7)}
