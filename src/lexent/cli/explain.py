"""lexent explain: where a document stands for a query, and why not higher."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexent.cli import options, relevance_feedback
from lexent.cli.console import Output, command
from lexent.cli.option_groups import Settings

if TYPE_CHECKING:
    from lexent.cli.console import Line
    from lexent.engine import Index
    from lexent.explain import Attribution, ConceptTokens, RankExplanation

SHOWN_WORDS = 5
"""Concepts whose words are shown, and words that are shown of each."""


def explain(
    path: options.IndexPath,
    query: options.QueryText,
    document: Annotated[str, typer.Argument(metavar="DOC_ID", help="The document's id, as search shows it.")],
    steering: options.Steering,
    feedback: Annotated[Settings, relevance_feedback.DOCUMENTS],
    models: options.IndexModels,
) -> Iterator[Output]:
    """Say why a document is not ranked higher.

    Shows its exact rank, what its score is the sum of, which words raised its strongest concepts (or, where the recipe
    matches tokens, what each token of the query found), which concepts of the query it lacks, and what the documents
    above it have more of.
    """
    from lexent.engine import Index

    learned = relevance_feedback.learning_of(feedback)
    with Index.open(path, **vars(models)) as index:
        found = index.explain(options.checked_query(query), document, steer=steering.factors(), **learned)
        tokens = _tokens(index, found)
        if found.best is not None:
            following = [command("lexent", "explain", path, query, found.best.id)]
        else:
            strongest = [part for part in found.explanation.contributions if not part.word][:1]
            following = [command("lexent", "concepts", "show", one.concept, "--index", path) for one in strongest]
        data = {**found.to_dict(), "tokens": [_json(part) for part in tokens]}
        yield Output(data, _lines(found, tokens), following)


def _tokens(index: Index, found: RankExplanation) -> list[ConceptTokens]:
    """The words behind the strongest concepts; none for recipes that do not encode tokens."""
    from lexent.explain import ConceptTokens
    from lexent.explain.attribution import attribution
    from lexent.search.coded_text import code_texts

    if index.recipe.level != "tokens" or found.alignment is not None:  # an alignment says more
        return []
    searcher, content = index.searcher, index.document(found.id).content
    query = code_texts(searcher.pipeline, [found.query], kind="query")[0]
    document = code_texts(searcher.pipeline, [content], kind="document")[0]
    sides = searcher.with_words(query), searcher.with_words(document)
    return [
        ConceptTokens(*(attribution(text, part.concept, part.label) for text in sides))
        for part in found.explanation.contributions[:SHOWN_WORDS]
    ]


def _json(tokens: ConceptTokens) -> dict[str, Any]:
    sides = tokens.to_dict()
    return {"concept": tokens.query.concept, "label": tokens.query.label} | {
        side: {"pooled": sides[side]["pooled"], "tokens": sides[side]["tokens"]} for side in ("query", "document")
    }


def _lines(found: RankExplanation, tokens: list[ConceptTokens]) -> Iterator[Line]:
    from rich.text import Text

    from lexent.cli import views

    def heading(text: str) -> Iterator[Line]:
        yield from ("", Text(text, style="dim"))

    place = f"rank {found.rank} of {found.found:,}" if found.rank else "not found: it shares no concept with the query"
    yield Text.assemble(("query     ", "dim"), (found.query, "bold"))
    yield views.cut(Text.assemble(("document  ", "dim"), (views.titled(found.id, found.title), "bold")))
    yield Text.assemble(("place     ", "dim"), f"{place}, score {found.score:.2f}")
    if found.explanation.contributions:
        yield from heading("its score is the sum of")
        yield from views.contributions(found.explanation.top(views.FULL), products=True)
    if found.alignment is not None:
        yield from heading("token by token (in the query > in the document)")
        yield from views.alignment(found.alignment)
    words = {part.concept for part in found.explanation.contributions if part.word}
    if tokens:
        yield from heading("words that raised them (in the query > in the document)")
    for part in tokens:
        name = views.name(part.query.concept, part.query.label, word=part.query.concept in words)
        line = Text.assemble(views.MARGIN, name, "  ")
        yield views.cut(line.append(f"{_words(part.query)} > {_words(part.document)}", style="yellow"))
    if found.missing:
        yield from heading("concepts of the query that it lacks")
    for concept in found.missing[: views.FULL]:
        name = views.name(concept.id, concept.label, word=concept.word)
        yield views.cut(Text.assemble(views.MARGIN, f"{concept.weight:6.2f}  ", name))
    if len(found.missing) > views.FULL:
        yield Text(f"{views.MARGIN}{'':6}  and {len(found.missing) - views.FULL} more", style="dim")
    for other in dict.fromkeys(other for other in (found.above, found.best) if other is not None):
        yield from heading("above it, and what that one has more of (-: less)")
        yield from views.comparison(other)


def _words(part: Attribution) -> str:
    found: dict[str, float] = {}
    for share in part.shares:
        found[share.token.lower()] = found.get(share.token.lower(), 0.0) + share.share
    strongest = sorted(found, key=lambda word: -found[word])[:SHOWN_WORDS]
    return ", ".join(strongest) or "none"
