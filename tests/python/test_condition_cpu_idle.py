"""cpu_idle on made counters of idle states; the kernel's part is in tests/conformance/condition."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pytest
from made_trial import MadeMonitor, MadeTrial, S

from perflab.condition import NotInEffect, Window
from perflab.condition import cpu_idle as module
from perflab.condition.cpu_idle import KIND, CpuIdle, Held
from perflab.errors import BadInput, Unavailable
from perflab.host import Host
from perflab.models import as_json
from perflab.workload import Graph

WINDOW = Window(10 * S, 20 * S)
CPU = "sys/devices/system/cpu"
GRAPH = Graph({})


class Machine:
    """Two CPUs with the states POLL (0 µs), C1 (2 µs) and C6 (133 µs), and a device that anybody can open."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.host = Host(root)
        self.device = root / "cpu_dma_latency"
        self.request(2_000_000_000)
        self._write(f"{CPU}/online", "0-1")
        self._write(f"{CPU}/cpuidle/current_driver", "intel_idle")
        for cpu in (0, 1):
            for number, (name, latency) in enumerate((("POLL", 0), ("C1", 2), ("C6", 133))):
                state = f"{CPU}/cpu{cpu}/cpuidle/state{number}"
                for key, value in (("name", name), ("latency", latency), ("usage", 1000), ("time", 5_000_000)):
                    self._write(f"{state}/{key}", str(value))

    def _write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(f"{text}\n", encoding="utf-8")

    def driver(self, name: str) -> None:
        self._write(f"{CPU}/cpuidle/current_driver", name)

    def request(self, latency_us: int) -> None:
        """What the strictest request on the machine is: here a file stands for the device."""
        self.device.write_bytes(struct.pack("=i", latency_us))

    def sleeps(self, cpu: int, state: int, times: int, time_us: int) -> None:
        folder = f"{CPU}/cpu{cpu}/cpuidle/state{state}"
        self._write(f"{folder}/usage", str(1000 + times))
        self._write(f"{folder}/time", str(5_000_000 + time_us))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    monkeypatch.setattr(module, "DEVICE", made.device)
    return made


def asked(**parameters: Any) -> CpuIdle:
    condition = KIND.make(parameters, "cpu_idle")
    assert isinstance(condition, CpuIdle)
    return condition


def held(machine: Machine, **parameters: Any) -> Held:
    made = Held(asked(**parameters), machine.host)
    machine.request(asked(**parameters).latency_us)
    return made


def test_without_deeper_sleep_it_is_in_effect(machine: Machine) -> None:
    made = held(machine, latency="10us")
    made.settle()
    machine.sleeps(0, 0, 7, 200_000)
    machine.sleeps(1, 1, 30, 4_000_000)
    evidence = as_json(made.verify(WINDOW))
    assert evidence["in_effect"], evidence
    assert evidence["promised"] == {"latency_us": 10, "deep_entries": 0}
    assert evidence["achieved"] == {
        "latency_us": 10,
        "deep_entries": 0,
        "before_us": 2_000_000_000,
        "states": {
            "POLL": {"latency_us": 0, "entries": 7, "share": 0.01},
            "C1": {"latency_us": 2, "entries": 30, "share": 0.2},
            "C6": {"latency_us": 133, "entries": 0, "share": 0.0},
        },
    }
    assert (evidence["driver"], evidence["governor"]) == ("intel_idle", None)


def test_a_cpu_that_slept_deeper_for_a_while_is_seen(machine: Machine) -> None:
    made = held(machine)
    made.settle()
    machine.sleeps(1, 2, 3, 800_000)
    evidence = as_json(made.verify(WINDOW))
    assert evidence["reason"] == "CPUs entered C6 (133 µs) 3 times"
    assert evidence["achieved"]["deep_entries"] == 3


def test_a_request_that_is_gone_is_seen_and_a_stricter_one_of_others_is_none(machine: Machine) -> None:
    made = held(machine, latency="10us")
    made.settle()
    machine.request(133)
    assert made.verify(WINDOW).reason == f"{machine.device} has 133 µs, but 10 µs were promised"
    machine.request(0)
    assert made.verify(WINDOW).reason is None
    machine.request(133)
    with pytest.raises(NotInEffect, match="has 133 µs, but 10 µs were promised"):
        made.settle()
    machine.device.write_bytes(b"")
    assert made.verify(WINDOW).reason == f"{machine.device} cannot be read"


def test_the_device_is_open_until_it_is_removed(machine: Machine, tmp_path: Path) -> None:
    def is_open() -> bool:
        folder = Path("/proc/self/fd")
        return any(link.is_symlink() and link.readlink() == machine.device for link in folder.iterdir())

    made = asked().begin(MadeTrial(tmp_path, MadeMonitor(tmp_path / "m.jsonl").reader()))
    assert is_open()
    made.remove()
    made.remove()
    assert not is_open()
    assert made.verify(WINDOW).reason == "it was not settled before the measured time"


def test_a_machine_without_c_states_device_or_right_is_told(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    asked().check(machine.host, GRAPH, "dds")
    with pytest.raises(BadInput, match="the virtual runtime has no processes"):
        asked().check(machine.host, GRAPH, "virtual")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(Unavailable, match=r"this user may not open .*; run perflab as root, or use `sudo chmod a"):
        asked().check(machine.host, GRAPH, "dds")
    machine.device.unlink()
    with pytest.raises(Unavailable, match=r"does not exist; in a container, use `docker run --device"):
        asked().check(machine.host, GRAPH, "dds")
    machine.driver("none")
    with pytest.raises(Unavailable, match="the kernel has no cpuidle driver here, so it uses no C-states"):
        asked().check(machine.host, GRAPH, "dds")


def test_its_parameter_is_whole_microseconds() -> None:
    with pytest.raises(BadInput, match=r"cpu_idle: latency: 1\.50 .*s is not a whole number of microseconds"):
        asked(latency="1500ns")
    assert module.words(asked().parameters) == "C-states held off"
    assert module.words(asked(latency="20us").parameters) == "C-states slower than 20 µs held off"
