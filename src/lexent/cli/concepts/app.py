"""lexent concepts: list, find and show the concepts of a lexicon; naming and scoring have files of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lexent.cli import options
from lexent.cli.concepts.label import label
from lexent.cli.concepts.name import name_concepts
from lexent.cli.concepts.score import score
from lexent.cli.console import Output, command
from lexent.cli.option_groups import command_group, option_group
from lexent.errors import InputError

if TYPE_CHECKING:
    from rich.text import Text

    from lexent.cli.console import Line
    from lexent.engine import Index
    from lexent.lexicon import Concept, Lexicon
    from lexent.lexicon.concepts import Concepts

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many to give.")]
Sort = Literal["frequency", "id"]
Category = Literal["lexical", "narrow", "broad", "unknown"]


@option_group
class Source:
    """The lexicon whose concepts are looked at."""

    index: Annotated[Path | None, typer.Option(metavar="DIR")] = None
    """The concepts of this index's lexicon, with its document counts."""
    lexicon: options.Name = None
    """A lexicon's folder, or the name of a shipped one. [default: the shipped one]"""

    @contextmanager
    def opened(self) -> Iterator[tuple[Lexicon, Index | None]]:
        """The lexicon; that of the index where one is given."""
        from lexent.engine import Index
        from lexent.lexicon import load

        if self.index is None:
            yield load(self.lexicon), None
            return
        with Index.open(self.index, lexicon=self.lexicon) as opened:
            yield opened.lexicon, opened

    def words(self) -> list[object]:
        """The options that choose the same lexicon again."""
        given = {"--index": self.index, "--lexicon": self.lexicon}
        return [word for flag, value in given.items() if value for word in (flag, value)]


def list_concepts(
    source: Source,
    sort: Annotated[Sort, typer.Option("--sort", help="Most frequent first, or by number.")] = "frequency",
    category: Annotated[
        Category | None,
        typer.Option("--category", help="Only one kind: one word's forms, a few related words, or a broad topic."),
    ] = None,
    limit: Limit = 20,
    page: Annotated[int, typer.Option("--page", min=1, help="Which page, of --limit concepts each.")] = 1,
) -> Output:
    """List concepts, a page at a time."""
    with source.opened() as (words, opened):
        found = [concept for concept in words.concepts if category is None or concept.category == category]
        counts = _counts(opened)
    if sort == "frequency":
        often = counts if counts is not None else [concept.frequency for concept in words.concepts]
        found.sort(key=lambda concept: (-often[concept.id], concept.id))
    shown = found[(page - 1) * limit : page * limit]
    last = -(-len(found) // limit)
    following = ["--page", page + 1] if page < last else []
    steps = [command("lexent", "concepts", "list", *source.words(), *following)]
    if shown:
        steps.append(command("lexent", "concepts", "show", shown[0].id, *source.words()))
    rows = [_row(concept, counts) for concept in shown]
    return Output(
        {"lexicon": words.name, "total": len(found), "page": page, "concepts": rows},
        [
            *_table(shown, counts),
            "",
            f"page {page} of {last:,}, {len(found):,} concepts of the lexicon {words.name}",
        ],
        steps,
    )


def find(
    source: Source,
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="Words to look for in the concepts' names.")],
    limit: Limit = 10,
) -> Output:
    """Find concepts by the words of their names."""
    text = " ".join(words)
    if not text.strip():
        raise InputError('no words were given; type some: lexent concepts find "zip archive"')
    with source.opened() as (lexicon, opened):
        found = lexicon.find(text, limit=limit)
        counts = _counts(opened)
    rows = [_row(concept, counts) for concept in found]
    data = {"lexicon": lexicon.name, "query": text, "concepts": rows}
    if found:
        return Output(
            data, _table(found, counts), [command("lexent", "concepts", "show", found[0].id, *source.words())]
        )
    close = " ".join(lexicon.concepts.close_words(text))
    hint = f'; did you mean "{close}"?' if close else ""
    line = f'no concept of the lexicon {lexicon.name} has "{text}" in its name{hint}'
    if close:
        return Output(data, [line], [command("lexent", "concepts", "find", close, *source.words())])
    return Output(data, [line], [command("lexent", "concepts", "list", *source.words())])


def show_concept(
    source: Source,
    name: Annotated[str, typer.Argument(metavar="ID_OR_NAME", help='A number, or a name or words of it: 812, "zip".')],
    limit: Limit = 8,
) -> Output:
    """Show a concept: its name and what that comes from, its kind, examples and neighbours.

    With --index, the name is the index's, the words are those of its documents that raise the concept, and the
    documents that have most of it are shown.
    """
    with source.opened() as (words, opened):
        concept = words.resolve(name)
        counts = _counts(opened)
        near = words.neighbours(concept.id, limit=limit)
        documents = {} if opened is None else {"top_documents": _documents(opened, concept.id, limit)}
    neighbours = [{"id": other.id, "label": other.label, "cosine": cosine} for other, cosine in near]
    evidence = _evidence(words.concepts, concept, counted=opened is not None)
    facts = {**evidence, "examples": list(concept.examples), "lexicon": words.name, "neighbours": neighbours}
    steps = [command("lexent", "concepts", "show", near[0][0].id, *source.words())] if near else []
    if source.index:
        boost = f"#{concept.id}=2"
        steps.insert(0, command("lexent", "search", source.index, "your question", "--boost", boost))
    return Output(
        {**_row(concept, counts), **facts, **documents},
        _lines(concept, near, counts, documents.get("top_documents", []), evidence),
        steps,
    )


concepts = command_group(
    "List, find, show, name and score concepts, those of a lexicon or of an index.",
    label=label,
    name=name_concepts,
    score=score,
    list=list_concepts,
    find=find,
    show=show_concept,
)


def _counts(index: Index | None) -> list[int] | None:
    """How many documents have each concept."""
    found: list[int] | None = None if index is None else index.searcher.document_scorer.df.tolist()
    return found


def _row(concept: Concept, counts: list[int] | None) -> dict[str, Any]:
    row = {name: getattr(concept, name) for name in ("id", "label", "category", "frequency")}
    return row if counts is None else {**row, "documents": counts[concept.id]}


def _table(found: list[Concept], counts: list[int] | None) -> Iterator[Text]:
    from lexent.cli.views import cut, table

    head = ["id", "kind", "in texts", *([] if counts is None else ["documents"])]
    rows = [
        [f"#{one.id}", one.category, f"{one.frequency:.3%}", *([] if counts is None else [f"{counts[one.id]:,}"])]
        for one in found
    ]
    names = ["name", *(concept.label for concept in found)]
    for line, name in zip(table(head, rows, left=2), names, strict=True):
        yield cut(line.append(f"  {name}"))


def _evidence(concepts: Concepts, concept: Concept, *, counted: bool) -> dict[str, Any]:
    """What a name comes from: the words that raise the concept, here and in the lexicon's text, and other names."""
    names = ("source", "form", "plain")
    here = [{"word": word, "share": share, "count": count} for word, share, count in concepts.raised_here(concept.id)]
    return {
        **{name: getattr(concept, name) for name in names},
        "former": [label for label, owner in concepts.former.items() if owner == concept.id],
        **({"raised_here": here} if counted else {}),
        "raised_by": [{"word": word, "share": share} for word, share in concept.raised_by],
    }


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


def _lines(
    concept: Concept,
    near: list[tuple[Concept, float]],
    counts: list[int] | None,
    documents: list[dict[str, Any]],
    evidence: dict[str, Any],
) -> Iterator[Line]:
    from rich.text import Text

    from lexent.cli.views import MARGIN, cut, titled

    seen = f"in {concept.frequency:.3%} of the texts it was named on"
    own = "" if counts is None else f", in {counts[concept.id]:,} documents of this index"
    yield Text.assemble((f"#{concept.id}  ", "dim"), (concept.label, "bold"))
    yield Text(f"{concept.category}, {seen}{own}", style="dim")
    if concept.plain:
        yield cut(Text(f"in the lexicon: {concept.plain}", style="dim"))
    if evidence["former"]:
        yield cut(Text(f"until it was named anew: {'; '.join(evidence['former'])}", style="dim"))
    if evidence.get("raised_here"):
        yield from ("", Text("words of these documents that raise it, and how often", style="dim"))
        yield from (cut(Text(f"{MARGIN}{row['count']:5,}  {row['word']}")) for row in evidence["raised_here"])
    if evidence["raised_by"]:
        yield from ("", Text("words of the lexicon's text that raise it", style="dim"))
        yield from (cut(Text(f"{MARGIN}{row['share']:5.0%}  {row['word']}")) for row in evidence["raised_by"])
    if concept.examples:
        yield from ("", Text("examples", style="dim"))
    for example in concept.examples:
        line = Text(MARGIN + " ".join(example.split()))
        line.highlight_regex(r"\[[^\]]*\]", "bold yellow")  # the word that raised the concept stands in [brackets]
        yield cut(line)
    if near:
        yield from ("", Text("neighbours", style="dim"))
        yield from (cut(Text(f"{MARGIN}{cosine:5.2f}  #{other.id} {other.label}")) for other, cosine in near)
    if documents:
        yield from ("", Text("documents that have most of it", style="dim"))
    for row in documents:
        line = Text.assemble(MARGIN, f"{row['weight']:5.2f}  ", (titled(row["id"], row["title"]), "bold"))
        yield cut(line.append(f"  {' '.join(row['text'][:200].split())}", style="dim"))
