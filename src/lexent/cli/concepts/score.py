"""lexent concepts score: are the names true?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lexent.cli import models, options, subjects
from lexent.cli.console import command, say, say_next, show, show_json
from lexent.cli.progress import Meter
from lexent.errors import InputError

if TYPE_CHECKING:
    from lexent.evaluation.collections import Collection
    from lexent.evaluation.naming.exam import Exam, Report
    from lexent.evaluation.naming.grades import Outcome
    from lexent.evaluation.naming.questions import Task

Distractors = Literal["random", "near"]
Spread = Literal["quantiles", "top"]
PEOPLE = "For people"
JUDGES = ("words", "embedding", "model")


def score(
    texts: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="TEXTS", help="Files or folders that names are tested on; a BEIR folder for simulation."
        ),
    ] = None,
    lexicon: Annotated[
        list[str] | None,
        typer.Option(
            "--lexicon", metavar="NAME_OR_DIR", help="A lexicon or an index; repeatable, to set several side by side."
        ),
    ] = None,
    k: Annotated[
        list[int] | None,
        typer.Option(
            "--k",
            min=1,
            help="Concepts a state is coded with, where not as it was trained. Repeatable.",
            show_default=False,
        ),
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(
            "--tasks",
            help="What to ask, with commas: intrusion, named-intrusion, detection, identification, simulation. "
            "Default: all, and the last two for --export-html.",
        ),
    ] = None,
    judges: Annotated[
        str | None,
        typer.Option("--judges", help="Who answers: words, embedding, and model where --model is given. Default: all."),
    ] = None,
    judge_encoder: Annotated[
        str | None,
        typer.Option(
            "--judge-encoder",
            metavar="NAME_OR_DIR",
            help="Another encoder for the embedding judge, so that no encoder judges its own concepts.",
        ),
    ] = None,
    concepts: Annotated[
        int, typer.Option("--concepts", min=2, help="Concepts that intrusion and detection ask about.")
    ] = 200,
    labelled: Annotated[
        bool,
        typer.Option(
            "--labelled", help="Only concepts that a language model named; their old names are scored beside them."
        ),
    ] = False,
    questions: Annotated[
        int, typer.Option("--questions", min=1, help="Questions of identification, and of each setting of simulation.")
    ] = 100,
    examples: Annotated[
        int, typer.Option("--examples", min=9, help="Held-out texts of a concept, and as many without it.")
    ] = 20,
    spread: Annotated[
        Spread, typer.Option("--spread", help="Texts of a concept from its whole range of activation, or the top.")
    ] = "quantiles",
    shown: Annotated[int, typer.Option("--shown", min=1, help="Concepts of a passage that are shown.")] = 10,
    distractors: Annotated[
        Distractors, typer.Option("--distractors", help="The nine other passages: any, or those most alike.")
    ] = "random",
    split: Annotated[str, typer.Option("--split", help="The judgements that simulation uses.")] = "test",
    top: Annotated[int, typer.Option("--top", min=1, help="Documents that count as retrieved in simulation.")] = 10,
    sample: subjects.Sample = 5000,
    seed: subjects.Seed = 0,
    encoder: options.EncoderName = None,
    text: options.TextColumn = None,
    title: options.TitleColumn = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", metavar="NAME", help="A language model that answers too.", rich_help_panel=models.PANEL
        ),
    ] = None,
    base_url: models.BaseUrl = models.OPENAI,
    key_env: models.KeyEnv = models.KEY,
    price_in: models.PriceIn = None,
    price_out: models.PriceOut = None,
    concurrency: models.Concurrency = 4,
    timeout: models.Timeout = 120.0,
    retries: models.Retries = 6,
    replies: Annotated[
        Path,
        typer.Option("--replies", metavar="FILE", help="Where its answers are kept.", rich_help_panel=models.PANEL),
    ] = Path("concept-scores.replies.jsonl"),
    yes: models.Yes = False,
    export_html: Annotated[
        Path | None,
        typer.Option(
            "--export-html",
            metavar="FILE",
            help="Write the questions of the chosen tasks as a page for a person, and the key beside it.",
            rich_help_panel=PEOPLE,
        ),
    ] = None,
    answers: Annotated[
        list[Path] | None,
        typer.Option("--answers", metavar="FILE", help="Score what a page saved. Repeatable.", rich_help_panel=PEOPLE),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="FILE", help="The key of the page, if it moved.", rich_help_panel=PEOPLE),
    ] = None,
    json: options.Json = False,
) -> None:
    """Test whether names are true, on texts that were not used for naming, beside a control with wrong names.

    intrusion: which of ten texts lacks what nine share? named-intrusion: the same with the name shown. detection: does
    the name tell which texts have the concept (AUC)? identification: which of ten passages do these concepts describe?
    simulation: which of two passages is ranked higher? Half of the texts are used, those that `label` does not show.
    """
    if answers:
        _show_answers(answers, key, json)
        return
    if not texts:
        raise InputError("no texts were given; name a file or folder: lexent concepts score TEXTS")

    from lexent.evaluation.naming import exam as exams

    wanted = _chosen(judges, model)
    plan = exams.Plan(
        tasks=_tasks(tasks, for_people=export_html is not None),
        concepts=concepts,
        questions=questions,
        examples=examples,
        spread=spread,
        shown=shown,
        distractors=distractors,
        top=top,
        labelled=labelled,
        seed=seed,
    )
    collection = _collection(texts, split) if "simulation" in plan.tasks else None
    held = subjects.texts_of(texts, sample=sample, text=text, title=title)
    found: list[Exam] = []
    with Meter() as meter:
        for source in lexicon or [_default()]:
            subject = subjects.subject_of(source, encoder=encoder)
            both = [exams.before_labelling(subject.lexicon)] if labelled and export_html is None else []
            sizes: list[int | None] = [*k] if k else [None]
            for size in sizes:
                seen = exams.observed(
                    held,
                    encoder=subject.encoder,
                    lexicon=subject.lexicon,
                    k=size,
                    progress=meter.counter(f"coding, {Path(source).name}{f', k = {size}' if size else ''}", len(held)),
                )
                for words in (subject.lexicon, *both):
                    found.append(
                        exams.prepare(
                            held,
                            replace(plan, k=size),
                            lexicon=words,
                            encoder=subject.encoder,
                            collection=collection,
                            seen=seen,
                        )
                    )
    if export_html is not None:
        _export(found, export_html)
        return

    from lexent import encoders
    from lexent.evaluation.naming.judges import EmbeddingJudge, WordsJudge
    from lexent.evaluation.naming.model_judge import ModelJudge, prompts
    from lexent.lexicon.labelling import estimate
    from lexent.lexicon.replies import Replies

    reports = []
    with Replies(replies if "model" in wanted else None) as kept, Meter("questions") as meter:
        offline: list[Any] = [WordsJudge(held)] if "words" in wanted else []
        if "embedding" in wanted:
            other = judge_encoder or encoder or found[0].lexicon.encoder_id
            offline.append(EmbeddingJudge(encoders.load(other), name=f"embedding ({Path(other).name})"))
        asked: list[Any] = list(offline)
        if model is not None and "model" in wanted:
            every = [
                prompt
                for one in found
                for pair in one.pairs
                for question in (pair.question, pair.control)
                for prompt in prompts(question)
            ]
            models.agree(
                estimate(every, model=model, replies=kept, price_in=price_in, price_out=price_out),
                model=model,
                yes=yes,
            )
            endpoint = models.endpoint_of(base_url, model, key_env=key_env, timeout=timeout, retries=retries)
            asked.append(ModelJudge(endpoint, replies=kept, concurrency=concurrency))
        for one in found:
            reports.append(exams.report(one, asked, likeness=offline, progress=meter.update))
    if json:
        show_json({"texts": len(held), "seed": seed, "lexicons": [report.to_dict() for report in reports]})
        return
    for report in reports:
        _show(report)
    page = ["--lexicon", lexicon[0]] if lexicon else []
    say_next(command("lexent", "concepts", "score", *texts, *page, "--export-html", "worksheet.html"))


def _default() -> str:
    from lexent.lexicon.lexicon import default_for

    return default_for()


def _chosen(judges: str | None, model: str | None) -> tuple[str, ...]:
    if judges is None:
        return JUDGES if model is not None else JUDGES[:2]
    found = tuple(judge.strip() for judge in judges.split(",") if judge.strip())
    unknown = [judge for judge in found if judge not in JUDGES]
    if unknown or not found:
        raise InputError(f'no judge "{", ".join(unknown)}"; judges: {", ".join(JUDGES)}')
    if "model" in found and model is None:
        raise InputError("the judge model needs a language model: --model NAME, and --base-url where it is")
    return found


def _collection(texts: list[Path], split: str) -> Collection | None:
    """The collection, where the texts are one."""
    from lexent.evaluation.collections import load

    folder = texts[0]
    if len(texts) == 1 and folder.is_dir() and (folder / "qrels").is_dir():
        return load(folder, split=split)
    say("note     simulation is left out: it needs one BEIR folder with queries.jsonl and qrels/")
    return None


def _tasks(given: str | None, *, for_people: bool) -> tuple[Task, ...]:
    """What was asked for; people do the two tasks that the paper put to them, unless others are chosen."""
    from lexent.evaluation.naming.questions import TASKS

    if given is None:
        return ("identification", "simulation") if for_people else TASKS
    found = tuple(task.strip() for task in given.split(",") if task.strip())
    if for_people and "detection" in found:
        raise InputError("detection has many right answers and no page; leave it out of --tasks")
    return found  # type: ignore[return-value]  # a Plan refuses what is no task


def _export(found: list[Exam], path: Path) -> None:
    from lexent.evaluation.naming.worksheets import export

    if len(found) > 1:
        raise InputError(f"{len(found)} lexicons were given; a page is about one: give one --lexicon")
    asked = [pair.question for pair in found[0].pairs]
    if not asked:
        raise InputError("there is no question to ask; give more texts, or other --tasks")
    key = export(asked, path)
    show(f"wrote    {len(asked):,} questions -> {path}", f"key      {key} (keep it from whoever answers)")
    say_next(command("lexent", "concepts", "score", "--answers", f"{path.stem}.answers.json", "--key", key))


def _show_answers(answers: list[Path], key: Path | None, json: bool) -> None:
    from lexent.evaluation.naming.worksheets import score as scored

    found = [outcome for one in answers for outcome in scored(one, key=key)]
    if json:
        show_json({"outcomes": [outcome.to_dict() for outcome in found]})
        return
    _outcomes(found)


def _show(report: Report) -> None:
    near = ", ".join(f"{value:.2f} by {judge}" for judge, value in report.uniqueness.nearest.items())
    show(
        "",
        f"{report.lexicon}: {report.level}, k = {report.k}; {report.texts:,} texts, half of them held out; "
        f"{report.concepts:,} of {report.active:,} concepts that are active often enough",
        f"names: {report.uniqueness.distinct:.1%} of {report.uniqueness.names:,} are distinct; the nearest other name "
        f"is {near or 'not looked for'} on average",
        "",
    )
    _outcomes(report.outcomes)


def _outcomes(found: list[Outcome] | tuple[Outcome, ...]) -> None:
    from lexent.cli.views import table

    head = ["task", "judge", "group", "n", "result", "95 %", "control", "p", "chance", "unanswered"]
    rows = [
        [
            one.task if one.group == "all" else "",
            one.judge if one.group == "all" else "",
            one.group,
            f"{one.n:,}",
            f"{one.value:.3f}",
            f"{one.low:.3f}-{one.high:.3f}",
            "" if one.control is None else f"{one.control:.3f}",
            "" if one.p is None else ("<0.001" if one.p < 0.001 else f"{one.p:.3f}"),
            f"{one.chance:.2f}",
            str(one.unanswered or ""),
        ]
        for one in found
    ]
    show(*table(head, rows, left=3))
    show(
        "", "result: share of right answers, or the mean AUC for detection; control: the same with wrong names or texts"
    )
