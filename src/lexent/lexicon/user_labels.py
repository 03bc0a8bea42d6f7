"""Names that a user gave to concepts of an index, stored beside it: they apply to everyone who opens the index."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from lexent import artifact
from lexent.errors import ArtifactError, InputError
from lexent.lexicon.lexicon import Lexicon

FILE = "labels.json"
LOCK = "labels.lock"
"""The file that is locked while names change; documents can be added meanwhile."""
LOCK_SECONDS = 10.0
"""For how long a change of a name waits for another one."""
SOURCE = "user"
"""What such a concept gives as the source of its label."""
MAX_NAME_CHARS = 100
"""Characters of a name."""


def read(folder: Path, lexicon: Lexicon) -> dict[int, str]:
    """The names given here, by concept; none where they were given to concepts of another lexicon."""
    path = folder / FILE
    if not os.path.lexists(path):
        return {}
    try:
        held = artifact.read_json(path)
        names = {int(concept): str(name) for concept, name in held["labels"].items()}
        known = held["lexicon"] == lexicon.hash
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(
            f"the names in {path} are damaged ({error}); mend the file, or remove it to go back to the lexicon's own"
        ) from error
    return {concept: name for concept, name in names.items() if known and 0 <= concept < lexicon.size}


def write(folder: Path, lexicon: Lexicon, names: Mapping[int, str]) -> None:
    """Puts these names in the place of those before, in one step, and waits until they are on the disk."""
    labels = {str(concept): names[concept] for concept in sorted(names)}
    artifact.replace_file(folder / FILE, artifact.json_bytes({"lexicon": lexicon.hash, "labels": labels}))


def applied(lexicon: Lexicon, names: Mapping[int, str]) -> Lexicon:
    """The lexicon with these names; its codes, and so its hash, stay as they are."""
    if not names:
        return lexicon
    concepts = lexicon.concepts.relabelled(names, source=SOURCE)
    concepts.options = lexicon.concepts.options
    return lexicon.renamed(concepts)


def checked(label: str, concept: int, lexicon: Lexicon) -> str:
    """The name on one line; refused where it is empty, too long, a number, or another concept's."""
    name = " ".join("".join(sign if sign.isprintable() else " " for sign in label).split())
    if not name or len(name) > MAX_NAME_CHARS:
        raise InputError(f"a name has 1 to {MAX_NAME_CHARS} characters; given: {len(name)}")
    if name.removeprefix("#").isdecimal():
        raise InputError(f'"{name}" is a number, and numbers already mean concepts; give it a name in words')
    for other in lexicon.concepts:
        if other.id != concept and other.label.casefold() == name.casefold():
            raise InputError(f'#{other.id} is already called "{other.label}"; choose a name that tells them apart')
    return name
