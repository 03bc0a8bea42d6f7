"""Documents to a segment on disk, a chunk at a time; and to a new index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent import artifact
from lexent.corpus.passages import text_of
from lexent.errors import InputError, LexentError
from lexent.indexing.codes import Codes
from lexent.indexing.forward.dense import DenseStore
from lexent.indexing.forward.passages import PassageStore
from lexent.indexing.forward.stores import EXTRAS, ForwardIndex
from lexent.indexing.forward.tokens import TokenStore
from lexent.indexing.lock import check_free
from lexent.indexing.manifest import SEGMENTS, Counts, EncoderPart, LexiconPart, Manifest, now_text
from lexent.indexing.passages import passages_of
from lexent.indexing.resuming import add_rest, fill, unindexed
from lexent.indexing.writer import EncodedDocuments, SegmentWriter, Writer, committed, write_names
from lexent.lexicon.collection_names import name_concepts
from lexent.lexicon.concept_words import WordCounter
from lexent.models import EncoderLike, LexiconLike, encoder_source, lexicon_source, load_encoder, load_lexicon
from lexent.pipeline import Coded, Pipeline
from lexent.recipes import Recipe
from lexent.types import Document, SparseVectors
from lexent.vocabulary import NewWords, splitter_of

DOCUMENTS_PER_CHUNK = 4096
"""Documents that are held as text at once."""
CHARS_PER_CHUNK = 4_000_000
"""Characters of text that are held at once, about: what takes a few minutes to encode on a CPU."""
FIRST_CHUNK_CHARS = 300_000
"""As many of the first texts: what takes about ten seconds to encode on a CPU."""
SHORT_CHUNK_SECONDS = 5.0
"""Where a chunk takes less, the next may have twice as many characters."""

Progress = Callable[[int], None]
"""Called with the number of texts that were just finished."""


def build(
    documents: Iterable[Document],
    out: Path,
    *,
    encoder: EncoderLike,
    lexicon: LexiconLike,
    recipe: Recipe,
    extras: Sequence[str],
    memory: int | None,
    progress: Progress | None,
    overwrite: bool,
    resume: bool = True,
) -> Pipeline:
    """Writes the index to `out`, whole or not at all. Encoder and lexicon are loaded once a first document is there.

    resume: go on where an interrupted run with the same settings stopped, as far as the documents are the same.
    """
    for name in extras:
        if name not in EXTRAS:
            raise InputError(f'an index cannot be built with "{name}"; allowed: {", ".join(EXTRAS)}')
    extras = tuple(name for name in EXTRAS if name in extras)
    check_free(out)
    artifact.check_target(out, kind="index", overwrite=overwrite)
    chunks = in_chunks(documents)
    first = next(chunks, None)
    if first is None:
        raise InputError("there are no documents to index; give at least one, with an id and a text")
    loaded_lexicon = load_lexicon(lexicon, recipe=recipe)
    own = loaded_lexicon.encoder_id if loaded_lexicon.own_encoder is not None else None
    loaded_encoder = load_encoder(own if encoder is None else encoder)
    loaded_lexicon.check(loaded_encoder, level=recipe.level)
    pipeline = Pipeline(loaded_encoder, loaded_lexicon, recipe)
    empty = _manifest(pipeline, lexicon, extras)
    fits = partial(_is_part_of, empty) if resume else lambda _: False

    def material(chunk: list[Document]) -> EncodedDocuments:
        return material_of(chunk, pipeline, extras=extras, words=empty.words, progress=progress)

    with artifact.new_folder(out, kind="index", overwrite=overwrite, resume=fits) as folder:
        chunks = chain([first], chunks)
        ended = False
        if not (folder / artifact.MANIFEST).is_file():
            segment = SegmentWriter(
                folder / SEGMENTS / "000001",
                size=loaded_lexicon.size,
                recipe=recipe,
                extras=extras,
                memory=memory,
                words=None if empty.words is None else NewWords({}),
            )
            with segment:
                ended = fill(segment, chunks, material)
            names = write_names(folder, name_concepts(segment.words.result(), loaded_lexicon), empty) if ended else None
            committed(folder, [segment.part()], before=empty, recipe=recipe, names=names).write(folder)
            resumed = False
        else:
            resumed = True
        if not ended:
            with Writer(folder, memory=memory) as writer:
                add_rest(writer, unindexed(writer, chunks, progress) if resumed else chunks, material)
                writer.compact()
                writer.name_concepts(loaded_lexicon)
        check_free(out)  # again: what a writer adds meanwhile must not end up in the folder that takes its place
    return pipeline


def _manifest(pipeline: Pipeline, lexicon: LexiconLike, extras: tuple[str, ...]) -> Manifest:
    """The manifest of an index without documents."""
    encoder, used, recipe = pipeline.encoder, pipeline.lexicon, pipeline.recipe
    return Manifest(
        format=artifact.FORMAT_VERSION,
        generation=0,
        lexent=artifact.lexent_version(),
        created=now_text(),
        updated=now_text(),
        encoder=EncoderPart(
            id=encoder.id,
            source=encoder_source(encoder),
            fingerprint=encoder.fingerprint,
            prompts=dict(getattr(encoder, "prompts", {})),
        ),
        lexicon=LexiconPart(name=used.name, source=lexicon_source(lexicon, used), hash=used.hash, size=used.size),
        recipe=recipe.to_dict(),
        words=recipe.language if recipe.holds_words and (recipe.words or "lexical" in extras) else None,
        extras=extras,
        counts=Counts(documents=0, postings=0, live_concepts=0, average_length=0),
        segments=(),
        files={},
    )


def _is_part_of(wanted: Manifest, folder: Path) -> bool:
    """Whether an interrupted run wrote an index with the settings of the one that is wanted."""
    try:
        found = Manifest.read(folder)
    except (LexentError, OSError):
        return False
    same = ("format", "words", "extras")
    return (
        all(getattr(found, name) == getattr(wanted, name) for name in same)
        and Recipe.from_dict(found.recipe) == Recipe.from_dict(wanted.recipe)
        and found.encoder.fingerprint == wanted.encoder.fingerprint
        and found.lexicon.hash == wanted.lexicon.hash
    )


def in_chunks(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """The documents in lists of at most DOCUMENTS_PER_CHUNK, and of about CHARS_PER_CHUNK where they are long.

    The first lists are shorter, and so are all where the work on one takes long: a checkpoint waits for its end.
    """
    chunk: list[Document] = []
    chars, most = 0, FIRST_CHUNK_CHARS
    for document in documents:
        chunk.append(document)
        chars += len(document.text)
        if len(chunk) == DOCUMENTS_PER_CHUNK or chars >= min(most, CHARS_PER_CHUNK):
            begun = monotonic()
            yield chunk
            if monotonic() - begun < SHORT_CHUNK_SECONDS:
                most *= 2
            chunk, chars = [], 0
    if chunk:
        yield chunk


def material_of(
    documents: list[Document],
    pipeline: Pipeline,
    *,
    extras: Sequence[str] = (),
    words: str | None = None,
    progress: Progress | None = None,
) -> EncodedDocuments:
    """What the index keeps of documents: their passages, the codes of these, of their tokens, their vectors, words.

    words: the language of the words to keep, or None.
    """
    size, by_token = pipeline.lexicon.size, pipeline.recipe.match == "maxsim"
    vectors: list[NDArray[np.float32]] = []
    stores: ForwardIndex = {}
    counter, recipe = WordCounter(size), pipeline.recipe

    def kept(batch: Coded) -> Any:
        if batch.whole is not None:
            vectors.append(batch.whole.numpy())
        own = [texts[position] for position in batch.positions]
        if recipe.level == "tokens":
            counter.add_tokens(own, batch.tokens, batch.codes)
        else:
            counter.add_whole(own, batch.codes)
        return TokenStore.of(batch.codes, size=size) if by_token else pipeline.pooled(batch.codes)

    passages = passages_of(documents, pipeline.encoder, recipe)
    pairs = zip(documents, passages, strict=True)
    texts = [text_of(document.content, pieces) for document, own in pairs for pieces in own]
    counted = None if progress is None else _in_documents(progress, len(texts), len(documents))
    parts, order = pipeline.collect(texts, kept, kind="document", vectors="dense" in extras, progress=counted)
    if by_token:
        stores[TokenStore.name] = store = TokenStore.concatenate(parts).take(order)
        codes = store.maxima(size=size)
    else:
        codes = Codes.of(SparseVectors.concatenate(parts, size=size).take(order), pipeline.recipe)
    if vectors:
        stores[DenseStore.name] = DenseStore.of(np.concatenate(vectors)[order])
    terms = [] if words is None else [splitter_of(words).counted(text) for text in texts]
    return EncodedDocuments(codes, PassageStore.of(passages), stores, counter, terms)


def _in_documents(progress: Progress, n_passages: int, n_documents: int) -> Progress:
    """Reports passages that are done as the documents that they make up."""
    done = [0, 0]

    def advance(passages: int) -> None:
        done[0] += passages
        documents = done[0] * n_documents // n_passages
        if documents > done[1]:
            progress(documents - done[1])
            done[1] = documents

    return advance
