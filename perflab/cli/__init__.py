"""The command line: one thin module per verb. Turns every end of a command into an exit code and one line.

It imports little, so that `main` handles Ctrl-C even while the other modules are being imported.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import gc
import io
import os
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from perflab import late_methods, output, phases
from perflab.cli import completion
from perflab.errors import BadInput, LeftOut, PerflabError, Unavailable, one_line

if TYPE_CHECKING:
    from typer._click.exceptions import ClickException

DEBUG_VARIABLE = "PERFLAB_DEBUG"
INTERRUPTED = 130

# For errors without a file name, i.e. of stdout; writers of files name the file themselves.
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns the documented exit code. Prints at most one line on error."""
    # Imports create many objects that live for the whole process. Python's garbage collector runs after every 700
    # allocations by default, which takes 5% of a start, and after every 100,000 still 3% of a report; 500,000 is enough
    # for the whole process.
    gc.set_threshold(500_000)
    late_methods.install()
    try:
        _prepare_streams()
        with output.guarded(), warnings.catch_warnings():
            if not os.environ.get(DEBUG_VARIABLE):
                warnings.simplefilter("ignore")  # of libraries, for people who write programs
            if not completion.asked():
                warnings.simplefilter("always", LeftOut)
                warnings.showwarning = _show
                with phases.told("starting", sys.argv[1:] if arguments is None else arguments):
                    return _run(arguments)
            return _run(arguments)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    finally:
        # The process is about to end: a final garbage collection takes a tenth of an answer's time
        if arguments is None:
            gc.freeze()


def _run(arguments: Sequence[str] | None) -> int:
    from typer import Abort
    from typer._click.exceptions import ClickException

    from perflab.cli.app import app

    given = None if arguments is None else list(arguments)
    called = functools.partial(app, args=given, prog_name="perflab", standalone_mode=False)
    try:
        result = completion.complete(called) if completion.in_bash() else called()
        sys.stdout.flush()
    except PerflabError as error:
        if error.__cause__ is not None and os.environ.get(DEBUG_VARIABLE):
            import traceback

            traceback.print_exc()
        return _complain(str(error), error.exit_code)
    except ClickException as error:
        return _complain(
            f"{error.format_message().rstrip('.')} (`{_help_command(error)}` explains)", BadInput.exit_code
        )
    except BrokenPipeError:
        # The reader closed the pipe (`perflab show RUN | head`); print nothing more.
        _silence(sys.stdout)
        return 1
    except Abort:
        return _complain("interrupted", INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the last resort: one line instead of a traceback
        if isinstance(error, OSError) and error.filename is None and error.errno in _UNWRITABLE:
            _silence(sys.stdout)
            return _complain(f"cannot write to stdout: {error.strerror}", 1)
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return _complain("out of memory; free some, or raise the limit (`ulimit -v`)", Unavailable.exit_code)
        if os.environ.get(DEBUG_VARIABLE):
            import traceback

            traceback.print_exc()
        if isinstance(error, OSError) and error.filename is not None:  # an error of the machine, not of perflab
            return _complain(f"{os.fsdecode(error.filename)}: {error.strerror}", 1)
        name = type(error).__name__
        return _complain(f"{name}: {error} (unexpected; set {DEBUG_VARIABLE}=1 for the traceback)", 1)
    if result == INTERRUPTED:  # no command returns this; typer does after KeyboardInterrupt
        raise KeyboardInterrupt
    return result if isinstance(result, int) else 0


def _prepare_streams() -> None:
    """Opens missing standard streams, and makes them print characters outside their encoding as "?"."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - until the end
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _silence(stream: TextIO) -> None:
    """Discards what the stream still buffers, so that nothing is written when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    shown = f"perflab: {message}\n" if issubclass(category, LeftOut) else None
    sys.stderr.write(shown or warnings.formatwarning(message, category, filename, lineno, line))


def _complain(text: str, exit_code: int) -> int:
    try:
        sys.stderr.write(f"perflab: {one_line(text)}\n")
        sys.stderr.flush()
    except OSError:
        with contextlib.suppress(OSError):
            _silence(sys.stderr)
    return exit_code


def _help_command(error: ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context is not None else 'perflab'} --help"
