"""Files of NumPy arrays: written as they grow, and read so that a damaged or hostile one is an error."""

from __future__ import annotations

import io
import math
import os
import re
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lexent import artifact
from lexent.errors import ArtifactError

_ARRAY_HEAD = re.compile(
    rb"\{'descr': '([<>|][biuf]\d)', 'fortran_order': False, 'shape': \((|\d+,|\d+(?:, \d+)+)\), \} *\n"
)
"""The head of a .npy file of numbers. NumPy would evaluate it, which Python 3.11 may fail at in two threads at once."""


class ArrayWriter:
    """A .npy file that grows: arrays are appended, the header is written last."""

    _HEADER = 128

    def __init__(self, path: Path, dtype: np.dtype[Any], width: int | None = None) -> None:
        self._path, self._dtype, self._width, self._rows = path, dtype, width, 0
        with artifact.disk_errors(path):
            self._file = artifact.new_file(path)
            self._file.write(b"\0" * self._HEADER)

    def append(self, array: NDArray[Any]) -> None:
        """Append rows."""
        with artifact.disk_errors(self._path):
            self._file.write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
        self._rows += len(array)

    def abandon(self) -> None:
        """Close the file without finishing it."""
        with suppress(OSError):  # a full disk refuses what is still buffered
            self._file.close()

    def close(self) -> None:
        """Writes the header and waits until all is on the disk."""
        shape = (self._rows, self._width) if self._width else (self._rows,)
        head = f"{{'descr': '{self._dtype.str}', 'fortran_order': False, 'shape': {shape}, }}".encode()
        length = self._HEADER - 10
        with artifact.disk_errors(self._path), self._file:
            self._file.seek(0)
            self._file.write(b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + head.ljust(length - 1) + b"\n")
            self._file.flush()
            artifact.fsync(self._file.fileno(), self._path)


def write_array(path: Path, array: NDArray[Any]) -> None:
    """A .npy file. np.save hides why a disk refused (its tofile gives no errno); this does not."""
    writer = ArrayWriter(path, array.dtype, array.shape[1] if array.ndim == 2 else None)
    writer.append(array)
    writer.close()


def map_array(path: Path) -> NDArray[Any]:
    """A .npy file, mapped and read-only; an ArtifactError where it is none."""
    try:
        with path.open("rb") as file:
            dtype, shape = _array_head(file)
            start, size = file.tell(), os.fstat(file.fileno()).st_size
        _check_array_size(dtype, shape, size - start)
        empty = 0 in shape  # which cannot be mapped
        array = np.empty(shape, dtype) if empty else np.asarray(np.memmap(path, dtype, "r", start, shape))
    except FileNotFoundError:
        raise
    except Exception as error:  # a damaged header gives errors of many kinds, also of the tokenizer
        artifact.check_shortage(path, error)
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ArtifactError(
            f'"{path.parent}" is damaged: {path.name} is not a readable array ({reason}); check it: lexent verify DIR'
        ) from error
    array.setflags(write=False)
    found: NDArray[Any] = array
    return found


def _array_head(file: IO[bytes]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The type and the shape of an array of numbers, from the head of its file; a ValueError where it is none."""
    start = file.read(10)
    head = _ARRAY_HEAD.fullmatch(file.read(int.from_bytes(start[8:], "little")))
    if head is None or start[:8] != b"\x93NUMPY\x01\x00":
        raise ValueError("its head is not that of an array of numbers")
    return np.dtype(head[1].decode()), tuple(int(part) for part in head[2].split(b",") if part)


def _check_array_size(dtype: np.dtype[Any], shape: tuple[int, ...], n_bytes: int) -> None:
    """Refuse another number of bytes than an array has: NumPy takes memory for what is not there."""
    if not dtype.itemsize or math.prod(shape) * dtype.itemsize != n_bytes:
        raise ValueError(f"it has {n_bytes} bytes for {dtype}{list(shape)}")


def unpacked_arrays(data: bytes, kinds: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """The arrays of a compressed NumPy archive, by name, with the kinds of their numbers ("i", "u" or "f").

    A ValueError, or another error of many kinds, where it holds others, or more than it may.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > artifact.MAX_UNPACKED_BYTES:
            raise ValueError("it unpacks to too many bytes")
        contents = {name: archive.read(f"{name}.npy") for name in kinds}
    found: dict[str, NDArray[Any]] = {}
    for name, content in contents.items():
        file = io.BytesIO(content)
        dtype, shape = _array_head(file)
        _check_array_size(dtype, shape, len(content) - file.tell())
        found[name] = array = np.frombuffer(content, dtype, offset=file.tell()).reshape(shape)
        if array.dtype.kind != kinds[name] or array.ndim > 1:
            raise ValueError(f"{name} is {array.dtype}{list(array.shape)}")
    return found


def ascends(numbers: NDArray[np.int64]) -> bool:
    """Whether places in an array ascend from 0 or more. Differences of negative ones could overflow."""
    return bool((numbers >= 0).all() and (numbers[1:] >= numbers[:-1]).all())
