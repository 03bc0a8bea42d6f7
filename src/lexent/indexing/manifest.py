"""What an index says about itself: all that a query needs to be weighed as the documents were, and its segments.

The manifest is the index: a file that it does not name is not part of it, and it is replaced in one step.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lexent import artifact
from lexent.errors import ArtifactError, InputError
from lexent.recipes import Recipe

SEGMENTS = "segments"
SEGMENT_NAME = re.compile(r"[0-9]{6,18}")
"""Names of the folders of segments."""
SEGMENT_FILE = re.compile(r"[a-z][a-z0-9_-]{0,60}\.(npy|npz|sqlite)")
"""Names of files of a segment."""
TOMBSTONES = "deleted-"
"""Files with tombstones begin so: those of a change that was not committed may lie beside others."""
NAMES_FILE = re.compile(r"names-[0-9]{1,18}\.npz")
"""Names of the files with the names of concepts."""
CHECKED_BYTES = 2**20
"""Bytes that are compared with their checksums when an index is opened, at most: about a millisecond."""
MAX_LATENTS = 2**24
"""Latents of a lexicon, at most."""
MAX_COUNT = 2**53
MAX_LENGTH_UNITS = 2**96
FIRST_WITH_PASSAGES = 10
"""From this format on documents are cut into passages."""
OLDEST_FORMAT = 6
"""The oldest form of index that this version reads."""


Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
LengthUnits = Annotated[int, Field(ge=0, le=MAX_LENGTH_UNITS)]


def _name(pattern: re.Pattern[str]) -> Any:
    """A string that is wholly of a pattern."""
    return Field(pattern=f"^(?:{pattern.pattern})$")


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
    size: Annotated[int, Field(ge=1, le=MAX_LATENTS)]
    """How many latents it has."""


class Counts(_Part):
    """Sizes of an index."""

    documents: Count
    passages: Count = 0
    """What posting lists count: a document has one or more."""
    postings: Count
    live_concepts: Count
    """Concepts that at least one document has."""
    live_words: Count = 0
    """Words that at least one document has."""
    average_length: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class FilePart(_Part):
    """Size and checksum of a file."""

    size: Count
    sha256: str


class DeletedPart(_Part):
    """The tombstones of a segment."""

    documents: Count
    passages: Count
    length_units: LengthUnits
    mask: Annotated[str, _name(SEGMENT_FILE)]
    """The file that says which passages are deleted, a bit each."""
    df: Annotated[str, _name(SEGMENT_FILE)]
    """The file that says how many of them have each latent."""


class SegmentPart(_Part):
    """A segment and its files."""

    name: Annotated[str, _name(SEGMENT_NAME)]
    documents: Count
    """With those that are deleted."""
    passages: Count
    """What posting lists count: a document has one or more."""
    length_units: LengthUnits
    """The sum of their lengths, in units of 2 ** -24."""
    deleted: DeletedPart | None = None
    words: Count = 0
    """How many words of the index it was the first to bring; they stay when its documents go."""
    stores: dict[str, Count] = {}
    """What is kept beside the lists, and how many rows of it: of tokens, or of documents."""


class Manifest(_Part):
    """The manifest of an index."""

    kind: Literal["index"] = "index"
    format: int
    generation: Count
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
    names: Annotated[str, _name(NAMES_FILE)] | None = None
    """The file with the names that the collection gives to concepts."""
    segments: tuple[SegmentPart, ...]
    files: dict[str, FilePart]

    @model_validator(mode="after")
    def _names_own_files(self) -> Self:
        """Refuse files that are no files of this index."""
        folders = {part.name for part in self.segments}
        if len(folders) < len(self.segments):
            raise ValueError("two segments have one name")
        for path in self.files:
            match path.split("/"):
                case [name] if name == self.names:
                    continue
                case [start, folder, name] if start == SEGMENTS and folder in folders and SEGMENT_FILE.fullmatch(name):
                    continue
            raise ValueError(f"{path!r} is no file of an index")
        tombstones = {f"{SEGMENTS}/{part.name}/": part.deleted for part in self.segments if part.deleted}
        needed = {folder + name for folder, one in tombstones.items() for name in (one.mask, one.df)}
        missing = sorted((needed | ({self.names} if self.names else set())) - self.files.keys())
        if missing:
            raise ValueError(f"{missing[0]} is not among the files")
        return self

    def write(self, folder: Path) -> None:
        """Puts this manifest in the place of the one before, in one step, and waits until it is on the disk."""
        artifact.replace_file(folder / artifact.MANIFEST, artifact.json_bytes(stamped(self.model_dump())))

    @staticmethod
    def read(folder: Path) -> Manifest:
        """The manifest of the index at `folder`, its files checked for presence and size. None may be a link."""
        return _checked(folder, lambda: Manifest._parsed(folder), artifact.check_sizes, "size")

    @staticmethod
    def _parsed(folder: Path) -> Manifest:
        return Manifest.of(artifact.read_manifest(folder, kind="index"), folder, remedy=_remedy(folder))

    @staticmethod
    def of(raw: dict[str, Any], path: Path, *, remedy: str) -> Manifest:
        """The manifest of the values in its file. path, remedy: what an error names, and what it says to type."""
        if raw["format"] < OLDEST_FORMAT:
            raise ArtifactError(
                f'"{path}" was written by lexent {raw.get("lexent", "unknown")}, format {raw["format"]}; '
                f"this version reads from {OLDEST_FORMAT} on; {remedy}"
            )
        try:
            if stamped(raw) != raw:
                raise ArtifactError(f'"{path}" is damaged: {artifact.MANIFEST} changed since it was written; {remedy}')
            if raw["format"] < FIRST_WITH_PASSAGES:
                raw = _of_whole_texts(raw)
            manifest = Manifest.model_validate(raw)
            Recipe.from_dict(manifest.recipe)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            raise ArtifactError(
                f'"{path}" is damaged: {artifact.MANIFEST} cannot be read ({reason}); {remedy}'
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


def check_directories(folder: Path, manifest: Manifest) -> None:
    """Compares arrays with their checksums, the smallest first, up to CHECKED_BYTES.

    These are the directories of posting lists, words and passages, and the tombstones. Documents and names have
    checksums within their files.
    """
    arrays = sorted((part.size, name) for name, part in manifest.files.items() if name.endswith(".npy"))
    for (_, name), end in zip(arrays, accumulate(size for size, _ in arrays), strict=True):
        if end > CHECKED_BYTES:
            break
        with suppress(PermissionError):  # which is said when the file is mapped
            data = artifact.read_bytes(folder / name, most=CHECKED_BYTES)
            if hashlib.sha256(data).hexdigest() != manifest.files[name].sha256:
                raise ArtifactError(f'"{folder}" is damaged: {name} changed since it was written; {_remedy(folder)}')


def _checked(folder: Path, read: Callable[[], Manifest], check: Callable[..., None], fact: str) -> Manifest:
    """The manifest whose files pass a check. It is read again where they do not: a writer may just have replaced it."""
    manifest = read()
    while True:
        try:
            _check_folders(folder, manifest)
            facts = {name: getattr(file, fact) for name, file in manifest.files.items()}
            check(folder, facts, remedy=_remedy(folder))
            return manifest
        except (FileNotFoundError, ArtifactError):
            before, manifest = manifest, read()
            if manifest == before:
                raise


def _check_folders(folder: Path, manifest: Manifest) -> None:
    """Refuse links, and files of segments whose size and checksum the manifest does not give."""
    remedy = f"copy it to plain files first: cp -rL {folder} NEW_FOLDER"
    for own in (folder, folder / SEGMENTS):
        artifact.plain_names(own, remedy=remedy)
    for part in manifest.segments:
        for name in artifact.plain_names(folder / SEGMENTS / part.name, remedy=remedy):
            known = f"{SEGMENTS}/{part.name}/{name}" in manifest.files or name.startswith(TOMBSTONES)
            if SEGMENT_FILE.fullmatch(name) and not known:
                raise ArtifactError(f'"{folder}" is damaged: its manifest lacks {part.name}/{name}; {_remedy(folder)}')


def stamped(values: dict[str, Any]) -> dict[str, Any]:
    """A manifest's values with their hash."""
    rest = {name: value for name, value in values.items() if name != "hash"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return {**rest, "hash": hashlib.sha256(text.encode()).hexdigest()}


def _remedy(folder: Path) -> str:
    return f"build the index again: lexent index CORPUS --out {folder} --overwrite"
