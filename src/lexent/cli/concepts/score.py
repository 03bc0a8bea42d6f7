"""lexent concepts score: are the names true?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexent.cli import models, options
from lexent.cli.concepts.lexicon_source import lexicon_and_encoder
from lexent.cli.console import Output, command, say
from lexent.cli.option_groups import Settings, option_group, settings_group
from lexent.cli.progress import Meter
from lexent.cli.train.app import texts_of
from lexent.errors import InputError

if TYPE_CHECKING:
    from lexent.cli.console import Line
    from lexent.evaluation.collections import Collection
    from lexent.studies.naming.exam import Exam, Plan, Report
    from lexent.studies.naming.grades import Outcome
    from lexent.studies.naming.questions import Task

JUDGES = ("words", "embedding", "model")


@option_group
class JudgeOptions:
    """Who answers, and the language model among them."""

    judges: str | None = None
    """Who answers: words, embedding, and model where --model is given. [default: all]"""
    judge_encoder: options.Name = None
    """Another encoder for the embedding judge, so that no encoder judges its own concepts."""
    model: Annotated[str | None, typer.Option(metavar="NAME", rich_help_panel=models.PANEL)] = None
    """A language model that answers too."""
    replies: Annotated[Path, typer.Option(metavar="FILE", rich_help_panel=models.PANEL)] = Path(
        "concept-scores.replies.jsonl"
    )
    """Where its answers are kept."""

    def chosen(self) -> tuple[str, ...]:
        """The judges that answer."""
        if self.judges is None:
            return JUDGES if self.model is not None else JUDGES[:2]
        found = tuple(options.names_of(self.judges))
        unknown = [judge for judge in found if judge not in JUDGES]
        if unknown or not found:
            raise InputError(f'no judge "{", ".join(unknown)}"; judges: {", ".join(JUDGES)}')
        if "model" in found and self.model is None:
            raise InputError("the judge model needs a language model: --model NAME, and --base-url where it is")
        return found


PLAN = settings_group(
    "studies/naming/exam.py",
    "Plan",
    ("tasks", "concepts", "labelled", "questions", "examples", "spread", "shown", "distractors", "top", "seed"),
    help={
        "tasks": "What to ask, with commas: intrusion, named-intrusion, detection, identification, simulation. "
        "[default: all; the last two for --export-html]"
    },
    ranges={
        name: {"min": least}
        for name, least in {"concepts": 2, "examples": 9, "questions": 1, "shown": 1, "top": 1}.items()
    },
)
"""What is asked, and how much."""


@option_group
class Worksheets:
    """Questions on a page, for people to answer."""

    PANEL = "For people"
    export_html: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    """Write the questions of the chosen tasks as a page for a person, and the key beside it."""
    answers: Annotated[list[Path] | None, typer.Option(metavar="FILE")] = None
    """Score what a page saved. Repeatable."""
    key: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    """The key of the page, if it moved."""


@option_group
class TestedOptions:
    """The lexicons that are tested, and the texts that they are tested on."""

    texts: Annotated[list[Path] | None, typer.Argument(metavar="TEXTS")] = None
    """Files or folders that names are tested on; a BEIR folder for simulation."""
    lexicon: Annotated[list[str] | None, typer.Option(metavar="NAME_OR_DIR")] = None
    """A lexicon or an index; repeatable, to set several side by side."""
    sae_k: Annotated[list[int] | None, typer.Option(min=1)] = None
    """Concepts a state is coded with, where not as it was trained. Repeatable."""
    split: str = "test"
    """The judgements that simulation uses."""
    sample: options.Texts = 5000
    encoder: options.EncoderName = None


def score(
    tested: TestedOptions,
    planned: Annotated[Settings, PLAN],
    judging: JudgeOptions,
    reading: options.TextReading,
    endpoint: models.EndpointOptions,
    worksheets: Worksheets,
) -> Output:
    """Test whether names are true, on texts that were not used for naming, beside a control with wrong names.

    intrusion: which of ten texts lacks what nine share? named-intrusion: the same with the name shown. detection: does
    the name tell which texts have the concept (AUC)? identification: which of ten passages do these concepts describe?
    simulation: which of two passages is ranked higher? Half of the texts are used, those that `label` does not show.
    """
    from lexent.studies.naming.exam import Plan

    if worksheets.answers:
        from lexent.studies.naming.worksheets import score as scored

        outcomes = [outcome for one in worksheets.answers for outcome in scored(one, key=worksheets.key)]
        return Output({"outcomes": [asdict(outcome) for outcome in outcomes]}, _outcomes(outcomes))
    texts = tested.texts
    if not texts:
        raise InputError("no texts were given; name a file or folder: lexent concepts score TEXTS")
    judging.chosen()  # refused before the long work
    for_people = worksheets.export_html is not None
    plan = Plan(**{**planned, "tasks": _tasks(planned.get("tasks"), for_people=for_people)})
    collection = _collection(texts, tested.split) if "simulation" in plan.tasks else None
    held = texts_of(texts, reading, sample=tested.sample, distinct=True)
    found = _exams(held, plan, tested, collection, before=plan.labelled and not for_people)
    if collection is not None:
        _note_missing(found, documents=len(collection.documents), top=plan.top)
    if worksheets.export_html is not None:
        return _export(found, worksheets.export_html)
    reports = _reports(found, held, judging, endpoint, encoder=tested.encoder)
    page = ["--lexicon", tested.lexicon[0]] if tested.lexicon else []
    return Output(
        {"texts": len(held), "seed": plan.seed, "lexicons": [report.to_dict() for report in reports]},
        (line for report in reports for line in _lines(report)),
        [command("lexent", "concepts", "score", *texts, *page, "--export-html", "worksheet.html")],
    )


def _exams(
    held: list[str], plan: Plan, tested: TestedOptions, collection: Collection | None, *, before: bool
) -> list[Exam]:
    """The questions about each lexicon and k; before: also about the names that it had before it was labelled."""
    from lexent.lexicon.lexicon import default_for
    from lexent.studies.naming import exam as exams

    found = []
    with Meter() as meter:
        for source in tested.lexicon or [default_for()]:
            lexicon, encoder = lexicon_and_encoder(source, encoder=tested.encoder)
            both = (lexicon, exams.before_labelling(lexicon)) if before else (lexicon,)
            for k in tested.sae_k or (None,):
                coding = f"coding, {Path(source).name}{f', k = {k}' if k else ''}"
                progress = meter.counter(coding, len(held))
                seen = exams.observed(held, encoder=encoder, lexicon=lexicon, k=k, progress=progress)
                given: dict[str, Any] = {"encoder": encoder, "collection": collection, "seen": seen}
                found += [exams.prepare(held, replace(plan, k=k), lexicon=words, **given) for words in both]
    return found


def _reports(
    found: list[Exam], held: list[str], judging: JudgeOptions, endpoint: models.EndpointOptions, *, encoder: str | None
) -> list[Report]:
    """The answers of each judge to each exam."""
    from lexent.lexicon.answer_cache import Replies
    from lexent.lexicon.labelling import estimate
    from lexent.models import load_encoder
    from lexent.studies.naming import exam as exams
    from lexent.studies.naming.judges import EmbeddingJudge, WordsJudge
    from lexent.studies.naming.model_judge import ModelJudge, prompts

    wanted, model = judging.chosen(), judging.model
    with Replies(judging.replies if "model" in wanted else None) as kept, Meter("questions") as meter:
        offline: list[Any] = [WordsJudge(held)] if "words" in wanted else []
        if "embedding" in wanted:
            other = judging.judge_encoder or encoder or found[0].lexicon.encoder_id
            offline.append(EmbeddingJudge(load_encoder(other), name=f"embedding ({Path(other).name})"))
        judges = list(offline)
        if model is not None and "model" in wanted:
            questions = [question for one in found for pair in one.pairs for question in (pair.question, pair.control)]
            every = [prompt for question in questions for prompt in prompts(question)]
            cost = estimate(every, model=model, replies=kept, **endpoint.prices())
            models.agree(cost, model=model, yes=endpoint.yes)
            judges.append(ModelJudge(endpoint.of(model), replies=kept, concurrency=endpoint.concurrency))
        return [exams.report(one, judges, likeness=offline, progress=meter.update) for one in found]


def _collection(texts: list[Path], split: str) -> Collection | None:
    """The collection, where the texts are one."""
    from lexent.evaluation.collections import load

    folder = texts[0]
    if len(texts) == 1 and folder.is_dir() and (folder / "qrels").is_dir():
        return load(folder, split=split)
    say("note     simulation is left out: it needs one BEIR folder with queries.jsonl and qrels/")
    return None


def _note_missing(found: list[Exam], *, documents: int, top: int) -> None:
    """Settings of simulation for which the collection has no questions."""
    from lexent.studies.naming.questions import SETTINGS

    present = {pair.question.group for one in found for pair in one.pairs if pair.question.task == "simulation"}
    missing = [setting for setting in SETTINGS if setting not in present]
    if not missing:
        return
    why = f"no query has two such documents at a depth of {top:,}"
    if documents <= top:
        why = (
            f"all {documents:,} documents are among the first {top:,}; a smaller depth: --top {max(1, documents // 10)}"
        )
    say(f"note     simulation has no question of {' and '.join(missing)}: {why}")


def _tasks(given: str | None, *, for_people: bool) -> tuple[Task, ...]:
    """The tasks that were given; people do the two tasks that the paper put to them, unless others are chosen."""
    from lexent.studies.naming.questions import TASKS

    if given is None:
        return ("identification", "simulation") if for_people else TASKS
    found = tuple(options.names_of(given))
    if for_people and "detection" in found:
        raise InputError("detection has many right answers and no page; leave it out of --tasks")
    return found  # type: ignore[return-value]  # a Plan refuses what is no task


def _export(found: list[Exam], path: Path) -> Output:
    from lexent.studies.naming.worksheets import export

    if len(found) > 1:
        raise InputError(f"{len(found)} lexicons were given; a page is about one: give one --lexicon")
    questions = [pair.question for pair in found[0].pairs]
    if not questions:
        raise InputError("there is no question to ask; give more texts, or other --tasks")
    key = export(questions, path)
    return Output(
        {"questions": len(questions), "page": str(path), "key": str(key)},
        [f"wrote    {len(questions):,} questions -> {path}", f"key      {key} (keep it from whoever answers)"],
        [command("lexent", "concepts", "score", "--answers", f"{path.stem}.answers.json", "--key", key)],
    )


def _lines(report: Report) -> Iterator[Line]:
    near = ", ".join(f"{value:.2f} by {judge}" for judge, value in report.uniqueness.nearest.items())
    yield ""
    yield (
        f"{report.lexicon}: {report.level}, k = {report.k}; {report.texts:,} texts, half of them held out; "
        f"{report.concepts:,} of {report.active:,} concepts that are active often enough"
    )
    yield (
        f"names: {report.uniqueness.distinct:.1%} of {report.uniqueness.names:,} are distinct; the nearest other name "
        f"is {near or 'not looked for'} on average"
    )
    yield from ("", *_outcomes(report.outcomes))


def _outcomes(found: Iterable[Outcome]) -> Iterator[Line]:
    from lexent.cli.views import table
    from lexent.nan_safe import p_text

    head = ["task", "judge", "group", "n", "result", "95 %", "control", "p", "chance", "unanswered"]
    rows = []
    for one in found:
        row = [one.task, one.judge, one.group] if one.group == "all" else ["", "", one.group]
        row += [f"{one.n:,}", f"{one.value:.3f}", f"{one.low:.3f}-{one.high:.3f}"]
        row += ["" if one.control is None else f"{one.control:.3f}", p_text(one.p), f"{one.chance:.2f}"]
        rows.append([*row, str(one.unanswered or "")])
    yield from table(head, rows, left=3)
    yield ""
    yield "result: share of right answers, or the mean AUC for detection; control: the same with wrong names or texts"
