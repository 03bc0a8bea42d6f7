"""Names for concepts by a language model, from examples over the whole range of activation.

A label that the model does not give, or that cannot be read, stays as it was: the one made from words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lexent.lexicon.answer_cache import Prompt, Replies, ask
from lexent.lexicon.concepts import Concepts
from lexent.lexicon.endpoint import Endpoint
from lexent.lexicon.evidence import Evidence, Example
from lexent.lexicon.lexicon import Lexicon
from lexent.lexicon.names import numbered
from lexent.types import Progress

MARKER = "[interpretation]:"
MOST_WORDS = 12
"""Longest label that is accepted; the prompt requests 8 words at most."""
MAX_ANSWER_TOKENS = 48
"""Tokens that an answer may have."""
SILENT_EXAMPLES = 5
"""Silent examples in a prompt."""
PROMPT_EXAMPLE_WORDS = 40
"""Words of an example of a pooled lexicon in a prompt: enough to show the topic of a text."""

# Small models repeat the description of the task, so it is short.
_SYSTEM = "You give short, exact names. A name says what the active examples share and the silent ones lack."
_TOKENS = (
    "Below are pieces of text in which one concept is active. The word that raised it stands in [[double brackets]]; "
    "the number says how strongly, from 10 (most) to 1."
)
_POOLED = (
    "Below are texts in which one concept is active, as a whole; the number says how strongly, from 10 (most) to 1."
)
_ASK = (
    "What does the concept stand for? Weak examples count as well as strong ones. If it is one word, name the word; if "
    "it is a topic, name the topic. Answer with one line and nothing else, 1 to 8 words after the marker:\n"
    f"{MARKER} "
)
_PREAMBLE = re.compile(
    r"^(the|this)\s+(concept|word|term|topic)\s+(here\s+)?(stands for|refers to|represents|means|is)\s+", re.IGNORECASE
)
_AROUND = " \"'`_“”‘’.:;,-#[]"
_NOTHING = frozenset({"", "none", "n/a", "unknown", "unclear", "nothing", "your words", "no concept", "interpretation"})


@dataclass(frozen=True, slots=True)
class Estimate:
    """Requests and tokens of a run; tokens are estimated for English."""

    requests: int
    """Those already answered are not among them."""
    answered: int
    prompt_tokens: int
    completion_tokens: int
    """At most."""
    cost: float | None = None
    """In the currency of the prices; None where no price was given."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A lexicon with new names, and how they came about."""

    lexicon: Lexicon
    labels: int
    """Concepts that the model named."""
    unread: int
    """Answers without a name in them: those concepts keep their old ones."""
    unanswered: int
    prompt_tokens: int
    completion_tokens: int


def prompt(evidence: Evidence) -> Prompt:
    """What a model is shown of a concept: only examples of the part of the texts that is meant for naming."""
    active, silent = evidence.naming.active, evidence.naming.silent[:SILENT_EXAMPLES]
    strongest = max((example.activation for example in active), default=1.0) or 1.0
    grades = [max(1, round(10 * example.activation / strongest)) for example in active]
    lines = [f"({grade}) {_shown(example)}" for grade, example in zip(grades, active, strict=True)]
    in_tokens = any(example.start != example.stop for example in active)
    parts = [_TOKENS if in_tokens else _POOLED, "\n".join(lines)]
    if silent:
        parts += ["In these it is silent:", "\n".join(f"- {_shown(example)}" for example in silent)]
    messages = ({"role": "system", "content": _SYSTEM}, {"role": "user", "content": "\n\n".join([*parts, _ASK])})
    return Prompt(messages, max_tokens=MAX_ANSWER_TOKENS)


def parse(answer: str) -> str | None:
    """The name in an answer; None where there is none."""
    text = re.sub(r"<think>.*?(</think>|$)", "", answer, flags=re.DOTALL)
    marked = list(re.finditer(r"\**\[?interpretation\]?\**\s*:\**", text, re.IGNORECASE))
    lines = [line for line in (text[marked[-1].end() :] if marked else text).strip().splitlines() if line.strip()]
    if not lines or (not marked and len(lines) > 1):
        return None
    label = " ".join("".join(sign if sign.isprintable() else " " for sign in lines[0]).split())
    label = label.replace("*", "").replace("[[", "").replace("]]", "").strip(_AROUND)
    label = _PREAMBLE.sub("", label).strip(_AROUND)
    if label.lower() in _NOTHING or not any(sign.isalnum() for sign in label):
        return None
    return label if len(label.split()) <= MOST_WORDS and len(label) <= 100 else None


def estimate(
    prompts: Sequence[Prompt], *, model: str, replies: Replies, price_in: float | None, price_out: float | None
) -> Estimate:
    """What is still to be requested. Prices are for a million tokens."""
    fresh = [one for one in prompts if replies.get(one, model) is None]
    sent, given = sum(one.size for one in fresh), sum(one.max_tokens for one in fresh)
    cost = None
    if price_in is not None or price_out is not None:
        cost = (sent * (price_in or 0.0) + given * (price_out or 0.0)) / 1e6
    return Estimate(len(fresh), len(prompts) - len(fresh), sent, given, cost)


def label(
    lexicon: Lexicon,
    evidence: Sequence[Evidence],
    *,
    endpoint: Endpoint,
    replies: Replies,
    concurrency: int = 4,
    progress: Progress = None,
) -> Labelled:
    """Ask for a name of each concept. The codes, and so the lexicon's hash, stay as they are."""
    prompts = [prompt(one) for one in evidence]
    answers = ask(prompts, endpoint=endpoint, replies=replies, concurrency=concurrency, progress=progress)
    names: dict[int, str] = {}
    unread = 0
    for one, answer in zip(evidence, answers, strict=True):
        name = parse(answer.text) if answer is not None else None
        unread += answer is not None and name is None
        if name is not None:
            names[one.concept] = name
    found = [answer for answer in answers if answer is not None]
    counts = {"labels": len(names), "unread": unread, "unanswered": len(answers) - len(found)}
    facts = {"model": endpoint.model, "asked": len(answers), **counts}
    info = replace(lexicon.info, training={**lexicon.info.training, "labels": facts})
    return Labelled(
        lexicon.renamed(renamed(lexicon.concepts, names, source=endpoint.model), info),
        **counts,
        prompt_tokens=sum(answer.prompt_tokens for answer in found),
        completion_tokens=sum(answer.completion_tokens for answer in found),
    )


def renamed(concepts: Concepts, names: Mapping[int, str], *, source: str) -> Concepts:
    """The concepts with new names, each kept apart from all others: first by a word of its old name, then by number."""
    plain = {concept.id: concept.plain or concept.label for concept in concepts}
    labels = {concept.id: names.get(concept.id, concept.label) for concept in concepts}
    shared = Counter(text.casefold() for text in labels.values())
    for number, name in names.items():
        if shared[name.casefold()] > 1:
            words = [word for word in plain[number].split(" · ") if word.casefold() not in name.casefold()][:2]
            labels[number] = f"{name} ({', '.join(words)})" if words else name
    taken = Counter(text.casefold() for text in labels.values())
    for number in names:
        if taken[labels[number].casefold()] > 1:
            taken[labels[number].casefold()] -= 1
            labels[number] = numbered(labels[number], lambda name: taken[name.casefold()] > 0)
            taken[labels[number].casefold()] += 1
    return concepts.relabelled({number: labels[number] for number in names}, source=source)


def _shown(example: Example) -> str:
    if example.start != example.stop:
        return example.marked
    words = example.text.split()
    return " ".join(words[:PROMPT_EXAMPLE_WORDS]) + (" …" if len(words) > PROMPT_EXAMPLE_WORDS else "")
