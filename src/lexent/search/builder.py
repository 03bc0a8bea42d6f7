"""Documents to a segment on disk, a chunk at a time; and to a new index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from lexent import artifact
from lexent.errors import InputError
from lexent.indexing.lock import check_free
from lexent.indexing.manifest import SEGMENTS, Counts, EncoderPart, LexiconPart, Manifest, now_text
from lexent.indexing.segment import Codes
from lexent.indexing.writer import SegmentWriter, committed
from lexent.recipes import Recipe
from lexent.search.parts import EncoderLike, LexiconLike, encoder_source, lexicon_source, load_encoder, load_lexicon
from lexent.types import Document

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
    memory: int | None,
    progress: Progress | None,
    overwrite: bool,
) -> tuple[Encoder, Lexicon]:
    """Writes the index to `out`, whole or not at all. Encoder and lexicon are loaded once a first document is there."""
    check_free(out)
    with artifact.new_folder(out, kind="index", overwrite=overwrite) as folder:
        chunks = in_chunks(documents)
        first = next(chunks, None)
        if first is None:
            raise InputError("there are no documents to index; give at least one, with an id and a text")
        loaded_encoder, loaded_lexicon = load_encoder(encoder), load_lexicon(lexicon, recipe=recipe)
        loaded_lexicon.check(loaded_encoder, level=recipe.level)
        with SegmentWriter(
            folder / SEGMENTS / "000001", size=loaded_lexicon.size, recipe=recipe, memory=memory
        ) as writer:
            for chunk in chain([first], chunks):
                writer.add(chunk, partial(codes_of, chunk, loaded_encoder, loaded_lexicon, recipe, progress))
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


def codes_of(
    documents: list[Document], encoder: Encoder, lexicon: Lexicon, recipe: Recipe, progress: Progress | None
) -> Codes:
    """What the index keeps of documents: the codes of their latents."""
    from lexent.pipeline import represent

    texts = [document.content for document in documents]
    pooled = represent(texts, kind="document", encoder=encoder, lexicon=lexicon, recipe=recipe, progress=progress)
    return Codes.of(pooled, recipe)
