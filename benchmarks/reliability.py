"""The slow tests of kills, faults, power failures, damaged files and hostile requests: run, counted, and on a page.

    python -m benchmarks.reliability [--only kills,faults,power,files,requests] [--docs docs/reliability.md]

The tests say how much they tried (record_property of pytest). A row that is not run again stays as it was.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any
from xml.etree import ElementTree

from benchmarks.report import replace, setting, table

RECORD = "reliability.json"


@dataclass(frozen=True, slots=True)
class Check:
    """Slow tests that count something."""

    title: str
    counted: str
    """What their property is called."""
    file: str
    words: str
    """Which tests of the file, for -k of pytest."""
    environment: dict[str, str] = field(default_factory=dict)


CHECKS = {
    "kills": Check(
        "writers killed (SIGKILL), at random moments and at every step", "kills", "test_faults.py", "killed"
    ),
    "faults": Check(
        "system calls that fail, of every change (EIO, ENOSPC, EMFILE, ENFILE, short writes)",
        "faults",
        "test_disk_faults.py",
        "every_system_call",
    ),
    "power": Check("states of the disk after a power failure", "replays", "test_power_loss.py", "power"),
    "files": Check(
        "files with content that an attacker could give them",
        "files",
        "test_hostile.py",
        "much_content",
        {"LEXENT_FUZZ_EXAMPLES": "50000"},
    ),
    "requests": Check(
        "hostile requests to the server",
        "requests",
        "test_hostile_requests.py",
        "many_hostile",
        {"LEXENT_HOSTILE_REQUESTS": "100000"},
    ),
}


def run(check: Check) -> dict[str, Any]:
    """Runs the tests of a check; what is set in the environment already counts before its own settings."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        words = ["-q", "-m", "slow", f"tests/{check.file}", "-k", check.words, f"--junitxml={report}"]
        words += ["-o", "junit_family=xunit1"]  # which has properties
        began = perf_counter()
        # What tests say goes to the terminal, and stdout is the table alone.
        subprocess.run(
            [sys.executable, "-m", "pytest", *words], env={**check.environment, **os.environ}, stdout=sys.stderr
        )
        cases = list(ElementTree.parse(report).iter("testcase"))
    counts = [
        one.get("value", "0") for case in cases for one in case.iter("property") if one.get("name") == check.counted
    ]
    bad = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    seconds = perf_counter() - began
    return {"count": sum(map(int, counts)), "tests": len(cases), "failed": bad, "skipped": skipped, "seconds": seconds}


def shown(found: dict[str, dict[str, Any]]) -> str:
    rows = []
    for name, check in CHECKS.items():
        if name in found:
            one = found[name]
            rows.append(
                [
                    check.title,
                    f"{one['count']:,}",
                    str(one["failed"]),
                    f"{one['seconds'] / 60:.0f}",
                    f"`tests/{check.file}`",
                    one["date"],
                ]
            )
    machines = " and ".join(sorted({one["machine"] for one in found.values()}))
    said = f"By `make reliability` ({machines}); a row can be run alone: `make reliability ARGS='--only kills'`."
    return f"{said}\n\n{table(('what is tried', 'times', 'tests that failed', 'minutes', 'tests', 'date'), rows)}"


def main() -> int:
    """Print the table, or write it to a page and what it is made from beside that."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(CHECKS), help="names of checks, with commas between them")
    parser.add_argument("--docs", type=Path, help="a page with marks, to be written")
    given = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    record = given.docs.with_name(RECORD) if given.docs is not None else None
    if record is not None and record.exists():
        found = json.loads(record.read_text())
    facts = setting("make reliability")
    ended_well = True
    for name in given.only.split(","):
        found[name] = {**run(CHECKS[name]), "machine": facts["machine"], "date": facts["date"]}
        ended_well &= not found[name]["failed"] and found[name]["count"] > 0
        if record is not None:  # after each, as all of them take hours
            record.write_text(json.dumps(found, indent=1) + "\n")
            replace(given.docs, "counts", shown(found))
    print(shown(found))
    return 0 if ended_well else 1


if __name__ == "__main__":
    raise SystemExit(main())
