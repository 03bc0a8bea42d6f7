"""Encoded texts, kept by content hash in the user's cache folder, so that a second evaluation is quick.

LEXENT_CACHE names the folder; LEXENT_CACHE_GB bounds its size (5 by default, 0 turns it off).
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.encoders import Encoder
from lexent.encoders.engines import is_light
from lexent.errors import InputError
from lexent.types import SparseVectors

VERSION = 1
"""Counted up when the meaning of an entry changes."""

Arrays = dict[str, NDArray[Any]]


def folder() -> Path:
    """Where entries are kept."""
    given = os.environ.get("LEXENT_CACHE")
    if given:
        return Path(given).expanduser() / "vectors"
    base = os.environ.get("XDG_CACHE_HOME") or (os.environ.get("LOCALAPPDATA") if os.name == "nt" else None)
    return (Path(base) if base else Path.home() / ".cache") / "lexent" / "vectors"


def key(parts: Mapping[str, Any], texts: Sequence[str]) -> str:
    """The name of an entry: a hash over everything that the vectors depend on."""
    digest = hashlib.sha256(json.dumps({"version": VERSION, **parts}, sort_keys=True).encode())
    for text in texts:
        content = text.encode()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


def key_for(encoder: Encoder, texts: Sequence[str], **parts: Any) -> str:
    """The name of an entry that an encoder made; precision differs between engines and devices."""
    made_by = {"encoder": encoder.fingerprint}
    if is_light(getattr(encoder, "base", encoder), kind=parts.get("kind", "document"), n_texts=len(texts)):
        made_by |= {"engine": "light"}
    else:
        made_by |= {"device": str(getattr(encoder, "device", ""))}
    return key({**made_by, **parts}, texts)


def has(name: str) -> bool:
    """Whether there is an entry of that name, good or damaged."""
    return limit() > 0 and (folder() / f"{name}.npz").is_file()


def matrix(name: str, make: Callable[[], NDArray[np.float32]]) -> NDArray[np.float32]:
    """float32[n_texts, d_in]: the entry of that name, made and kept where there is none."""
    return arrays(name, frozenset(["rows"]), lambda: {"rows": make()})["rows"]


def vectors(name: str, make: Callable[[], SparseVectors]) -> SparseVectors:
    """Sparse vectors: the entry of that name, made and kept where there is none."""

    def whole(found: Arrays) -> bool:
        return len(found["ids"]) == len(found["values"]) == int(found["offsets"][-1])

    def fields() -> Arrays:
        made = make()
        return {"ids": made.ids, "values": made.values, "offsets": made.offsets, "size": np.asarray(made.size)}

    found = arrays(name, frozenset(["ids", "values", "offsets", "size"]), fields, whole=whole)
    return SparseVectors(found["ids"], found["values"], found["offsets"], int(found["size"]))


def arrays(
    name: str, fields: frozenset[str], make: Callable[[], Arrays], *, whole: Callable[[Arrays], bool] | None = None
) -> Arrays:
    """Arrays by name: the entry that has these fields and is whole, made and kept where there is none."""
    found = _read(name)
    if found is not None and set(found) == fields and (whole is None or whole(found)):
        return found
    made = make()
    _write(name, made)
    return made


def _read(name: str) -> Arrays | None:
    """The arrays of an entry; None where there is none or it is damaged (a zip archive checks itself)."""
    path = folder() / f"{name}.npz"
    if limit() == 0:
        return None
    try:
        with np.load(path, allow_pickle=False) as archive:
            found = {part: archive[part] for part in archive.files}
        os.utime(path)  # used now: the last to be removed
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError):
        with suppress(OSError):
            path.unlink()
        return None
    return found


def _write(name: str, arrays: Mapping[str, Any]) -> None:
    """Keeps an entry. A cache only saves time: where it cannot be written, say so and go on."""
    if sum(np.asarray(array).nbytes for array in arrays.values()) > limit():
        return
    path = folder() / f"{name}.npz"
    beside = path.with_name(f".{name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        os.replace(beside, path)
        _trim()
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        warnings.warn(
            f"cannot keep encoded texts in {path.parent} ({error.strerror}); the next run encodes them again; "
            f"name another folder: export LEXENT_CACHE=FOLDER",
            stacklevel=2,
        )


def _trim() -> None:
    """Removes what was unused for longest, leftovers of killed runs too, until the rest fits."""
    entries = []
    for path in folder().iterdir():
        with suppress(OSError):  # another process may have removed it
            status = path.stat()
            entries.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit():
            return
        with suppress(OSError):
            path.unlink()
        total -= size


def limit() -> int:
    """The most that is kept, in bytes; 0 where the cache is off."""
    given = os.environ.get("LEXENT_CACHE_GB", "5")
    try:
        size = float(given)
        if not 0 <= size < 1e6:
            raise ValueError
    except ValueError:
        raise InputError(
            f'LEXENT_CACHE_GB is "{given}"; allowed: a number of gigabytes, such as 5, or 0 to keep nothing'
        ) from None
    return int(size * 1e9)
