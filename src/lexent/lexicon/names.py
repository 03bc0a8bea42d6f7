"""Names for latents, without a language model: the words that a latent fires on far more than chance.

Variants of one word count as one, word pieces are read as the whole words they stand in, a list of words stops where
the share falls off, and latents that fire on endings, on punctuation or on whole texts are named for what they are.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from lexent.function_words import FUNCTION_WORDS
from lexent.lexicon.concepts import SEPARATOR, Category, Concept
from lexent.lexicon.forms import form_of, token_form
from lexent.lexicon.words import WORD

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

    from lexent.lexicon.statistics import Statistics

MOST_WORDS = 4
SHOWN_WORDS = 5
"""Words that a concept keeps of those that raise it."""
MAX_WORD_CHARS = 30
"""Letters of a word in a name."""
BROAD_ENTROPY_BITS = 4.3
"""Entropy in bits, over words, from which a latent counts as broad."""
MAX_CACHED_WORDS = MAX_CACHED_PAIRS = 65_536
"""Words of which it is kept whether they are words, and pairs whether they are forms of one."""
CONTEXT_WORDS = 6
"""Words on each side of a firing token that are shown, and counted for broad latents."""

_COMMON_ENDINGS = """
s es ed d ing ings er ers or ors ly al ally ic ical ically ion ions ation ations ive ives ity ities ment ments ness e y
ies ied ier able ible ability ance ances ence ences ant ants ent ents ist ists ism isms ize ized izes izing ise ised
ises ising ization isation ous ously 's n 't
"""
_ENDINGS = frozenset(_COMMON_ENDINGS.split()) | {""}

Spans: TypeAlias = "Mapping[int, NDArray[np.int64]]"
"""Character spans [n_tokens, 2] of the texts that contexts point into; (0, 0) stands for the whole text."""


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
        return _is_word(self.text)


@lru_cache(MAX_CACHED_WORDS)
def _is_word(text: str) -> bool:
    return bool(text) and text[0] not in "[<#" and any(letter.isalpha() for letter in text)


@dataclass(frozen=True, slots=True)
class WordEvidence:
    """What one latent's name is made from."""

    words: list[Word]  # that it fires on, highest gain first
    context: list[Word]  # around the places where it fires, highest gain first
    entropy: float  # bits, over the words that it fires on

    @property
    def top(self) -> Word:
        """The word that holds most of the activation."""
        return max(self.words, key=lambda word: word.share)


def name_all(statistics: Statistics, texts: Sequence[str], spans: Spans) -> list[Concept]:
    """A concept for each latent that fired; latents that never did get the label "" and must be dropped."""
    m = len(statistics.frequency)
    surroundings = _Surroundings(statistics, texts, spans)
    evidence = [_evidence(statistics, latent, surroundings) for latent in range(m)]
    forms = [_form(statistics, latent, evidence[latent]) for latent in range(m)]
    labels = distinct(
        [forms[latent] or shortened(SEPARATOR.join(_label(evidence[latent]))) for latent in range(m)],
        [[word.text for word in found.context] for found in evidence],
    )
    frequency = [round(float(share), 6) for share in statistics.frequency]
    return [
        Concept(
            latent,
            labels[latent],
            _category(evidence[latent]),
            frequency[latent],
            _examples(statistics, latent, texts, spans),
            form=forms[latent],
            raised_by=strongest(evidence[latent].words),
        )
        for latent in range(m)
    ]


def strongest(words: Sequence[Word]) -> tuple[tuple[str, float], ...]:
    """The words with the largest shares, as a concept keeps them."""
    most = sorted(words, key=lambda word: -word.share)[:SHOWN_WORDS]
    return tuple((word.text[:MAX_WORD_CHARS], round(word.share, 2)) for word in most if word.share >= 0.01)


@lru_cache(MAX_CACHED_PAIRS)
def same_word(one: str, other: str) -> bool:
    """Whether two words are forms of one: the same stem with two common endings."""
    if one == other:
        return True
    if one[:3] != other[:3]:
        return False
    shorter = min(len(one), len(other))
    shared = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    if shared < 3 or shared < 0.5 * shorter:
        return False
    # A doubled consonant (plan, planned) and a dropped e or y (study, studies) hide in the endings.
    for cut in (shared, shared - 1):
        if cut >= 3 and one[cut:] in _ENDINGS and other[cut:] in _ENDINGS:
            return True
    tail, longer = sorted((one[shared:], other[shared:]), key=len)
    return tail == "" and len(longer) > 1 and longer[0] == one[shared - 1] and longer[1:] in _ENDINGS


def _evidence(statistics: Statistics, latent: int, surroundings: _Surroundings) -> WordEvidence:
    items, share = statistics.latent_words.of(latent)
    if not len(items):
        return WordEvidence([], [], 0.0)
    words = []
    for item, part in zip(items[:40], share[:40], strict=True):
        gain = float(part * np.log(max(part / max(statistics.word_rate[item], 1e-9), 1e-9)))
        words.append(Word(statistics.words[item], float(part), gain))
    merged = [merged_word(group) for group in grouped(words)]
    shares = np.array([word.share for word in merged] + list(share[40:]))
    rest = max(0.0, 1.0 - float(shares.sum()))  # what the words not kept hold, taken as words of the weakest share
    entropy = float(-(shares * np.log2(shares)).sum() - rest * np.log2(shares.min()))
    return WordEvidence(sorted(merged, key=lambda word: -word.gain), surroundings.words(latent), entropy)


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
    if len(group) == 1:
        return group[0]
    most = max(word.share for word in group)
    text = min((word.text for word in group if word.share >= 0.5 * most), key=len)
    return Word(text, sum(word.share for word in group), sum(word.gain for word in group))


class _Surroundings:
    """The words around the sampled places of each latent. A place is read once, however many latents fire there."""

    def __init__(self, statistics: Statistics, texts: Sequence[str], spans: Spans) -> None:
        flat = statistics.contexts[:, :, 0] * 65_536 + statistics.contexts[:, :, 1]
        places, inverse = np.unique(flat, return_inverse=True)  # by text
        self._place = inverse.reshape(flat.shape)
        self._count = (statistics.contexts[:, :, 0] >= 0).sum(axis=1)

        def windows() -> Iterator[set[str]]:
            for text, token in (divmod(place, 65_536) for place in places.tolist()):
                start, stop = spans[text][token].tolist() if text >= 0 else (0, 0)
                around = (max(0, start - 160), stop + 160) if stop else (0, 400)
                yield {word.lower() for word in WORD.findall(texts[text], *around)} if text >= 0 else set()

        self._presence, self._words = presence(windows())
        self._background = _background(texts)

    def words(self, latent: int) -> list[Word]:
        """Words around its places that stand there far more often than elsewhere, best first."""
        places = int(self._count[latent])
        counts = np.bincount(self._presence[self._place[latent][:places]].indices)
        found = []
        for number in np.flatnonzero(counts >= max(2, 0.12 * places)).tolist():
            text, share = self._words[number], int(counts[number]) / places
            word = Word(text, share, float(share * np.log(share / self._background.get(text, 1e-4))))
            if len(text) > 2 and word.is_content and word.gain > 0.2:
                found.append(word)
        groups = grouped(sorted(found, key=lambda word: (-word.gain, word.text)))
        return [group[0] for group in groups[:8]]


def presence(windows: Iterable[Collection[str]]) -> tuple[csr_matrix, list[str]]:
    """bool[n_windows, n_words]: which words stand in each of some pieces of text, as float32; and the words."""
    from scipy.sparse import csr_matrix

    numbers: dict[str, int] = {}
    found, ends = array("i"), [0]
    for words in windows:
        found.extend(numbers.setdefault(word, len(numbers)) for word in words)
        ends.append(len(found))
    columns = np.array(found, np.int32)
    shape = (len(ends) - 1, len(numbers))
    return csr_matrix((np.ones(len(columns), np.float32), columns, np.array(ends)), shape=shape), list(numbers)


def _background(texts: Sequence[str]) -> dict[str, float]:
    """Share of 320-character windows that hold a word, from a sample of the texts."""
    sample = texts[:: max(1, len(texts) // 20_000)]
    seen: Counter[str] = Counter()
    for text in sample:
        middle = max(0, len(text) // 2 - 160)
        seen.update({word.lower() for word in WORD.findall(text, middle, middle + 320)})
    return {word: count / len(sample) for word, count in seen.items()}


def _form(statistics: Statistics, latent: int, evidence: WordEvidence) -> str:
    """The form that a latent marks; "" where it is about a topic."""
    if not evidence.words:
        return ""
    places = statistics.contexts[latent]
    places = places[places[:, 0] >= 0, 1]
    at_start = float(np.mean((places == 1) | (places == 0))) if len(places) else 0.0
    words = [(word.text, word.share, word.gain) for word in evidence.words]
    form = _shared_piece(statistics, latent, evidence) or form_of(words, at_start=at_start)
    if form or any(word.is_content for word in evidence.words):
        return form
    return token_form(evidence.top.text)


def _label(evidence: WordEvidence) -> list[str]:
    """The words of the name of a latent that is about a topic."""
    content = [word for word in evidence.words if word.is_content]
    if not content:
        return [evidence.top.text] if evidence.words else []
    if max(word.share for word in content) >= 0.5:  # one word's latent
        return leading_words(content)
    chosen = leading_words(content)
    if evidence.entropy < BROAD_ENTROPY_BITS and len(chosen) > 1:
        return chosen
    return _blend(content, evidence.context)


def leading_words(words: list[Word]) -> list[str]:
    """The best words, down to where the gain drops to a fifth of the best."""
    return [word.text for word in words[:MOST_WORDS] if word.gain >= max(words[0].gain / 5, 0.01)] or [
        word.text for word in words[:1]
    ]


def _blend(content: list[Word], context: list[Word]) -> list[str]:
    """Words that it fires on and words around it, by gain; a word that is both counts twice."""
    groups = grouped([*content, *context])
    both = [Word(group[0].text, group[0].share, sum(word.gain for word in group)) for group in groups]
    return leading_words(sorted(both, key=lambda word: -word.gain))


def _shared_piece(statistics: Statistics, latent: int, evidence: WordEvidence) -> str:
    """What to call a latent of one word piece that fires in many different words; nothing for others."""
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
    return f"words ending in -{part}" if at_end >= at_start else f"words beginning with {part}-"


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
        for latent in (latent for latent, label in enumerate(found) if label in shared):
            words = [word for word in around[latent] if word not in labels[latent]][:extra]
            if words:
                found[latent] = f"{labels[latent]} ({', '.join(words)})"
    seen: set[str] = set()
    taken = set(found)
    next_number: dict[str, int] = {}
    for latent, label in enumerate(found):
        if label and label in seen:
            number = next(each for each in count(next_number.get(label, 2)) if f"{label} #{each}" not in taken)
            found[latent], next_number[label] = f"{label} #{number}", number + 1
            taken.add(found[latent])
        seen.add(label)
    return found


def numbered(label: str, taken: Callable[[str], bool]) -> str:
    """The label with the first number, from 2 on, that makes a label which is not taken."""
    return next(name for name in (f"{label} #{number}" for number in count(2)) if not taken(name))


def _category(evidence: WordEvidence) -> Category:
    """By how the activation spreads over words: half of it on one; under about 20 words' worth; more."""
    if not evidence.words:
        return "unknown"
    if evidence.top.share >= 0.5:
        return "lexical"
    return "narrow" if evidence.entropy < BROAD_ENTROPY_BITS else "broad"


def _examples(statistics: Statistics, latent: int, texts: Sequence[str], spans: Spans) -> tuple[str, ...]:
    """A strong, a middling and a weak context that may be quoted."""
    places = [tuple(map(int, place)) for place in statistics.quotes[latent] if place[0] >= 0]
    chosen = list(dict.fromkeys((0, len(places) // 2, len(places) - 1))) if places else []
    return tuple(_snippet(texts[text], *spans[text][token].tolist()) for text, token in (places[at] for at in chosen))


def _snippet(text: str, start: int, stop: int) -> str:
    """The word with a few on each side: "and the [statins] group had"."""
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
