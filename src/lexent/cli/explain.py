"""lexent explain: where a document stands for a query, and why not higher."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexent.cli import options, relevance_feedback
from lexent.cli.console import command, say_next, show, show_json
from lexent.cli.option_groups import Json, Settings

if TYPE_CHECKING:
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
    json: Json = False,
) -> None:
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
        if json:
            show_json({**found.to_dict(), "tokens": [_json(part) for part in tokens]})
            return
        _show(found, tokens)
        if found.best is not None:
            say_next(command("lexent", "explain", path, query, found.best.id))
        elif found.explanation.contributions:
            concept = found.explanation.contributions[0].concept
            say_next(command("lexent", "concepts", "show", concept, "--index", path))


def _tokens(index: Index, found: RankExplanation) -> list[ConceptTokens]:
    """The words behind the strongest concepts; none for recipes that do not encode tokens."""
    from lexent.explain import ConceptTokens, attribute

    if index.recipe.level != "tokens" or found.alignment is not None:  # an alignment says more
        return []
    text = index.document(found.id).content
    pipeline = index.searcher.pipeline
    return [
        ConceptTokens(
            query=attribute(found.query, part.concept, kind="query", pipeline=pipeline),
            document=attribute(text, part.concept, kind="document", pipeline=pipeline),
        )
        for part in found.explanation.contributions[:SHOWN_WORDS]
    ]


def _json(tokens: ConceptTokens) -> dict[str, Any]:
    sides = tokens.to_dict()
    return {"concept": tokens.query.concept, "label": tokens.query.label} | {
        side: {"pooled": sides[side]["pooled"], "tokens": sides[side]["tokens"]} for side in ("query", "document")
    }


def _show(found: RankExplanation, tokens: list[ConceptTokens]) -> None:
    from rich.text import Text

    from lexent.cli import views

    place = f"rank {found.rank} of {found.found:,}" if found.rank else "not found: it shares no concept with the query"
    title = views.titled(found.id, found.title)
    show(
        Text.assemble(("query     ", "dim"), (found.query, "bold")),
        views.cut(Text.assemble(("document  ", "dim"), (title, "bold"))),
        Text.assemble(("place     ", "dim"), f"{place}, score {found.score:.2f}"),
    )
    if found.explanation.contributions:
        show("", Text("its score is the sum of", style="dim"))
        show(*views.contributions(found.explanation.top(views.FULL), products=True))
    if found.alignment is not None:
        show("", Text("token by token (in the query > in the document)", style="dim"))
        show(*views.alignment(found.alignment))
    if tokens:
        show("", Text("words that raised them (in the query > in the document)", style="dim"))
        for part in tokens:
            name = Text.assemble((f"{views.MARGIN}#{part.query.concept} ", "dim"), part.query.label, "  ")
            name.append(f"{_words(part.query)} > {_words(part.document)}", style="yellow")
            show(views.cut(name))
    if found.missing:
        show("", Text("concepts of the query that it lacks", style="dim"))
        for concept in found.missing[: views.FULL]:
            label = Text.assemble(views.MARGIN, f"{concept.weight:6.2f}  ", (f"#{concept.id} ", "dim"), concept.label)
            show(views.cut(label))
        if len(found.missing) > views.FULL:
            show(Text(f"{views.MARGIN}{'':6}  and {len(found.missing) - views.FULL} more", style="dim"))
    others = dict.fromkeys(other for other in (found.above, found.best) if other is not None)
    for other in others:
        show("", Text("above it, and what that one has more of (-: less)", style="dim"), *views.comparison(other))


def _words(part: Attribution) -> str:
    found: dict[str, float] = {}
    for share in part.shares:
        found[share.token.lower()] = found.get(share.token.lower(), 0.0) + share.share
    strongest = sorted(found, key=lambda word: -found[word])[:SHOWN_WORDS]
    return ", ".join(strongest) or "none"
