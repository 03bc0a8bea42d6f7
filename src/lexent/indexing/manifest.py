"""What an index says about itself: all that a query needs to be weighed as the documents were, and its segments.

The manifest is the index: a file that it does not name is not part of it, and it is replaced in one step.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from lexent import artifact
from lexent.errors import ArtifactError, InputError
from lexent.recipes import Recipe

SEGMENTS = "segments"
NEW = f"{artifact.MANIFEST}.new"
"""Where a manifest is written before it takes its place."""
FIRST_WITH_PASSAGES = 10
"""From this format on documents are cut into passages."""
OLDEST_FORMAT = 6
"""The oldest form of index that this version reads."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class EncoderPart(_Part):
    """The encoder that an index was built with."""

    id: str
    source: str
    """What to load it by: its id, or the whole path of its folder."""
    fingerprint: str
    prompts: dict[str, str]


class LexiconPart(_Part):
    """The lexicon that an index was built with."""

    name: str
    source: str
    """What to load it by: its name, or the whole path of its folder."""
    hash: str
    size: int
    """How many latents it has."""


class Counts(_Part):
    """Sizes of an index."""

    documents: int
    passages: int = 0
    """What posting lists count: a document has one or more."""
    postings: int
    live_concepts: int
    """Concepts that at least one document has."""
    live_words: int = 0
    """Words that at least one document has."""
    average_length: float


class FilePart(_Part):
    """Size and checksum of a file."""

    size: int
    sha256: str


class DeletedPart(_Part):
    """The tombstones of a segment."""

    documents: int
    passages: int
    length_units: int
    mask: str
    """The file that says which passages are deleted, a bit each."""
    df: str
    """The file that says how many of them have each latent."""


class SegmentPart(_Part):
    """A segment and its files."""

    name: str
    documents: int
    """With those that are deleted."""
    passages: int
    """What posting lists count: a document has one or more."""
    length_units: int
    """The sum of their lengths, in units of 2 ** -24."""
    deleted: DeletedPart | None = None
    words: int = 0
    """How many words of the index it was the first to bring; they stay when its documents go."""
    stores: dict[str, int] = {}
    """What is kept beside the lists, and how many rows of it: of tokens, or of documents."""


class Manifest(_Part):
    """The manifest of an index."""

    kind: Literal["index"] = "index"
    format: int
    generation: int
    """Counts the changes."""
    lexent: str
    """The version of Lexent that wrote it."""
    created: str
    updated: str
    encoder: EncoderPart
    lexicon: LexiconPart
    recipe: dict[str, Any]
    content: Literal["title text"] = "title text"
    """What of a document was encoded: its title, a space, its text."""
    words: str | None = None
    """The language of the words that the posting lists hold; None where they hold none."""
    extras: tuple[str, ...] = ()
    """What is kept beside what the recipe needs; see `lexent.indexing.forward.stores`."""
    counts: Counts
    names: str | None = None
    """The file with the names that the collection gives to concepts."""
    segments: tuple[SegmentPart, ...]
    files: dict[str, FilePart]

    def write(self, folder: Path) -> None:
        """Puts this manifest in the place of the one before, in one step, and waits until it is on the disk."""
        beside = folder / NEW
        artifact.write_json(beside, stamped(self.model_dump()))
        with artifact.disk_errors(folder):
            with beside.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(beside, folder / artifact.MANIFEST)
            artifact.sync_folder(folder)

    @staticmethod
    def read(folder: Path) -> Manifest:
        """The manifest of the index at `folder`, its files checked for presence and size."""
        return _checked(folder, lambda: Manifest._parsed(folder), artifact.check_sizes, "size")

    @staticmethod
    def _parsed(folder: Path) -> Manifest:
        raw = artifact.read_manifest(folder, kind="index")
        if raw["format"] < OLDEST_FORMAT:
            raise ArtifactError(
                f'"{folder}" was written by lexent {raw.get("lexent", "unknown")}, format {raw["format"]}; '
                f"this version reads from {OLDEST_FORMAT} on; {_remedy(folder)}"
            )
        if stamped(raw) != raw:
            raise ArtifactError(
                f'"{folder}" is damaged: {artifact.MANIFEST} changed since it was written; {_remedy(folder)}'
            )
        if raw["format"] < FIRST_WITH_PASSAGES:
            raw = _of_whole_texts(raw)
        try:
            manifest = Manifest.model_validate(raw)
            Recipe.from_dict(manifest.recipe)
        except (ValidationError, TypeError, KeyError) as error:
            reason = str(error).splitlines()[0]
            raise ArtifactError(
                f'"{folder}" is damaged: {artifact.MANIFEST} cannot be read ({reason}); {_remedy(folder)}'
            ) from error
        return manifest

    def store_sizes(self) -> dict[str, dict[str, int]]:
        """What is kept beside the lists of concepts: rows (of tokens, or of documents) and bytes of each store."""
        found: dict[str, dict[str, int]] = {}
        for part in self.segments:
            for name, rows in part.stores.items():
                prefix = f"{SEGMENTS}/{part.name}/{name}-"
                size = sum(file.size for path, file in self.files.items() if path.startswith(prefix))
                before = found.get(name, {"rows": 0, "bytes": 0})
                found[name] = {"rows": before["rows"] + rows, "bytes": before["bytes"] + size}
        return found

    @property
    def sizes(self) -> list[int]:
        """For each segment how many latents there can be: concepts, and the words up to this segment."""
        return [self.lexicon.size + before for before in accumulate(part.words for part in self.segments)]

    @property
    def size(self) -> int:
        """Number of concepts and words."""
        return self.lexicon.size + sum(part.words for part in self.segments)

    def check_words(self, recipe: Recipe) -> None:
        """Refuses a recipe that searches by words where the posting lists hold none."""
        if recipe.words and self.words is None:
            raise InputError(
                f"words is {recipe.words:g}, and the index holds no words; allowed: 0; for words build it again: "
                "lexent index CORPUS --out DIR --recipe hybrid --overwrite"
            )

    def changed(self, **values: Any) -> Manifest:
        """The next generation, with other values."""
        now = {"generation": self.generation + 1, "updated": now_text(), "lexent": artifact.lexent_version()}
        return self.model_copy(update={**now, "format": artifact.FORMAT_VERSION, **values})


def _of_whole_texts(raw: dict[str, Any]) -> dict[str, Any]:
    """A manifest of an older format, in which every document is one passage, as this format has it."""

    def counted(part: dict[str, Any]) -> dict[str, Any]:
        return {**part, "passages": part["documents"]}

    segments = [
        {**counted(part), "deleted": counted(part["deleted"]) if part.get("deleted") else None}
        for part in raw["segments"]
    ]
    recipe = {**raw["recipe"], "whole_texts": True}
    return {**raw, "recipe": recipe, "segments": segments, "counts": counted(raw["counts"])}


def now_text() -> str:
    """The time now, in UTC, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def verify(folder: Path) -> Manifest:
    """Reads every file of the index and compares it with its hash; an ArtifactError names the damaged ones."""
    return _checked(folder, lambda: Manifest.read(folder), artifact.check_hashes, "sha256")


def _checked(folder: Path, read: Callable[[], Manifest], check: Callable[..., None], fact: str) -> Manifest:
    """The manifest whose files pass a check. It is read again where they do not: a writer may just have replaced it."""
    manifest = read()
    while True:
        try:
            facts = {name: getattr(file, fact) for name, file in manifest.files.items()}
            check(folder, facts, remedy=_remedy(folder))
            return manifest
        except (FileNotFoundError, ArtifactError):
            before, manifest = manifest, read()
            if manifest == before:
                raise


def stamped(values: dict[str, Any]) -> dict[str, Any]:
    """A manifest's values with their hash."""
    rest = {name: value for name, value in values.items() if name != "hash"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return {**rest, "hash": hashlib.sha256(text.encode()).hexdigest()}


def _remedy(folder: Path) -> str:
    return f"build the index again: lexent index CORPUS --out {folder} --overwrite"
