"""lexent concepts: list, find and show the concepts of a lexicon; naming and scoring have files of their own."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lexent.cli import options
from lexent.cli.concepts.label import label
from lexent.cli.concepts.score import score
from lexent.cli.console import command, say_next, show, show_json
from lexent.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lexent.engine import Index
    from lexent.lexicon import Concept, Lexicon

concepts = typer.Typer(help="List, find, show, name and score concepts, those of a lexicon or of an index.")
concepts.command("label")(label)
concepts.command("score")(score)

AnIndex = Annotated[
    Path | None,
    typer.Option("--index", metavar="DIR", help="The concepts of this index's lexicon, with its document counts."),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many to give.")]
Sort = Literal["frequency", "id"]
Category = Literal["lexical", "narrow", "broad", "unknown"]


@concepts.callback(invoke_without_command=True)
def verbs(context: typer.Context) -> None:
    """Show the help where no verb is given."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@concepts.command("list")
def list_concepts(
    sort: Annotated[Sort, typer.Option("--sort", help="Most frequent first, or by number.")] = "frequency",
    category: Annotated[
        Category | None,
        typer.Option("--category", help="Only one kind: one word's forms, a few related words, or a broad topic."),
    ] = None,
    limit: Limit = 20,
    page: Annotated[int, typer.Option("--page", min=1, help="Which page, of --limit concepts each.")] = 1,
    index: AnIndex = None,
    lexicon: options.LexiconName = None,
    json: options.Json = False,
) -> None:
    """List concepts, a page at a time."""
    with _chosen(index, lexicon) as (words, opened):
        found = [concept for concept in words.concepts if category is None or concept.category == category]
        counts = _counts(opened)
        if sort == "frequency":
            often = counts if counts is not None else [concept.frequency for concept in words.concepts]
            found.sort(key=lambda concept: (-often[concept.id], concept.id))
        shown = found[(page - 1) * limit : page * limit]
        if json:
            rows = [_row(concept, counts) for concept in shown]
            show_json({"lexicon": words.name, "total": len(found), "page": page, "concepts": rows})
            return
        _table(shown, counts)
        last = -(-len(found) // limit)
        show("", f"page {page} of {last:,}, {len(found):,} concepts of the lexicon {words.name}")
        following = ["--page", page + 1] if page < last else []
        steps = [command("lexent", "concepts", "list", *_where(index, lexicon), *following)]
        if shown:
            steps.append(command("lexent", "concepts", "show", shown[0].id, *_where(index, lexicon)))
        say_next(*steps)


@concepts.command("find")
def find(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="Words to look for in the concepts' names.")],
    limit: Limit = 10,
    index: AnIndex = None,
    lexicon: options.LexiconName = None,
    json: options.Json = False,
) -> None:
    """Find concepts by the words of their names."""
    text = " ".join(words)
    if not text.strip():
        raise InputError('no words were given; type some: lexent concepts find "zip archive"')
    with _chosen(index, lexicon) as (chosen, opened):
        found = chosen.find(text, limit=limit)
        counts = _counts(opened)
        if json:
            show_json({"lexicon": chosen.name, "query": text, "concepts": [_row(concept, counts) for concept in found]})
            return
        if not found:
            close = " ".join(chosen.concepts.close_words(text))
            hint = f'; did you mean "{close}"?' if close else ""
            show(f'no concept of the lexicon {chosen.name} has "{text}" in its name{hint}')
            if close:
                say_next(command("lexent", "concepts", "find", close, *_where(index, lexicon)))
            else:
                say_next(command("lexent", "concepts", "list", *_where(index, lexicon)))
            return
        _table(found, counts)
        say_next(command("lexent", "concepts", "show", found[0].id, *_where(index, lexicon)))


@concepts.command("show")
def show_concept(
    name: Annotated[str, typer.Argument(metavar="ID_OR_NAME", help='A number, or a name or words of it: 812, "zip".')],
    limit: Limit = 8,
    index: AnIndex = None,
    lexicon: options.LexiconName = None,
    json: options.Json = False,
) -> None:
    """Show a concept: its name, kind, examples and neighbours, and with --index the documents that have most of it."""
    with _chosen(index, lexicon) as (words, opened):
        concept = words.resolve(name)
        counts = _counts(opened)
        near = words.neighbours(concept.id, limit=limit)
        documents = _documents(opened, concept.id, limit) if opened is not None else None
        if json:
            found = {**_row(concept, counts), "examples": list(concept.examples), "lexicon": words.name}
            found["neighbours"] = [{"id": other.id, "label": other.label, "cosine": cosine} for other, cosine in near]
            show_json(found if documents is None else {**found, "top_documents": documents})
            return
        _show(concept, near, counts, documents)
        where = _where(index, lexicon)
        step = command("lexent", "concepts", "show", near[0][0].id, *where) if near else ""
        search = command("lexent", "search", index, "your question", "--boost", f"#{concept.id}=2") if index else ""
        say_next(*(line for line in (search, step) if line))


@contextmanager
def _chosen(index: Path | None, lexicon: str | None) -> Iterator[tuple[Lexicon, Index | None]]:
    """The lexicon that was asked for; that of the index where one is given."""
    from lexent.engine import Index
    from lexent.lexicon import load

    if index is None:
        yield load(lexicon), None
        return
    with Index.open(index, lexicon=lexicon) as opened:
        yield opened.lexicon, opened


def _where(index: Path | None, lexicon: str | None) -> list[str]:
    """The options that choose the same lexicon again."""
    return (["--index", str(index)] if index else []) + (["--lexicon", lexicon] if lexicon else [])


def _counts(index: Index | None) -> list[int] | None:
    """How many documents have each concept."""
    found: list[int] | None = None if index is None else index.searcher.document_scorer.df.tolist()
    return found


def _row(concept: Concept, counts: list[int] | None) -> dict[str, Any]:
    row = {
        "id": concept.id,
        "label": concept.label,
        "category": concept.category,
        "frequency": concept.frequency,
    }
    return row if counts is None else {**row, "documents": counts[concept.id]}


def _table(found: list[Concept], counts: list[int] | None) -> None:
    from lexent.cli.views import cut, table

    head = ["id", "kind", "in texts", *([] if counts is None else ["documents"]), "name"]
    rows = [
        [
            f"#{concept.id}",
            concept.category,
            f"{concept.frequency:.3%}",
            *([] if counts is None else [f"{counts[concept.id]:,}"]),
        ]
        for concept in found
    ]
    names = ["name", *(concept.label for concept in found)]
    lines = table(head[:-1], rows, left=2)
    show(*(cut(line.append(f"  {name}")) for line, name in zip(lines, names, strict=True)))


def _documents(index: Index, concept: int, limit: int) -> list[dict[str, Any]]:
    """The documents in which a concept weighs most."""
    import numpy as np

    from lexent.types import SparseVectors

    scorer = index.searcher.document_scorer
    one = SparseVectors(np.array([concept], np.int32), np.ones(1, np.float32), np.array([0, 1]), scorer.size)
    positions, weights = (side[0] for side in scorer.top_weighted(one, limit))
    positions, weights = positions[positions >= 0], weights[positions >= 0]
    found = index.documents.at(positions.tolist())
    return [
        {"id": document.id, "title": document.title, "weight": float(weight), "text": document.text}
        for document, weight in zip(found, weights, strict=True)
    ]


def _show(
    concept: Concept,
    near: list[tuple[Concept, float]],
    counts: list[int] | None,
    documents: list[dict[str, Any]] | None,
) -> None:
    from rich.text import Text

    from lexent.cli.views import MARGIN, cut

    seen = f"in {concept.frequency:.3%} of the texts it was named on"
    own = "" if counts is None else f", in {counts[concept.id]:,} documents of this index"
    show(
        Text.assemble((f"#{concept.id}  ", "dim"), (concept.label, "bold")),
        Text(f"{concept.category}, {seen}{own}", style="dim"),
    )
    if concept.examples:
        show("", Text("examples", style="dim"), *(cut(_example(example, MARGIN)) for example in concept.examples))
    if near:
        show("", Text("neighbours", style="dim"))
        show(*(cut(Text(f"{MARGIN}{cosine:5.2f}  #{other.id} {other.label}")) for other, cosine in near))
    if documents:
        show("", Text("documents that have most of it", style="dim"))
        for row in documents:
            title = row["title"] if row["title"].startswith(row["id"]) else f"{row['id']}  {row['title']}".strip()
            line = Text.assemble(MARGIN, f"{row['weight']:5.2f}  ", (title, "bold"))
            show(cut(line.append(f"  {' '.join(row['text'][:200].split())}", style="dim")))


def _example(example: str, margin: str) -> Any:
    """The word that raised the concept stands in [brackets]; it is marked too."""
    from rich.text import Text

    line = Text(margin + " ".join(example.split()))
    line.highlight_regex(r"\[[^\]]*\]", "bold yellow")
    return line
