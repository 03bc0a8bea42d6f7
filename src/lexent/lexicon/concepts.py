"""What a latent means to a person: its name, how common it is, and where it was seen."""

from __future__ import annotations

import gzip
import json
import operator
import re
import shlex
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import SequenceMatcher, get_close_matches
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Literal, overload

from lexent import arguments, artifact
from lexent.bounded_cache import BoundedCache
from lexent.errors import ArtifactError, NotFoundError

Category = Literal["lexical", "narrow", "broad", "unknown"]
"""lexical: one word's forms; narrow: a few related words; broad: a topic or manner spread over many words."""

SEPARATOR = " · "
FILE = "concepts.json.gz"
DOCUMENTS = "documents"
"""The source of a label that comes from the documents of an index."""
Evidence = tuple[tuple[str, float, int], ...]
"""Words that raise a concept, with their shares of its activation and how often each did (0 where not known)."""
MAX_CACHED_EVIDENCE = 4096
"""Concepts whose words are kept at hand, about 1 KB each."""
MIN_SUGGESTION_SIMILARITY = 0.6
"""From this likeness on a concept is suggested for a name that there is not."""


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
    """The label made from words, where a language model or a user gave another."""
    form: str = ""
    """The form that it marks, such as punctuation; empty where it is about a topic."""
    raised_by: tuple[tuple[str, float], ...] = ()
    """Words of the lexicon's text that raise it most, with their shares of its activation."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the label."""
        return tuple(self.label.split(SEPARATOR))


class MadeConcepts(Sequence[Concept]):
    """Concepts that are made when they are asked for: a search needs some hundred of tens of thousands."""

    def __init__(self, size: int, make: Callable[[int], Concept]) -> None:
        self._size, self._make = size, make
        self._made: dict[int, Concept] = {}

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, place: int) -> Concept: ...

    @overload
    def __getitem__(self, place: slice) -> list[Concept]: ...

    def __getitem__(self, place: int | slice) -> Concept | list[Concept]:
        if isinstance(place, slice):
            return self.of(range(*place.indices(self._size)))
        place = operator.index(place)
        place += self._size if place < 0 else 0
        if not 0 <= place < self._size:
            raise IndexError(f"concept {place} of {self._size}")
        found = self._made.get(place)
        if found is None:
            found = self._made[place] = self._make(place)
        return found

    def of(self, places: Iterable[int]) -> list[Concept]:
        """The concepts of some numbers."""
        made = self._made.get
        return [made(place) or self[place] for place in places]


class Concepts(Sequence[Concept]):
    """The concepts of a lexicon, by latent number, and by name."""

    options: tuple[str, ...] = ()
    """What selects these concepts on the command line, such as --index DIR; messages repeat it."""

    def __init__(
        self,
        concepts: Sequence[Concept],
        *,
        former: Mapping[str, int] | None = None,
        here: Callable[[int], Evidence] | None = None,
    ) -> None:
        """former: labels that concepts had before, which still find them. here: words of an index that raise them."""
        given = concepts if isinstance(concepts, MadeConcepts) else list(concepts)
        self._all = given if isinstance(given, MadeConcepts) else MadeConcepts(len(given), given.__getitem__)
        self.former = dict(former or {})
        self._here = here
        self._evidence: BoundedCache[int, Evidence] = BoundedCache(MAX_CACHED_EVIDENCE)

    def raised_here(self, concept: int) -> Evidence:
        """In an index: words of its documents that raise a concept, highest gain first; none elsewhere."""
        return self._here(concept) if self._here is not None else ()

    def evidence(self, concept: int) -> Evidence:
        """The words that raise a concept: of the documents at hand, else of the lexicon's text, else those of its name.

        A name that a person or a language model gave comes first.
        """
        found = self._evidence.get(concept)
        return self._evidence.put(concept, self._evidence_of(concept)) if found is None else found

    def _evidence_of(self, concept: int) -> Evidence:
        own = self._all[concept]
        if own.source in ("", DOCUMENTS):
            here = self.raised_here(concept)
            if here:
                return here
            if own.raised_by:
                return tuple((word, share, 0) for word, share in own.raised_by)
        found = _words(own.label)
        return tuple((word, 1 / len(found), 0) for word in found)

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

    def of(self, places: Iterable[int]) -> list[Concept]:
        """The concepts of some numbers, which must be good."""
        return self._all.of(places)

    def find(self, text: str, *, limit: int = 10) -> list[Concept]:
        """Concepts whose names hold the words of the text; the earlier in the name and the more of them, the better."""
        wanted = _words(arguments.text("text", text))
        arguments.whole("limit", limit, least=1)
        score: dict[int, float] = {}
        for word in wanted:
            exact = self._words_index.get(word, [])
            for concept in exact:
                place = _words(self._all[concept].label).index(word)
                score[concept] = score.get(concept, 0.0) + 1.0 / (1 + place)
            if not exact:
                near = [known for known in self._words_index if len(word) > 2 and known.startswith(word)]
                for concept in (concept for known in near[:50] for concept in self._words_index[known]):
                    score[concept] = score.get(concept, 0.0) + 0.4
        ranked = sorted(score, key=lambda concept: (-score[concept], -self._all[concept].frequency, concept))
        return [self._all[concept] for concept in ranked[:limit]]

    def resolve(self, name: str | int) -> Concept:
        """The concept of that number (812, "#812") or name; a whole label, or the best match of its words."""
        if isinstance(name, bool) or not isinstance(name, str | Integral):
            raise arguments.refused("the concept", name, 'a name, or a number: "zip", "#812", 812')
        text = str(name).strip()
        number = text.removeprefix("#")
        if number.isdecimal() or isinstance(name, Integral):
            if 0 <= int(number) < len(self):
                return self._all[int(number)]
            raise NotFoundError(f"no concept #{number}; they are numbered 0 to {len(self) - 1}")
        exact = self.exact(text)
        if exact is not None:
            return exact
        found = self.find(text, limit=1)
        if found and set(_words(text)) <= set(_words(found[0].label)):
            return found[0]
        raise NotFoundError(self._no_such(text))

    def exact(self, label: str) -> Concept | None:
        """The concept that has this label, had it before, or has it in its lexicon; upper and lower case are alike."""
        place = self._labels.get(label.strip().casefold())
        return None if place is None else self._all[place]

    def close_words(self, text: str) -> list[str]:
        """For each word of a text, the word of a concept's name that is spelled most like it, where one is near."""
        index = self._words_index
        return [close for word in _words(text) for close in get_close_matches(word, index, n=1, cutoff=0.75)]

    def _no_such(self, text: str) -> str:
        index, close = self._words_index, self.close_words(text)
        known = [word for word in _words(text) if word in index] + close
        candidates = [*self.find(text), *(concept for word in close for concept in self.find(word))]
        near = {concept.id: _likeness(text, concept.label) for concept in candidates}
        best = sorted((one for one in near if near[one] >= MIN_SUGGESTION_SIMILARITY), key=lambda one: -near[one])[:3]
        seen = [f'#{one} "{self._all[one].label}"' for one in best]
        hint = f"did you mean {', '.join(seen)}? " if seen else ""
        if known:
            step = f"search them: lexent concepts find {shlex.quote(max(known, key=len))}"
        else:
            step = "list them: lexent concepts list"
        return " ".join([f'no concept named "{text}"; {hint}{step}', *map(shlex.quote, self.options)])

    @cached_property
    def _labels(self) -> dict[str, int]:
        plain = {concept.plain.casefold(): concept.id for concept in self._all if concept.plain}
        former = {label.casefold(): concept for label, concept in self.former.items() if concept < len(self._all)}
        return {**plain, **former, **{concept.label.casefold(): concept.id for concept in reversed(self._all)}}

    @cached_property
    def _words_index(self) -> dict[str, list[int]]:
        index: dict[str, list[int]] = {}
        for concept in self._all:
            for word in dict.fromkeys(_words(concept.label)):
                index.setdefault(word, []).append(concept.id)
        return index

    def relabelled(self, labels: Mapping[int, str], *, source: str) -> Concepts:
        """The concepts, some of them with other labels; what was made from words stays as `plain`."""
        found = list(self._all)
        for one, label in labels.items():
            plain = found[one].plain or found[one].label
            found[one] = replace(found[one], label=label, source=source, plain=plain)
        return Concepts(found, former=self.former, here=self._here)

    def save(self, folder: Path) -> None:
        """Write the concepts into a lexicon's folder."""
        rows = [{name: value for name, value in asdict(concept).items() if name != "id"} for concept in self._all]
        table = {name: [row[name] for row in rows] for name in (rows[0] if rows else {})}
        for name in ("source", "plain", "form", "raised_by"):
            if not any(table.get(name, [])):
                table.pop(name, None)
        packed = gzip.compress(json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode(), 9, mtime=0)
        (folder / FILE).write_bytes(packed)

    @staticmethod
    def load(folder: Path, *, size: int) -> Concepts:
        """The saved names; concepts without a file of names are called by their numbers."""
        path = folder / FILE
        if not path.exists():
            return Concepts([Concept(latent, f"concept {latent}") for latent in range(size)])
        damaged = f"the names in {path} are damaged"
        try:
            with gzip.open(path) as file:
                unpacked = file.read(artifact.MAX_UNPACKED_BYTES + 1)
            if len(unpacked) > artifact.MAX_UNPACKED_BYTES:
                raise ValueError("they unpack to too many bytes")
            table = json.loads(unpacked)
            table.setdefault("examples", [()] * size)
            named = {len(column) for column in table.values()}
        except (OSError, EOFError, zlib.error, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise ArtifactError(f"{damaged}: {error}") from error
        if len(named) > 1 or set(table) - set(Concept.__dataclass_fields__):
            raise ArtifactError(f"{damaged}: its columns are {', '.join(map(str, table))}, of {named} rows")
        if named != {size}:
            raise ArtifactError(f"{path} names {named.pop()} concepts and the lexicon has {size}")

        def concept(latent: int) -> Concept:
            try:
                row = {name: column[latent] for name, column in table.items()}
                row["examples"] = tuple(row["examples"])
                row["raised_by"] = tuple((str(word), float(share)) for word, share in row.get("raised_by", ()))
                return Concept(latent, **row)
            except (ValueError, TypeError) as error:
                raise ArtifactError(f"{damaged}: {error}") from error

        return Concepts(MadeConcepts(size, concept))


def _likeness(text: str, label: str) -> float:
    """From 0 to 1: how like the words of a text are to their nearest in a label; long words count for more."""
    words, known = _words(text), _words(label)
    alike = [max((SequenceMatcher(None, word, one).ratio() for one in known), default=0.0) for word in words]
    return sum(len(word) * ratio for word, ratio in zip(words, alike, strict=True)) / max(1, sum(map(len, words)))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text.lower())
