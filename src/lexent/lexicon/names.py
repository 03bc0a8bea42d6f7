"""Names for latents, without a language model: the words that a latent fires on far more than chance.

Variants of one word count as one, word pieces are read as the whole words they stand in, a list of words stops where
the share falls off, and latents that fire on endings, on punctuation or on whole texts are named for what they are.
"""

from __future__ import annotations

import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lexent.function_words import FUNCTION_WORDS
from lexent.lexicon.concepts import SEPARATOR, Category, Concept
from lexent.lexicon.statistics import WORD, Statistics

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_WORDS = 4
MAX_WORD_CHARS = 30
"""Letters of a word in a name."""
BROAD_ENTROPY_BITS = 4.3
"""Entropy in bits, over words, from which a latent counts as broad."""
CONTEXT_WORDS = 6
"""Words on each side of a firing token that are shown, and counted for broad latents."""

_COMMON_ENDINGS = """
s es ed d ing ings er ers or ors ly al ally ic ical ically ion ions ation ations ive ives ity ities ment ments ness e y
ies ied ier able ible ability ance ances ence ences ant ants ent ents ist ists ism isms ize ized izes izing ise ised
ises ising ization isation ous ously 's n 't
"""
_ENDINGS = frozenset(_COMMON_ENDINGS.split()) | {""}


@dataclass(frozen=True, slots=True)
class Word:
    """A word, all its forms merged, that a latent fires on or near."""

    text: str
    share: float  # of the activation, or of the places that it stands near to
    gain: float  # share times the logarithm of how far above chance that is

    @property
    def is_content(self) -> bool:
        """Whether it is a word other than a function word."""
        return self.is_word and self.text not in FUNCTION_WORDS

    @property
    def is_word(self) -> bool:
        """Whether it is a word and no special token, affix or punctuation."""
        return bool(self.text) and self.text[0] not in "[<#" and any(letter.isalpha() for letter in self.text)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one latent's name is made from."""

    words: list[Word]  # that it fires on, best gain first
    context: list[Word]  # around the places where it fires, best gain first
    entropy: float  # bits, over the words that it fires on

    @property
    def top(self) -> Word:
        """The word that holds most of the activation."""
        return max(self.words, key=lambda word: word.share)


def name_all(statistics: Statistics, texts: Sequence[str], spans: ContextSpans) -> list[Concept]:
    """A concept for each latent that fired; latents that never did get the label "" and must be dropped."""
    m = len(statistics.frequency)
    surroundings = _Surroundings(statistics, texts, spans)
    evidence = [_evidence(statistics, latent, surroundings) for latent in range(m)]
    labels = distinct(
        [shortened(_label(statistics, latent, evidence[latent])) for latent in range(m)],
        [[word.text for word in found.context] for found in evidence],
    )
    return [
        Concept(
            id=latent,
            label=labels[latent],
            category=_category(evidence[latent]),
            frequency=round(float(statistics.frequency[latent]), 6),
            examples=_examples(statistics, latent, texts, spans),
        )
        for latent in range(m)
    ]


class ContextSpans:
    """Character spans of the tokens of the few texts that contexts point into."""

    def __init__(self, spans: dict[int, NDArray[np.int64]]) -> None:
        self._spans = spans

    def of(self, text: int, token: int) -> tuple[int, int]:
        """The span of a token; (0, 0) stands for the whole text."""
        start, stop = self._spans[text][token]
        return int(start), int(stop)


def same_word(one: str, other: str) -> bool:
    """Whether two words are forms of one: the same stem with two common endings."""
    if one == other:
        return True
    shared = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        shared += 1
    if shared < 3 or shared < 0.5 * min(len(one), len(other)):
        return False
    # A doubled consonant (plan, planned) and a dropped e or y (study, studies) hide in the endings.
    for cut in (shared, shared - 1):
        if cut >= 3 and one[cut:] in _ENDINGS and other[cut:] in _ENDINGS:
            return True
    tail, longer = sorted((one[shared:], other[shared:]), key=len)
    return tail == "" and len(longer) > 1 and longer[0] == one[shared - 1] and longer[1:] in _ENDINGS


def _evidence(statistics: Statistics, latent: int, surroundings: _Surroundings) -> Evidence:
    items, share = statistics.latent_words.of(latent)
    if not len(items):
        return Evidence([], [], 0.0)
    words = []
    for item, part in zip(items[:40], share[:40], strict=True):
        gain = float(part * np.log(max(part / max(statistics.word_rate[item], 1e-9), 1e-9)))
        words.append(Word(statistics.words[item], float(part), gain))
    merged = [merged_word(group) for group in grouped(words)]
    shares = np.array([word.share for word in merged] + list(share[40:]))
    rest = max(0.0, 1.0 - float(shares.sum()))  # what the words not kept hold, taken as words of the weakest share
    entropy = float(-(shares * np.log2(shares)).sum() - rest * np.log2(shares.min()))
    words = sorted(merged, key=lambda word: -word.gain)
    return Evidence(words, surroundings.words(latent), entropy)


def grouped(words: Sequence[Word]) -> list[list[Word]]:
    """Words with their other forms: each joins the first group whose first word it is a form of."""
    groups: list[list[Word]] = []
    alike: dict[str, list[list[Word]]] = {}  # forms of one word share their first three letters
    for word in words:
        near = alike.setdefault(word.text[:3], [])
        for group in near:
            if same_word(group[0].text, word.text):
                group.append(word)
                break
        else:
            near.append([word])
            groups.append(near[-1])
    return groups


def merged_word(group: list[Word]) -> Word:
    """One word for all its forms: the most usual one, and of two about as usual the shorter."""
    most = max(word.share for word in group)
    text = min((word.text for word in group if word.share >= 0.5 * most), key=len)
    return Word(text, sum(word.share for word in group), sum(word.gain for word in group))


class _Surroundings:
    """The words around the sampled places of each latent. A place is read once, however many latents fire there."""

    def __init__(self, statistics: Statistics, texts: Sequence[str], spans: ContextSpans) -> None:
        flat = statistics.contexts[:, :, 0] * 65_536 + statistics.contexts[:, :, 1]
        places, inverse = np.unique(flat, return_inverse=True)  # by text
        self._place = inverse.reshape(flat.shape)
        self._count = (statistics.contexts[:, :, 0] >= 0).sum(axis=1)
        numbers: dict[str, int] = {}
        found, ends = array("i"), [0]
        of_text, windows = -1, _Windows("", numbers)
        for place in places.tolist():
            text, token = divmod(place, 65_536)
            if text >= 0:
                if text != of_text:
                    of_text, windows = text, _Windows(texts[text], numbers)
                start, stop = spans.of(text, token)
                found.extend(windows.words(max(0, start - 160), stop + 160) if stop else windows.words(0, 400))
            ends.append(len(found))
        self._found, self._ends = np.frombuffer(found, np.int32) if found else np.empty(0, np.int32), ends
        self._words = list(numbers)
        self._background = _background(texts)

    def words(self, latent: int) -> list[Word]:
        """Words around its places that stand there far more often than elsewhere, best first."""
        places = int(self._count[latent])
        near = [self._found[self._ends[at] : self._ends[at + 1]] for at in self._place[latent][:places]]
        numbers, counts = np.unique(np.concatenate([np.empty(0, np.int32), *near]), return_counts=True)
        often = counts >= max(2, 0.12 * places)
        found = []
        for number, count in zip(numbers[often].tolist(), counts[often].tolist(), strict=True):
            text, share = self._words[number], count / places
            word = Word(text, share, float(share * np.log(share / self._background.get(text, 1e-4))))
            if len(text) > 2 and word.is_content and word.gain > 0.2:
                found.append(word)
        groups = grouped(sorted(found, key=lambda word: (-word.gain, word.text)))
        return [group[0] for group in groups[:8]]


class _Windows:
    """The words of a text, by number, so that a part of the text can be looked into without reading it again."""

    def __init__(self, text: str, numbers: dict[str, int]) -> None:
        self._text, self._numbers = text, numbers
        matches = list(WORD.finditer(text))
        self._starts = [match.start() for match in matches]
        self._ends = [match.end() for match in matches]
        self._ids = [self._number(match.group()) for match in matches]

    def words(self, start: int, stop: int) -> set[int]:
        """The different words of text[start:stop], those cut off at its edges as what is left of them."""
        first = bisect_left(self._starts, start)
        last = max(first, bisect_right(self._ends, stop))
        found = set(self._ids[first:last])
        cut = [first - 1] if first and self._ends[first - 1] > start else []
        cut += [last] if last < len(self._starts) and self._starts[last] < stop else []
        for word in cut:
            part = self._text[max(start, self._starts[word]) : min(stop, self._ends[word])]
            found.update(map(self._number, WORD.findall(part)))
        return found

    def _number(self, word: str) -> int:
        return self._numbers.setdefault(word.lower(), len(self._numbers))


def _background(texts: Sequence[str]) -> dict[str, float]:
    """Share of 320-character windows that hold a word, from a sample of the texts."""
    step = max(1, len(texts) // 20_000)
    seen: Counter[str] = Counter()
    windows = 0
    for text in texts[::step]:
        middle = max(0, len(text) // 2 - 160)
        seen.update({word.lower() for word in WORD.findall(text[middle : middle + 320])})
        windows += 1
    return {word: count / windows for word, count in seen.items()}


def _label(statistics: Statistics, latent: int, evidence: Evidence) -> str:
    if not evidence.words:
        return ""
    content = [word for word in evidence.words if word.is_content]
    if content and max(word.share for word in content) >= 0.5:  # one word's latent
        return SEPARATOR.join(until_it_falls(content))
    affix = _shared_piece(statistics, latent, evidence)
    if affix:
        return SEPARATOR.join([affix, *(word.text for word in content[:2])])
    if sum(word.share for word in content) < 0.4:  # function words and punctuation: what stands around them says more
        near = until_it_falls(evidence.context)
        if near and evidence.context[0].gain >= 0.5:
            return SEPARATOR.join(near)
        top = _spoken(evidence.top.text)
        return SEPARATOR.join([top, *near[:2]])
    if evidence.entropy < BROAD_ENTROPY_BITS:
        chosen = until_it_falls(content)
        return SEPARATOR.join(chosen if len(chosen) > 1 else _blend(content, evidence.context))
    return SEPARATOR.join(_blend(content, evidence.context))


def until_it_falls(words: list[Word]) -> list[str]:
    """The best words, down to where the gain drops to a fifth of the best."""
    return [word.text for word in words[:MOST_WORDS] if word.gain >= max(words[0].gain / 5, 0.01)] or [
        word.text for word in words[:1]
    ]


def _blend(content: list[Word], context: list[Word]) -> list[str]:
    """Words that it fires on and words around it, by gain; a word that is both counts twice."""
    groups = grouped([*content, *context])
    both = [Word(group[0].text, group[0].share, sum(word.gain for word in group)) for group in groups]
    return until_it_falls(sorted(both, key=lambda word: -word.gain))


_SPOKEN = {
    ",": "comma", ".": "full stop", ";": "semicolon", ":": "colon", "(": "bracket", ")": "bracket", "-": "hyphen",
    "'": "apostrophe", '"': "quotation mark", "?": "question mark", "!": "exclamation mark", "/": "slash",
    "%": "per cent", "[": "bracket", "]": "bracket",
}  # fmt: skip


def _spoken(token: str) -> str:
    """How a person would say a token that is no word."""
    if token.startswith(("[", "<")) and len(token) > 2:
        return "whole text"
    if any(letter.isalnum() for letter in token):
        return token
    return _SPOKEN.get(token) or unicodedata.name(token[0], "sign").lower()


def _shared_piece(statistics: Statistics, latent: int, evidence: Evidence) -> str:
    """Say "words in -ique" or "words in cer-" where one word piece fires in many different words; else nothing."""
    items, shares = statistics.latent_pieces.of(latent)
    piece = statistics.pieces[items[0]]
    part = piece.removeprefix("##")
    if shares[0] < 0.5 or evidence.top.share > 0.4 or len(part) < 2 or not part.isalpha():
        return ""
    whole = [word.text for word in evidence.words[:8] if word.is_word and word.text != part]
    at_end, at_start = (sum(test(word, part) for word in whole) for test in (str.endswith, str.startswith))
    if max(at_end, at_start) * 2 < len(whole) or len(whole) < 3:
        inside = piece.startswith("##") and sum(part in word for word in whole) * 2 >= len(whole) > 2
        return f"words with -{part}-" if inside else ""
    return f"words in -{part}" if at_end >= at_start else f"words in {part}-"


def shortened(label: str) -> str:
    """Scripts without spaces make one word of a sentence: a part of it will do."""
    return SEPARATOR.join(
        word if len(word) <= MAX_WORD_CHARS else f"{word[: MAX_WORD_CHARS - 1]}…" for word in label.split(SEPARATOR)
    )


def distinct(labels: list[str], around: Sequence[Sequence[str]]) -> list[str]:
    """Labels that several latents share get the words around them in brackets, then numbers."""
    found = list(labels)
    for extra in range(2, 5):
        shared = {label for label, count in Counter(found).items() if count > 1 and label}
        for latent, label in enumerate(found):
            if label in shared:
                words = [word for word in around[latent] if word not in labels[latent]][:extra]
                if words:
                    found[latent] = f"{labels[latent]} ({', '.join(words)})"
    seen: Counter[str] = Counter()
    taken = set(found)
    for latent, label in enumerate(found):
        seen[label] += 1
        if seen[label] > 1 and label:
            while f"{label} #{seen[label]}" in taken:
                seen[label] += 1
            found[latent] = f"{label} #{seen[label]}"
            taken.add(found[latent])
    return found


def _category(evidence: Evidence) -> Category:
    """By how the activation spreads over words: half of it on one; under about 20 words' worth; more."""
    if not evidence.words:
        return "unknown"
    if evidence.top.share >= 0.5:
        return "lexical"
    return "narrow" if evidence.entropy < BROAD_ENTROPY_BITS else "broad"


def _examples(statistics: Statistics, latent: int, texts: Sequence[str], spans: ContextSpans) -> tuple[str, ...]:
    """A strong, a middling and a weak context."""
    places = [tuple(map(int, place)) for place in statistics.contexts[latent] if place[0] >= 0]
    order = np.argsort(-statistics.strengths[latent][: len(places)], kind="stable")
    chosen = list(dict.fromkeys(int(order[at]) for at in (0, len(order) // 2, len(order) - 1))) if places else []
    return tuple(_snippet(texts[places[at][0]], spans.of(*places[at])) for at in chosen)


def _snippet(text: str, span: tuple[int, int]) -> str:
    """The word with a few on each side: "and the [statins] group had"."""
    start, stop = span
    if stop == 0:
        return " ".join(text.split()[:CONTEXT_WORDS]) + " …"
    for match in WORD.finditer(text, max(0, start - 40), stop + 40):
        if match.start() <= start < match.end():
            start, stop = match.start(), max(stop, match.end())
            break
    stop = min(stop, start + 40)  # scripts without spaces make one word of a sentence
    before = text[max(0, start - 40) : start].split(" ")[-3:]
    after = text[stop : stop + 40].split(" ")[:3]
    return " ".join(f"{' '.join(before)}[{text[start:stop]}]{' '.join(after)}".split())
