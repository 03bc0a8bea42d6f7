"""Documents to a segment on disk, a chunk at a time; and to a new index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent import artifact
from lexent.corpus.passages import text_of
from lexent.errors import InputError
from lexent.indexing.forward.dense import DenseStore
from lexent.indexing.forward.passages import PassageStore
from lexent.indexing.forward.stores import EXTRAS, ForwardIndex
from lexent.indexing.forward.tokens import TokenStore
from lexent.indexing.lock import check_free
from lexent.indexing.manifest import SEGMENTS, Counts, EncoderPart, LexiconPart, Manifest, now_text
from lexent.indexing.passages import passages_of
from lexent.indexing.segment import Codes
from lexent.indexing.writer import EncodedDocuments, SegmentWriter, committed, write_names
from lexent.lexicon.collection_names import name_concepts
from lexent.lexicon.concept_words import COUNTED_WORDS, WordCounter
from lexent.models import EncoderLike, LexiconLike, encoder_source, lexicon_source, load_encoder, load_lexicon
from lexent.pipeline import Coded, Pipeline
from lexent.recipes import Recipe
from lexent.types import Document, SparseVectors
from lexent.vocabulary import NewWords, splitter_of

DOCUMENTS_PER_CHUNK = 4096
"""Documents that are held as text at once."""

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
) -> Pipeline:
    """Writes the index to `out`, whole or not at all. Encoder and lexicon are loaded once a first document is there."""
    for name in extras:
        if name not in EXTRAS:
            raise InputError(f'an index cannot be built with "{name}"; allowed: {", ".join(EXTRAS)}')
    extras = tuple(name for name in EXTRAS if name in extras)
    check_free(out)
    with artifact.new_folder(out, kind="index", overwrite=overwrite) as folder:
        chunks = in_chunks(documents)
        first = next(chunks, None)
        if first is None:
            raise InputError("there are no documents to index; give at least one, with an id and a text")
        loaded_lexicon = load_lexicon(lexicon, recipe=recipe)
        own = loaded_lexicon.encoder_id if loaded_lexicon.own_encoder is not None else None
        loaded_encoder = load_encoder(own if encoder is None else encoder)
        loaded_lexicon.check(loaded_encoder, level=recipe.level)
        words = recipe.language if recipe.holds_words and (recipe.words or "lexical" in extras) else None
        with SegmentWriter(
            folder / SEGMENTS / "000001",
            size=loaded_lexicon.size,
            recipe=recipe,
            extras=extras,
            memory=memory,
            words=None if words is None else NewWords({}),
        ) as writer:
            pipeline = Pipeline(loaded_encoder, loaded_lexicon, recipe)
            for chunk in chain([first], chunks):
                made = partial(material_of, chunk, pipeline, extras=extras, words=words, progress=progress)
                writer.add(chunk, made)
        empty = Manifest(
            format=artifact.FORMAT_VERSION,
            generation=0,
            lexent=artifact.lexent_version(),
            created=now_text(),
            updated=now_text(),
            encoder=EncoderPart(
                id=loaded_encoder.id,
                source=encoder_source(loaded_encoder),
                fingerprint=loaded_encoder.fingerprint,
                prompts=dict(getattr(loaded_encoder, "prompts", {})),
            ),
            lexicon=LexiconPart(
                name=loaded_lexicon.name,
                source=lexicon_source(lexicon, loaded_lexicon),
                hash=loaded_lexicon.hash,
                size=loaded_lexicon.size,
            ),
            recipe=recipe.to_dict(),
            words=words,
            extras=extras,
            counts=Counts(documents=0, postings=0, live_concepts=0, average_length=0),
            segments=(),
            files={},
        )
        names = write_names(folder, name_concepts(writer.words.result(), loaded_lexicon), empty)
        committed(folder, [writer.part()], before=empty, recipe=recipe, names=names).write(folder)
        check_free(out)  # again: what a writer adds meanwhile must not end up in the folder that takes its place
    return pipeline


def in_chunks(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """The documents in lists of at most DOCUMENTS_PER_CHUNK."""
    source = iter(documents)
    while chunk := list(islice(source, DOCUMENTS_PER_CHUNK)):
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
    return EncodedDocuments(codes, PassageStore.of(passages), stores, counter.result(COUNTED_WORDS), terms)


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
