"""Run the sections of a report one after the other, keep what is done, and write the page."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from time import perf_counter
from typing import Any

from lexent.artifact import disk_errors, lexent_version
from lexent.errors import InputError, LexentError, NotFoundError
from lexent.evaluation.progress import Progress, listening
from lexent.studies.analyses.table import Table
from lexent.studies.reproduction.page import Part, page
from lexent.studies.reproduction.plots import require_matplotlib
from lexent.studies.reproduction.section import Section
from lexent.studies.reproduction.study import Study, paper_of


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where the report is, and what could not be made."""

    page: Path
    data: Path
    sections: tuple[str, ...]
    kept: tuple[str, ...]
    """Sections that an earlier run had made."""
    failed: dict[str, str]
    """Section to its error."""
    tables: tuple[Table, ...]
    """The tables of all sections."""


def every_section(paper: str) -> tuple[Section, ...]:
    """The sections of a paper's report, in order."""
    from lexent.studies.reproduction import (
        adapting,
        interpretability,
        latency,
        losses,
        retrieval,
        token_index,
        token_match,
    )
    from lexent.studies.reproduction import binary_retrieval as binary

    first = ("quality", "limit", "fidelity", "faithfulness", "names")
    found = {
        section.name: section
        for module in (binary, retrieval, interpretability, adapting, token_match, losses, token_index, latency)
        for section in module.SECTIONS
        if paper in section.papers
    }
    order = {name: place for place, name in enumerate(first)} | {"values": len(first) + 1}  # others in between
    return tuple(found[name] for name in sorted(found, key=lambda name: order.get(name, len(first))))


def chosen(paper: str, *, only: Sequence[str] = (), skip: Sequence[str] = ()) -> tuple[Section, ...]:
    """The sections to make; names that no section has are refused."""
    sections = every_section(paper_of(paper).name)
    names = [section.name for section in sections]
    for name in (*only, *skip):
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f'did you mean "{near[0]}"? ' if near else ""
            raise NotFoundError(f'no section "{name}"; {hint}sections of {paper}: {", ".join(names)}')
    found = tuple(section for section in sections if (not only or section.name in only) and section.name not in skip)
    if not found:
        raise InputError(f"no section is left; sections of {paper}: {', '.join(names)}")
    return found


def reproduce(
    study: Study,
    out: str | Path,
    *,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    command: str = "",
    progress: Progress | None = None,
) -> Outcome:
    """Write OUT.html, OUT.json and the folder OUT.work, which keeps each section as soon as it is done.

    A section that fails stands in the report with its error, and the others are still made.
    """
    require_matplotlib()  # known before the long work
    sections = chosen(study.paper.name, only=only, skip=skip)
    report = progress or (lambda title, done, total: None)
    place = Path(out)
    target = place if place.suffix == ".html" else place.with_name(f"{place.name}.html")
    work = target.with_suffix(".work")
    with disk_errors(work):
        work.mkdir(parents=True, exist_ok=True)
    parts: list[Part] = []
    data: dict[str, Any] = {}
    kept: list[str] = []
    failed: dict[str, str] = {}
    for number, section in enumerate(sections):
        report(section.title, number, len(sections))
        found, error, old = _result(section, study, work)
        part = Part(section.name, section.title, section.asks, error=error)
        if found is not None:
            published = study.paper.tables.get(section.name, ())
            try:
                part = replace(part, shown=section.show(found["result"]), reading=section.reading, published=published)
            except Exception as problem:
                error = _message(problem)
                part = replace(part, error=f"it was measured, but not drawn: {error}")
        kept += [section.name] if old else []
        failed |= {section.name: error} if error else {}
        parts.append(part)
        measured = {} if found is None else {"seconds": found["seconds"], "result": found["result"]}
        data[section.name] = {"title": section.title, "asks": section.asks, "error": error or None, **measured}
    report("report", len(sections), len(sections))
    date = datetime.now(UTC).date().isoformat()
    head = study.head()
    values = {"lexent": lexent_version(), "date": date, "command": command, **head, "sections": data}
    _write(target.with_suffix(".json"), json.dumps(values, indent=1, ensure_ascii=False) + "\n")
    _write(target, page(head, parts, command=command, date=date, version=lexent_version()))
    tables = tuple(table for part in parts for table in part.tables)
    return Outcome(target, target.with_suffix(".json"), tuple(data), tuple(kept), failed, tables)


def _result(section: Section, study: Study, work: Path) -> tuple[dict[str, Any] | None, str, bool]:
    """What a section measured, its error, and whether an earlier run had made it."""
    path = work / f"{section.name}.json"
    key = study.key(section.name, version=section.version, every=section.every, sizes=section.sizes)
    try:
        found = json.loads(path.read_text())
        if found["key"] == key:
            return found, "", True
    except (OSError, ValueError, KeyError, TypeError):  # none, or a part of one: measured again
        pass
    start = perf_counter()
    try:
        with listening(study.progress):
            result = section.measure(study)
    except Exception as error:
        return None, _message(error), False
    made = {"key": key, "seconds": round(perf_counter() - start, 3), "result": json.loads(json.dumps(result))}
    _write(path, json.dumps(made, ensure_ascii=False) + "\n")
    return made, "", False


def _message(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, LexentError) else f"{type(error).__name__}: {text}"


def _write(path: Path, text: str) -> None:
    """Beside, then renamed: what was there before stays until the new one is whole."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with disk_errors(path):
        try:
            beside.write_text(text, encoding="utf-8")
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)
