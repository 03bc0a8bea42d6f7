"""What a run measured, a line each: a file that a run that goes on cuts back to its checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lexent.artifact import disk_errors

METRICS = "metrics.jsonl"


class Log:
    """metrics.jsonl in the folder of a run. Rows have a "step"."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / METRICS

    def add(self, row: dict[str, Any]) -> None:
        """Append a row."""
        with disk_errors(self.path), self.path.open("a") as file:
            file.write(json.dumps({key: round(value, 6) for key, value in row.items()}) + "\n")

    def cut(self, step: int) -> dict[str, Any] | None:
        """Take out what came after the checkpoint, since it will be measured again; the last row that is left."""
        if not self.path.exists():
            return None
        whole = [line for line in self.path.read_text().splitlines(keepends=True) if line.endswith("\n")]
        rows = [json.loads(line) for line in whole]
        done = [row["step"] <= step for row in rows]
        with disk_errors(self.path):
            self.path.write_text("".join(line for line, keep in zip(whole, done, strict=True) if keep))
        last: dict[str, Any] | None = rows[sum(done) - 1] if any(done) else None
        return last
