"""What perflab says it is doing: by order and with a clock of the test's, never by how long anything took."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Perflab

from perflab import phases, waiting
from perflab.errors import BadInput
from perflab.phases import AUTO, LINES, OFF, Teller, phase

LIMIT_S = 60.0  # of what comes at once where it works


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Said:
    """What was said, and an event that says that there was something."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.anything = threading.Event()

    def __call__(self, text: str) -> None:
        self.lines.append(text)
        self.anything.set()


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(phases.ENVIRONMENT, raising=False)


@pytest.fixture
def said() -> Iterator[Said]:
    heard = Said()
    with waiting.told_to(heard):
        yield heard


def test_a_phase_is_said_once_when_it_has_lasted(said: Said) -> None:
    clock = Clock()
    teller = Teller(1.0, clock)
    with teller.phase("reading"):
        assert teller.look() == pytest.approx(1.0)
        clock.now_s += 0.75
        assert teller.look() == pytest.approx(0.25)
        assert said.lines == []
        clock.now_s += 0.25
        assert teller.look() is None
        clock.now_s += 10.0
        assert teller.look() is None
    assert said.lines == ["reading"]


def test_a_phase_that_ends_early_is_not_said_and_the_one_around_it_begins_anew(said: Said) -> None:
    clock = Clock()
    teller = Teller(1.0, clock)
    with teller.phase("still working"):
        clock.now_s += 0.9
        with teller.phase("reading"):
            clock.now_s += 0.9
            assert teller.look() is not None
        assert teller.look() == pytest.approx(1.0)
        assert said.lines == []
        clock.now_s += 1.0
        teller.look()
    assert said.lines == ["still working"]


@pytest.mark.parametrize(("mode", "lines"), [(AUTO, []), (LINES, ["reading", "drawing"]), (OFF, [])])
def test_lines_are_said_at_once_and_off_says_nothing(said: Said, mode: str, lines: list[str]) -> None:
    clock = Clock()
    teller = Teller(1.0, clock)
    teller.mode = mode
    with teller.phase("reading"):
        pass
    with teller.phase("drawing"), teller.phase(""):
        clock.now_s += 10.0
        teller.look()
    assert said.lines == lines


def test_what_is_slow_is_said_while_it_goes_on(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at the clock meanwhile: what is slow here ends only when something was said."""
    monkeypatch.setattr(phases, "SAY_AFTER_S", 0.01)
    with phases.told("still working"), phase("reading runs/x"):
        assert said.anything.wait(LIMIT_S)
    assert said.lines[0] in ("still working", "reading runs/x")


def test_a_phase_of_no_command_is_silent(said: Said) -> None:
    with phase("reading"):
        pass
    assert said.lines == []


@pytest.mark.parametrize(
    ("words", "mode"),
    [(["run", "x", "--quiet"], OFF), (["run", "-q", "x"], OFF), (["run", "--", "ls", "-q"], AUTO),
     (["run", "--progress", "lines"], LINES)],
)  # fmt: skip
def test_what_the_command_line_says_counts_before_it_is_read(words: list[str], mode: str) -> None:
    with phases.told("starting", words):
        assert phases.chosen() == mode


def test_each_command_chooses_for_itself() -> None:
    with phases.told("one"):
        phases.choose(OFF)
        assert phases.chosen() == OFF
    with phases.told("another"):
        assert phases.chosen() == AUTO


# -- commands --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "slow"),
    [
        (("show", "RUN"), "perflab.runs.rundata._open_own"),
        (("export", "RUN"), "perflab.runs.rundata._open_own"),
        (("report", "RUN"), "perflab.runs.rundata._open_own"),
        (("plot", "RUN"), "perflab.runs.rundata._open_own"),
        (("compare", "RUN", "RUN"), "perflab.runs.rundata._open_own"),
        (("check", "RUN", "--target", "white_mountain"), "perflab.cli.check.open_target"),
        (("archive", "--check", "x.tar.gz"), "perflab.experiment.archive.check"),
        (("doctor",), "perflab.host.Host.facts"),
        (("inventory",), "perflab.experiment.inventory.inventory"),
        (("list", "middlewares"), "perflab.native.find"),
        (("trace", "summary", "."), "perflab.trace.open_trace"),
        (("profile", "--show", "."), "perflab.profile.result.load"),
        (("run", "sierra_nevada"), "perflab.experiment.build.asked"),
    ],
)
def test_something_is_on_the_screen_before_the_slow_part_of_any_command_ends(
    perflab: Perflab, work: Path, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...], slow: str
) -> None:
    """The slow part waits for the line and then gives up, so that without one the test fails."""
    said = Said()
    monkeypatch.setattr(phases, "SAY_AFTER_S", 0.01)
    monkeypatch.setattr(waiting, "_to_stderr", said)
    monkeypatch.setattr(waiting, "_tellers", [said])
    (work / "RUN").mkdir()
    (work / "RUN" / "manifest.json").write_text("{}")

    def slow_part(*_: object, **__: object) -> None:
        raise BadInput("something was said" if said.anything.wait(LIMIT_S) else "nothing was said")

    monkeypatch.setattr(slow, slow_part)
    done = perflab(*verb, PERFLAB_PROGRESS=AUTO)
    assert "something was said" in done.stderr


def test_progress_off_and_quick_answers_say_nothing(perflab: Perflab) -> None:
    assert perflab("list", "conditions", "--progress", "off").stderr == ""
    assert perflab("list", "conditions", PERFLAB_PROGRESS="off").stderr == ""
    assert "--progress 'loud' is not auto, lines, seconds or off" in perflab("list", "--progress", "loud").stderr


def test_a_variable_that_says_what_there_is_not_is_named(perflab: Perflab) -> None:
    said = perflab("list", "conditions", PERFLAB_PROGRESS="loud")
    assert said.returncode == 2
    assert "PERFLAB_PROGRESS='loud' in the environment is not auto, lines, seconds or off" in said.stderr
    assert perflab("list", "conditions", "--progress", "off", PERFLAB_PROGRESS="loud").returncode == 0


def test_off_a_terminal_a_run_says_its_phases_its_plan_and_its_trials(perflab: Perflab, graph_file: Path) -> None:
    done = perflab("run", graph_file, "--time", "0.2", "--trials", "2", "--progress", "lines")
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert lines[:2] == ["perflab: reading the experiment", "perflab: checking what this machine can do"]
    assert lines[2].startswith("Plan: 2 trials, 0.2 s measured in each: about 5 s, with 2 s to start and end each")
    assert [line.split()[0] for line in lines[3:5]] == ["[1/2]", "[2/2]"]
    assert "perflab: comparing the trials" in lines[5:]
