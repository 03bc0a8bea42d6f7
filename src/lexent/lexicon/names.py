"""Names for latents, without a language model: the words that a latent fires on far more than chance.

Variants of one word count as one, word pieces are read as the whole words they stand in, a list of words stops where the
share falls off, and latents that fire on word endings, on punctuation or on whole texts are named for what they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lexent.lexicon.concepts import SEPARATOR, Category, Concept
from lexent.lexicon.statistics import WORD, Statistics

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_WORDS = 4
CONTEXT = 6
"""Words on each side of a firing token that are shown, and counted for broad latents."""

STOP = frozenset(
    "a about above after again all also am an and any are as at be because been before being below between both but by "
    "can could did do does doing down during each few for from further had has have having he her here hers him his how "
    "i if in into is it its itself just may me might more most must my no nor not of off on once only or other our out "
    "over own same she should so some such than that the their them then there these they this those through to too "
    "under until up upon us very was we were what when where which while who whom why will with within without would "
    "you your i.e e.g et al however using used use based show shows shown two one first new well many much thus".split()
)

_ENDINGS = frozenset(
    "s es ed d ing ings er ers or ors ly al ally ic ical ically ion ions ation ations ive ives ity ities ment ments ness "
    "e y ies ied ier able ible ability ance ances ence ences ant ants ent ents ist ists ism isms ize ized izes izing "
    "ise ised ises ising ization isation ous ously 's n 't".split()
) | {""}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one latent's name was made from."""

    words: list[tuple[str, float]]  # merged word and its share of the activation, best first
    entropy: float  # bits, over merged words
    top_share: float
    context: list[str]  # words around it, most telling first


def name_all(statistics: Statistics, texts: Sequence[str], spans: ContextSpans) -> list[Concept]:
    """A concept for each latent that fired; latents that never did get the label "" and must be dropped."""
    m = len(statistics.frequency)
    background = _background(texts)
    evidence = [_evidence(statistics, latent, texts, spans, background) for latent in range(m)]
    labels = _distinct([_label(statistics, latent, evidence[latent]) for latent in range(m)], evidence)
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


def _evidence(
    statistics: Statistics,
    latent: int,
    texts: Sequence[str],
    spans: ContextSpans,
    background: dict[str, float],
) -> Evidence:
    items, weights = statistics.latent_words.of(latent)
    if not len(items):
        return Evidence([], 0.0, 0.0, [])
    share = weights / weights.sum()
    groups: list[list[tuple[str, float, float]]] = []
    for item, part in zip(items[:40], share[:40], strict=True):
        word = statistics.words[item]
        lift = float(part) * float(np.log(max(part / max(statistics.word_rate[item], 1e-9), 1e-9)))
        home = next((group for group in groups if same_word(group[0][0], word)), None)
        if home is None:
            groups.append([(word, float(part), lift)])
        else:
            home.append((word, float(part), lift))
    merged = [(_best_form(group), sum(part for _, part, _ in group), sum(gain for *_, gain in group)) for group in groups]
    shares = np.array([part for _, part, _ in merged] + list(share[40:]))
    entropy = float(-(shares * np.log2(np.maximum(shares, 1e-12))).sum())
    merged.sort(key=lambda group: -group[2])
    words = [(word, part) for word, part, _ in merged]
    top = max(part for _, part, _ in merged)
    return Evidence(words, entropy, top, _context_words(statistics, latent, texts, spans, background))


def _best_form(group: list[tuple[str, float, float]]) -> str:
    """The most usual form of a word; of two about as usual, the shorter."""
    most = max(part for _, part, _ in group)
    return min((word for word, part, _ in group if part >= 0.5 * most), key=len)


def _context_words(
    statistics: Statistics, latent: int, texts: Sequence[str], spans: ContextSpans, background: dict[str, float]
) -> list[str]:
    """Words around the sampled places, by how much more often they stand there than elsewhere."""
    seen: Counter[str] = Counter()
    places = 0
    for text, token in statistics.contexts[latent]:
        if text < 0:
            break
        places += 1
        start, stop = spans.of(int(text), int(token))
        near = texts[text][max(0, start - 160) : stop + 160] if stop else texts[text][:400]
        seen.update({word.lower() for word in WORD.findall(near)})
    gains = {
        word: count / places * np.log(count / places / background.get(word, 1e-4))
        for word, count in seen.items()
        if count >= max(2, 0.12 * places) and len(word) > 2 and word not in STOP and not word[0].isdigit()
    }
    ranked = sorted(gains, key=lambda word: (-gains[word], word))
    distinct: list[str] = []
    for word in ranked:
        if gains[word] > 0 and not any(same_word(word, other) for other in distinct):
            distinct.append(word)
    return distinct[:8]


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
    plain = [(word, share) for word, share in evidence.words if _is_word(word)]
    top_word, top_share = max(evidence.words, key=lambda pair: pair[1])
    if not _is_word(top_word) and top_share > 0.3:  # special tokens and punctuation
        what = "whole text" if top_word.startswith(("[", "<")) else f"“{top_word}”"
        about = SEPARATOR.join(evidence.context[:3])
        return f"{what}: {about}" if about else what
    ending = _shared_piece(statistics, latent, evidence)
    if ending:
        examples = [word for word, _ in plain[:2]]
        return SEPARATOR.join([f"words in {ending}", *examples])
    chosen = _until_it_falls(plain)
    if evidence.top_share < 0.2 or len(chosen) < 2:
        for word in evidence.context:
            known = any(same_word(word, other) for other in chosen)
            if not known and len(chosen) < (3 if evidence.top_share >= 0.2 else MOST_WORDS):
                chosen.append(word)
    return SEPARATOR.join(chosen) if chosen else top_word


def _is_word(text: str) -> bool:
    return bool(text) and text[0] not in "[<#" and any(letter.isalnum() for letter in text)


def _until_it_falls(words: list[tuple[str, float]]) -> list[str]:
    """The best words, content words first, down to where the share drops to a sixth of the best."""
    content = [(word, share) for word, share in words if word not in STOP] or words
    most = max((share for _, share in words), default=0.0)
    if content is not words and words and words[0][0] in STOP and words[0][1] > 0.5:
        content = [words[0]]
    best = max((share for _, share in content), default=0.0)
    if best < 0.25 * most and words[0][0] in STOP:
        content = [words[0], *content]
    return [word for word, share in content[:MOST_WORDS] if share >= max(best / 6, 0.015)] or [
        word for word, _ in content[:1]
    ]


def _shared_piece(statistics: Statistics, latent: int, evidence: Evidence) -> str:
    """"-ique" or "micro-" where one word piece fires in many different words; else nothing."""
    items, weights = statistics.latent_pieces.of(latent)
    share = float(weights[0] / weights.sum())
    piece = statistics.pieces[items[0]]
    if share < 0.5 or evidence.top_share > 0.4 or not piece.startswith("##"):
        return ""
    part = piece.removeprefix("##")
    whole = [word for word, _ in evidence.words[:8]]
    if len(part) < 2 or sum(part in word for word in whole) < len(whole) // 2:
        return ""
    return f"-{part}" if sum(word.endswith(part) for word in whole) * 2 >= len(whole) else f"-{part}-"


def _distinct(labels: list[str], evidence: list[Evidence]) -> list[str]:
    """Labels that several latents share get the words around them in brackets, then numbers."""
    found = list(labels)
    for extra in range(2, 5):
        shared = {label for label, count in Counter(found).items() if count > 1 and label}
        for latent, label in enumerate(found):
            if label in shared:
                words = [word for word in evidence[latent].context if word not in labels[latent]][: extra]
                if words:
                    found[latent] = f"{labels[latent]} ({', '.join(words)})"
    seen: Counter[str] = Counter()
    for latent, label in enumerate(found):
        seen[label] += 1
        if seen[label] > 1 and label:
            found[latent] = f"{label} #{seen[label]}"
    return found


def _category(evidence: Evidence) -> Category:
    """By how the activation spreads over words: half of it on one word; under about 20 words' worth; more."""
    if not evidence.words:
        return "unknown"
    if evidence.top_share >= 0.5:
        return "lexical"
    return "narrow" if evidence.entropy < 4.3 else "broad"


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
        return " ".join(text.split()[:CONTEXT]) + " …"
    for match in WORD.finditer(text, max(0, start - 40), stop + 40):
        if match.start() <= start < match.end():
            start, stop = match.start(), max(stop, match.end())
            break
    before = text[max(0, start - 60) : start].split(" ")[-3:]
    after = text[stop : stop + 60].split(" ")[:3]
    return " ".join(f"{' '.join(before)}[{text[start:stop]}]{' '.join(after)}".split())
