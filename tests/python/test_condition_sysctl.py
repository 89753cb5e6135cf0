"""sysctl: settings are held, watched and restored whatever is killed; here in a folder that replaces the kernel's."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from made_trial import MadeCompanion, MadeMonitor, MadeTrial, S
from support import graph, node

from perflab.condition import Window
from perflab.condition import kernel_settings as kernel
from perflab.condition.held import PROGRAM
from perflab.condition.sysctl import KIND, ONE_WAY, Set, Sysctl, words
from perflab.design import treatments as design
from perflab.design.document import Written, validate
from perflab.design.variant import Variant
from perflab.errors import BadInput, Unavailable
from perflab.experiment import clean
from perflab.host import Host
from perflab.middleware import Middleware
from perflab.models import as_json
from perflab.option import kind_of
from perflab.workload import Graph, Made

GRAPH = Graph(graph({"one": [node("/a", {"/t": 10}), node("/b", None, ["/t"])]}))
WAIT_S = 30.0
NAME = "vm.stat_interval"


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings that stand for the kernel's, and a place for their records."""
    folder = tmp_path / "sys"
    for name, text in {
        NAME: "1\n",
        "net.core.rmem_max": "212992\n",
        "net.ipv4.tcp_rmem": "4096\t131072\t6291456\n",
    }.items():
        path = kernel.path_of(name, folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(kernel, "SETTINGS", folder)
    monkeypatch.setattr(kernel, "FOLDER", tmp_path / "records")
    return folder


def made(**parameters: Any) -> Sysctl:
    condition = KIND.make(parameters or {NAME: 2}, "sysctl")
    assert isinstance(condition, Sysctl)
    return condition


# -- the keeper ------------------------------------------------------------------------------------------------------


class Held:
    """The program with these settings."""

    def __init__(self, trial: Path, asked: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        pairs = [f"{name}={value}" for name, value in asked.items()]
        with theirs:
            words: list[str | Path] = [
                sys.executable,
                "-I",
                "-S",
                PROGRAM,
                kernel.FOLDER,
                kernel.SETTINGS,
                trial,
                *pairs,
            ]
            words += ["--control-fd", str(theirs.fileno())]
            self.program = subprocess.Popen(words, pass_fds=[theirs.fileno()], start_new_session=True)
        self._said = ours.makefile("r", encoding="utf-8")
        ours.close()

    def says(self) -> dict[str, Any]:
        line = self._said.readline()
        return dict(json.loads(line)) if line else {}

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.program.pid, signal.SIGKILL)
        self.program.wait()
        self._said.close()


Start = Callable[..., Held]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Held] = []

    def hold(**asked: str) -> Held:
        started.append(Held(tmp_path / "run/trials/0001", asked or {NAME: "2"}))
        return started[-1]

    yield hold
    for held in started:
        held.close()


def until(true: Callable[[], bool]) -> None:
    limit = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < limit, "it did not come to that"
        time.sleep(0.01)


def records() -> list[Path]:
    return list(kernel.FOLDER.iterdir())


def test_settings_are_set_and_given_back(start: Start) -> None:
    held = start(**{NAME: "2", "net.core.rmem_max": "8388608"})
    assert held.says()["settings"] == [
        {"name": NAME, "before": "1", "read": "2"},
        {"name": "net.core.rmem_max", "before": "212992", "read": "8388608"},
    ]
    assert kernel.read(NAME) == "2"
    held.program.terminate()
    assert held.program.wait(WAIT_S) == 0
    assert (kernel.read(NAME), kernel.read("net.core.rmem_max")) == ("1", "212992")
    assert not records()


def test_whoever_of_both_processes_is_killed_the_setting_is_given_back(start: Start) -> None:
    held = start()
    held.says()
    held.program.kill()
    until(lambda: kernel.read(NAME) == "1")
    until(lambda: not records())


def test_another_value_meanwhile_is_told(start: Start) -> None:
    held = start()
    held.says()
    kernel.write(NAME, "7")
    assert {k: v for k, v in held.says().items() if k != "at_ns"} == {"type": "changed", "name": NAME, "value": "7"}


def test_what_another_trial_holds_is_refused_and_what_was_set_before_is_given_back(start: Start) -> None:
    start(**{"net.core.rmem_max": "8388608"}).says()
    second = start(**{NAME: "2", "net.core.rmem_max": "1048576"})
    said = second.says()
    assert (said["type"], said["kind"]) == ("error", kernel.HELD)
    assert "another trial has set net.core.rmem_max (" in said["text"]
    second.program.wait(WAIT_S)
    assert (kernel.read(NAME), kernel.read("net.core.rmem_max")) == ("1", "8388608")
    assert not kernel.abandoned(), "the first one still holds it"
    with pytest.raises(kernel.Problem, match="another trial has set"):
        kernel.give_back("net.core.rmem_max")


def test_after_all_were_killed_the_record_knows_the_original_and_the_next_trial_too(start: Start) -> None:
    killed = start()
    killed.says()
    os.killpg(killed.program.pid, signal.SIGKILL)
    killed.program.wait()
    until(lambda: bool(kernel.abandoned()))
    assert kernel.read(NAME) == "2"
    held = start(**{NAME: "3"})
    assert held.says()["settings"] == [{"name": NAME, "before": "1", "read": "3"}]
    held.program.terminate()
    held.program.wait(WAIT_S)
    assert kernel.read(NAME) == "1"
    assert not records()


def test_clean_sets_back_what_is_left_of_a_run_or_of_all(start: Start, tmp_path: Path) -> None:
    killed = start()
    killed.says()
    assert not clean.find_settings(None)
    os.killpg(killed.program.pid, signal.SIGKILL)
    killed.program.wait()
    until(lambda: bool(kernel.abandoned()))
    assert not clean.find_settings([tmp_path / "another"])
    (left,) = clean.find_settings([tmp_path / "run"])
    assert left.what == f"{NAME} to 1 (was set to 2 for {tmp_path / 'run/trials/0001'})"
    (removal,) = clean.remove(clean.find_settings(None), Host())
    assert (removal.text, removal.problem) == (f"set back {left.what}", None)
    assert kernel.read(NAME) == "1"
    assert not clean.find_settings(None)


def test_before_a_run_what_a_killed_one_left_is_given_back(start: Start) -> None:
    killed = start()
    killed.says()
    os.killpg(killed.program.pid, signal.SIGKILL)
    killed.program.wait()
    until(lambda: bool(kernel.abandoned()))
    made().resolved(Host())
    assert kernel.read(NAME) == "1"


def test_a_record_of_another_boot_says_nothing_of_this_one(start: Start) -> None:
    killed = start()
    killed.says()
    os.killpg(killed.program.pid, signal.SIGKILL)
    killed.program.wait()
    until(lambda: bool(kernel.abandoned()))  # the keeper is no child of the test: its lock goes a little later
    (path,) = records()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"boot_id": "another"}))
    assert not kernel.abandoned()
    kernel.give_back(NAME)
    assert kernel.read(NAME) == "2"
    assert not records()


def test_records_that_others_could_write_are_not_believed(tmp_path: Path) -> None:
    kernel.FOLDER.mkdir(mode=0o777)
    kernel.FOLDER.chmod(0o777)
    with pytest.raises(kernel.Problem, match="is writable by others"), kernel.hold(kernel.FOLDER, NAME):
        pass


# -- what may be asked for -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "sysctl: name a setting and its value, e.g. net.core.rmem_max=8388608"),
        ({NAME: True}, f"sysctl: {NAME}: True is not a number or text; put it in quotes"),
        ({NAME: [1]}, f"sysctl: {NAME}: [1] is not a number or text; put it in quotes"),
        ({NAME: "\0"}, f"sysctl: {NAME}: '\\x00' is not one line of plain text"),
    ],
)
def test_what_is_no_value_is_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(BadInput) as refused:
        KIND.make(given, "sysctl")
    assert str(refused.value) == text


def test_a_name_that_is_wrong_gets_the_nearest_ones() -> None:
    with pytest.raises(BadInput, match=r"no setting 'vm\.stat_intervall'; did you mean vm\.stat_interval"):
        made(**{"vm.stat_intervall": 2}).check(Host(), GRAPH, "dds")
    for name in ("vm", "vm.", "..", "vm.stat_interval.x", "net/core/rmem_max"):
        with pytest.raises(BadInput, match="this kernel has no setting"):
            made(**{name: 2}).check(Host(), GRAPH, "dds")


def test_what_could_not_be_set_back_is_refused(settings: Path) -> None:
    (settings / "vm/compact_memory").touch(mode=0o200)
    (settings / "vm/version").touch(mode=0o444)
    (settings / "vm/table").write_text("a\nb\n")
    (settings / "kernel").mkdir()
    (settings / "kernel/modules_disabled").write_text("0\n")
    assert "kernel.modules_disabled" in ONE_WAY
    for name, text in {
        "vm.compact_memory": "cannot be read, so it could not be restored",
        "vm.version": "can only be read",
        "vm.table": "is not one line of plain text",
        "kernel.modules_disabled": "cannot be restored before the next reboot",
    }.items():
        with pytest.raises(BadInput, match=f"sysctl: {name} {text}"):
            made(**{name: 2}).check(Host(), GRAPH, "dds")


def test_without_the_right_the_command_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(Unavailable, match=f"only root may set {NAME}; .*`sudo sysctl -w {NAME}='2'`"):
        made().check(Host(), GRAPH, "dds")
    with pytest.raises(BadInput, match="the virtual runtime has no processes"):
        made().check(Host(), GRAPH, "virtual")


def test_names_of_settings_are_parameters_completed_and_factors() -> None:
    complete = kind_of(lambda: {"sysctl": KIND})
    assert complete("sysctl:net.core.r") == ["sysctl:net.core.rmem_max="]
    factors = {f"sysctl.{NAME}": [2, 3], "sysctl.net.core.rmem_max": ["8388608"]}
    document = validate(Written({"workload": "w", "conditions": ["sysctl"], "factors": factors}))
    design.check_factors(document)
    variant = Variant((Middleware("one", "dds", None, None),))
    found = design.treatments(document, [(variant, {})], Made(GRAPH))
    assert [[c.parameters for c in t.conditions] for t in found] == [
        [],
        [{NAME: "2", "net.core.rmem_max": "8388608"}],
        [{NAME: "3", "net.core.rmem_max": "8388608"}],
    ]
    twice = validate(Written({"workload": "w", "conditions": ["sysctl"], "factors": {f"sysctl.{NAME}": [2, "2"]}}))
    with pytest.raises(BadInput, match="is given twice"):
        design.check_factors(twice)


def test_it_is_called_by_its_settings() -> None:
    assert (
        words(made(**{NAME: 2, "net.core.rmem_max": 8388608}).parameters) == f"{NAME} = 2, net.core.rmem_max = 8388608"
    )


# -- evidence --------------------------------------------------------------------------------------------------------


def applied(tmp_path: Path, read: str = "2", *more: dict[str, Any]) -> Set:
    said = [{"type": "ready", "settings": [{"name": NAME, "before": "1", "read": read}]}, *more]
    trial = MadeTrial(tmp_path, MadeMonitor(tmp_path / "m.jsonl").reader(), MadeCompanion("sysctl", 30, said))
    return made().begin(trial)


def test_a_value_that_the_kernel_rounds_is_reported_as_what_it_is(tmp_path: Path) -> None:
    kernel.write(NAME, "4")
    evidence = as_json(applied(tmp_path, "4").verify(Window(S, 4 * S)))
    assert evidence["in_effect"]
    assert evidence["promised"]["settings"] == {NAME: "2"}
    assert evidence["achieved"]["settings"] == evidence["achieved"]["at_end"] == {NAME: "4"}
    assert evidence["note"] == f"the kernel rounded: 2 of {NAME} became 4"


def test_a_value_that_was_another_meanwhile_or_at_the_end_is_not_in_effect(tmp_path: Path) -> None:
    kernel.write(NAME, "2")
    change = {"type": "changed", "name": NAME, "value": "9", "at_ns": 2 * S}
    evidence = as_json(applied(tmp_path, "2", change).verify(Window(S, 4 * S)))
    assert evidence["reason"] == f"{NAME} became '9' 1.0 s into the measured time, but '2' was promised"
    assert evidence["achieved"]["as_promised"] == 0
    kernel.write(NAME, "1")
    evidence = as_json(applied(tmp_path).verify(Window(S, 4 * S)))
    assert evidence["reason"] == f"{NAME} was '1' at the end, but '2' was promised"


def test_what_the_kernel_refuses_and_what_another_trial_holds_end_the_run(tmp_path: Path) -> None:
    for kind, error in ((kernel.REFUSED, BadInput), (kernel.HELD, Unavailable)):
        companion = MadeCompanion("sysctl", 30, [{"type": "error", "kind": kind, "text": "so it is"}])
        with pytest.raises(error, match="sysctl: so it is"):
            made().begin(MadeTrial(tmp_path, MadeMonitor(tmp_path / "m.jsonl").reader(), companion))
