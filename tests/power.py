"""Power failures: all writes of a process are recorded, and what a disk may hold after any of them is made from that.

The disk keeps only what was synced. Of the writes to a file since its last fsync any may be missing, in blocks of 512
or 4096 bytes, and what was not written holds zeros or garbage. Of the new, renamed and removed names of a folder since
its last fsync any may be missing, but a rename is there as a whole, and what was done to a name later needs what was
done to it earlier.

    python tests/power.py RECORDING EVENT DRAW FOLDER    makes one of those states, as a failing test names it
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).parent
_HEAD = struct.Struct("8s5Q")
PLAIN = ("all", "none", "names", "data")
"""Draws that leave nothing to chance: all writes since the last fsync are there, none, only names, only data."""


# --- recording ---------------------------------------------------------------------------------------------------


def recorder(folder: Path) -> Path | str:
    """The library that records, made in a folder; or why it cannot be made."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not sys.platform.startswith("linux") or compiler is None:
        return "recording the writes of a process needs Linux and a C compiler (apt install gcc)"
    made = folder / "recorder.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(made), str(TESTS / "recorder.c"), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return made if made.exists() else f"recorder.c cannot be compiled: {done.stderr.strip()[:200]}"


def record(library: Path, root: Path, log: Path, module: str, task: str, *given: str) -> None:
    """Runs a function of a test module in a process whose writes below `root` are recorded in `log`."""
    call = f"import {module}; {module}.{task}{tuple(given)!r}"
    paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    settings = {"LD_PRELOAD": str(library), "LEXENT_RECORD_ROOT": str(root), "LEXENT_RECORD_LOG": str(log)}
    done = subprocess.run(
        [sys.executable, "-c", call],
        env={**os.environ, "PYTHONPATH": paths, "LEXENT_KERNELS": "compiled", **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def mark(text: str) -> None:
    """In a recorded process: writes a word into the record."""
    ctypes.CDLL(None).record_mark(text.encode())


@dataclass(frozen=True, slots=True)
class Event:
    """A system call that succeeded, or a mark."""

    kind: str
    inode: int
    offset: int
    path: str
    other: str
    data: bytes

    def __str__(self) -> str:
        facts = [self.path, self.other, f"{len(self.data)} bytes at {self.offset}" if self.kind == "write" else ""]
        return " ".join([self.kind, *(fact for fact in facts if fact), f"inode {self.inode}" if self.inode else ""])


def events(log: Path) -> list[Event]:
    """What was recorded, in order."""
    raw, at, found = log.read_bytes(), 0, []
    while at < len(raw):
        kind, inode, offset, *sizes = _HEAD.unpack_from(raw, at)
        at += _HEAD.size
        parts = []
        for size in sizes:
            parts.append(raw[at : at + size])
            at += size
        path, other, data = parts
        found.append(Event(kind.rstrip(b"\0").decode(), inode, offset, path.decode(), other.decode(), data))
    return found


# --- the disk ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class File:
    """A file: what was synced, and what was written since: (offset, data), or (size, None) where it was cut."""

    synced: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)


@dataclass(slots=True)
class Folder:
    """A folder: its entries as they are and as they were synced, and what was done since: each step's names."""

    live: dict[str, File | Folder] = field(default_factory=dict)
    synced: dict[str, File | Folder] = field(default_factory=dict)
    pending: list[dict[str, File | Folder | None]] = field(default_factory=list)

    def change(self, names: dict[str, File | Folder | None]) -> None:
        """Sets or removes names, in one step."""
        self.pending.append(names)
        _apply(self.live, names)


def _apply(entries: dict[str, File | Folder], names: dict[str, File | Folder | None]) -> None:
    for name, node in names.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


class Disk:
    """A disk that an empty folder is on, to which recorded events happen one after the other."""

    def __init__(self, recorded: Sequence[Event] = ()) -> None:
        self.root = Folder()
        self._nodes: dict[int, File | Folder] = {}
        for event in recorded:
            self.take(event)

    def take(self, event: Event) -> None:
        """Applies the next event."""
        if event.kind == "root":
            self._root, self._nodes[event.inode] = event.path, self.root
        if event.kind in ("root", "mark"):
            return
        node = self._nodes.get(event.inode)
        if event.kind in ("create", "mkdir"):
            made = self._nodes[event.inode] = File() if event.kind == "create" else Folder()
            folder, name = self._place(event.path)
            folder.change({name: made})
        elif event.kind == "remove":
            folder, name = self._place(event.path)
            folder.change({name: None})
        elif event.kind == "rename":
            (folder, name), (other, new) = self._place(event.path), self._place(event.other)
            assert folder is other, f"a rename from one folder to another cannot be replayed: {event}"
            folder.change({name: None, new: folder.live[name]})
        elif event.kind == "fsync" and isinstance(node, Folder):
            node.synced, node.pending = dict(node.live), []
        elif event.kind == "fsync" and isinstance(node, File):
            node.synced, node.pending = _content(node, Draw("all")), []
        else:
            assert isinstance(node, File), event
            node.pending.append((event.offset, event.data if event.kind == "write" else None))

    def _place(self, path: str) -> tuple[Folder, str]:
        *folders, name = path[len(self._root) + 1 :].split("/")
        at = self.root
        for folder in folders:
            inner = at.live[folder]
            assert isinstance(inner, Folder)
            at = inner
        return at, name

    def after(self, draw: Draw) -> dict[str, bytes | None]:
        """A state that the disk may be in when the power fails now: the content of files; None for folders."""
        found: dict[str, bytes | None] = {}

        def visit(folder: Folder, prefix: str) -> None:
            for name, node in sorted(_entries(folder, draw).items()):
                if isinstance(node, Folder):
                    found[prefix + name] = None
                    visit(node, f"{prefix}{name}/")
                else:
                    found[prefix + name] = _content(node, draw)

        visit(self.root, "")
        return found


class Draw:
    """Decides what of the writes since the last fsync is there."""

    def __init__(self, kind: str) -> None:
        """kind: one of PLAIN, or any other word, which is what chance begins with."""
        chance = self.chance = random.Random(kind)
        self.names = {"all": 1.0, "names": 1.0, "none": 0.0, "data": 0.0}.get(kind, chance.choice([0.2, 0.5, 0.9]))
        self.data = {"all": 1.0, "data": 1.0, "none": 0.0, "names": 0.0}.get(kind, chance.choice([0.0, 0.5, 0.9]))
        self.block = chance.choice([512, 4096])
        self.garbage = kind not in PLAIN and chance.random() < 0.3

    def has(self, share: float) -> bool:
        """Whether one write is there, of which a share is."""
        return share == 1 or (share > 0 and self.chance.random() < share)


def _entries(folder: Folder, draw: Draw) -> dict[str, File | Folder]:
    entries, missing = dict(folder.synced), set[str]()
    for names in folder.pending:
        if missing.isdisjoint(names) and draw.has(draw.names):
            _apply(entries, names)
        else:
            missing.update(names)
    return entries


def _content(file: File, draw: Draw) -> bytes:
    found = bytearray(file.synced)
    for offset, data in file.pending:
        size = offset if data is None else max(len(found), offset + len(data))
        if data is None:
            if not draw.has(draw.data):
                continue
            del found[size:]
        if size > len(found) and draw.has(max(draw.data, 0.5 * draw.names)):  # the size may be there without the data
            more = size - len(found)
            found += draw.chance.randbytes(more) if draw.garbage else bytes(more)
        for start in range(offset // draw.block * draw.block, offset + len(data or b""), draw.block):
            assert data is not None
            first, last = max(start, offset), min(start + draw.block, offset + len(data))
            if draw.has(draw.data):
                found += bytes(max(first - len(found), 0))
                found[first:last] = data[first - offset : last - offset]
    return bytes(found)


# --- states ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class State:
    """What the disk may hold after an event, and the marks that were passed before it."""

    event: int
    draw: str
    files: dict[str, bytes | None]
    marks: tuple[str, ...]

    def write(self, folder: Path) -> None:
        """Writes it to an empty folder."""
        for name, content in self.files.items():
            if content is None:
                (folder / name).mkdir()
            else:
                (folder / name).write_bytes(content)


def states(recorded: Sequence[Event], *, draws: int, seed: int = 0) -> Iterator[State]:
    """States after each event from the first mark on: the plain draws and others, each once between two marks."""
    disk, marks, known = Disk(), list[str](), set[bytes]()
    for number, event in enumerate(recorded):
        disk.take(event)
        if event.kind == "mark":
            marks.append(event.path)
            known.clear()
        if not marks:
            continue
        for draw in (*PLAIN, *(f"{seed}-{number}-{turn}" for turn in range(draws))):
            files = disk.after(Draw(draw))
            digest = hashlib.sha256(repr(sorted(files.items())).encode()).digest()
            if digest not in known:
                known.add(digest)
                yield State(number, draw, files, tuple(marks))


def held(folder: Path) -> dict[str, bytes | None]:
    """What a folder holds, as a state says it."""
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    return {name: path.read_bytes() if path.is_file() else None for name, path in paths.items()}


def main() -> None:
    """Makes the state that a failing test names, and prints the last events before it."""
    log, number, draw, folder = sys.argv[1:]
    recorded = events(Path(log))[: int(number) + 1]
    Path(folder).mkdir(parents=True)
    State(int(number), draw, Disk(recorded).after(Draw(draw)), ()).write(Path(folder))
    print(*recorded[-9:], sep="\n")


if __name__ == "__main__":
    main()
