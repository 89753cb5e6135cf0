"""The command line: one thin module per verb. This one turns every end of a command into an exit code and one line."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from typer import Abort
from typer._click.exceptions import ClickException

from perflab.cli.app import app
from perflab.errors import BadInput, PerflabError, one_line

DEBUG_VARIABLE = "PERFLAB_DEBUG"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; the exit code is that of the documentation. Prints at most one line of error."""
    try:
        result = app(args=None if arguments is None else list(arguments), prog_name="perflab", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except PerflabError as error:
        return _complain(str(error), error.exit_code)
    except ClickException as error:
        return _complain(
            f"{error.format_message().rstrip('.')} (`{_help_command(error)}` explains)", BadInput.exit_code
        )
    except BrokenPipeError:
        # The reader went away (`perflab show RUN | head`); say nothing more, not even when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (Abort, KeyboardInterrupt):
        return _complain("interrupted", 130)
    except Exception as error:  # noqa: BLE001 - the last resort: one line instead of a traceback
        if os.environ.get(DEBUG_VARIABLE):
            traceback.print_exc()
        name = type(error).__name__
        return _complain(f"{name}: {error} (unexpected; set {DEBUG_VARIABLE}=1 for the traceback)", 1)


def _complain(text: str, exit_code: int) -> int:
    sys.stderr.write(f"perflab: {one_line(text)}\n")
    return exit_code


def _help_command(error: ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context is not None else 'perflab'} --help"
