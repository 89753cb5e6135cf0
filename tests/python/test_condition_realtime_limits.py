"""realtime_limits: which files a limit stands for on which kernel, what is refused, and what evidence says."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from made_trial import MadeCompanion, MadeMonitor, MadeTrial, S
from support import graph, node
from test_real_time import GROUP_V1, GROUPS, NEW, NO_GROUPS, OFF, OLD, SERVER, SYSCTL

from perflab.condition import Window, held
from perflab.condition import kernel_settings as kernel
from perflab.condition import realtime_limits as module
from perflab.condition.realtime_limits import KIND, RealtimeLimits, words
from perflab.errors import BadInput, Unavailable
from perflab.host import Host
from perflab.kernel import Files
from perflab.models import as_json
from perflab.real_time import real_time_limits
from perflab.workload import Graph

GRAPH = Graph(graph({"one": [node("/a", {"/t": 10}), node("/b", None, ["/t"])]}))
RUNTIME = "proc/sys/kernel/sched_rt_runtime_us"
GROUP = "sys/fs/cgroup/cpu,cpuacct/robot/cpu.rt_runtime_us"
SERVERS = [f"sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime" for cpu in (0, 1)]
MOUNTS = {"proc/self/mounts": "proc /proc proc rw 0 0\n"}
DEBUGFS = {"proc/self/mounts": "none /sys/kernel/debug debugfs rw 0 0\n"}


def made(**parameters: Any) -> RealtimeLimits:
    condition = KIND.make(parameters, "realtime_limits")
    assert isinstance(condition, RealtimeLimits)
    return condition


def machine(root: Path, *files: dict[str, str]) -> Path:
    for name, content in (item for each in files for item in each.items()):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


@pytest.mark.parametrize(
    ("files", "asked", "settings"),
    [
        ([OLD, SYSCTL, NO_GROUPS], {"throttling": "off"}, {RUNTIME: "-1"}),
        ([OLD, SYSCTL, NO_GROUPS], {"throttling": "50%"}, {RUNTIME: "500000"}),
        ([OLD, SYSCTL, NO_GROUPS], {"fair_server": False}, {}),
        ([NEW, SYSCTL, NO_GROUPS, SERVER], {"throttling": "off"}, {}),
        ([NEW, SYSCTL, NO_GROUPS, SERVER], {"fair_server": "off"}, dict.fromkeys(SERVERS, "0")),
        ([NEW, SYSCTL, NO_GROUPS, SERVER], {"fair_server": 10}, dict.fromkeys(SERVERS, "100000000")),
        ([NEW, SYSCTL, GROUPS], {"throttling": "off"}, {RUNTIME: "-1"}),
        ([NEW, SYSCTL], {"throttling": "off"}, {RUNTIME: "-1"}),
        ([NEW, SYSCTL, GROUPS, GROUP_V1], {"throttling": 20}, {GROUP: "200000"}),
        # The whole must have room for the group, or nothing is throttled at all.
        ([NEW, SYSCTL, GROUPS, GROUP_V1], {"throttling": 99}, {RUNTIME: "990000", GROUP: "990000"}),
        ([NEW, SYSCTL, OFF, GROUPS, GROUP_V1], {"throttling": 20}, {RUNTIME: "400000", GROUP: "200000"}),
    ],
)
def test_what_a_limit_stands_for_on_a_kernel(
    tmp_path: Path, files: list[dict[str, str]], asked: dict[str, Any], settings: dict[str, str]
) -> None:
    root = machine(tmp_path, *files)
    assert made(**asked).settings(root) == {str(root / name): value for name, value in settings.items()}


@pytest.mark.parametrize(
    ("files", "asked", "why"),
    [
        ([NEW, SYSCTL, NO_GROUPS], {"throttling": 50}, "since Linux 6.12 a kernel without RT_GROUP_SCHED"),
        ([NEW, SYSCTL], {"throttling": 50}, "the kernel's configuration cannot be read"),
        ([NEW, SYSCTL, GROUPS], {"throttling": 50}, "no cgroup v1 for `cpu`"),
        ([NEW], {"throttling": 50}, "does not report its throttling"),
        ([OLD, SYSCTL], {"fair_server": 5}, "this kernel has no fair server; it exists since Linux 6.12"),
        ([NEW, MOUNTS], {"fair_server": "off"}, "not mounted: `mount -t debugfs none /sys/kernel/debug`"),
        ([NEW, DEBUGFS], {"fair_server": "off"}, "built without SCHED_DEBUG"),
    ],
)
def test_what_a_kernel_cannot_do_is_refused_with_the_reason(
    tmp_path: Path, files: list[dict[str, str]], asked: dict[str, Any], why: str
) -> None:
    with pytest.raises(Unavailable) as refused:
        made(**asked).check(Host(machine(tmp_path, *files)), GRAPH, "dds")
    assert why in str(refused.value)


def test_a_kernel_that_is_locked_down_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = machine(tmp_path, NEW, SYSCTL, NO_GROUPS, SERVER)

    def locked(*_: Any, **__: Any) -> str:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    condition = made(fair_server="off")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", locked)
        with pytest.raises(Unavailable, match="the kernel is locked down"):
            condition._whole(Files(root), SERVERS[0])
    assert condition.settings(root)


def test_what_is_no_limit_is_refused() -> None:
    for given, text in {
        (): "nothing is limited; use throttling=off or fair_server=off",
        (("throttling", 0),): "throttling: 0 is neither off nor a share above 0% and up to 100%, e.g. 50%",
        (("throttling", True),): "throttling: True is neither off",
        (("fair_server", "120%"),): "fair_server: '120%' is neither off",
    }.items():
        with pytest.raises(BadInput, match=f"realtime_limits: {text}"):
            made(**dict(given))
    with pytest.raises(BadInput, match="the virtual runtime has no processes"):
        made(throttling="off").check(Host(), GRAPH, "virtual")


def test_it_is_called_by_its_limits_and_made_again_of_them() -> None:
    condition = made(throttling=False, fair_server="2.5%")
    assert condition.written == {"throttling": "off", "fair_server": 2.5}
    assert made(**condition.written) == condition
    assert words(condition.parameters) == "real-time throttling off, fair server 2.5 %"


def test_the_limits_of_a_trial_are_known_before_it(tmp_path: Path) -> None:
    host = Host(machine(tmp_path, NEW, SYSCTL, NO_GROUPS, SERVER))
    assert not made(throttling="off").limits_of(host).off
    assert made(fair_server="off").limits_of(host).off
    assert not made(fair_server=10).limits_of(host).off


def test_other_limits_than_promised_are_not_in_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = machine(tmp_path, NEW, SYSCTL, GROUPS, GROUP_V1)
    monkeypatch.setattr(module, "real_time_limits", lambda *_: real_time_limits(root))
    monkeypatch.setattr(RealtimeLimits, "settings", lambda *_: {str(root / GROUP): "200000"})
    monkeypatch.setattr(kernel, "FOLDER", tmp_path / "records")
    said = [{"type": "ready", "settings": [{"name": str(root / GROUP), "before": "400000", "read": "200000"}]}]
    trial = MadeTrial(tmp_path, MadeMonitor(tmp_path / "m.jsonl").reader(), MadeCompanion("realtime_limits", 30, said))
    applied = made(throttling=20).begin(trial)
    kernel.write(str(root / GROUP), "200000")
    applied.settle()
    evidence = as_json(applied.verify(Window(S, 4 * S)))
    assert evidence["in_effect"], evidence["reason"]
    assert (evidence["promised"]["real_time_share"], evidence["achieved"]["real_time_share"]) == (0.2, 0.2)
    assert evidence["promised"]["fair_server_share"] is None
    (root / RUNTIME).write_text("-1")
    reason = as_json(applied.verify(Window(S, 4 * S)))["reason"]
    assert reason == "real-time threads may use 1 of a CPU, but 0.2 was promised"


def test_a_file_is_set_back_as_a_setting_is(tmp_path: Path) -> None:
    path = str(machine(tmp_path, {"server": "50\n"}) / "server")
    record = kernel.Record(path, "50", "0", "trial", "boot")
    kernel.write(path, "0")
    kernel.restore(record)
    assert kernel.read(path) == "50"
    assert kernel.command(path, "50") == f"echo '50' > {path}"
    assert held.current(path) == "50"
