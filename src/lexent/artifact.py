"""Folders that Lexent writes (indexes, lexicons, adapters): whole or not at all, hashed, refused when damaged."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal

from lexent.errors import ArtifactError, InputError, NotFoundError, ResourceError, SyncError, WriteError

FORMAT_VERSION = 10
"""The newest form of artefact that this version writes and reads."""

MANIFEST = "manifest.json"
MAX_JSON_BYTES = 2**26
"""A manifest, or another JSON file of an artefact, is not larger."""
MAX_UNPACKED_BYTES = 2**30
"""A compressed archive does not hold more."""

ArtifactKind = Literal["index", "lexicon", "adapter"]

_MAKE = {
    "index": "lexent index CORPUS --out {path}",
    "lexicon": "lexent train TEXTS --out {path}",
    "adapter": "lexent adapt train COLLECTION --out {path}",
}
RESUMABLE = "what was indexed until a minute ago is kept; the same command goes on from there"
"""What a KeyboardInterrupt says where an interrupted run can be resumed."""
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP)
"""What fsync of a folder gives on file systems that have none, such as some network and FUSE file systems."""
SHORTAGES = {
    errno.EMFILE: "this process has too many open files; raise the limit: ulimit -n 65536",
    errno.ENFILE: "this machine has too many open files; close some programs, or raise the limit: sysctl fs.file-max",
    errno.ENOMEM: "there is not enough memory; close some programs, or use a machine with more",
    errno.EAGAIN: "the system is busy; try again",
    errno.EINTR: "a signal interrupted it; try again",
}
"""What a shortage of the system is, and its remedy, by errno. The file that was asked for is not at fault."""
_active: set[Path] = set()  # what this process is writing now, so that it is not taken for a leftover
_INSIDE = re.compile(r"(?!\.)[\w.-]+(/(?!\.)[\w.-]+)*", re.ASCII)
"""Names of files in an artefact: below its folder, and not hidden."""


def lexent_version() -> str:
    """The version of the installed package."""
    from importlib import metadata

    try:
        return metadata.version("lexent")
    except metadata.PackageNotFoundError:
        return "unknown"


# --- reading -----------------------------------------------------------------------------------------------------


def read_manifest(path: Path, *, kind: ArtifactKind) -> dict[str, Any]:
    """The manifest of an artefact, once it is known to be one, of that kind, and not too new."""
    recover(path)
    if not os.path.lexists(path):
        raise NotFoundError(f'no {kind} at "{path}"; make one: {_MAKE[kind].format(path=path)}')
    found = _manifest(path)
    if found is None:
        if (path / MANIFEST).exists() and not os.access(path / MANIFEST, os.R_OK):
            raise ArtifactError(f'no permission to read "{path / MANIFEST}"; allow it: chmod u+r {path / MANIFEST}')
        raise ArtifactError(
            f'"{path}" is not a lexent {kind} (no readable {MANIFEST} in it); make one: '
            f"{_MAKE[kind].format(path='NEW_FOLDER')}"
        )
    if found["kind"] != kind:
        raise ArtifactError(f'"{path}" is a lexent {found["kind"]}; a lexent {kind} is wanted here')
    check_format(found["format"], FORMAT_VERSION, path=path, by=found.get("lexent", "unknown"))
    return found


def check_format(given: int, newest: int, *, path: Path, by: object) -> None:
    """Refuse a format that only newer versions know. by: the version of Lexent that wrote it."""
    if given > newest:
        raise ArtifactError(
            f'"{path}" was written by lexent {by}, format {given}; '
            f"this version reads up to {newest}; upgrade: pip install -U lexent"
        )


def is_kind(path: Path, kind: ArtifactKind) -> bool:
    """Whether a folder says that it is an artefact of that kind."""
    recover(path)
    found = _manifest(path)
    return found is not None and bool(found["kind"] == kind)


def check_shortage(path: Path, error: BaseException) -> None:
    """Raises a ResourceError where the system, and not `path`, is why it cannot be read."""
    shortage = SHORTAGES.get(error.errno or 0) if isinstance(error, OSError) else None
    if shortage:
        raise ResourceError(f'cannot read "{path}": {shortage}') from error


@contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Turns a shortage of the system and an error of the disk while `path` is read into a LexentError."""
    try:
        yield
    except OSError as error:
        check_shortage(path, error)
        if error.errno == errno.EIO:
            raise ArtifactError(
                f'the disk cannot read "{path}" ({error}); check the disk: lexent verify DIR'
            ) from error
        raise


def read_bytes(path: Path, *, most: int = MAX_JSON_BYTES) -> bytes:
    """A regular file of at most so many bytes; an OSError where it is something else, which might never end."""
    with read_errors(path):
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file", str(path))
            data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))
    return data


def read_json(path: Path) -> Any:
    """The value in a JSON file: an OSError or a ValueError where there is none."""
    return parse_json(read_bytes(path))


def parse_json(data: bytes) -> Any:
    """The value of JSON: a ValueError where it is none."""
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def file_hash(path: Path) -> str:
    """The sha256 of a file, in hexadecimal."""
    with read_errors(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe_files(folder: Path) -> dict[str, dict[str, Any]]:
    """Size and sha256 of every file of a folder but its manifest, for the manifest."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {path.relative_to(folder).as_posix(): describe_file(path) for path in paths}


def describe_file(path: Path) -> dict[str, Any]:
    """Its size and sha256."""
    return {"size": path.stat().st_size, "sha256": file_hash(path)}


def check_sizes(folder: Path, files: Mapping[str, int], *, remedy: str) -> None:
    """Refuse an artefact whose files, named with their sizes, are missing or of another size, or outside its folder."""
    for name, size in files.items():
        if not _INSIDE.fullmatch(name):
            raise ArtifactError(f'"{folder}" is damaged: its manifest names the file {name!r}; {remedy}')
        path = folder / name
        if not path.is_file():
            raise ArtifactError(f'"{folder}" is damaged: the file {name} is missing; {remedy}')
        if path.stat().st_size != size:
            raise ArtifactError(
                f'"{folder}" is damaged: the file {name} has {path.stat().st_size} bytes, the manifest says {size}; '
                f"{remedy}"
            )


def check_hashes(folder: Path, files: Mapping[str, str], *, remedy: str) -> None:
    """Refuse an artefact whose files, named with their sha256, hold other bytes. Reads all of them."""
    damaged = [name for name, sha256 in files.items() if file_hash(folder / name) != sha256]
    if damaged:
        raise ArtifactError(f'"{folder}" is damaged: {", ".join(damaged)} changed since it was written; {remedy}')


def plain_names(folder: Path, *, remedy: str) -> list[str]:
    """What is in a folder, which may hold only files and folders: a link leads elsewhere, a pipe has no end."""
    names = []
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            names.append(entry.name)
            if not entry.is_file(follow_symlinks=False) and not entry.is_dir(follow_symlinks=False):
                what = "a link" if entry.is_symlink() else "no file"
                raise ArtifactError(
                    f'"{folder}" is refused: {entry.name} is {what}, and Lexent reads and writes only files that are '
                    f"in the folder itself; {remedy}"
                )
    return names


# --- writing -----------------------------------------------------------------------------------------------------


@contextmanager
def new_folder(
    path: Path, *, kind: ArtifactKind, overwrite: bool = False, resume: Callable[[Path], bool] | None = None
) -> Iterator[Path]:
    """A folder beside `path` to write into; when the block ends well it takes the place of `path`.

    The caller writes the manifest last. What stood at `path` stays until then, and for good when anything fails or the
    process is killed. Leftovers of killed runs are removed at the next write. resume: whether to go on in a folder that
    an interrupted run left with a manifest; with it, such a folder is kept when anything fails.
    """
    path = path.resolve()  # a link stays a link: what it points to is replaced
    check_target(path, kind=kind, overwrite=overwrite)
    work = _sibling(path, "new")
    _active.add(work)
    try:
        with disk_errors(path):
            make_folder(path.parent)
            left = (one for one in _interrupted(path) if resume is not None and resume(one))
            for found in islice(left, 1):
                found.rename(work)
            work.mkdir(exist_ok=True)
        with _in_hand(work):
            with disk_errors(path):
                _clean(path)
            yield work
            check_target(path, kind=kind, overwrite=overwrite)  # again: another run may have been quicker
            with disk_errors(path):
                sync(work)
                _swap(work, path)
    except KeyboardInterrupt as error:
        if resume is not None and (work / MANIFEST).is_file():
            error.args = (RESUMABLE,)
        raise
    finally:
        if resume is None or not (work / MANIFEST).is_file():
            shutil.rmtree(work, ignore_errors=True)
        _active.discard(work)


def _interrupted(path: Path) -> list[Path]:
    """The folders that interrupted runs left with a manifest."""
    left = [one for one in _siblings(path) if one.name.endswith(".new") and not _in_use(one)]
    return [one for one in left if (one / MANIFEST).is_file()]


def check_target(path: Path, *, kind: ArtifactKind, overwrite: bool) -> None:
    """Refuse to write to `path` where that would destroy something: cheap, to be called before long work too."""
    with disk_errors(path):
        recover(path)
        if not path.exists():
            return
        if not path.is_dir():
            raise InputError(f'cannot write a lexent {kind} to "{path}": it is a file; give the name of a new folder')
        if not any(path.iterdir()):
            return
        found = _manifest(path)
    if found is None or found["kind"] != kind:
        what = f"a lexent {found['kind']}" if found else "not a lexent artefact"
        raise InputError(f'cannot write a lexent {kind} to "{path}": it is not empty and {what}; give another folder')
    if not overwrite:
        raise InputError(
            f'"{path}" already holds a lexent {kind}; replace it with --overwrite (overwrite=True), '
            "or give another folder"
        )


@contextmanager
def whole_file(path: Path, *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """A file beside `path` to write; when the block ends well and all is on the disk, it takes the place of `path`.

    What stood at `path` stays when anything fails or the process is killed. Leftovers of killed runs are removed at the
    next write.
    """
    path = path.resolve()  # a link stays a link: what it points to is replaced
    _check_file_target(path, overwrite=overwrite)
    work = _sibling(path, "new")
    _active.add(work)
    try:
        with disk_errors(path):
            make_folder(path.parent)
            file = new_file(work)
        try:
            with disk_errors(path):
                if os.name != "nt":
                    with suppress(OSError):  # a file system without locks
                        _lock(file.fileno())
                _clean(path)
            yield file
            _check_file_target(path, overwrite=overwrite)  # again: another run may have been quicker
            with disk_errors(path):
                file.flush()
                fsync(file.fileno(), path)
                if os.name == "nt":  # where an open file cannot be renamed
                    file.close()
                os.replace(work, path)
                sync_folder(path.parent)
        finally:
            with suppress(OSError):  # a full disk refuses what is still buffered
                file.close()
    finally:
        with suppress(OSError):
            work.unlink(missing_ok=True)
        _active.discard(work)


def _check_file_target(path: Path, *, overwrite: bool) -> None:
    """Refuse to write a file to `path` where that would destroy something."""
    with disk_errors(path):
        if not path.exists():
            return
        if not path.is_file():
            raise InputError(f'cannot write to "{path}": it is not a file; give the name of a new file')
    if not overwrite:
        raise InputError(
            f'"{path}" is already there; replace it with --overwrite (overwrite=True), or give another name'
        )


def make_folder(path: Path) -> None:
    """Makes a folder and those above it, where they are missing, and waits until they are on the disk."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync_folder(folder.parent)


def new_file(path: Path) -> IO[bytes]:
    """A file to write. What stands at `path` is removed first, and so a link is never written through."""
    path.unlink(missing_ok=True)
    return path.open("xb")


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file; errors of the disk are a WriteError."""
    with disk_errors(path):
        path.write_bytes(data)


def json_bytes(value: Any) -> bytes:
    """A value as indented JSON."""
    return json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n"


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON."""
    write_bytes(path, json_bytes(value))


def write_manifest(folder: Path, *, kind: ArtifactKind, facts: Mapping[str, Any]) -> None:
    """The manifest of a folder that holds all its other files: its kind, the facts, and a hash of each file."""
    head = {"kind": kind, "format": FORMAT_VERSION, "lexent": lexent_version()}
    write_json(folder / MANIFEST, {**head, **facts, "files": describe_files(folder)})


def replace_file(path: Path, data: bytes) -> None:
    """Put a file in the place of the one before, in one step, and wait until it is on the disk."""
    beside = path.with_name(f"{path.name}.new")
    with disk_errors(path):
        with new_file(beside) as file:
            file.write(data)
            file.flush()
            fsync(file.fileno(), path)
        os.replace(beside, path)
        sync_folder(path.parent)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turns what the disk says while `path` is written into a WriteError. Hold only writes in it, no caller's code."""
    try:
        yield
    except OSError as error:
        raise write_error(path, error.errno, str(error)) from error


def write_error(path: Path, code: int | None, detail: str) -> WriteError:
    """The error for an errno met while writing `path`, which may lie in the folder beside the requested one."""
    target = _target_of(path)
    other = f"give another folder, for example ~/{target.name}"
    if os.path.exists(target.parent / MANIFEST):  # of an index that changes: another folder is no remedy
        other = f"allow it: chmod -R u+w {target.parent}"
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return WriteError(
            f'no space left to write "{target}" ({detail}); what was there before is untouched; '
            f"free some space or {other}"
        )
    if code in (errno.EACCES, errno.EPERM):
        return WriteError(f'no permission to write "{target}" ({detail}); {other}')
    if code in SHORTAGES:
        return WriteError(f'cannot write "{target}"; what was there before is untouched; {SHORTAGES[code]}')
    if code == errno.EROFS:
        return WriteError(f'"{target}" is on a read-only disk ({detail}); {other}')
    return WriteError(f'cannot write "{target}" ({detail}); what was there before is untouched; {other}')


def recover(path: Path) -> None:
    """Puts the old artefact back where a run was killed between its two renames, and is no longer alive."""
    if os.path.lexists(path):
        return
    for sibling in _siblings(path):
        if sibling.name.endswith(".old") and not _in_use(sibling):
            with suppress(OSError):
                sibling.rename(path)
                return


def _manifest(path: Path) -> dict[str, Any] | None:
    """The manifest of any lexent artefact; None where there is none."""
    try:
        return as_manifest(read_bytes(path / MANIFEST))
    except OSError:
        return None


def as_manifest(data: bytes) -> dict[str, Any] | None:
    """The values of a manifest with a known kind and a format; None where the bytes are no such manifest."""
    try:
        found = parse_json(data)
    except ValueError:
        return None
    good = isinstance(found, dict) and isinstance(found.get("format"), int) and found.get("kind") in list(_MAKE)
    return found if good else None


def _swap(work: Path, path: Path) -> None:
    old = _sibling(path, "old")
    _active.add(old)
    try:
        with _in_hand(path):
            if path.exists():
                path.rename(old)
            try:
                work.rename(path)
            except OSError:
                if old.exists():
                    old.rename(path)
                raise
            sync_folder(path.parent)
            shutil.rmtree(old, ignore_errors=True)
    finally:
        _active.discard(old)


def _sibling(path: Path, role: Literal["new", "old"]) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(3)}.{role}")


_SIBLING = re.compile(r"\.(?P<name>.+)\.(?P<pid>\d+)-[0-9a-f]{6}\.(new|old)", re.DOTALL)


def _siblings(path: Path) -> list[Path]:
    try:
        entries = list(path.absolute().parent.iterdir())
    except OSError:
        return []
    found = ((entry, _SIBLING.fullmatch(entry.name)) for entry in entries)
    return [entry for entry, match in found if match and match["name"] == path.name and not entry.is_symlink()]


def _target_of(path: Path) -> Path:
    """The requested folder, where `path` is or lies in its sibling."""
    for part in (path, *path.parents):
        match = _SIBLING.fullmatch(part.name)
        if match:
            return part.with_name(match["name"])
    return path


@contextmanager
def _in_hand(folder: Path) -> Iterator[None]:
    """Locks a folder, if it is there, as long as this process works on it: the lock ends with the process."""
    with ExitStack() as stack:
        if os.name != "nt" and folder.is_dir():
            with disk_errors(folder):
                handle = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, handle)
            with suppress(OSError):  # a file system without locks
                _lock(handle)
        yield


def _lock(handle: int) -> None:
    import fcntl

    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _in_use(sibling: Path) -> bool:
    """Whether a process is still working on it.

    Its lock tells: the number of a process that was killed may be another one's by now, or not yet given back.
    """
    match = _SIBLING.fullmatch(sibling.name)
    assert match
    if int(match["pid"]) == os.getpid():
        return sibling in _active
    if os.name == "nt":
        return True
    try:
        handle = os.open(sibling, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        _lock(handle)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return _runs(int(match["pid"]))
    finally:
        os.close(handle)
    just_made = not (sibling.stat().st_size if sibling.is_file() else any(sibling.iterdir()))
    return just_made and _runs(int(match["pid"]))


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


def _clean(path: Path) -> None:
    """Removes what killed runs left, once what took its place is on the disk."""
    leftovers = [sibling for sibling in _siblings(path) if not _in_use(sibling)]
    if leftovers:
        sync_folder(path.parent)
    for leftover in leftovers:
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            with suppress(OSError):
                leftover.unlink()


def sync(folder: Path) -> None:
    """Waits until all that a folder holds is on the disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                fsync(file.fileno(), path)
        else:
            sync_folder(path)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Waits until new files and renames in a folder are on the disk."""
    if os.name == "nt":  # where a folder cannot be opened
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:  # removed by another process: the commit finds that out
        return
    except OSError as error:
        raise _unconfirmed(folder, error) from error
    try:
        fsync(handle, folder, ignored=_NO_FOLDER_SYNC)
    finally:
        os.close(handle)


def fsync(handle: int, path: Path, *, ignored: Collection[int] = ()) -> None:
    """Waits until an open file is on the disk; a SyncError where the disk does not confirm it.

    It is not tried again: a system may drop what it could not write, and the second fsync then reports success.
    """
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno in ignored:
            return
        raise _unconfirmed(path, error) from error


def _unconfirmed(path: Path, error: OSError) -> SyncError:
    return SyncError(
        f'the disk did not confirm what was written to "{_target_of(path)}" (fsync: {error}); the change is not '
        "acknowledged and may be lost at a power failure; check the disk and its space, then make the change again"
    )
