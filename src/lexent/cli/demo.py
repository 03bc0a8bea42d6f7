"""lexent demo: a first search, over the docstrings of Python's own standard library."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import options
from lexent.cli.console import command, say, say_next, show, show_json
from lexent.cli.option_groups import Json, Settings, option_group
from lexent.cli.progress import Meter
from lexent.cli.serve import PORT
from lexent.cli.serve import start as serve_index

if TYPE_CHECKING:
    from lexent.demo import Answer
    from lexent.search import Results


@option_group
class Asking:
    """What is searched for."""

    query: Annotated[str | None, typer.Option("-q")] = None
    """Ask this instead of the three prepared questions."""
    k: options.Hits = 3
    entries: Annotated[int | None, typer.Option(min=1)] = None
    """How many docstrings to index at most."""
    serve: bool = False
    """Open the page on this index instead, with the last question already asked."""


def demo(asking: Asking, port: Annotated[Settings, PORT], models: options.Models, json: Json = False) -> None:
    """Search the docstrings of Python's standard library: no download, no key, no GPU.

    Builds the index once (less than a minute on two cores) and keeps it in the cache folder.
    """
    from lexent.demo import QUESTIONS, Question, ask, open_library
    from lexent.models import load_encoder, load_lexicon

    start = perf_counter()
    questions = QUESTIONS if asking.query is None else (Question(options.checked_query(asking.query)),)
    words = load_lexicon(models.lexicon)
    encoder = models.encoder or words.encoder_id
    say(f"loading the encoder {encoder} and the lexicon {words.name}, {words.size:,} concepts")
    model = load_encoder(encoder)
    words.check(model)
    with Meter("docstrings") as meter:
        library = open_library(
            encoder=model,
            lexicon=words,
            say=say,
            progress=lambda total: meter.counter("indexing", total),
            limit=asking.entries,
        )
    index = library.index
    if library.seconds:
        say(f"indexed {len(index):,} docstrings in {library.seconds:.0f} s -> {index.path}")
    else:
        say(f"{len(index):,} docstrings are indexed already: {index.path}")
    if asking.serve:
        index.close()
        query = questions[-1].text
        serve_index([index.path], port, encoder=model, lexicon=words, query=query, browse=True)
        return
    answers: list[Answer] = []
    for question in questions:
        for answer in ask(index, question, k=asking.k):
            if not json:
                _show(answer, before=answers[-1].results if answer.steer else None)
            answers.append(answer)
    if json:
        found = [answer.to_dict() for answer in answers]
        show_json({"index": str(index.path), "documents": len(index), "answers": found})
        return
    say(f"\n{perf_counter() - start:.0f} s in all")
    last = answers[-1]
    steps = [command("lexent", "search", index.path, "your own question", "--explain")]
    if last.results.hits:
        steps.append(command("lexent", "explain", index.path, last.results.query, last.results.hits[-1].id))
    if last.results.concepts:
        steps.append(command("lexent", "concepts", "show", last.results.concepts[0].id, "--index", index.path))
    say_next(*steps, "lexent demo --serve", "lexent index YOUR_FILE.csv")


def _show(answer: Answer, *, before: Results | None) -> None:
    from rich.text import Text

    from lexent.cli import views
    from lexent.explain.highlight import highlights

    results = answer.results
    show("")
    for name, factor in answer.steer.items():
        show(Text.assemble(("again, with ", "dim"), (f'--boost "{name}={factor:g}"', "bold green")))
    show(*views.results(results, words=highlights(results.hits), full=False))
    if before is not None:
        show("", Text(_moves(before, results), style="dim"))


def _moves(before: Results, after: Results) -> str:
    """How the ranking changed, in a line."""
    ranks = {hit.id: hit.rank for hit in before.hits}
    moves = [f"{hit.id} {ranks[hit.id]} to {hit.rank}" for hit in after.hits if ranks.get(hit.id, hit.rank) != hit.rank]
    new = [f"{hit.id} is new at {hit.rank}" for hit in after.hits if hit.id not in ranks]
    return "the ranking moved: " + ", ".join(moves + new) if moves or new else "the ranking stayed as it was"
