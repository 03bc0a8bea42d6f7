"""lexent concepts score: are the names true?"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lexent.cli import models, options, subjects
from lexent.cli.console import command, say, say_next, show, show_json
from lexent.cli.option_groups import option_group, with_option_groups
from lexent.cli.progress import Meter
from lexent.errors import InputError

if TYPE_CHECKING:
    from lexent.evaluation.collections import Collection
    from lexent.studies.naming.exam import Exam, Plan, Report
    from lexent.studies.naming.grades import Outcome
    from lexent.studies.naming.questions import Task

Distractors = Literal["random", "near"]
Spread = Literal["quantiles", "top"]
PEOPLE = "For people"
JUDGES = ("words", "embedding", "model")


@option_group
@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """Who answers, and the language model among them."""

    judges: Annotated[
        str | None,
        typer.Option("--judges", help="Who answers: words, embedding, and model where --model is given. Default: all."),
    ] = None
    judge_encoder: Annotated[
        str | None,
        typer.Option(
            "--judge-encoder",
            metavar="NAME_OR_DIR",
            help="Another encoder for the embedding judge, so that no encoder judges its own concepts.",
        ),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            "--model", metavar="NAME", help="A language model that answers too.", rich_help_panel=models.PANEL
        ),
    ] = None
    replies: Annotated[
        Path,
        typer.Option("--replies", metavar="FILE", help="Where its answers are kept.", rich_help_panel=models.PANEL),
    ] = Path("concept-scores.replies.jsonl")


@option_group
@dataclass(frozen=True, slots=True)
class QuestionOptions:
    """What is asked, and how much."""

    tasks: Annotated[
        str | None,
        typer.Option(
            "--tasks",
            help="What to ask, with commas: intrusion, named-intrusion, detection, identification, simulation. "
            "Default: all, and the last two for --export-html.",
        ),
    ] = None
    concepts: Annotated[
        int, typer.Option("--concepts", min=2, help="Concepts that intrusion and detection ask about.")
    ] = 200
    labelled: Annotated[
        bool,
        typer.Option(
            "--labelled", help="Only concepts that a language model named; their old names are scored beside them."
        ),
    ] = False
    questions: Annotated[
        int, typer.Option("--questions", min=1, help="Questions of identification, and of each setting of simulation.")
    ] = 100
    examples: Annotated[
        int, typer.Option("--examples", min=9, help="Held-out texts of a concept, and as many without it.")
    ] = 20
    spread: Annotated[
        Spread, typer.Option("--spread", help="Texts of a concept from its whole range of activation, or the top.")
    ] = "quantiles"
    shown: Annotated[int, typer.Option("--shown", min=1, help="Concepts of a passage that are shown.")] = 10
    distractors: Annotated[
        Distractors, typer.Option("--distractors", help="The nine other passages: any, or those most alike.")
    ] = "random"
    top: Annotated[
        int, typer.Option("--top", min=1, help="Depth of the ranking in simulation: documents that count as retrieved.")
    ] = 1000
    seed: subjects.Seed = 0

    def plan(self, *, for_people: bool) -> Plan:
        """The plan of the exam."""
        from lexent.studies.naming.exam import Plan

        return Plan(**{**asdict(self), "tasks": _tasks(self.tasks, for_people=for_people)})


@option_group
@dataclass(frozen=True, slots=True)
class Worksheets:
    """Questions on a page, for people to answer."""

    export_html: Annotated[
        Path | None,
        typer.Option(
            "--export-html",
            metavar="FILE",
            help="Write the questions of the chosen tasks as a page for a person, and the key beside it.",
            rich_help_panel=PEOPLE,
        ),
    ] = None
    answers: Annotated[
        list[Path] | None,
        typer.Option("--answers", metavar="FILE", help="Score what a page saved. Repeatable.", rich_help_panel=PEOPLE),
    ] = None
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="FILE", help="The key of the page, if it moved.", rich_help_panel=PEOPLE),
    ] = None


@option_group
@dataclass(frozen=True, slots=True)
class TextOptions:
    """The texts that are looked at."""

    split: Annotated[str, typer.Option("--split", help="The judgements that simulation uses.")] = "test"
    sample: subjects.Sample = 5000


@with_option_groups
def score(
    *,
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
    sae_k: Annotated[
        list[int] | None,
        typer.Option(
            "--sae-k",
            min=1,
            help="Concepts a state is coded with, where not as it was trained. Repeatable.",
            show_default=False,
        ),
    ] = None,
    questions: QuestionOptions,
    judging: JudgeOptions,
    texts_options: TextOptions,
    encoder: options.EncoderName = None,
    columns: options.TextColumns,
    endpoint: models.EndpointOptions,
    worksheets: Worksheets,
    json: options.Json = False,
) -> None:
    """Test whether names are true, on texts that were not used for naming, beside a control with wrong names.

    intrusion: which of ten texts lacks what nine share? named-intrusion: the same with the name shown. detection: does
    the name tell which texts have the concept (AUC)? identification: which of ten passages do these concepts describe?
    simulation: which of two passages is ranked higher? Half of the texts are used, those that `label` does not show.
    """
    if worksheets.answers:
        _show_answers(worksheets.answers, worksheets.key, json)
        return
    if not texts:
        raise InputError("no texts were given; name a file or folder: lexent concepts score TEXTS")

    from lexent.studies.naming import exam as exams

    model, export_html = judging.model, worksheets.export_html
    wanted = _chosen(judging.judges, model)
    plan = questions.plan(for_people=export_html is not None)
    collection = _collection(texts, texts_options.split) if "simulation" in plan.tasks else None
    held = subjects.texts_of(texts, columns, sample=texts_options.sample)
    found: list[Exam] = []
    with Meter() as meter:
        for source in lexicon or [_default()]:
            subject = subjects.subject_of(source, encoder=encoder)
            both = [exams.before_labelling(subject.lexicon)] if plan.labelled and export_html is None else []
            sizes: list[int | None] = [*sae_k] if sae_k else [None]
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
    if collection is not None:
        _note_unasked(found, documents=len(collection.documents), top=plan.top)
    if export_html is not None:
        _export(found, export_html)
        return

    from lexent.lexicon.labelling import estimate
    from lexent.lexicon.replies import Replies
    from lexent.models import load_encoder
    from lexent.studies.naming.judges import EmbeddingJudge, WordsJudge
    from lexent.studies.naming.model_judge import ModelJudge, prompts

    reports = []
    with Replies(judging.replies if "model" in wanted else None) as kept, Meter("questions") as meter:
        offline: list[Any] = [WordsJudge(held)] if "words" in wanted else []
        if "embedding" in wanted:
            other = judging.judge_encoder or encoder or found[0].lexicon.encoder_id
            offline.append(EmbeddingJudge(load_encoder(other), name=f"embedding ({Path(other).name})"))
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
                estimate(every, model=model, replies=kept, **endpoint.prices()),
                model=model,
                yes=endpoint.yes,
            )
            asked.append(ModelJudge(endpoint.of(model), replies=kept, concurrency=endpoint.concurrency))
        for one in found:
            reports.append(exams.report(one, asked, likeness=offline, progress=meter.update))
    if json:
        show_json({"texts": len(held), "seed": plan.seed, "lexicons": [report.to_dict() for report in reports]})
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


def _note_unasked(found: list[Exam], *, documents: int, top: int) -> None:
    """Settings of simulation for which the collection has no questions."""
    from lexent.studies.naming.questions import SETTINGS

    asked = {pair.question.group for one in found for pair in one.pairs if pair.question.task == "simulation"}
    missing = [setting for setting in SETTINGS if setting not in asked]
    if not missing:
        return
    why = f"no query has two such documents at a depth of {top:,}"
    if documents <= top:
        why = (
            f"all {documents:,} documents are among the first {top:,}; a smaller depth: --top {max(1, documents // 10)}"
        )
    say(f"note     simulation has no question of {' and '.join(missing)}: {why}")


def _tasks(given: str | None, *, for_people: bool) -> tuple[Task, ...]:
    """What was asked for; people do the two tasks that the paper put to them, unless others are chosen."""
    from lexent.studies.naming.questions import TASKS

    if given is None:
        return ("identification", "simulation") if for_people else TASKS
    found = tuple(task.strip() for task in given.split(",") if task.strip())
    if for_people and "detection" in found:
        raise InputError("detection has many right answers and no page; leave it out of --tasks")
    return found  # type: ignore[return-value]  # a Plan refuses what is no task


def _export(found: list[Exam], path: Path) -> None:
    from lexent.studies.naming.worksheets import export

    if len(found) > 1:
        raise InputError(f"{len(found)} lexicons were given; a page is about one: give one --lexicon")
    asked = [pair.question for pair in found[0].pairs]
    if not asked:
        raise InputError("there is no question to ask; give more texts, or other --tasks")
    key = export(asked, path)
    show(f"wrote    {len(asked):,} questions -> {path}", f"key      {key} (keep it from whoever answers)")
    say_next(command("lexent", "concepts", "score", "--answers", f"{path.stem}.answers.json", "--key", key))


def _show_answers(answers: list[Path], key: Path | None, json: bool) -> None:
    from lexent.studies.naming.worksheets import score as scored

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
