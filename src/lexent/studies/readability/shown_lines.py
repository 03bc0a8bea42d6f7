"""The lines that say why a document is a hit: before, a concept each by the lexicon's names; after, groups.

With each line go the words of the document that raised its concepts in this very hit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lexent.lexicon import Lexicon
from lexent.lexicon.names import same_word
from lexent.nan_safe import UNDEFINED, ratio
from lexent.search.coded_text import CodedText
from lexent.search.groups import SHOWN_GROUPS
from lexent.search.results import Hit
from lexent.studies.readability.raising_words import RAISING_SHARE, RaisingWords

OPENING_WORDS = 8
"""Words of a document without a title that stand in its place."""
_PART = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class ShownLine:
    """One line of an explanation."""

    name: str
    value: float
    raised_by: tuple[str, ...] = ()
    """The words that raised it, strongest first; none where the recipe codes no words."""
    of_form: bool = False
    """Whether its concepts are of form and no topic."""
    form_share: float = 0.0
    """Of a line of form: the share of what raised it that is of that form."""

    @property
    def words(self) -> list[str]:
        """The words of its name."""
        return parts(self.name)

    @property
    def head(self) -> str:
        """The first word of its name."""
        return next(iter(self.words), self.name)


@dataclass(frozen=True, slots=True)
class ShownHit:
    """The lines of a hit in the order in which they are shown."""

    query: str
    id: str
    title: str
    """Of the document; its first words where it has none."""
    score: float
    lines: tuple[ShownLine, ...]

    @property
    def shown(self) -> tuple[ShownLine, ...]:
        """The first lines, which a reader sees."""
        return self.lines[:SHOWN_GROUPS]

    @property
    def shown_share(self) -> float:
        """The share of the score that the first lines hold."""
        return self.share_of_first(SHOWN_GROUPS)

    def share_of_first(self, n: int) -> float:
        """The share of the score that the first n lines hold."""
        return ratio(sum(line.value for line in self.lines[:n]), self.score)

    @property
    def form_share(self) -> float:
        """Of what the first lines hold, the share in lines of form."""
        return ratio(sum(line.value for line in self.shown if line.of_form), sum(line.value for line in self.shown))

    @property
    def repeated_heads(self) -> float:
        """The share of the first lines whose head word another one of them has, in any of its forms."""
        heads = [line.head for line in self.shown]
        repeated = [
            any(same_word(head, other) for at, other in enumerate(heads) if at != place)
            for place, head in enumerate(heads)
        ]
        return sum(repeated) / len(repeated) if repeated else UNDEFINED


def before(hit: Hit, lexicon: Lexicon, text: CodedText | None) -> ShownHit:
    """A line a concept, by the names of the lexicon. text: the document with its words, where the recipe has them."""
    explanation = hit.explain()
    lines = [(lexicon.label(part.concept), {part.concept: part.value}) for part in explanation.contributions]
    return _shown(hit, [(name, values, False) for name, values in lines], lexicon, text)


def after(hit: Hit, lexicon: Lexicon, text: CodedText | None) -> ShownHit:
    """A line a group, as the explanation has them. lexicon: the index's, whose names come from its documents."""
    groups = hit.explain().groups
    lines = [(group.label, {part.concept: part.value for part in group.members}, group.form) for group in groups]
    return _shown(hit, lines, lexicon, text)


def _shown(
    hit: Hit, lines: Sequence[tuple[str, Mapping[int, float], bool]], lexicon: Lexicon, text: CodedText | None
) -> ShownHit:
    """lines: name, values by concept, and whether it is a line of form by itself."""
    words = None
    if text is not None:
        words = RaisingWords.of(text, [concept for _, values, _ in lines for concept in values])
    found = []
    for name, values, form in lines:
        forms = {concept: lexicon.concept(concept).form for concept in values}
        of_form = form or all(forms.values())
        raised: tuple[str, ...] = ()
        form_share = 0.0
        if words is not None:
            raised = tuple(word for word, share in words.of_line(values).items() if share >= RAISING_SHARE)
            form_share = words.share_of_form(values, forms) if of_form else 0.0
        found.append(ShownLine(name, sum(values.values()), raised, of_form, form_share))
    title = hit.title or " ".join([*hit.text.split()[:OPENING_WORDS], "…"])
    return ShownHit(hit.query.text, hit.id, title, hit.score, tuple(found))


def parts(text: str) -> list[str]:
    """The words of a name or of a word, in lower case: identifiers part at dots, hyphens and underscores."""
    return _PART.findall(text.lower())
