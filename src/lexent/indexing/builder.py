"""Documents to a segment on disk, a chunk at a time; and to a new index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lexent import artifact
from lexent.errors import InputError
from lexent.indexing.dense import DenseStore
from lexent.indexing.lock import check_free
from lexent.indexing.manifest import SEGMENTS, Counts, EncoderPart, LexiconPart, Manifest, now_text
from lexent.indexing.segment import Codes
from lexent.indexing.stores import EXTRAS, Material, Stores
from lexent.indexing.tokens import TokenStore
from lexent.indexing.writer import SegmentWriter, committed
from lexent.recipes import Recipe
from lexent.search.parts import EncoderLike, LexiconLike, encoder_source, lexicon_source, load_encoder, load_lexicon
from lexent.types import Document, SparseVectors

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon

CHUNK = 4096
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
) -> tuple[Encoder, Lexicon]:
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
        with SegmentWriter(
            folder / SEGMENTS / "000001", size=loaded_lexicon.size, recipe=recipe, extras=extras, memory=memory
        ) as writer:
            used: Any = {"encoder": loaded_encoder, "lexicon": loaded_lexicon, "recipe": recipe, "extras": extras}
            for chunk in chain([first], chunks):
                writer.add(chunk, partial(material_of, chunk, **used, progress=progress))
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
            extras=extras,
            counts=Counts(documents=0, postings=0, live_concepts=0, average_length=0),
            segments=(),
            files={},
        )
        committed(folder, [writer.part()], before=empty, recipe=recipe).write(folder)
        check_free(out)  # again: what a writer adds meanwhile must not end up in the folder that takes its place
    return loaded_encoder, loaded_lexicon


def in_chunks(documents: Iterable[Document]) -> Iterator[list[Document]]:
    source = iter(documents)
    while chunk := list(islice(source, CHUNK)):
        yield chunk


def material_of(
    documents: list[Document],
    *,
    encoder: Encoder,
    lexicon: Lexicon,
    recipe: Recipe,
    extras: Sequence[str] = (),
    progress: Progress | None = None,
) -> Material:
    """What the index keeps of documents: the codes of their latents, of their tokens, their vectors."""
    from lexent.pipeline import as_pooled, coded

    texts = [document.content for document in documents]
    positions: list[NDArray[np.int64]] = []
    pooled: list[SparseVectors] = []
    tokens: list[TokenStore] = []
    vectors: list[NDArray[np.float32]] = []
    parts: Any = {"encoder": encoder, "lexicon": lexicon, "recipe": recipe}
    for batch in coded(texts, kind="document", **parts, vectors="dense" in extras, progress=progress):
        positions.append(batch.positions)
        if recipe.match == "maxsim":
            tokens.append(TokenStore.of(batch.codes, size=lexicon.size))
        else:
            pooled.append(as_pooled(batch.codes, lexicon, recipe))
        if batch.whole is not None:
            vectors.append(batch.whole.numpy())
    order = np.argsort(np.concatenate(positions), kind="stable")
    stores: Stores = {}
    if vectors:
        stores[DenseStore.name] = DenseStore.of(np.concatenate(vectors)[order])
    if recipe.match == "maxsim":
        store = TokenStore.concatenate(tokens).take(order)
        stores[store.name] = store
        return Material(store.maxima(size=lexicon.size), stores)
    return Material(Codes.of(SparseVectors.concatenate(pooled, size=lexicon.size).take(order), recipe), stores)
