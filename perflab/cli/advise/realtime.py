"""`perflab advise realtime`: which policies and priorities prevent failed trials."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from perflab import models, output, phases
from perflab.cli.options import AsJson, MeasuredRun
from perflab.errors import BadInput, PerflabError, damage_of
from perflab.option import one_of
from perflab.output import write_json
from perflab.results.advice import AVOIDS, Advice, Proof

if TYPE_CHECKING:
    from perflab.results.run import RunData

FORMATS = ("text", "markdown")
TRIALS = 20


def realtime(
    run: MeasuredRun,
    below: Annotated[
        str,
        typer.Option(metavar="SHARE", help="The share of failed trials that an assignment must stay below: 30%, 0.3."),
    ] = "50%",
    try_: Annotated[
        bool,
        typer.Option(
            "--try", help="Run the recommended assignment again under the same disturbance, and report the result."
        ),
    ] = False,
    trials: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="With --try.", show_default=str(TRIALS))
    ] = None,
    format_: Annotated[
        str,
        typer.Option("--format", metavar="F", help="Output format: text or markdown.", autocompletion=one_of(FORMATS)),
    ] = FORMATS[0],
    as_json: AsJson = False,
) -> int:
    """Recommend the assignment of thread policies and priorities that prevents failed trials, with the evidence for it.

    Needs a run that varied the threads' assignment under the condition priority_inhibitor. Only assignments that the
    run tried are recommended. Exit code 1 if nothing can be recommended, or if --try does not confirm it.

    Example: perflab run realtime_priorities; perflab advise realtime RUN

    Example: perflab advise realtime RUN --try --trials 20
    """
    from perflab.report import advice as shown
    from perflab.runs.rundata import open_run
    from perflab.statistics.advice import advise

    share = _share(below)
    if format_ not in FORMATS:
        raise BadInput(f"--format {format_!r} is not one of {', '.join(FORMATS)}")
    if as_json and format_ != FORMATS[0]:
        raise BadInput("--json and --format exclude each other; choose one")
    if trials is not None and not try_:
        raise BadInput("--trials goes with --try")
    data = open_run(run, with_tables=False)
    with damage_of(data.path):
        advice = advise(data.summary, data.manifest, share)
    proofs = _proofs(data, advice, trials or TRIALS, quiet=as_json) if try_ else []
    if as_json:
        snippets = {s.name: models.as_json(shown.snippets(s)) for s in advice.situations}
        write_json({**models.as_json(advice), "snippets": snippets, "proofs": models.as_json(proofs)})
    elif format_ == "markdown":
        sys.stdout.write(shown.markdown(advice, proofs))
    else:
        out = output.console()
        with output.captured(out) as report:
            shown.draw(out, advice, proofs)
        output.write_captured(report[0])
    failures = _not_advised(advice)
    failures += [f"not confirmed: {proof.words}" for proof in proofs if proof.verdict != AVOIDS]
    if failures:
        raise PerflabError("; ".join(failures))
    return 0


def _not_advised(advice: Advice) -> list[str]:
    """The name of the situation if there is one; if there are several, the tables name them."""
    without = [situation.name for situation in advice.situations if situation.advised is None]
    if len(without) > 1:
        return [f"nothing is recommended for {len(without)} of {len(advice.situations)} situations"]
    return [f"nothing is recommended for {name}" for name in without]


def _share(text: str) -> float:
    number, percent, _ = text.strip().partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        raise BadInput(f"--below {text!r} is no share between 0 and 1, e.g. 30% or 0.3")
    return share


def _proofs(data: RunData, advice: Advice, trials: int, *, quiet: bool) -> list[Proof]:
    """One run for each situation with a recommendation."""
    from perflab import native as native_programs
    from perflab.experiment import advised
    from perflab.report import live
    from perflab.statistics.advice import proof

    native = native_programs.find()
    found = []
    for situation in advice.situations:
        if (chosen := situation.chosen) is None:
            continue
        display = live.chosen(phases.chosen(), quiet=quiet, by_second=False)
        line = ("perflab", *sys.argv[1:])
        result = advised.run(data.manifest, situation, chosen, trials, native, display, line)
        directory = str(result.directory.path)
        found.append(proof(situation, chosen.assignment, result.summary, directory, advice.below))
    return found
