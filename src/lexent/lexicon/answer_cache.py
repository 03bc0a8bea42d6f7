"""What a model answered, kept in an append-only file: no question is paid for twice, and a killed run goes on."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import IO

from lexent.artifact import disk_errors
from lexent.errors import InputError
from lexent.lexicon.endpoint import Completion, Endpoint, Messages, UnansweredError
from lexent.types import Progress

GIVE_UP = 5
"""Questions in a row that stay unanswered before a run stops."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request."""

    messages: Messages
    max_tokens: int = 64

    def key(self, model: str) -> str:
        """A hash of the prompt and the model."""
        parts = {"model": model, "messages": [dict(message) for message in self.messages], "most": self.max_tokens}
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def size(self) -> int:
        """Tokens, about: English has four letters a token, and each message a few more."""
        return sum(len(message["content"]) // 4 + 6 for message in self.messages)


class Replies:
    """Answers by question and model, in a file of JSON lines. Use as a context; without a path nothing is kept."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._file: IO[str] | None = None
        self._known: dict[str, Completion] = {}
        if path is not None and path.exists():
            self._read(path)

    def __enter__(self) -> Replies:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __len__(self) -> int:
        return len(self._known)

    def get(self, prompt: Prompt, model: str) -> Completion | None:
        """The answer that was kept, if any."""
        return self._known.get(prompt.key(model))

    def put(self, prompt: Prompt, model: str, answer: Completion) -> None:
        """On the disk before it counts."""
        key = prompt.key(model)
        row = {"key": key, "model": model, **asdict(answer)}
        with self._lock:
            self._known[key] = answer
            if self.path is None:
                return
            with disk_errors(self.path):
                if self._file is None:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                    self._file = self.path.open("a", encoding="utf-8")
                    if self._file.tell() and not self.path.read_bytes().endswith(b"\n"):
                        self._file.write("\n")  # a killed run left a part of a line
                self._file.write(json.dumps(row, ensure_ascii=False) + "\n")
                self._file.flush()

    def _read(self, path: Path) -> None:
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    row = json.loads(line)
                    counts = (int(row["prompt_tokens"]), int(row["completion_tokens"]))
                    self._known[str(row["key"])] = Completion(str(row["text"]), *counts)
                except (ValueError, KeyError, TypeError):
                    continue  # half a line, from a run that was killed: it is requested again


def ask(
    prompts: Sequence[Prompt], *, endpoint: Endpoint, replies: Replies, concurrency: int = 4, progress: Progress = None
) -> list[Completion | None]:
    """An answer to each question, in order; None where there was none after all tries.

    Refusals (a wrong key, an unknown model) and several unanswered prompts in a row end the run; what was answered
    stays in the replies.
    """
    if concurrency < 1:
        raise InputError(f"concurrency is {concurrency}; allowed: 1 or more")
    found: list[Completion | None] = [replies.get(prompt, endpoint.model) for prompt in prompts]
    open_places = [place for place, answer in enumerate(found) if answer is None]
    if progress is not None:
        progress(len(prompts) - len(open_places))

    done: SimpleQueue[tuple[int, Completion | Exception]] = SimpleQueue()
    stop = threading.Event()
    todo = iter(open_places)

    def work() -> None:
        while not stop.is_set() and (place := next(todo, None)) is not None:
            try:
                answer = endpoint.chat(prompts[place].messages, max_tokens=prompts[place].max_tokens)
                replies.put(prompts[place], endpoint.model, answer)
                done.put((place, answer))
            except Exception as error:  # it is raised below, where the caller is
                if not isinstance(error, UnansweredError):
                    stop.set()
                done.put((place, error))

    # Daemons: whoever interrupts a run does not wait for the requests under way.
    for _ in range(min(concurrency, len(open_places))):
        threading.Thread(target=work, daemon=True).start()
    unanswered = 0
    try:
        for _ in open_places:
            place, result = done.get()
            if isinstance(result, Completion):
                found[place], unanswered = result, 0
            else:
                unanswered += 1
                if not isinstance(result, UnansweredError) or unanswered >= min(GIVE_UP, len(open_places)):
                    raise result
            if progress is not None:
                progress(1)
    finally:
        stop.set()
    return found
