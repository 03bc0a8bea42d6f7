"""Words beside concepts in one index: the recipe hybrid, and indexes that hold words for others."""

from __future__ import annotations

import random
import string
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import living
import small
from commands import data, good
from lexent import recipes
from lexent.encoders import Encoder, TinyEncoder
from lexent.engine import Index
from lexent.errors import ArtifactError, InputError, MismatchError, NotFoundError
from lexent.evaluation.collections import Collection
from lexent.evaluation.runs import ranked
from lexent.evaluation.systems import Bench
from lexent.evaluation.trials import Trials
from lexent.explain.highlight import highlights
from lexent.indexing import manifest
from lexent.types import Document
from living import opened
from serving import serving

HYBRID = recipes.get("hybrid")
QUERIES = st.sampled_from(["yeast dough", "night light rests", "king queen board mate", "gravity", "bread and xyzzy"])


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return small.build(tmp_path_factory.mktemp("hybrid") / "a", recipe="hybrid")


@pytest.fixture(scope="module")
def latent(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return small.build(tmp_path_factory.mktemp("latent") / "a")


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """Four segments, each with words of its own, and with deleted documents."""
    docs = small.documents(48)
    index = small.build(tmp_path_factory.mktemp("grown") / "a", docs[:12], recipe="hybrid")
    for place in range(3):
        more = docs[12 * (place + 1) : 12 * (place + 2)]
        index.add([*more, Document(f"own {place}", f"night light gravity dough novel{place}")])
        index.delete([more[0].id])
    return index


def several(path: Path, **settings: Any) -> Index:
    """An index of three segments, of which each brought words; of the first every document is deleted."""
    index = small.build(
        path, [Document("a", "zeppelin yeast"), Document("b", "zeppelins dough")], recipe="hybrid", **settings
    )
    index.add([Document("c", "yeast quokka"), Document("d", "quokka dough")])
    index.add([Document("e", "zeppelin wombat quokka yeast")])
    index.delete(["a", "b"])
    return index


def found(index: Index, query: str, **settings: Any) -> list[str]:
    return [hit.id for hit in index.search(query, **settings)]


# --- one score -------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=20)
@given(query=QUERIES, k=st.integers(1, 12))
def test_the_score_is_that_of_the_concepts_and_of_the_words(hybrid: Index, latent: Index, query: str, k: int) -> None:
    by_concepts = {hit.id: hit.score for hit in latent.search(query, k=100)}
    for hit in hybrid.search(query, k=k):
        parts = hit.explain().contributions
        assert abs(sum(part.value for part in parts) - hit.score) <= 1e-5
        concepts = sum(part.value for part in parts if not part.word)
        assert concepts == pytest.approx(by_concepts.get(hit.id, 0.0), abs=1e-4)
        written = {part.label for part in parts if part.word}
        assert written <= set(f"{hit.title} {hit.text}".split())


def test_words_are_weighed_as_their_formula_says(hybrid: Index) -> None:
    """idf, its share of the highest, and the saturation and length of the concepts, with words stored as counts."""
    scorer, texts = hybrid.searcher.document_scorer, [f"{one.title} {one.text}" for one in small.documents()]
    query = hybrid.query("light light dust")
    lengths = 1 - 0.4 + 0.4 * _lengths(hybrid) / scorer.average_length
    for word, in_query in (("light", 2), ("dust", 1)):
        counts = np.array([text.split().count(word) for text in texts])
        df, n = int(np.count_nonzero(counts)), len(texts)
        idf, highest = np.log1p((n - df + 0.5) / (df + 0.5)), np.log1p((n - 0.5) / 1.5)
        (term,) = hybrid.searcher.words.named(word)
        weight = float(query.weights[query.ids == term][0])
        assert weight == pytest.approx(in_query**0.7 * 1.75 * idf * (idf / highest) ** 1.5, rel=1e-4)
        root = np.sqrt(counts)
        for place in np.flatnonzero(counts).tolist():
            impact = float(scorer.document_weights(place, np.array([term], np.int32))[0])
            assert impact == pytest.approx(2 * root[place] / (root[place] + lengths[place]), rel=0.03)


def _lengths(index: Index) -> np.ndarray:
    from lexent.indexing.postings import quantisation

    (segment,) = index.documents.segments
    return quantisation.decode_lengths(segment.lengths)


def test_words_add_nothing_to_the_length_of_a_document(hybrid: Index, latent: Index) -> None:
    assert hybrid.manifest.counts.average_length == latent.manifest.counts.average_length
    assert _lengths(hybrid).tolist() == _lengths(latent).tolist()
    assert hybrid.manifest.counts.live_concepts == latent.manifest.counts.live_concepts
    assert hybrid.manifest.counts.postings > latent.manifest.counts.postings
    assert hybrid.info()["live_words"] == len({word for one in small.documents() for word in one.content.split()})


def test_a_cap_is_one_on_concepts(tmp_path: Path) -> None:
    document = Document("a", " ".join(living.WORDS))
    with small.build(tmp_path / "a", [document], recipe=HYBRID.changed(document_cap=3)) as index:
        counts = index.manifest.counts
        assert (counts.live_concepts, counts.live_words) == (3, len(living.WORDS))
        index.retune(document_cap=2)
        assert index.manifest.counts.live_concepts == 2
        assert index.manifest.counts.live_words == len(living.WORDS)


def test_a_word_that_few_documents_have_counts_for_more(hybrid: Index) -> None:
    weights = {concept.label: concept.weight for concept in hybrid.search("comet light").concepts if concept.word}
    assert set(weights) == {"comet", "light"}
    flat = Index.open(hybrid.path, encoder=TinyEncoder(), lexicon=small.lexicon(), retune={"rarity": 1.0})
    plain = {concept.label: concept.weight for concept in flat.search("comet light").concepts if concept.word}
    assert weights["comet"] / weights["light"] > plain["comet"] / plain["light"] > 1


# --- identifiers -----------------------------------------------------------------------------------------------------


def identifiers(n: int) -> list[str]:
    """Error codes, names of functions and variables, versions and part numbers."""
    chance = random.Random(7)

    def letters(size: int) -> str:
        return "".join(chance.choices(string.ascii_lowercase, k=size))

    forms = (
        lambda: f"ERR_{letters(4).upper()}_{letters(5).upper()}-{chance.randrange(10, 99)}",
        lambda: f"{letters(4)}.{letters(5)}.{letters(6).capitalize()}",
        lambda: f"{letters(4)}{letters(5).capitalize()}{letters(4).capitalize()}",
        lambda: f"v{chance.randrange(30)}.{chance.randrange(100)}.{chance.randrange(1000)}",
        lambda: f"{letters(2).upper()}-{chance.randrange(10_000, 99_999)}/{letters(2).upper()}",
        lambda: letters(9),
    )
    return [forms[place % len(forms)]() for place in range(n)]


def test_identifiers_are_found_first(shared_encoder: Encoder, tmp_path: Path) -> None:
    names = identifiers(100)
    sentences = (
        "The service stopped with {} after the last update and could not be started again.",
        "See {} for how the cache is cleared before a new connection is opened.",
        "We replaced {} in the second machine, and the noise was gone.",
        "A note on {}: it was renamed, and older scripts fail.",
    )
    documents = [Document(name, sentences[place % 4].format(name)) for place, name in enumerate(names)]
    with Index.build(documents, out=tmp_path / "a", encoder=shared_encoder, recipe="hybrid") as index:
        results = index.search_many([f"what about {name}?" for name in names], k=1)
        assert [hits[0].id for hits in results] == names


# --- words at the side of concepts -----------------------------------------------------------------------------------


def test_a_word_joins_the_line_of_the_concepts_that_it_raised(shared_encoder: Encoder, tmp_path: Path) -> None:
    texts = ["Compress a file with gzip.", "Send mail over an encrypted line.", "Sort a list of numbers in place."]
    with Index.build(texts, out=tmp_path / "a", encoder=shared_encoder, recipe="hybrid") as index:
        groups = index.search("compressed with gzip", k=1)[0].explain().groups
        heads = [group.label.split(" · ")[0] for group in groups]
        assert len({head[:6] for head in heads}) == len(heads)
        for word in ("Compress", "gzip"):
            (line,) = [group for group in groups if any(part.word and part.label == word for part in group.members)]
            assert line.label.lower().startswith(word[:6].lower())
            assert any(not part.word for part in line.members)


def test_pairs_of_words_name_words(hybrid: Index) -> None:
    hit = hybrid.search("yeast dough", k=1)[0]
    words = hit.words()
    assert abs(sum(match.value for match in words.matches) - hit.score) <= 1e-5
    assert {match.word for match in words.matches} == {"yeast", "dough"}
    own = {part.label: part.value for part in hit.explain().contributions if part.word}
    for match in words.matches:
        met = {one.word: one.value for one in match.found}
        assert met[match.word] >= own[match.word] > 0
    (marked,) = highlights([hit])
    assert abs(sum(share.share for share in marked) - hit.score) <= 1e-5
    content = f"{hit.title} {hit.text}".strip()
    assert all(content[share.start : share.stop] == share.token for share in marked)


def test_the_parts_of_an_identifier_are_of_one_word(tmp_path: Path) -> None:
    document = Document("a", "it says err_conn_reset when the oven is on")
    with small.build(tmp_path / "a", [document, *small.documents(4)], recipe="hybrid") as index:
        words = index.search("err_conn_reset", k=1)[0].words()
        assert [match.word for match in words.matches] == ["err_conn_reset"]
        tokens = index.search("err_conn_reset", k=1)[0].tokens("conn").document
        assert [(share.token, share.start) for share in tokens.shares] == [("conn", 12)]


def test_a_word_is_called_as_it_is_written_most_often(tmp_path: Path) -> None:
    texts = ["The GPU is hot.", "GPUs run hot; the GPU fan too.", "a gpu"]
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    with small.build(tmp_path / "a", documents, recipe="hybrid") as index:
        (label,) = [part.label for part in index.search("gpu", k=1)[0].explain().contributions if part.word]
        assert label == "GPU"
        assert found(index, "gpus", k=1) == ["1"]


def test_strengths_stay_on_their_scale(hybrid: Index) -> None:
    best = hybrid.search("flour yeast dough oven crust bake", k=3)
    assert all(0 <= hit.strength <= 1 for hit in best)
    assert best[0].strength > hybrid.search("xyzzy flour", k=1)[0].strength


# --- steering, feedback, filters -------------------------------------------------------------------------------------


def test_steering_by_a_word_moves_the_word_too(hybrid: Index) -> None:
    (term,) = hybrid.searcher.words.named("dough")

    def weight(**steer: float) -> float:
        query = hybrid.query("yeast dough", steer=steer or None)
        return float(query.weights[query.ids == term].sum())

    assert weight(dough=3.0) == pytest.approx(3 * weight(), rel=1e-5)
    assert weight(dough=0.0) == 0
    added = hybrid.query("yeast", steer={"dough": 2.0})
    assert float(added.weights[added.ids == term][0]) == pytest.approx(2 * weight(), rel=1e-5)
    assert hybrid.query("yeast dough", steer={term: 2.0}).weights.sum() == pytest.approx(
        hybrid.query("yeast dough", steer={f"#{term}": 2.0}).weights.sum()
    )
    with pytest.raises(NotFoundError):
        hybrid.query("yeast", steer={"qqqqq": 2.0})
    with pytest.raises(NotFoundError):
        hybrid.query("yeast", steer={hybrid.searcher.words.size: 2.0})


def test_feedback_adds_words(hybrid: Index) -> None:
    results = hybrid.search("yeast", like="d0", k=5)
    added = [one.label for one in results.added if one.word]
    assert set(added) <= {*small.documents()[0].text.split(), "bread"}
    assert added
    for hit in results:
        assert abs(sum(part.value for part in hit.explain().contributions) - hit.score) <= 1e-5
    off = hybrid.search("yeast", like="d0", steer={added[0]: 0.0}).added
    assert added[0] not in [one.label for one in off if one.word]


def test_filters_and_their_own_idf(hybrid: Index) -> None:
    hits = hybrid.search("light night", k=40, filter={"n": {"gte": 30}}, idf_of_subset=True)
    assert hits
    assert all(int(hit.id[1:]) >= 30 for hit in hits)
    few = [document for document in small.documents() if int(document.id[1:]) >= 30]
    df = sum("night" in f"{one.title} {one.text}".split() for one in few)
    idf, highest = np.log1p((len(few) - df + 0.5) / (df + 0.5)), np.log1p((len(few) - 0.5) / 1.5)
    (weight,) = [one.weight for one in hits.concepts if one.word and one.label == "night"]
    assert weight == pytest.approx(1.75 * idf * (idf / highest) ** 1.5, rel=1e-4)


# --- changes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extras", [(), ("dense",)])
def test_words_outlive_the_segment_that_brought_them(tmp_path: Path, extras: tuple[str, ...]) -> None:
    index = several(tmp_path / "a", extras=extras)
    assert index.manifest.segments[0].documents == 0
    assert index.manifest.segments[0].words > 0
    assert found(index, "zeppelin", k=1) == ["e"]
    assert set(found(index, "quokka", k=3)) == {"c", "d", "e"}
    index.verify()
    with opened(tmp_path / "a") as again:
        assert found(again, "wombats", k=1) == ["e"]


@settings(deadline=None, max_examples=15)
@given(query=QUERIES, k=st.integers(1, 30))
def test_the_best_of_several_segments_are_the_best_of_all(grown: Index, query: str, k: int) -> None:
    """Segments know different numbers of words; the pruned search gives what scoring every document gives."""
    sizes = {segment.size for segment in grown.documents.segments}
    assert len(sizes) == len(grown.documents.segments) == 4
    scores, matched = grown.searcher.scores(grown.query(query))
    places = np.flatnonzero(matched)
    best = places[np.lexsort((places, -scores[places]))][:k]
    assert found(grown, query, k=k) == grown.documents.ids(best.tolist())
    assert [hit.score for hit in grown.search(query, k=k)] == scores[best].tolist()


def test_compaction_forgets_words_that_no_document_has(tmp_path: Path) -> None:
    index = several(tmp_path / "a")
    index.delete(["e"])
    before = {query: [(hit.id, hit.score) for hit in index.search(query)] for query in ("quokka yeast", "dough")}
    index.compact()
    (part,) = index.manifest.segments
    assert part.words == index.info()["live_words"] == 3
    assert not index.searcher.words.named("zeppelin")
    assert {query: [(hit.id, hit.score) for hit in index.search(query)] for query in before} == before
    index.add([Document("f", "zeppelin")])
    assert found(index, "zeppelin", k=1) == ["f"]


def test_what_is_not_committed_leaves_no_words(tmp_path: Path) -> None:
    index = several(tmp_path / "a")
    before = (living.words(index), living.files(tmp_path / "a"), index.manifest)
    with pytest.raises(InputError, match="already has"):
        index.add([Document("x", "platypus"), Document("c", "echidna")])
    with opened(tmp_path / "a") as again:
        assert (living.words(again), living.files(tmp_path / "a"), again.manifest) == before
    assert not index.searcher.words.named("platypus")


def test_damaged_words_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "CHECKED_BYTES", 0)  # as if the checksums had been changed as well
    path = tmp_path / "a"
    several(path).close()
    order = sorted(path.glob("segments/*/words-order.npy"))[0]
    np.save(order, np.load(order) + 1000)
    with pytest.raises(ArtifactError, match="is damaged: its words do not fit together"):
        opened(path)


# --- words in other indexes ------------------------------------------------------------------------------------------


def test_an_index_of_concepts_can_hold_words(tmp_path: Path, latent: Index, hybrid: Index) -> None:
    index = small.build(tmp_path / "a", extras=["lexical"])
    ours = [(hit.id, hit.score) for hit in index.search("yeast dough", k=9)]
    assert ours == [(hit.id, hit.score) for hit in latent.search("yeast dough", k=9)]
    assert index.manifest.words == "english"
    assert index.searcher.words is None
    learned = [hits.search("yeast", like="d0", feedback=3, k=5).to_dict() for hits in (index, latent)]
    assert [hit["id"] for hit in learned[0]["hits"]] == [hit["id"] for hit in learned[1]["hits"]]
    assert learned[0]["added"] == learned[1]["added"]
    index.retune(words=1.75, rarity=2.5)
    weighed = [(hit.id, hit.score) for hit in index.search("yeast dough", k=9)]
    assert weighed == [(hit.id, hit.score) for hit in hybrid.search("yeast dough", k=9)]


def test_words_are_refused_where_there_are_none(latent: Index, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"words is 2, and the index holds no words.*--recipe hybrid"):
        opened(latent.path, retune={"words": 2.0})
    with pytest.raises(InputError, match="holds no words"):
        latent.retune(words=2.0)
    with pytest.raises(InputError, match=r"words is 1\.0; allowed: 0, where match is maxsim"):
        recipes.get("ssr").changed(words=1.0)
    with pytest.raises(InputError, match='language is "klingon"; allowed: none, arabic'):
        HYBRID.changed(language="klingon")
    with pytest.raises(InputError, match='"language" cannot change on an existing index'):
        small.build(tmp_path / "a", recipe="hybrid").retune(language="none")


def test_stored_words_are_fused_as_those_that_are_counted(hybrid: Index, latent: Index) -> None:
    stored, counted = hybrid.searcher.lexical(), latent.searcher.lexical()
    assert stored.document_scorer.segments is hybrid.searcher.document_scorer.segments
    for text in ("gravity light", "yeast", "xyzzy"):
        ours, theirs = (
            {index.documents.ids([place])[0] for place in side.top(side.query(text), 40).positions[0] if place >= 0}
            for index, side in ((hybrid, stored), (latent, counted))
        )
        assert ours == theirs
    for hit in hybrid.search_fused("gravity light", k=5):
        (part,) = [part for part in hit.parts if part.name == "bm25"]
        reasons = hit.reasons["bm25"].contributions
        assert abs(sum(one.value for one in reasons) - part.score) <= 1e-5
        assert {one.label for one in reasons if one.word} == {one.label for one in reasons}


# --- evaluation ------------------------------------------------------------------------------------------------------


def test_an_evaluation_ranks_as_an_index_does(hybrid: Index) -> None:
    queries = {"q1": "yeast dough", "q2": "night light rests", "q3": "gravity"}
    collection = Collection("small", small.documents(), queries, {name: {"d0": 1} for name in queries})
    system = Bench(encoder=TinyEncoder(), lexicon=small.lexicon()).latent("hybrid")
    run = system.run(collection, depth=7)
    trial = Trials(system, collection, measures="nDCG@10", depth=7).run(HYBRID)
    for name, text in queries.items():
        own = [(hit.id, hit.score) for hit in hybrid.search(text, k=7)]
        for each in (run, trial):
            assert ranked(each[name]) == [(id, pytest.approx(score, rel=1e-5)) for id, score in own]


def test_studies_of_concepts_refuse_words() -> None:
    bench = Bench(encoder=TinyEncoder(), lexicon=small.lexicon())
    with pytest.raises(MismatchError, match=r"searches by words beside concepts.*for example latent-terms"):
        bench.concepts_alone("hybrid")
    assert bench.concepts_alone("latent-terms").recipe.words == 0


# --- over HTTP and on the command line --------------------------------------------------------------------------------


def test_hybrid_over_http(hybrid: Index) -> None:
    with serving([hybrid.path]) as client:

        def ask(verb: str, **body: Any) -> Any:
            return client.post(f"/v1/indexes/a/{verb}", json={"query": "yeast dough", **body}).json()

        given = ask("search", k=3, words=True, steer={"dough": 2})["hits"]
        document = client.get("/v1/indexes/a/documents", params={"id": given[0]["id"]}).json()
        explained = ask("explain", document=given[0]["id"])
    wanted = hybrid.search("yeast dough", k=3, steer={"dough": 2.0})
    assert [hit["contributions"] for hit in given] == [hit.to_dict()["contributions"] for hit in wanted]
    assert {part["label"] for part in given[0]["contributions"] if part["word"]} >= {"yeast", "dough"}
    assert {one["label"] for one in document["concepts"] if one["word"]} == {
        *f"{wanted[0].title} {wanted[0].text}".split()
    }
    assert any(part["word"] for part in explained["contributions"])


def test_hybrid_as_a_command(tmp_path: Path) -> None:
    source, place = tmp_path / "docs.jsonl", tmp_path / "docs.lexent"
    source.write_text('{"id": "a", "text": "restart after ERR_TIMEOUT-7"}\n{"id": "b", "text": "a cat sleeps"}\n')
    good("index", source, "-o", place, "--recipe", "hybrid", "--language", "german")
    shown = data("search", place, "ERR_TIMEOUT-7")
    parts = shown["hits"][0]["contributions"]
    assert shown["hits"][0]["id"] == "a"
    assert "ERR_TIMEOUT-7" in [part["label"] for part in parts if part["word"]]
    assert data("info", place)["words"] == "german"
    assert '"ERR_TIMEOUT-7"' in good("explain", place, "ERR_TIMEOUT-7", "b").stdout
