"""`perflab smoke-test`: checks in about a minute that everything works here."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perflab.design.choices import middlewares
from perflab.errors import BadInput
from perflab.option import some_of
from perflab.output import console, write_json

if TYPE_CHECKING:
    from rich.console import Console

    from perflab.cli.smoke_checks import Answer

FOLDER = "perflab-smoke-test-"


def smoke_test(
    middleware: Annotated[
        str | None,
        typer.Option(
            metavar="M[,M]",
            help="Middlewares to check, all of which must be installed; default those that are.",
            autocompletion=some_of(middlewares),
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON, at the end.")] = False,
) -> int:
    """Check that everything works here, with short real trials of each middleware, condition and observer.

    One line per check: ok, unavailable (what is missing), or FAILED. Exits with 1 if a check failed, keeps what that
    check recorded, and prints where.
    """
    from perflab import native as native_programs
    from perflab.cli.smoke_checks import FAILED, carry_out, checks
    from perflab.host import Host
    from perflab.report import live

    native, host = native_programs.find(), Host()
    names = None if middleware is None else _names(middleware)
    native.program("perflab-graph")
    native.program("perflab-node")
    folder = Path(tempfile.mkdtemp(prefix=FOLDER))
    answers: list[tuple[Answer, float]] = []
    kept = False
    out = None if as_json else console()
    if out is not None:
        out.print("One line per check, printed when it ends:")
    try:
        for number, check in enumerate(checks(native, names), start=1):
            began = time.monotonic()
            answer = carry_out(check, native, host, live.silent(quiet=True), folder / f"{number:02d}")
            answers.append((answer, time.monotonic() - began))
            if answer.state != FAILED and answer.run is not None:
                shutil.rmtree(answer.run, ignore_errors=True)
            if out is not None:
                _print(out, answer)
        kept = any(answer.state == FAILED and answer.run is not None for answer, _ in answers)
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)
    failed = sum(answer.state == FAILED for answer, _ in answers)
    if out is None:
        write_json(_document(answers, folder if kept else None))
    else:
        _print_end(out, answers, folder if kept else None)
    return 1 if failed else 0


def _names(text: str) -> list[str]:
    """Raises BadInput for an unknown middleware, and Unavailable for one that is not installed."""
    from perflab import native as native_programs
    from perflab.middleware import select

    if "+" in text:
        raise BadInput(
            f"--middleware {text!r}: a smoke test checks one middleware at a time; separate them with commas"
        )
    return [first.name for first, *_ in select(text, [], native_programs.find())]


def _print(out: Console, answer: Answer) -> None:
    from rich.text import Text

    from perflab.cli.smoke_checks import FAILED, OK

    style = {OK: "green", FAILED: "bold red"}.get(answer.state, "yellow")
    out.print(
        Text.assemble((f"{answer.state:<12}", style), f"{answer.kind} {answer.name}: {answer.text}", overflow="fold"),
        soft_wrap=True,
    )


def _print_end(out: Console, answers: list[tuple[Answer, float]], kept: Path | None) -> None:
    from perflab.cli.smoke_checks import FAILED, OK, UNAVAILABLE
    from perflab.units import format_duration

    counts = {state: sum(a.state == state for a, _ in answers) for state in (OK, UNAVAILABLE, FAILED)}
    took = format_duration(round(sum(seconds for _, seconds in answers)))
    told = ", ".join(f"{n} {state}" for state, n in counts.items() if n or state == FAILED)
    out.print(f"{told}, in {took}")
    if kept is not None:
        out.print(
            f"Records of the failed checks are in {kept}: see `perflab show {kept}/NN`, and remove it afterwards",
            soft_wrap=True,
        )


def _document(answers: list[tuple[Answer, float]], kept: Path | None) -> dict[str, Any]:
    return {
        "checks": [
            {
                "kind": answer.kind,
                "name": answer.name,
                "state": answer.state.lower(),
                "text": answer.text,
                "run": str(answer.run) if kept is not None and answer.run is not None and answer.run.exists() else None,
                "seconds": round(seconds, 3),
            }
            for answer, seconds in answers
        ],
        "kept": None if kept is None else str(kept),
    }
