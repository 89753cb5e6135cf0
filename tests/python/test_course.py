"""The picture of a run's course: what ran when, what was disturbed, invalid, and waited for."""

from __future__ import annotations

import json
from pathlib import Path

from made_run import MadeTrial, Stream, arrivals, make_run

from perflab.report.course import BUSY, DISTURBED, UNDISTURBED, WRONG, course
from perflab.report.figures import Figure
from perflab.report.results import results_of
from perflab.runs.rundata import open_run

STREAMS = [Stream("a", "t", "b", 10, 100, arrivals([50] * 100))]
TRIALS = [
    MadeTrial(STREAMS),
    MadeTrial(STREAMS, conditions=("cpu_load",)),
    MadeTrial(STREAMS, conditions=("cpu_load",), outcome="invalid"),
]


def made(path: Path, *, timed: bool = True) -> Figure | None:
    """Trials of 4 s, one each 10 s, of which the last waited for 3 s in vain."""
    make_run(path, {"p": ["a", "b"]}, TRIALS, with_summary=False)
    for number, file in enumerate(sorted(path.glob("trials/*/trial.json")), start=1):
        document = json.loads(file.read_text())
        at = f"2026-11-21T10:00:{10 * number:02}+00:00", f"2026-11-21T10:00:{10 * number + 4:02}+00:00"
        waited = 3.0 if number == 3 else 0.0
        cool_down = {"waited_s": waited, "busy_percent": 9.0, "reached": number != 3, "runnable": 0}
        if timed:
            document |= {"started_utc": at[0], "ended_utc": at[1], "cool_down": {**cool_down, "threshold_percent": 5}}
        file.write_text(json.dumps(document))
    return course(results_of([open_run(str(path))]))


def test_bars_stand_where_trials_ran_and_say_what_they_were(tmp_path: Path) -> None:
    figure = made(tmp_path / "run")
    assert figure is not None
    assert [name for _, name in figure.y.ticks] == ["baseline", "cpu_load"]
    spans = {of.group: [(s.begin, s.end, round(s.top)) for s in of.spans] for of in figure.spans}
    assert spans == {None: [(17, 20, 1)], UNDISTURBED: [(0, 4, 0)], DISTURBED: [(10, 14, 1)], WRONG: [(20, 24, 1)]}
    assert figure.subtitle == "made: 3 trials in 24 s"


def test_what_was_invalid_and_what_began_on_a_busy_machine_has_a_sign(tmp_path: Path) -> None:
    figure = made(tmp_path / "run")
    assert figure is not None
    signs = {s.sign: (s.x, s.hover) for s in figure.series}
    assert signs["cross"][0] == (22.0,) and "trial 3: invalid" in signs["cross"][1][0]
    assert {s.sign: s.group for s in figure.series} == {"cross": WRONG, "ring": BUSY}
    assert BUSY not in dict(figure.groups), "its sign has a key"
    assert signs["ring"][0] == (20.0,) and "began on a busy machine" in signs["ring"][1][0]


def test_where_no_time_was_recorded_there_is_no_picture(tmp_path: Path) -> None:
    assert made(tmp_path / "run", timed=False) is None
