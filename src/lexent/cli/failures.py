"""What a person sees when something goes wrong: one line on stderr and an exit code, a traceback only with --debug."""

from __future__ import annotations

import errno
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import typer
from typer.core import TyperGroup

from lexent.artifact import SHORTAGES
from lexent.errors import LexentError, LexentWarning, MissingExtraError, WriteError
from lexent.extras import OF_TRAIN
from lexent.terminal import visible

INTERRUPTED = 130
BROKEN_PIPE = 141
UNEXPECTED = 70
DEBUG = "--debug"
SHOW_CURSOR = b"\x1b[?25h\n"
_PYTHONS_OWN = warnings.showwarning


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
        """Run a command; an error is one line on stderr and an exit code."""
        for stream in (sys.stdout, sys.stderr):  # a terminal that cannot show a character shows a substitute
            with suppress(AttributeError, ValueError):
                stream.reconfigure(errors="replace")  # type: ignore[union-attr]
        given = list(sys.argv[1:] if args is None else args)
        options = given[: given.index("--")] if "--" in given else given
        debug = DEBUG in options
        warnings.showwarning = _show_warning
        rest = [word for word in options if word != DEBUG] + given[len(options) :]
        try:
            code = super().main(rest, prog_name or "lexent", complete_var, standalone_mode=False, **extra)
        except (KeyboardInterrupt, typer.Abort):  # before a verb began, or after it ended
            error_line("interrupted")
            code = INTERRUPTED
        except Exception as error:
            code = _usage(error)
            if code is None:
                code = _failed(error, debug=debug)
        raise SystemExit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run a command, and flush its output."""
        try:
            found = super().invoke(ctx)
            sys.stdout.flush()  # a reader that went away is noticed here, not while Python shuts down
            return found
        except KeyboardInterrupt as interrupt:
            error_line(f"interrupted; {str(interrupt) or 'nothing was written'}")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _forget_output()
            raise typer.Exit(BROKEN_PIPE) from None


def end_at_second_interrupt() -> None:
    """Ctrl-C interrupts the verb, which then tidies up. A second one meanwhile ends the process without a traceback."""

    def interrupt(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, end)
        raise KeyboardInterrupt

    def end(number: int, frame: object) -> None:
        if sys.stderr.isatty():
            os.write(sys.stderr.fileno(), SHOW_CURSOR)  # a progress bar may have hidden it
        os._exit(INTERRUPTED)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where a shell had it ignored
        signal.signal(signal.SIGINT, interrupt)


def error_line(message: str) -> None:
    """One line on stderr, whatever the message holds."""
    with suppress(OSError):
        print(f"error: {visible(' '.join(message.split()))}", file=sys.stderr, flush=True)  # noqa: T201


def _show_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Warnings of Lexent as one line; those of other packages as Python writes them."""
    if issubclass(category, LexentWarning):
        with suppress(OSError):
            print(f"note: {visible(' '.join(str(message).split()))}", file=sys.stderr, flush=True)  # noqa: T201
    else:
        _PYTHONS_OWN(message, category, *where, **more)


RENAMED = {"--k": "there is no --k; write -k for the number of hits, --sae-k for the latents of a state"}
"""Options that had another name before, and what to write instead."""


def _usage(error: Exception) -> int | None:
    """Options and arguments that were not understood: the parser's own errors, which know how to print themselves."""
    describe = getattr(error, "format_message", None)
    if describe is None:
        return None
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "lexent"
    message = RENAMED.get(getattr(error, "option_name", ""), describe().rstrip("."))
    error_line(f"{message}; see: {command} --help")
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
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in OF_TRAIN:
        missing = MissingExtraError(str(error.name), extra="train", purpose="this command")
        error_line(str(missing))
        return missing.exit_code
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
    if error.errno in SHORTAGES:
        return f"{where} cannot be used: {SHORTAGES[error.errno]}"
    return f"{where}: {error.strerror}; check the path and the disk"


def _forget_output() -> None:
    """What is still buffered goes nowhere, so that Python does not complain about it at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
