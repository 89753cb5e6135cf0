"""A command line as the workload: the permitted syntax, what is rejected, and its properties before it runs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from perflab.condition import Launch
from perflab.design import treatments as design
from perflab.design.document import Document, Written, validate
from perflab.errors import BadInput
from perflab.experiment.command import CommandRun, environment, loaded_libraries
from perflab.experiment.companion import left_behind
from perflab.parameters import Parameters
from perflab.results.figure import OwnFigure
from perflab.results.files import TrialProcess
from perflab.results.loops import Life, Loops
from perflab.results.outcome import SUCCESS, BrokenOff, OwnOutcome
from perflab.results.starvation import Starvation
from perflab.results.trial import Trial
from perflab.specification import written
from perflab.statistics import histogram as hg
from perflab.statistics.accounting import counted
from perflab.statistics.said import Said
from perflab.workload import Judgement, WorkloadKind, command, generated
from perflab.workload.command import Command, CommandParameters

S = 1_000_000_000


def parameters(**keys: Any) -> CommandParameters:
    document = validate(Written({"workload": {"command": "sleep 1", **keys}}, given=frozenset({"workload"})))
    assert isinstance(document.workload, CommandParameters)
    return document.workload


def test_words_are_those_of_a_shell_and_of_a_list() -> None:
    assert parameters(command="ros2 launch 'my robot' up.launch.py").command == [
        "ros2", "launch", "my robot", "up.launch.py",
    ]  # fmt: skip
    assert parameters(command=["nice", "-n", 5, "x"]).command == ["nice", "-n", "5", "x"]


def test_defaults() -> None:
    default = parameters()
    assert (default.ready_when.after, default.stop.signal, default.stop.grace) == (2 * S, "SIGINT", 5 * S)
    assert (default.stop.to, default.tracing, default.ends_itself) == ("group", True, False)
    assert parameters(ends="itself").ready_when.after == 0


def test_short_forms() -> None:
    assert parameters(ready=3).ready_when.after == 3 * S
    assert parameters(ready="log:up: [0-9]+").ready_when.log == "up: [0-9]+"
    stop = parameters(stop="SIGTERM:10s").stop
    assert (stop.signal, stop.grace) == ("SIGTERM", 10 * S)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"command": "a && b"}, "'&&' needs a shell, and perflab starts none; write [sh, -c, 'a && b']"),
        ({"command": "cat <x"}, None),  # as one word it is a name like any other
        ({"command": "cat < x"}, "'<' needs a shell"),
        ({"command": "'a"}, "cannot be split into words: no closing quotation"),
        ({"command": []}, "the command is empty"),
        ({"command": ["a", True]}, "the word True is not text; put it in quotes"),
        ({"redy": 1}, "no key 'workload.redy'; did you mean ready?"),
        ({"ready": {"aftr": 1}}, "no key 'workload.ready.aftr'; did you mean after?"),
        ({"ready": {}}, "give exactly one of after and log"),
        ({"ready": {"after": 1, "log": "x"}}, "give exactly one of after and log"),
        ({"ready": "log:("}, "'(' is not a regular expression"),
        ({"ready": "log:"}, "an empty pattern matches any line"),
        ({"ready": "5 parsecs"}, "is not a duration"),
        ({"stop": "SIGFOO"}, "'SIGFOO' is not SIGINT, "),
        ({"stop": {"grace": 0}}, "0 must be more than 0"),
        ({"environment": {"A": True}}, "True is not text; put it in quotes"),
        ({"environment": {"A=B": "x"}}, "'A=B' is not a valid variable name"),
        ({"ends": "never"}, "'never' is not stopped or itself"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(keys: dict[str, Any], said: str | None) -> None:
    if said is None:
        assert parameters(**keys).command == ["cat", "<x"]
        return
    with pytest.raises(BadInput) as error:
        parameters(**keys)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_the_program_must_be_there_and_executable(tmp_path: Path) -> None:
    (tmp_path / "start_robot").write_text("#!/bin/sh\n")

    def refused(*words: str, **keys: Any) -> str:
        with pytest.raises(BadInput) as error:
            command.load(parameters(command=list(words), directory=str(tmp_path), **keys))
        return str(error.value)

    assert refused("./nothing") == "the program './nothing' does not exist"
    assert refused("./start_robot").startswith("'./start_robot' is not executable; `chmod +x`")
    assert refused(str(tmp_path)) == f"{str(tmp_path)!r} is a folder; name a program"
    assert refused("start_robot").endswith(f"use ./start_robot for the file in {str(tmp_path)!r}")
    assert "without --: `perflab run sierra_nevada`" in refused("sierra_nevada")
    (tmp_path / "start_robot").chmod(0o755)
    assert command.load(parameters(command=["./start_robot"], directory=str(tmp_path))).name == "start_robot"
    assert command.load(parameters(command="start_robot", environment={"PATH": str(tmp_path)})).name == "start_robot"
    with pytest.raises(BadInput, match="directory '/no/such' does not exist"):
        command.load(parameters(directory="/no/such"))


def test_scripts_among_the_words_are_kept_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "up.launch.py").write_text("nodes\n")
    (tmp_path / "image").write_bytes(b"\xff\0\xfe")
    found = command.load(parameters(command="cat up.launch.py image up.launch.py", directory=str(tmp_path)))
    assert [(Path(s.path).name, s.text) for s in found.sources] == [("up.launch.py", "nodes\n")]


SEVERAL = {
    "commands": {
        "planner": {"command": "sleep {how_long}", "ready": "log:up", "environment": {"A": "own"}},
        "driver": ["sleep", 2],
    },
    "environment": {"A": "of all", "B": "of all"},
    "stop": "SIGTERM:10s",
}  # fmt: skip


def test_named_commands_are_processes_that_have_what_is_said_of_all_and_of_each() -> None:
    both = command.load(CommandParameters.model_validate(SEVERAL))
    assert (both.name, both.graph.own_processes) == ("planner+driver", ["planner", "driver"])
    planner, driver = both.members
    assert (planner.name, planner.parameters.command, driver.parameters.command) == (
        "planner", ["sleep", "{how_long}"], ["sleep", "2"],
    )  # fmt: skip
    assert (planner.parameters.ready_when.log, driver.parameters.ready_when.after) == ("up", 2 * S)
    assert planner.parameters.environment == {"A": "own", "B": "of all"}
    assert driver.parameters.stop.grace == 10 * S
    (alone,) = command.load(parameters()).members
    assert alone.graph.own_processes == ["sleep"]


def test_levels_of_named_commands_are_set_in_each() -> None:
    both = command.load(CommandParameters.model_validate(SEVERAL))
    planner, driver = both.set_to({"workload.argument.how_long": 7, "workload.environment.B": "x"}).members
    assert planner.parameters.command == ["sleep", "7"]
    assert planner.parameters.environment == {"A": "own", "B": "x"}
    assert driver.parameters.environment == {"A": "of all", "B": "x"}


def test_named_commands_are_started_in_their_folders_wherever_perflab_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    commands = {"a": {"command": "sleep 1", "directory": "sub"}, "b": "sleep 1"}
    made = command.load(CommandParameters.model_validate({"commands": commands})).set_to({})
    assert [member.parameters.directory for member in made.members] == [str(tmp_path / "sub"), str(tmp_path)]


def test_named_commands_are_the_same_when_they_are_read_again() -> None:
    both = CommandParameters.model_validate(SEVERAL)
    assert CommandParameters.model_validate(written(both)) == both


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"commands": {"a b": "sleep 1"}}, "'a b' is not a valid name for a command"),
        ({"commands": "sleep 1"}, "commands are a mapping of names and command lines"),
        ({"commands": {"a": "sleep 1 && true"}}, "'&&' needs a shell"),
        ({"commands": {"a": {"command": "sleep 1", "redy": 1}}}, "no key"),
        ({"command": "sleep 1", "commands": {"a": "sleep 1"}}, "give exactly one of command and commands"),
        ({"commands": {}}, "give exactly one of command and commands"),
    ],
)
def test_what_is_wrong_with_named_commands_is_said_in_one_line(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as error:
        validate(Written({"workload": keys}, given=frozenset({"workload"})))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_the_program_of_a_named_command_must_be_there() -> None:
    with pytest.raises(BadInput) as error:
        command.load(CommandParameters.model_validate({"commands": {"a": "sleep 1", "b": "/no/such"}}))
    assert str(error.value) == "command b: the program '/no/such' does not exist"


def test_its_graph_is_one_process_without_nodes() -> None:
    graph = Command("robot", parameters()).graph
    assert (graph.own_processes, graph.condition_processes, graph.edges()) == (["robot"], {}, [])
    assert graph.with_nodes.processes == []


def test_every_trial_has_a_domain_and_what_the_user_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    robot = Command("robot", parameters(environment={"A": 1, "B": "x"}))
    monkeypatch.setenv("ROS_DISTRO", "humble")
    found = environment(robot.set_to({"workload.environment.B": "level"}), 17, "lo", tmp_path)
    assert found == {
        "ROS_DOMAIN_ID": "17", "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_LOCALHOST_ONLY": "1",
        "GZ_PARTITION": "perflab_17", "PERFLAB_TRIAL": str(tmp_path), "A": "1", "B": "level",
    }  # fmt: skip
    monkeypatch.setenv("ROS_DISTRO", "jazzy")
    found = environment(robot, 17, "eth0", tmp_path)
    assert found["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "SUBNET"
    assert "ROS_LOCALHOST_ONLY" not in found


def test_factors_of_a_command_are_variables() -> None:
    def check(**factors: Any) -> None:
        written = {"workload": {"command": "sleep 1"}, "factors": {k.replace("__", "."): v for k, v in factors.items()}}
        design.check_factors(Document.model_validate(written))

    check(workload__environment__RMW_IMPLEMENTATION=["rmw_cyclonedds_cpp", "rmw_fastrtps_cpp"])
    with pytest.raises(BadInput, match=r"of a command are workload\.environment\.NAME"):
        check(workload__depth=[1, 10])
    with pytest.raises(BadInput, match="is given twice"):
        check(workload__environment__A=[1, 1])


@dataclass(frozen=True)
class Stack(Command):
    """A command that says more of its trials than its kind does."""

    def judged(
        self,
        trial: Trial,
        directory: Path,
        loops: Sequence[Loops] = (),
        lives: Sequence[Life] = (),
        starvation: Starvation | None = None,
        said: Said | None = None,
        broken_off: BrokenOff | None = None,
    ) -> tuple[Judgement, OwnOutcome | None]:
        return Judgement({"goals": float(self.parameters.command[1])}), None


class StackParameters(Parameters):
    goals: int = Field(1, ge=1, description="places")


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = WorkloadKind(
        "stack",
        "a robot",
        StackParameters,
        lambda asked: Stack("robot", parameters(command=f"sleep {asked.goals}")),
        figures={"goals": OwnFigure(words="goals")},
    )
    monkeypatch.setitem(generated.REGISTRY.kinds, "stack", kind)


def test_a_kind_makes_a_command_anew_at_every_level(stack: None) -> None:
    made = generated.load(generated.parse("stack:goals=2"))
    assert isinstance(made, Stack)
    assert (made.command, made.kind, made.name, made.parameters.command) == (made, "stack", "robot", ["sleep", "2"])
    assert made.graph.document["own_figures"].keys() == {"goals"}
    assert made.document()["parameters"] == {"goals": 2}
    assert made.document()["command"]["command"] == ["sleep", "2"]
    at = made.at({"workload.goals": 5, "workload.environment.A": "x", "cpu_load.load": 3}).command
    assert isinstance(at, Stack)
    assert (at.parameters.command, at.parameters.environment) == (["sleep", "5"], {"A": "x"})
    assert at.judged(Trial(trial=1, order=1, outcome=SUCCESS), Path())[0].figures == {"goals": 5}


def test_a_command_of_a_kind_has_its_parameters_and_variables_as_factors(stack: None) -> None:
    def document(**factors: Any) -> Document:
        factors = {key.replace("__", "."): levels for key, levels in factors.items()}
        return Document.model_validate({"workload": {"stack": {}}, "factors": factors})

    found = document(workload__goals=[1, 2], workload__environment__RMW_IMPLEMENTATION=["a", "b"])
    design.check_factors(found)
    assert [o.name for o in design.observers(found)] == ["tracing"], "its messages are measured as those of any command"
    for factors, said in (
        ({"workload__depth": [1, 10]}, "workload stack has no parameter 'depth'"),
        ({"workload__goals": [0, 1]}, "goals: 0 must be at least 1"),
        ({"workload__argument__x": [1, 2]}, "no word of the command contains"),
    ):
        with pytest.raises(BadInput, match=said):
            design.check_factors(document(**factors))


def test_its_messages_are_traced_in_every_trial_unless_told_otherwise() -> None:
    def observers(tracing: bool, *named: Any) -> list[tuple[str, bool, Any]]:
        workload = {"command": "sleep 1", "tracing": tracing}
        document = Document.model_validate({"workload": workload, "observers": list(named)})
        return [(o.name, o.extra, o.parameters.get("scheduler")) for o in design.observers(document)]

    assert observers(True) == [("tracing", False, "none")]
    assert observers(False) == []
    assert observers(True, {"tracing": {"scheduler": "perf_event"}}) == [("tracing", False, "perf_event")]
    assert observers(False, "tracing") == [("tracing", True, "auto")]
    assert [name for name, _, _ in observers(True, "monitor")] == ["tracing", "monitor"]


def test_a_checkpoint_of_a_trace_says_itself_what_was_lost() -> None:
    latency = hg.to_record(hg.from_values([1000, 2000]))
    unknown = dict.fromkeys(
        ("size_bytes", "frequency_hz", "first_sequence", "highest_sequence", "reordered", "duplicate", "beyond_window",
         "warmup_received", "on_time", "late", "too_late", "response", "dispatch", "work")
    )  # fmt: skip
    edge = {"publisher": "/a", "topic": "/t", "subscription": "/b", "received": 2, "latency": latency, **unknown}
    publisher = {"node": "/a", "topic": "/t", "sent": 3, **dict.fromkeys(("not_sent", "write_errors", "warmup_sent",
                 "first_sequence", "publish_delay", "publish_call"))}  # fmt: skip
    known = {"sent": 3, "pre_match": 0, "gap": 1, "tail": 0}
    accounts = counted([{"final": True, "source": "trace", "publishers": [publisher], "edges": [{**edge, **known}]}])
    assert (accounts.complete, accounts.edges[0].gap, accounts.edges[0].sent) == (True, 1, 3)
    nothing = {"sent": 3, "pre_match": None, "gap": None, "tail": None}
    accounts = counted([{"final": True, "source": "trace", "publishers": [publisher], "edges": [{**edge, **nothing}]}])
    assert (accounts.complete, accounts.edges[0].gap, accounts.edges[0].late) == (True, None, None)


@pytest.fixture
def started(tmp_path: Path, guard: Path) -> Iterator[Any]:
    runs: list[CommandRun] = []

    def start(*words: str, **keys: Any) -> CommandRun:
        command = Command("it", parameters(command=list(words), **keys))
        log = tmp_path / f"{len(runs)}.log"
        runs.append(CommandRun(command, "it", log, Launch(), {"MINE": "1"}, guard))
        return runs[-1]

    yield start
    for run in runs:
        run.stop()


@pytest.fixture
def guard() -> Path:
    path = Path(os.environ.get("PERFLAB_NATIVE", "")) / "perflab-guard"
    if not os.access(path, os.X_OK):
        pytest.skip("no perflab-guard in PERFLAB_NATIVE; build it with `make` and set it")
    return path


def within(seconds: float, happens: Any) -> None:
    limit = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < limit, "it did not happen"
        time.sleep(0.02)


def test_ready_by_its_log_also_in_a_line_that_is_still_being_written(started: Any) -> None:
    script = "import sys, time; print('warming'); sys.stdout.write('up: 7'); sys.stdout.flush(); time.sleep(60)"
    run = started(sys.executable, "-c", script, ready=r"log:up: \d")
    within(30, lambda: run.not_ready() is None)
    assert run.ready_line == "up: 7"


def test_ready_after_a_time(started: Any) -> None:
    run = started("sleep", "60", ready="1h")
    assert "1 h" in run.not_ready()
    run = started("sleep", "60", ready="300ms")
    within(30, lambda: run.not_ready() is None)


def test_the_signal_reaches_the_group_or_the_first_process_alone(started: Any, tmp_path: Path) -> None:
    script = f"trap 'echo both' INT; sh -c 'trap \"echo child; exit\" INT; touch {tmp_path}/up; " \
             "while :; do sleep 0.05; done'; while :; do sleep 0.05; done"  # fmt: skip
    run = started("sh", "-c", script)
    within(30, (tmp_path / "up").exists)
    run.signal(2, group=False)
    run.signal(2, group=True)
    within(30, lambda: "child" in run.log.read_text())
    within(30, lambda: "both" in run.log.read_text())


def test_what_a_command_left_is_found_by_its_mark(started: Any) -> None:
    run = started("sleep", "60")
    found = left_behind(TrialProcess(mark=run.recorded.mark))
    assert {run.guard_pid, run.pid} <= {process.pid for process in found}


def test_the_middlewares_of_a_process_are_read_from_what_it_has_loaded() -> None:
    assert loaded_libraries([os.getpid()]) == []
    assert loaded_libraries([2**22 + 1]) is None
