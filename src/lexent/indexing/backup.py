"""Backups: one generation of an index as one file, and an index from such a file.

The files of a generation never change, and an open file outlives its name. So a backup opens all files of the newest
generation first, and copies them while writers go on. It takes no lock.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from errno import ENOSPC
from pathlib import Path
from typing import IO, Any, cast

from lexent import artifact
from lexent.errors import ArtifactError, InputError, NotFoundError
from lexent.indexing import archive
from lexent.indexing.archive import ArchiveReader, Listing
from lexent.indexing.lock import check_free
from lexent.indexing.manifest import SEGMENTS, FilePart, Manifest
from lexent.indexing.reader import OPEN_ATTEMPTS, IndexReader
from lexent.lexicon import user_labels
from lexent.progress import Count, Report, counting

PACKED = (".gz", ".tgz")
"""What the name of a compressed backup ends in."""
GZIP_LEVEL = 6

Place = Path | IO[bytes]
"""Where a backup is: a file, or an open binary stream."""
STREAM = Path("-")
"""What errors call a stream."""


# --- taking one --------------------------------------------------------------------------------------------------


def backup(index: Path, file: Place, *, overwrite: bool = False, progress: Report = None) -> Manifest:
    """Writes the newest generation of an index to a file, whole or not at all; gives its manifest.

    A name that ends in .gz or .tgz is of a compressed file. What is copied is compared with its checksum.
    """
    if isinstance(file, Path):
        if index.resolve() in file.resolve().parents:
            raise InputError(f'"{file}" is in the folder of the index itself; give a file elsewhere')
        with artifact.whole_file(file, overwrite=overwrite) as out:
            if file.name.lower().endswith(PACKED):
                with _compressed(out, file) as packed:
                    return _write(index, packed, artifact.disk_errors, file, progress)
            return _write(index, out, artifact.disk_errors, file, progress)
    return _write(index, file, nullcontext, STREAM, progress)


@contextmanager
def _compressed(out: IO[bytes], file: Path) -> Iterator[IO[bytes]]:
    packed = gzip.GzipFile(fileobj=out, mode="wb", compresslevel=GZIP_LEVEL, filename="", mtime=0)
    yield cast("IO[bytes]", packed)  # not closed after an error: it would write on
    with artifact.disk_errors(file):
        packed.close()


def _write(index: Path, out: IO[bytes], errors: Callable[[Path], Any], file: Path, progress: Report) -> Manifest:
    """errors: the context that names errors of writing."""

    def put(data: bytes) -> None:
        with errors(file):
            out.write(data)

    with _pinned(index) as generation:
        small, manifest = generation.replaced, generation.manifest
        files = {name: FilePart(size=len(data), sha256=archive.checksum(data)) for name, data in small.items()}
        listing, now = Listing(lexent=artifact.lexent_version(), files={**files, **manifest.files}), int(time.time())
        put(archive.whole(archive.LISTING, listing.to_bytes(), now))
        with counting(progress, "backing up", listing.size, "bytes") as count:
            for name, data in small.items():
                put(archive.whole(name, data, now))
                _advance(count, len(data))
            for name, part in manifest.files.items():
                put(archive.header(name, part.size, now))
                for data in _checked(index, name, part, generation.files[name]):
                    put(data)
                    _advance(count, len(data))
                put(archive.padding(part.size))
        put(archive.END)
        with errors(file):
            out.flush()
    return manifest


def _advance(count: Count | None, size: int) -> None:
    if count is not None:
        count(size)


def _checked(index: Path, name: str, part: FilePart, file: IO[bytes]) -> Iterator[bytes]:
    """The content of a file, piece by piece; an ArtifactError at its end where it is not what the manifest says."""
    digest, rest = hashlib.sha256(), part.size
    while rest:
        with artifact.read_errors(index / name):
            data = file.read(min(rest, archive.COPY_BYTES))
        if not data:
            break
        digest.update(data)
        rest -= len(data)
        yield data
    if digest.hexdigest() != part.sha256:
        raise ArtifactError(
            f'"{index}" is damaged: {name} changed since it was written; no backup was written; find all such '
            f"files: lexent verify {index}"
        )


@dataclass(frozen=True, slots=True)
class _Generation:
    """One generation of an index, with all of its files open."""

    manifest: Manifest
    replaced: dict[str, bytes]
    """Content of the files that are replaced and not written once."""
    files: dict[str, IO[bytes]]
    """All that the manifest names, and perhaps more."""


@contextmanager
def _pinned(index: Path) -> Iterator[_Generation]:
    """Opens the newest generation of an index, and keeps its files open while writers remove their names."""
    held: dict[str, IO[bytes]] = {}
    with ExitStack() as stack:
        for _ in range(OPEN_ATTEMPTS):
            Manifest.read(index)  # refuses links, and says what is missing
            try:
                place = index.stat()
                data = artifact.read_bytes(index / artifact.MANIFEST)
                manifest = _manifest_of(data, index, remedy=f"check it: lexent verify {index}")
                for name, part in manifest.files.items():
                    if name not in held:  # an attempt before may have opened it: a name has one content
                        held[name] = stack.enter_context(_opened(index / name, part.size))
                replaced = {artifact.MANIFEST: data}
                if os.path.lexists(index / user_labels.FILE):
                    replaced[user_labels.FILE] = artifact.read_bytes(index / user_labels.FILE)
                if os.path.samestat(place, index.stat()):
                    found = _Generation(manifest, replaced, held)
                    break
                held.clear()  # the index was built anew, and its names are those of other files
            except FileNotFoundError:
                continue
        else:
            raise ArtifactError(f'"{index}" changed {OPEN_ATTEMPTS} times while it was opened; try again')
        yield found


def _opened(path: Path, size: int) -> IO[bytes]:
    """A file of an index; a FileNotFoundError where it is another one by now."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        with artifact.read_errors(path):
            handle = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ArtifactError(f'"{path}" cannot be read ({error.strerror}); allow it: chmod u+r {path}') from error
    file = open(handle, "rb", buffering=0)  # noqa: SIM115
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode) or found.st_size != size:
        file.close()
        raise FileNotFoundError(path)
    return file


# --- restoring ---------------------------------------------------------------------------------------------------


def restore(file: Place, out: Path, *, overwrite: bool = False, progress: Report = None) -> Manifest:
    """Makes an index of a backup; gives its manifest.

    The folder appears when every file has the checksum that the backup gives and the index can be opened.
    """
    check_free(out)
    artifact.check_target(out, kind="index", overwrite=overwrite)
    with _opened_archive(file) as reader:
        files = reader.listing().files
        small = {name: reader.content(name, files[name]) for name in archive.REPLACED if name in files}
        manifest = _manifest_of(small[artifact.MANIFEST], reader.path, remedy=archive.REMEDY)
        rest = {name: part for name, part in files.items() if name not in small}
        if rest != manifest.files:
            raise reader.damaged(f"{archive.LISTING} and {artifact.MANIFEST} do not name the same files")
        total = sum(part.size for part in rest.values())
        with artifact.new_folder(out, kind="index", overwrite=overwrite) as work:
            with artifact.disk_errors(work):
                _check_space(work, total)
                (work / SEGMENTS).mkdir()
            with counting(progress, "restoring", total, "bytes") as count:
                for name, part in rest.items():
                    _extract(reader.pieces(name, part), work / name, count)
            reader.check_end()
            for name in reversed(small):  # the manifest last
                artifact.write_bytes(work / name, small[name])
            _check_opens(work, reader.path)
            check_free(out)  # again: what a writer adds meanwhile must not end up in the folder that takes its place
    return manifest


def _extract(pieces: Iterator[bytes], path: Path, count: Count | None) -> None:
    with artifact.disk_errors(path):
        path.parent.mkdir(exist_ok=True)
        file = artifact.new_file(path)
    try:
        for data in pieces:
            with artifact.disk_errors(path):
                file.write(data)
            _advance(count, len(data))
        with artifact.disk_errors(path):
            file.flush()
    finally:
        with suppress(OSError):  # a full disk refuses what is still buffered
            file.close()


def _check_space(folder: Path, size: int) -> None:
    """Refuse before it is written what the disk has no room for."""
    free = shutil.disk_usage(folder).free
    if size > free:
        raise artifact.write_error(folder, ENOSPC, f"it takes {size:,} bytes, and {free:,} are free")


def _check_opens(work: Path, file: Path) -> None:
    """Refuse an index that cannot be opened: somebody else may have made it."""
    try:
        IndexReader.open(work).close()
    except ArtifactError as error:
        raise ArtifactError(str(error).replace(str(work), str(file))) from error


@contextmanager
def _opened_archive(file: Place) -> Iterator[ArchiveReader]:
    if not isinstance(file, Path):
        yield ArchiveReader(file, STREAM)
        return
    try:
        with artifact.read_errors(file):
            stream = file.open("rb")
    except FileNotFoundError as error:
        raise NotFoundError(f'no file "{file}"; make a backup: lexent backup INDEX {file}') from error
    except IsADirectoryError as error:
        raise InputError(f'"{file}" is a folder; give a file that lexent backup wrote') from error
    except PermissionError as error:
        raise InputError(f'no permission to read "{file}"; allow it: chmod u+r {file}') from error
    with stream:
        yield ArchiveReader(stream, file)


def _manifest_of(data: bytes, path: Path, *, remedy: str) -> Manifest:
    """The manifest of an index from the bytes of its file."""
    raw = artifact.as_manifest(data)
    if raw is None or raw["kind"] != "index":
        raise ArtifactError(f'"{path}" is damaged: {artifact.MANIFEST} is not that of an index; {remedy}')
    artifact.check_format(raw["format"], artifact.FORMAT_VERSION, path=path, by=raw.get("lexent", "unknown"))
    return Manifest.of(raw, path, remedy=remedy)
