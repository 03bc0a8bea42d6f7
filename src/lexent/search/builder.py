"""Documents to an index on disk, a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from lexent import artifact
from lexent.errors import InputError
from lexent.indexing.documents import DocumentWriter
from lexent.indexing.manifest import Counts, EncoderPart, FilePart, LexiconPart, Manifest
from lexent.indexing.postings import Postings
from lexent.recipes import Recipe
from lexent.search.parts import EncoderLike, LexiconLike, encoder_source, lexicon_source, load_encoder, load_lexicon
from lexent.types import Document, SparseVectors
from lexent.weighting import bm25, transform

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
    progress: Progress | None,
    overwrite: bool,
) -> tuple[Encoder, Lexicon]:
    """Writes the index to `out`, whole or not at all. Encoder and lexicon are loaded once a first document is there."""
    with artifact.new_folder(out, kind="index", overwrite=overwrite) as folder:
        chunks = _chunks(documents)
        first = next(chunks, None)
        if first is None:
            raise InputError("there are no documents to index; give at least one, with an id and a text")
        with DocumentWriter(folder) as writer:
            writer.add(first)
            loaded_encoder, loaded_lexicon = load_encoder(encoder), load_lexicon(lexicon)
            loaded_lexicon.check(loaded_encoder)
            parts = [_vectors(first, loaded_encoder, loaded_lexicon, recipe, progress)]
            for chunk in chunks:
                writer.add(chunk)
                parts.append(_vectors(chunk, loaded_encoder, loaded_lexicon, recipe, progress))
        vectors = SparseVectors.concatenate(parts, size=loaded_lexicon.size)
        parts.clear()
        average = bm25.mean_length(vectors)
        postings = Postings.of(bm25.document_side(vectors, recipe.weighting))
        postings.write(folder)
        Manifest(
            format=artifact.FORMAT_VERSION,
            lexent=artifact.lexent_version(),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
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
            counts=Counts(
                documents=len(vectors),
                postings=len(postings),
                live_concepts=int((postings.df > 0).sum()),
                average_length=average,
            ),
            files={name: FilePart(**file) for name, file in artifact.describe_files(folder).items()},
        ).write(folder)
    return loaded_encoder, loaded_lexicon


def _chunks(documents: Iterable[Document]) -> Iterator[list[Document]]:
    source = iter(documents)
    while chunk := list(islice(source, CHUNK)):
        yield chunk


def _vectors(
    documents: list[Document], encoder: Encoder, lexicon: Lexicon, recipe: Recipe, progress: Progress | None
) -> SparseVectors:
    from lexent.pipeline import represent

    texts = [document.content for document in documents]
    pooled = represent(texts, kind="document", encoder=encoder, lexicon=lexicon, recipe=recipe, progress=progress)
    return transform(pooled, power=recipe.power, cap=recipe.document_cap)
