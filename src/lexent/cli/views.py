"""Hits, contributions and concepts as lines of text: coloured on a terminal, the same words without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from lexent.cli.console import stdout, width
from lexent.cli.snippet import snippet

if TYPE_CHECKING:
    from lexent.explain import Alignment, Explanation
    from lexent.explain.ranking import Comparison
    from lexent.explain.word_pairs import WordExplanation
    from lexent.search.fused import FusedHit, FusedResults
    from lexent.search.groups import ConceptGroup
    from lexent.search.results import AddedConcept, Hit, Results, SteeredConcept
    from lexent.types import Contribution, TokenShare

BRIEF, FULL = 3, 8
"""Contributions that are shown of a hit: at a glance, and with --explain."""

SHOWN_GROUPS = 6
"""Lines that say why a document is a hit."""
NEGLIGIBLE_LINE = 0.02
"""Lines with less of the score are summed in one."""
MEMBERS = 3
"""Concepts that are shown of an opened group."""
FOUND_WORDS = 5
"""Words of the document that are shown with a word of the query."""

COLOURS = ("cyan", "magenta", "yellow", "green", "blue")
MARGIN = "      "


def results(
    found: Results,
    *,
    words: Iterable[tuple[TokenShare, ...]],
    full: bool,
    filtered: bool = False,
    bounded: bool = False,
) -> Iterator[Text]:
    """A query's hits with their bars. words: what `highlights` gave for each; filtered: only some could be hits.

    bounded: hits below a least score or strength were left out.
    """
    words = iter(words)
    yield Text.assemble(("query  ", "dim"), (found.query, "bold"))
    if full:
        yield from query_groups(found.groups)
    yield from steered(found.steered, shown=FULL if full else BRIEF)
    yield from added(found.added, shown=FULL if full else BRIEF)
    if found.approximate:
        yield Text("fast mode, approximate: a document that no token's strongest concepts find is missed", style="dim")
    if not found.hits:
        least = Text("no document reaches the least score or strength", style="dim")
        yield least if bounded else _nothing("a concept", filtered=filtered)
    for hit in found.hits:
        yield Text()
        yield from _hit(hit, next(words, ()), full=full)


def _hit(hit: Hit, words: tuple[TokenShare, ...], *, full: bool) -> Iterator[Text]:
    yield _head(hit, f"{hit.score:7.2f}", f"strength {hit.strength:.2f}  ")
    room = width() - len(MARGIN)
    place = hit.places()[0]
    if place["count"] > 1:
        where = " › ".join([f"passage {place['number'] + 1} of {place['count']:,}", *place["headings"]])
        yield cut(Text(f"{MARGIN}{where}", style="dim"))
    for line in snippet(hit, words, room).wrap(stdout(), room):
        if line.plain.strip():
            yield Text(MARGIN).append_text(line)
    explanation = hit.explain()
    if full and hit.index.recipe.level == "tokens":
        yield Text(f"{MARGIN}by words (in the query ↔ in the document)", style="dim")
        yield from word_matches(hit.words())
        yield Text(f"{MARGIN}by concepts", style="dim")
    yield from groups(explanation, opened=full)
    if full and hit.query.rows is not None:
        yield Text(f"{MARGIN}token by token (in the query > in the document)", style="dim")
        yield from alignment(hit.align())


def fused(found: FusedResults, *, full: bool, filtered: bool = False) -> Iterator[Text]:
    """A query's fused hits: what each part gave, and the strongest contributions to its own score."""
    yield Text.assemble(("query  ", "dim"), (found.query, "bold"))
    yield from steered(found.steered, shown=FULL if full else BRIEF)
    yield from added(found.added, shown=FULL if full else BRIEF)
    if not found.hits:
        yield _nothing("a concept or a word", filtered=filtered)
    for hit in found.hits:
        yield Text()
        yield _head(hit, f"{hit.score:7.3f}")
        for line in Text(" ".join(hit.text[: 2 * width()].split())).wrap(stdout(), width() - len(MARGIN))[:2]:
            yield Text(MARGIN).append_text(line)
        for part in hit.parts:
            head = Text.assemble(MARGIN, f"{part.value:7.3f}  ", (part.name, "bold"))
            yield head.append(f"  rank {part.rank}, where its score is {part.score:.2f}, the sum of", style="dim")
            shown = hit.reasons[part.name].top(FULL if full else BRIEF)
            yield from contributions(shown, products=full, words=part.name in ("bm25", "dense"))


def query_groups(groups: Sequence[ConceptGroup]) -> Iterator[Text]:
    """What a query was searched by: its concepts, by groups of those that say the same."""
    for place, group in enumerate(groups[:FULL]):
        head = "searched by  " if place == 0 else " " * len("searched by  ")
        name = (f"{group.label}  ", "dim" if group.form else "")
        size = "1 concept" if len(group.concepts) == 1 else f"{len(group.concepts)} concepts"
        yield cut(Text.assemble((head, "dim"), f"{group.weight:6.2f}  ", name, (size, "dim")))
    if len(groups) > FULL:
        yield Text(f"{'':{len('searched by  ')}}{'':6}  and {len(groups) - FULL} more", style="dim")


def steered(concepts: Sequence[SteeredConcept], *, shown: int) -> Iterator[Text]:
    """What steering moved, and by how much."""
    for concept in concepts[:shown]:
        line = Text.assemble((f"{'steered':11}  ", "dim"), f"×{concept.factor:<5g}  ")
        line.append_text(name(concept.id, concept.label, word=concept.word))
        yield cut(line.append(f"  {concept.before:.2f} to {concept.after:.2f}", style="dim"))
    if len(concepts) > shown:
        yield Text(f"{'':13}{'':6}  and {len(concepts) - shown} more", style="dim")


def added(concepts: Sequence[AddedConcept], *, shown: int) -> Iterator[Text]:
    """What feedback changed, and the documents that it came from."""
    for concept in concepts[:shown]:
        done = "added" if concept.own == 0 else "raised" if concept.weight > 0 else "lowered"
        line = Text.assemble((f"{done:11}  ", "dim"), f"{concept.weight:+6.2f}  ", name(concept.id, concept.label))
        yield cut(line.append(f"  from {', '.join(concept.documents)}", style="dim"))
    if len(concepts) > shown:
        yield Text(f"{'':13}{'':6}  and {len(concepts) - shown} more", style="dim")


def contributions(explanation: Explanation, *, products: bool, words: bool = False) -> Iterator[Text]:
    """A bar a concept; what was left out comes as one line, so that the lines sum to the score.

    words: the contributions are of words, which have no number.
    """
    from lexent.explain.contributions import BAR_CHARS

    longest = max((abs(part.value) for part in explanation.contributions), default=0.0)
    for place, part in enumerate(explanation.contributions):
        line = _bar_line(part.value, longest, place)
        yield _named(line, part, products=products, words=words)
    if explanation.left_out:
        yield Text(f"{MARGIN}{'':{BAR_CHARS}} {explanation.rest:6.2f}  {explanation.left_out} more", style="dim")


def groups(explanation: Explanation, *, opened: bool) -> Iterator[Text]:
    """A bar for concepts that say the same; the others come as one line, so that the lines sum to the score.

    opened: with the strongest concepts of each.
    """
    from lexent.explain.contributions import BAR_CHARS

    longest = max((abs(group.value) for group in explanation.groups), default=0.0)
    least = NEGLIGIBLE_LINE * abs(explanation.score)
    shown, left = explanation.largest_groups(SHOWN_GROUPS)
    left = (*(group for group in shown if abs(group.value) < least), *left)
    for place, group in enumerate(group for group in shown if abs(group.value) >= least):
        line = _bar_line(group.value, longest, place)
        yield cut(line.append(group.label, style="dim" if group.form else ""))
        for part in group.members[:MEMBERS] if opened else ():
            inner = Text(f"{MARGIN}{'':{BAR_CHARS}} {'':6}    {part.value:6.2f}  ", style="dim")
            yield _named(inner, part, products=True, words=False)
        if opened and len(group.members) > MEMBERS:
            rest = sum(part.value for part in group.members[MEMBERS:])
            more = f"{rest:6.2f}  {len(group.members) - MEMBERS} more"
            yield Text(f"{MARGIN}{'':{BAR_CHARS}} {'':6}    {more}", style="dim")
    if left:
        rest = sum(group.value for group in left)
        yield Text(f"{MARGIN}{'':{BAR_CHARS}} {rest:6.2f}  {len(left)} more", style="dim")


def _bar_line(value: float, longest: float, place: int) -> Text:
    """The beginning of a line: a bar in the colour of its place, and the value."""
    from lexent.explain.contributions import bar

    return Text.assemble(MARGIN, (bar(value, longest), COLOURS[place % len(COLOURS)]), f" {value:6.2f}  ")


def word_matches(found: WordExplanation) -> Iterator[Text]:
    """A line a word of the query: what it got, and from which words of the document."""
    longest = max((abs(match.value) for match in found.matches), default=0.0)
    shown = found.matches[:FULL]
    left = max((len(match.word) for match in shown), default=0)
    for place, match in enumerate(shown):
        line = _bar_line(match.value, longest, place)
        line.append(f"{match.word:{left}} ↔ ")
        yield cut(line.append(match.shown(FOUND_WORDS), style="yellow"))
    more = found.matches[FULL:]
    if more:
        yield Text(f"{MARGIN}{'':24} {sum(match.value for match in more):6.2f}  {len(more)} more", style="dim")


def alignment(found: Alignment) -> Iterator[Text]:
    """A line a token of the query: what it found in the document, what that gave, and the concepts that they share."""
    from lexent.explain.contributions import bar

    longest = max((abs(token.value) for token in found.tokens), default=0.0)
    left = max((len(token.query.token) for token in found.tokens), default=0)
    right = max((len(token.document.token) for token in found.tokens if token.document), default=1)
    for place, token in enumerate(found.tokens):
        there = token.document.token if token.document else "-"
        line = Text.assemble(MARGIN, f"{token.query.token:>{left}}", (" > ", "dim"), (f"{there:{right}}  ", "yellow"))
        if token.document:
            line.append(bar(token.value, longest)[::2], style=COLOURS[place % len(COLOURS)])
            line.append(f" {token.value:6.2f}  ")
            line.append(", ".join(f"#{part.concept} {part.label} {part.value:.2f}" for part in token.concepts[:BRIEF]))
            more = len(token.concepts) - BRIEF
            line.append(f", {more} more" if more > 0 else "", style="dim")
        yield cut(line)


def comparison(other: Comparison) -> Iterator[Text]:
    """What a document that ranks higher has more of, and less of."""
    from lexent.explain.contributions import BAR_CHARS, bar

    score = f"{other.score:.2f}, {other.gap:.2f} more  "
    title = (titled(other.id, other.title), "bold")
    yield cut(Text.assemble(("rank ", "dim"), f"{other.rank}", ("  score ", "dim"), score, title))
    longest = max((abs(part.value) for part in other.differences), default=0.0)
    for part in other.differences[:FULL]:
        line = Text.assemble(MARGIN, (bar(part.value, longest), "red" if part.value > 0 else "green"))
        line.append_text(Text.assemble(f" {part.value:+6.2f}  ", name(part.concept, part.label, word=part.word)))
        yield cut(line.append(f"  it has {part.other:.2f}, this one {part.document:.2f}", style="dim"))
    left = other.differences[FULL:]
    if left:
        rest = sum(part.value for part in left)
        yield Text(f"{MARGIN}{'':{BAR_CHARS}} {rest:+6.2f}  {len(left)} more", style="dim")


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> Iterator[Text]:
    """Columns that line up; the first `left` ones are words, the others numbers."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for place, row in enumerate((head, *rows)):
        cells = [f"{cell:{'<' if column < left else '>'}{widths[column]}}" for column, cell in enumerate(row)]
        yield Text("  ".join(cells).rstrip(), style="dim" if place == 0 else "")


def titled(id: str, title: str) -> str:
    """A document's id and title; the title alone where it begins with the id."""
    return title if title.startswith(id) else f"{id}  {title}".strip()


def _nothing(shared: str, *, filtered: bool) -> Text:
    which = "no document that passes the filter" if filtered else "no document"
    return Text(f"{which} shares {shared} with the query", style="dim")


def _head(hit: Hit | FusedHit, score: str, strength: str = "") -> Text:
    scores = ((f"{hit.rank:3}  ", "dim"), (f"{score}  ", "bold"), (strength, "dim"))
    return cut(Text.assemble(*scores, (titled(hit.id, hit.title), "bold")))


def cut(line: Text) -> Text:
    """The line, ended with an ellipsis where it would not fit the terminal."""
    line.truncate(width(), overflow="ellipsis")
    return line


def name(concept: int, label: str, *, word: bool = False) -> Text:
    """A concept's number and label; a word of the index in quotation marks."""
    return Text(f'"{label}"') if word else Text.assemble((f"#{concept} ", "dim"), label)


def _named(line: Text, part: Contribution, *, products: bool, words: bool) -> Text:
    """A line with the name of a contribution, which is cut where the line would not fit, and its factors."""
    factors = f"  query {part.query:.2f} x document {part.document:.2f}" if products else ""
    line.append_text(Text(part.label) if words else name(part.concept, part.label, word=part.word))
    line.truncate(width() - len(factors), overflow="ellipsis")
    return line.append(factors, style="dim")
