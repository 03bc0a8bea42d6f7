"""Steering: a caller turns named concepts of a query up, down or off, or adds them.

A factor multiplies a concept's weight: 0 removes it, 1 leaves it, 2 doubles it. A concept that the query does not
contain is added: its base weight is the mean weight of the query's own concepts (before idf), so a factor of 2 gives it
twice the strength of a typical concept of this query. A concept that two names reach gets both factors, multiplied.
Concepts that the recipe prunes stay pruned. Where an index holds words, a name that is one word means that word too; a
word that the query lacks is added as if the query had it once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from lexent import arguments
from lexent.errors import InputError, NotFoundError
from lexent.lexicon.concepts import SEPARATOR
from lexent.types import SparseVectors

if TYPE_CHECKING:
    from lexent.lexicon import Lexicon
    from lexent.search.groups import QueryGroups
    from lexent.search.query_words import QueryWords

_BRACKETS = re.compile(r" \([^)]*\)| #\d+$")
"""What tells apart concepts of one name."""
Steer = Mapping[str | int, float]
"""Factors by concept: a label, a word of labels, "#812" or 812."""


def checked(steer: Steer | None) -> Steer | None:
    """The factors, refused where they are no mapping of concepts to numbers of 0 or more."""
    if steer is None:
        return None
    for name, factor in arguments.mapping("steer", steer, allowed='a mapping, such as {"zip": 2, "#812": 0}').items():
        if isinstance(name, bool) or not isinstance(name, str | Integral):
            raise arguments.refused("a concept of steer", name, 'a name, or a number: "zip", "#812", 812')
        if not arguments.is_number(factor) or not 0 <= factor <= arguments.HIGHEST_WEIGHT:
            raise InputError(
                f'the factor of "{name}" is {arguments.shown(factor)}; '
                f"allowed: from 0 (removes it) to {arguments.HIGHEST_WEIGHT:,}; 1 leaves it, 2 doubles it"
            )
    return steer


def steered(
    vector: SparseVectors,
    steer: Steer,
    *,
    lexicon: Lexicon,
    groups: QueryGroups | None = None,
    words: QueryWords | None = None,
) -> SparseVectors:
    """The one query of `vector` (before idf), with the factors applied."""
    ids, values = vector.of(0)
    weights = dict(zip(ids.tolist(), values.tolist(), strict=True))
    own = values[ids < lexicon.size]
    base = float(own.mean()) if len(own) else 1.0
    for concept, factor in factors(steer, ids.tolist(), lexicon=lexicon, groups=groups, words=words).items():
        usual = base if concept < lexicon.size else 1.0  # that of a word that the query has once
        weights[concept] = weights.get(concept, usual) * factor
    order = sorted(weights)
    return SparseVectors(
        ids=np.array(order, dtype=np.int32),
        values=np.array([weights[concept] for concept in order], dtype=np.float32),
        offsets=np.array([0, len(order)], dtype=np.int64),
        size=vector.size,
    )


def factors(
    steer: Steer,
    active: Sequence[int],
    *,
    lexicon: Lexicon,
    groups: QueryGroups | None = None,
    words: QueryWords | None = None,
) -> dict[int, float]:
    """What to multiply each concept by, where a query has the `active` ones."""
    found: dict[int, float] = {}
    for name, factor in steer.items():
        for concept in targets(name, active, lexicon=lexicon, groups=groups, words=words):
            found[concept] = found.get(concept, 1.0) * float(factor)
    for concept, factor in found.items():
        if factor > arguments.HIGHEST_WEIGHT:
            raise InputError(
                f"the factors of concept #{concept} multiply to {factor:g}; "
                f"allowed: at most {arguments.HIGHEST_WEIGHT:,}; name it once"
            )
    return found


def targets(
    name: str | int,
    active: Sequence[int],
    *,
    lexicon: Lexicon,
    groups: QueryGroups | None = None,
    words: QueryWords | None = None,
) -> list[int]:
    """The concepts that a name means, where a query has the `active` ones, and the word of the index that it is."""
    if words is None:
        return _concepts(name, active, lexicon=lexicon, groups=groups)
    number = _number(name)
    if number is not None and words.first <= number < words.size:
        return [number]
    own = words.named(str(name)) if number is None else []
    concepts = [concept for concept in active if concept < words.first]
    try:
        found = _concepts(name, concepts, lexicon=lexicon, groups=groups)
    except NotFoundError:
        if not own:
            raise
        found = []
    return list(dict.fromkeys([*found, *own]))


def _number(name: str | int) -> int | None:
    """The number that a name is, as 812 or "#812"."""
    if not isinstance(name, str):
        return int(name)
    found = name.strip().removeprefix("#")
    return int(found) if found != name.strip() and found.isdecimal() else None


def _concepts(
    name: str | int, active: Sequence[int], *, lexicon: Lexicon, groups: QueryGroups | None = None
) -> list[int]:
    """The concepts that a name means.

    A number or "#number" means one concept; the name or the first word of a group of the query, all concepts of the
    group; an exact label, present or former, one concept; the name of a line of a hit, all concepts of the group that
    has its first word. Any other name means every active concept whose label begins
    with a part that has the name's words, side by side and whole; where none has, the concept of the lexicon that is
    called so; else every active concept with these words in its label, or the one that the lexicon finds closest. What
    stands in brackets only tells labels apart.
    """
    if not isinstance(name, str) or name.strip().startswith("#"):
        return [lexicon.resolve(name).id]
    of_group = groups.named(name) if groups is not None else ()
    if of_group:
        return list(of_group)
    if lexicon.concepts.exact(name) is not None:
        return [lexicon.resolve(name).id]
    of_line = groups.named(name.split(SEPARATOR)[0]) if groups is not None and SEPARATOR in name else ()
    if of_line:
        return list(of_line)
    labels = {concept: _BRACKETS.sub("", lexicon.label(concept)) for concept in active}
    first = [concept for concept, label in labels.items() if has_words(label.split(SEPARATOR)[0], name)]
    if first:
        return first
    named = [concept for concept, label in labels.items() if has_words(label, name)]
    try:
        closest = lexicon.resolve(name)
    except NotFoundError:
        if named:
            return named
        raise
    known = has_words(_BRACKETS.sub("", closest.label).split(SEPARATOR)[0], name)
    return named if named and not known else [closest.id]


def has_words(label: str, name: str) -> bool:
    """Whether the words of `name` stand side by side among the words of `label`."""
    wanted, words = _words(name), _words(label)
    starts = range(len(words) - len(wanted) + 1)
    return bool(wanted) and any(words[start : start + len(wanted)] == wanted for start in starts)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
