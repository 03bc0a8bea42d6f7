"""What an index says about itself: all that a query needs to be weighed as the documents were."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from lexent import artifact
from lexent.errors import ArtifactError
from lexent.recipes import Recipe


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class EncoderPart(_Part):
    id: str
    source: str
    """What to load it by: its id, or the whole path of its folder."""
    fingerprint: str
    prompts: dict[str, str]


class LexiconPart(_Part):
    name: str
    source: str
    """What to load it by: its name, or the whole path of its folder."""
    hash: str
    size: int
    """How many latents it has."""


class Counts(_Part):
    documents: int
    postings: int
    live_concepts: int
    """Concepts that at least one document has."""
    average_length: float


class FilePart(_Part):
    size: int
    sha256: str


class Manifest(_Part):
    """The manifest of an index."""

    kind: Literal["index"] = "index"
    format: int
    lexent: str
    """The version of Lexent that wrote it."""
    created: str
    encoder: EncoderPart
    lexicon: LexiconPart
    recipe: dict[str, Any]
    content: Literal["title text"] = "title text"
    """What of a document was encoded: its title, a space, its text."""
    counts: Counts
    files: dict[str, FilePart]

    def write(self, folder: Path) -> None:
        artifact.write_json(folder / artifact.MANIFEST, self.model_dump())

    @staticmethod
    def read(folder: Path) -> Manifest:
        """The manifest of the index at `folder`, its files checked for presence and size."""
        raw = artifact.read_manifest(folder, kind="index")
        try:
            manifest = Manifest.model_validate(raw)
            Recipe.from_dict(manifest.recipe)
        except (ValidationError, TypeError, KeyError) as error:
            reason = str(error).splitlines()[0]
            raise ArtifactError(
                f'"{folder}" is damaged: {artifact.MANIFEST} cannot be read ({reason}); {_remedy(folder)}'
            ) from error
        sizes = {name: file.size for name, file in manifest.files.items()}
        artifact.check_sizes(folder, sizes, remedy=_remedy(folder))
        return manifest


def verify(folder: Path) -> Manifest:
    """Reads every file of the index and compares it with its hash; an ArtifactError names the damaged ones."""
    manifest = Manifest.read(folder)
    hashes = {name: file.sha256 for name, file in manifest.files.items()}
    artifact.check_hashes(folder, hashes, remedy=_remedy(folder))
    return manifest


def _remedy(folder: Path) -> str:
    return f"build the index again: lexent index CORPUS --out {folder} --overwrite"
