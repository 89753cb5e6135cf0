"""--quick: an experiment shortened to about a minute, for a first look.

Everything still runs, but less often and for a shorter time. The user's other settings are kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perflab.design.document import Written, validate
from perflab.design.settings import BESIDE_S, Experiment
from perflab.design.treatments import CONTROL, Treatment
from perflab.units import NS_PER_S

WHOLE_S = 60.0
MOST_TRIALS = 5  # enough of each treatment to show a difference
LEAST_S = 1.0  # length of a trial's measured part
COOL_DOWN = "1s"


def as_quick(written: Written, build: Callable[[Written], Experiment]) -> Written:
    """With --quick, the experiment that takes about a minute; else the same. `build` makes the experiment that would
    otherwise run.

    Raises BadInput.
    """
    document = validate(written)
    if not document.quick:
        return written
    # A file's own `quick` leaves the file's other keys unchanged; the one on the command line replaces them.
    own = written.given if "quick" in written.given or written.file is None else frozenset(written.mapping)
    if {"time", "trials"} <= own:
        raise written.refuse("quick", " chooses the time or the number of trials; leave one of these out")
    if not document.time:
        raise written.refuse("quick", " takes a minute, but with a time of 0 its length is unknown")
    time_s = document.time / 1e9 if "time" in own else None
    if document.breaking_point is not None:
        changes = _of_search(written.mapping["breaking_point"], time_s, _pinned_s(build(written).treatments))
    else:
        trials = document.trials if "trials" in own else None
        changes = _of_plan(build(_with(written, {"trials": 2})), time_s, trials)
    changes |= {"warmup": 0, "cool_down": COOL_DOWN}
    return _with(written, {key: value for key, value in changes.items() if key not in own or key == "breaking_point"})


def _of_plan(twice: Experiment, time_s: float | None, trials: int | None) -> dict[str, Any]:
    """The time and number of trials of the experiment with two blocks of trials."""
    block = [p.treatment for p in twice.order if p.block == 2]
    extras = len(twice.order) - 2 * len(block)
    controls = sum(t.purpose == CONTROL for t in block)  # which need several trials

    def count(blocks: int) -> int:
        return blocks * len(block) + extras - (controls if blocks == 1 else 0)

    pinned_s = _pinned_s(block)
    time_s = time_s if pinned_s is None else pinned_s
    least_s = (LEAST_S if time_s is None else time_s) + BESIDE_S
    fitting = (n for n in range(MOST_TRIALS, 1, -1) if count(n) * least_s <= WHOLE_S)
    chosen = next(fitting, 1) if trials is None else trials
    share_s = int(10 * (WHOLE_S / count(chosen) - BESIDE_S)) / 10
    lasting = {} if pinned_s is not None else {"time": max(LEAST_S, share_s) if time_s is None else time_s}
    return {"trials": chosen, **lasting}


def _of_search(asked: Mapping[str, Any], time_s: float | None, pinned_s: float | None) -> dict[str, Any]:
    """The time and largest number of trials of a search."""
    chosen_s = pinned_s or (LEAST_S if time_s is None else time_s)
    most = max(8, int(WHOLE_S / (chosen_s + BESIDE_S)))
    return {**({} if pinned_s else {"time": chosen_s}), "breaking_point": {"max_trials": most, **asked}}


def _pinned_s(treatments: Sequence[Treatment]) -> float | None:
    """The longest measured part that the workload demands; None if it demands none."""
    return max((t.pins.duration_ns / NS_PER_S for t in treatments if t.pins.duration_ns is not None), default=None)


def _with(written: Written, changes: Mapping[str, Any]) -> Written:
    return dataclasses.replace(written, mapping={**written.mapping, **changes})
