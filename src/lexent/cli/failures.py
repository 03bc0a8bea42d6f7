"""What a person sees when something goes wrong: one line on stderr and an exit code, a traceback only with --debug."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import typer
from typer.core import TyperGroup

from lexent.errors import LexentError, WriteError

INTERRUPTED = 130
BROKEN_PIPE = 141
UNEXPECTED = 70
DEBUG = "--debug"


class Verbs(TyperGroup):
    """The group of all verbs; every error of every verb passes here."""

    def main(  # the parser's own signature
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        for stream in (sys.stdout, sys.stderr):  # a terminal that cannot show a character shows a substitute
            with suppress(AttributeError, ValueError):
                stream.reconfigure(errors="replace")  # type: ignore[union-attr]
        given = list(sys.argv[1:] if args is None else args)
        options = given[: given.index("--")] if "--" in given else given
        debug = DEBUG in options
        rest = [word for word in options if word != DEBUG] + given[len(options) :]
        try:
            code = super().main(rest, prog_name or "lexent", complete_var, standalone_mode=False, **extra)
        except Exception as error:
            code = _usage(error)
            if code is None:
                code = _failed(error, debug=debug)
        raise SystemExit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        try:
            found = super().invoke(ctx)
            sys.stdout.flush()  # a reader that went away is noticed here, not while Python shuts down
            return found
        except KeyboardInterrupt:
            error_line("interrupted; nothing was written")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _forget_output()
            raise typer.Exit(BROKEN_PIPE) from None


def error_line(message: str) -> None:
    """One line on stderr, whatever the message holds."""
    with suppress(OSError):
        print(f"error: {' '.join(message.split())}", file=sys.stderr, flush=True)


def _usage(error: Exception) -> int | None:
    """Options and arguments that were not understood: the parser's own errors, which know how to print themselves."""
    describe = getattr(error, "format_message", None)
    if describe is None:
        return None
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "lexent"
    error_line(f"{describe().rstrip('.')}; see: {command} --help")
    return int(getattr(error, "exit_code", 2))


def _failed(error: Exception, *, debug: bool) -> int:
    if debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, LexentError):
        error_line(str(error))
        return error.exit_code
    if isinstance(error, OSError) and error.errno is not None:
        error_line(_disk(error))
        return WriteError.exit_code
    if isinstance(error, MemoryError):
        error_line("not enough memory; give fewer texts at a time, or use a machine with more")
        return UNEXPECTED
    hint = "" if debug else "; run again with --debug for the traceback"
    error_line(f"unexpected error {type(error).__name__}: {str(error)[:500]}{hint}")
    return UNEXPECTED


def _disk(error: OSError) -> str:
    where = f'"{error.filename}"' if error.filename else "a file"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"no space left while writing {where}; free some, or name another folder (--out, LEXENT_CACHE, TMPDIR)"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"no permission for {where} ({error.strerror}); change its permissions or name another place"
    return f"{where}: {error.strerror}; check the path and the disk"


def _forget_output() -> None:
    """What is still buffered goes nowhere, so that Python does not complain about it at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
