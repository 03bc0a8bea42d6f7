"""The same questions for people: a page to fill in with a browser, a key that stays here, a scorer for the answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from lexent.artifact import write_bytes, write_json
from lexent.errors import InputError, MismatchError, NotFoundError
from lexent.studies.naming.grades import Outcome, by_group, outcome
from lexent.studies.naming.questions import Question

PAGE = "worksheet.html"


def export(questions: Sequence[Question], path: Path) -> Path:
    """Write the page, and beside it the key, whose path is given back. The page holds no answer."""
    shown = [
        {
            "task": question.task,
            "query": question.query,
            "concepts": [asdict(concept) for concept in question.concepts],
            "options": [asdict(option) for option in question.options],
        }
        for question in questions
    ]
    mark = hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()[:16]
    content = {"worksheet": mark, "page": path.stem, "questions": shown}
    # "<" would let a text end the script element that holds it.
    packed = json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")
    page = resources.files("lexent.studies.naming").joinpath(PAGE).read_text(encoding="utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, page.replace("{{content}}", packed, 1).encode())
    rows = [
        {"task": question.task, "group": question.group, "subject": question.subject, "right": list(question.right)}
        | {"chance": question.chance}
        for question in questions
    ]
    key = path.with_name(f"{path.stem}.key.json")
    write_json(key, {"worksheet": mark, "questions": rows})
    return key


def score(answers: Path, *, key: Path | None = None) -> list[Outcome]:
    """The results of one person: by task, and by group where there are several. What was left open counts as wrong."""
    given = _read(answers, "answers", {"worksheet", "answers"})
    if key is None:
        key = _key_of(answers, str(given.get("page", "")))
    right = _read(key, "key", {"worksheet", "questions"})
    if given["worksheet"] != right["worksheet"]:
        raise MismatchError(
            f"{answers} answers the worksheet {given['worksheet']} and {key} is the key of {right['worksheet']}; "
            "name the right one: --key FILE"
        )
    try:
        questions = [
            (row["task"], row["group"], list(row["right"]), float(row["chance"])) for row in right["questions"]
        ]
        chosen = {int(number): int(choice) for number, choice in given["answers"].items() if choice is not None}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{answers} or {key} is damaged ({error}); export and fill in the page again") from error
    person = str(given.get("person") or answers.stem)[:40]
    found = []
    for task, group, places in by_group([(task, group) for task, group, _, _ in questions]):
        values = np.array([float(chosen.get(place, -1) in questions[place][2]) for place in places])
        chance = float(np.mean([questions[place][3] for place in places]))
        missing = sum(place not in chosen for place in places)
        found.append(outcome(task, person, group, values, chance, unanswered=missing))
    return found


def _key_of(answers: Path, page: str) -> Path:
    """The key lies beside the answers or where the command is typed, unless it is named."""
    name = f"{Path(page).name}.key.json"
    for folder in (answers.parent, Path()):
        if page and (folder / name).is_file():
            return folder / name
    raise NotFoundError(f"no key for {answers}: {name} lies neither beside it nor here; say where it is: --key FILE")


def _read(path: Path, what: str, fields: set[str]) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise NotFoundError(f'no {what} at "{path}"; give the file that the page saved') from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the {what} in {path}: {error}") from error
    if not isinstance(found, dict) or not fields <= found.keys():
        raise InputError(f"{path} holds no {what} of a worksheet; give the file that the page saved")
    return found
