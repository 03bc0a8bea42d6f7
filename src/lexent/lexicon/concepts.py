"""What a latent means to a person: its name, how common it is, and where it was seen."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, overload

from lexent.errors import ArtifactError, NotFoundError

Category = Literal["lexical", "narrow", "broad", "unknown"]
"""lexical: one word's forms; narrow: a few related words; broad: a topic or manner spread over many words."""

SEPARATOR = " · "
FILE = "concepts.json.gz"


@dataclass(frozen=True, slots=True)
class Concept:
    """One named latent."""

    id: int
    label: str
    category: Category = "unknown"
    frequency: float = 0.0
    """Share of the texts of the naming pass in which it is active."""
    examples: tuple[str, ...] = ()
    """Short contexts, the word that raised it in [brackets]."""
    source: str = ""
    """The language model that gave the label; empty where it was made from the words that raise the concept."""
    plain: str = ""
    """The label made from words, where a language model gave another."""

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.label.split(SEPARATOR))


class Concepts(Sequence[Concept]):
    """The concepts of a lexicon, by latent number, and by name."""

    def __init__(self, concepts: Sequence[Concept]) -> None:
        self._all = list(concepts)
        self._by_word: dict[str, list[int]] | None = None

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, place: int) -> Concept: ...

    @overload
    def __getitem__(self, place: slice) -> list[Concept]: ...

    def __getitem__(self, place: int | slice) -> Concept | list[Concept]:
        return self._all[place]

    def __iter__(self) -> Iterator[Concept]:
        return iter(self._all)

    def find(self, text: str, *, limit: int = 10) -> list[Concept]:
        """Concepts whose names hold the words of the text; the earlier in the name and the more of them, the better."""
        wanted = _words(text)
        score: dict[int, float] = {}
        for word in wanted:
            exact = self._words_index().get(word, [])
            for concept in exact:
                place = _words(self._all[concept].label).index(word)
                score[concept] = score.get(concept, 0.0) + 1.0 / (1 + place)
            if not exact:
                near = [known for known in self._words_index() if len(word) > 2 and known.startswith(word)]
                for known in near[:50]:
                    for concept in self._words_index()[known]:
                        score[concept] = score.get(concept, 0.0) + 0.4
        ranked = sorted(score, key=lambda concept: (-score[concept], -self._all[concept].frequency, concept))
        return [self._all[concept] for concept in ranked[:limit]]

    def resolve(self, name: str | int) -> Concept:
        """The concept of that number (812, "#812") or name; a whole label, or the best match of its words."""
        text = str(name).strip()
        number = text.removeprefix("#")
        if number.isdecimal() or isinstance(name, int):
            if 0 <= int(number) < len(self):
                return self._all[int(number)]
            raise NotFoundError(f"no concept #{number}; they are numbered 0 to {len(self) - 1}")
        for concept in self._all:
            if concept.label == text:
                return concept
        found = self.find(text, limit=1)
        if found and set(_words(text)) <= set(_words(found[0].label)):
            return found[0]
        raise NotFoundError(self._no_such(text))

    def _no_such(self, text: str) -> str:
        near = self.find(text, limit=3)
        for word in _words(text):
            for known in get_close_matches(word, self._words_index(), n=1, cutoff=0.75):
                near += self.find(known, limit=2)
        seen = list(dict.fromkeys(f'#{concept.id} "{concept.label}"' for concept in near))[:3]
        hint = f"did you mean {', '.join(seen)}? " if seen else ""
        return f'no concept named "{text}"; {hint}search them: lexent concepts find "{text[:20]}"'

    def _words_index(self) -> dict[str, list[int]]:
        if self._by_word is None:
            index: dict[str, list[int]] = {}
            for concept in self._all:
                for word in dict.fromkeys(_words(concept.label)):
                    index.setdefault(word, []).append(concept.id)
            self._by_word = index
        return self._by_word

    def save(self, folder: Path) -> None:
        rows = [{name: value for name, value in asdict(concept).items() if name != "id"} for concept in self._all]
        table = {name: [row[name] for row in rows] for name in (rows[0] if rows else {})}
        for name in ("source", "plain"):
            if not any(table.get(name, [])):  # no model gave a label
                table.pop(name, None)
        packed = gzip.compress(json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode(), 9, mtime=0)
        (folder / FILE).write_bytes(packed)

    @staticmethod
    def load(folder: Path, *, size: int) -> Concepts:
        """The saved names; concepts without a file of names are called by their numbers."""
        path = folder / FILE
        if not path.exists():
            return Concepts([Concept(latent, f"concept {latent}") for latent in range(size)])
        try:
            table = json.loads(gzip.decompress(path.read_bytes()))
            table["examples"] = [tuple(examples) for examples in table.get("examples", [()] * size)]
            rows = zip(*table.values(), strict=True)
            concepts = [Concept(latent, **dict(zip(table, row, strict=True))) for latent, row in enumerate(rows)]
        except (OSError, EOFError, zlib.error, ValueError, TypeError, AttributeError) as error:
            raise ArtifactError(f"the names in {path} are damaged: {error}") from error
        if len(concepts) != size:
            raise ArtifactError(f"{path} names {len(concepts)} concepts and the lexicon has {size}")
        return Concepts(concepts)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text.lower())
