"""The inventory of machines made of files, of this machine, and what differs between two."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support import build_plugin

from perflab.experiment import inventory as inventory_module
from perflab.experiment.inventory import difference, inventory
from perflab.host import Host
from perflab.middleware import Middleware
from perflab.native import Native

CPU = "sys/devices/system/cpu"
MACHINE = {
    "proc/sys/kernel/osrelease": "6.1.0",
    "proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
    "proc/self/limits": "Limit  Soft Limit  Hard Limit  Units\nMax locked memory   8388608  unlimited  bytes\n"
    "Max nice priority   0   0   \n",
    "proc/sys/net/core/rmem_max": "212992\n",
    "proc/sys/net/ipv4/udp_mem": "1\t2\t3\n",
    "proc/sys/kernel/sched_rt_runtime_us": "950000\n",
    f"{CPU}/online": "0-1",
    f"{CPU}/smt/control": "on",
    f"{CPU}/intel_pstate/no_turbo": "1",
    f"{CPU}/vulnerabilities/meltdown": "Mitigation: PTI\n",
    f"{CPU}/cpu0/topology/core_id": "0",
    f"{CPU}/cpu0/topology/physical_package_id": "0",
    f"{CPU}/cpu0/topology/thread_siblings_list": "0-1",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "performance",
    f"{CPU}/cpu0/cpufreq/scaling_max_freq": "3000000",
    f"{CPU}/cpu0/cache/index0/level": "3",
    f"{CPU}/cpu0/cache/index0/type": "Unified",
    f"{CPU}/cpu0/cache/index0/size": "32768K",
    f"{CPU}/cpu0/cache/index0/shared_cpu_list": "0-1",
    f"{CPU}/cpu1/cache/index0/level": "3",
    f"{CPU}/cpu1/cache/index0/type": "Unified",
    f"{CPU}/cpu1/cache/index0/size": "32768K",
    f"{CPU}/cpu1/cache/index0/shared_cpu_list": "0-1",
    f"{CPU}/cpu0/node0/cpulist": "0-1",
    "sys/devices/system/node/node0/cpulist": "0-1",
    "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:  16000000 kB",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
}


def machine(root: Path, files: dict[str, str]) -> dict[str, Any]:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    found = inventory(Host(root), Native(root / "native"), [])
    json.dumps(found, allow_nan=False)
    return found


def test_a_machine(tmp_path: Path) -> None:
    found = machine(tmp_path, MACHINE)
    assert found["kernel"] == "6.1.0"
    assert found["cpus"][0] == {
        "cpu": 0, "core": 0, "socket": 0, "siblings": [0, 1], "numa_node": 0, "driver": None,
        "governor": "performance", "khz": None, "khz_min": None, "khz_max": 3_000_000,
    }  # fmt: skip
    assert found["caches"] == [{"level": 3, "type": "Unified", "size": "32768K", "cpus": "0-1"}]
    assert found["numa_nodes"] == [{"node": 0, "cpus": "0-1", "memory_kb": 16_000_000}]
    assert found["memory"]["available_kb"] == 8_000_000
    assert (found["turbo"], found["smt"], found["huge_pages"]) == ("off", "on", "madvise")
    assert found["mitigations"] == {"meltdown": "Mitigation: PTI"}
    assert found["limits"] == {
        "Max locked memory": {"soft": 8388608, "hard": "unlimited"},
        "Max nice priority": {"soft": 0, "hard": 0},
    }
    assert found["sysctls"]["net.core.rmem_max"] == "212992"
    assert found["sysctls"]["net.ipv4.udp_mem"] == "1 2 3"
    assert found["sysctls"]["kernel.sched_rt_runtime_us"] == "950000"
    assert found["sysctls"]["net.core.wmem_max"] is None


def test_what_cannot_be_read_is_null(tmp_path: Path) -> None:
    found = machine(tmp_path, {})
    assert set(found.pop("memory").values()) == {None}
    assert set(found.pop("sysctls").values()) == {None}
    assert set(found.values()) == {None}


def test_garbage_breaks_nothing(tmp_path: Path) -> None:
    names = [*MACHINE, "proc/self/cgroup", "sys/fs/cgroup/cgroup.controllers", "sys/fs/cgroup/cpu.max"]
    found = machine(tmp_path, dict.fromkeys(names, "\0garbage: 5"))
    assert found["cpus"] is None
    assert found["cgroup"] is None


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/cgroup.controllers": "cpu memory",
                "sys/fs/cgroup/a/cpu.max": "150000 100000",
                "sys/fs/cgroup/a/b/cpu.max": "max 100000",
                "sys/fs/cgroup/a/b/cpuset.cpus.effective": "0-2",
                "sys/fs/cgroup/a/b/memory.max": "max",
                "sys/fs/cgroup/a/memory.max": "1000000",
            },
            {"version": 2, "path": "/a/b", "cpus": 1.5, "cpuset": "0-2", "memory_bytes": 1_000_000},
        ),
        (
            {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cgroup.controllers": "cpu"},
            {"version": 2, "path": "/", "cpus": "unlimited", "cpuset": None, "memory_bytes": "unlimited"},
        ),
        (
            {
                "proc/self/cgroup": "3:cpuset:/\n2:cpu,cpuacct:/docker/x\n1:memory:/docker/x\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
                "sys/fs/cgroup/cpuset/cpuset.cpus": "1",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
            },
            {"version": 1, "path": "/docker/x", "cpus": 0.5, "cpuset": "1", "memory_bytes": "unlimited"},
        ),
        (
            {
                "proc/self/cgroup": "2:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            {"version": 1, "path": "/", "cpus": "unlimited", "cpuset": None, "memory_bytes": None},
        ),
        ({"proc/self/cgroup": ""}, None),
    ],
)
def test_limits_of_the_cgroup(tmp_path: Path, files: dict[str, str], expected: dict[str, Any] | None) -> None:
    assert machine(tmp_path, files)["cgroup"] == expected


def test_this_machine_and_a_plug_in_that_brings_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = shutil.which("cc") or pytest.skip("no C compiler `cc` to build a library with")
    library, plugin = tmp_path / "libcarrier.so.1", tmp_path / "fake.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-x", "c", "-o", library, "-"],
        input=b"int carrier(void) { return 1; }",
        check=True,
    )
    build_plugin(tmp_path / "plain.so", "plain")
    source = b"int carrier(void); int use(void) { return carrier(); }"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-x", "c", "-o", plugin, "-", "-x", "none", library, f"-Wl,-rpath,{tmp_path}"],
        input=source,
        check=True,
    )
    native = tmp_path / "native"
    native.mkdir()
    (native / "perflab-node").write_text("program")
    monkeypatch.setenv("CYCLONEDDS_URI", "file:///x")
    kinds = [
        Middleware("fake", "dds", plugin, "1.0"),
        Middleware("plain", "dds", tmp_path / "plain.so", "1.0"),
        Middleware("broken", "dds", native / "perflab-node", None),
        Middleware("virtual", "virtual", None, None),
    ]
    found = inventory(Host(), Native(native), kinds)
    json.dumps(found, allow_nan=False)
    assert found["cpus_allowed"] == len(os.sched_getaffinity(0))
    assert found["environment"]["CYCLONEDDS_URI"] == "file:///x"
    software = found["software"]
    assert software["programs"]["perflab-node"]["size_bytes"] == 7
    assert software["programs"]["perflab-node"]["sha256"] == hashlib.sha256(b"program").hexdigest()[:16]
    assert set(software["middlewares"]) == {"fake", "plain", "broken"}
    carried = software["middlewares"]["fake"]["libraries"]
    assert [Path(lib["path"]).name for lib in carried] == ["libcarrier.so.1"]
    assert carried[0]["package"] is None
    assert software["middlewares"]["plain"]["libraries"] == []
    assert software["middlewares"]["broken"]["libraries"] is None
    assert software["packages"]["numpy"]
    assert difference(found, found) == []


def test_a_file_that_was_replaced_has_another_sum(tmp_path: Path) -> None:
    path = tmp_path / "program"
    sums = []
    for content in ("one", "two", "three"):
        path.write_text(content)
        told = inventory_module._file(path)
        assert told is not None
        sums.append(told["sha256"])
    assert len(set(sums)) == 3
    assert inventory_module._file(tmp_path / "none") is None


def test_packages_of_files_below_usr_are_found_by_their_old_names(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "-S": "libx1:amd64: /lib/x86_64-linux-gnu/libx.so.1\nliby2: /usr/lib/liby.so.2\n",
        "-W": "libx1:amd64\tlibx1\t1.2-3\nliby2\tliby2\t4.5\n",
    }
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(inventory_module, "_run", lambda command, **_: answers[command[1]])
    assert inventory_module._packages(["/usr/lib/x86_64-linux-gnu/libx.so.1", "/usr/lib/liby.so.2", "/opt/z.so"]) == {
        "/usr/lib/x86_64-linux-gnu/libx.so.1": ("libx1", "1.2-3"),
        "/usr/lib/liby.so.2": ("liby2", "4.5"),
    }


# -- differences -----------------------------------------------------------------------------------------------------


def library(name: str, digest: str, version: str | None) -> dict[str, Any]:
    return {"path": f"/usr/lib/{name}", "sha256": digest, "package_version": version}


BASE: dict[str, Any] = {
    "kernel": "6.1.0", "memory_kb": 16_000_000, "hypervisor": None, "container": None, "clock_source": "tsc",
    "hostname": "alpha", "uptime_s": 5.0,
    "cpus": [{"governor": "performance", "khz_max": 3_000_000, "khz": 1}, {"governor": "performance", "khz_max": None}],
    "mitigations": {"meltdown": "Mitigation: PTI"}, "sysctls": {"net.core.rmem_max": "212992", "vm.swappiness": None},
    "limits": {"Max locked memory": {"soft": 8388608, "hard": "unlimited"}},
    "cgroup": {"cpus": "unlimited"},
    "environment": {},
    "software": {
        "perflab": {"version": "0.1.0", "git": {"revision": "a" * 40, "modified": False}},
        "programs": {"perflab-node": {"sha256": "11"}},
        "python": "3.11.7",
        "middlewares": {
            "cyclonedds": {
                "version": "0.10.2", "plugin": {"sha256": "22"},
                "libraries": [library("libddsc.so.0.10.2", "33", "1-1")],
            },
            "sim": {"version": "1", "plugin": {"sha256": "44"}, "libraries": []},
        },
    },
}  # fmt: skip


def changed(path: str, value: Any) -> dict[str, Any]:
    other = copy.deepcopy(BASE)
    *keys, last = path.split("/")
    part = other
    for key in keys:
        part = part[key]
    part[last] = value
    return other


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ("kernel", "6.8.0", "kernel 6.1.0 against 6.8.0"),
        ("hypervisor", "KVM", "hypervisor none against KVM"),
        ("memory_kb", 8_000_000, "memory 15625 MiB against 7812 MiB"),
        ("cpus", [{"governor": "powersave", "khz_max": 3_000_000}], "frequency governor performance against powersave"),
        ("mitigations", {"meltdown": "Vulnerable"}, "mitigation of meltdown Mitigation: PTI against Vulnerable"),
        ("sysctls/net.core.rmem_max", "1", "sysctl net.core.rmem_max 212992 against 1"),
        ("limits/Max locked memory/soft", "unlimited", "memlock limit 8388608 against unlimited"),
        ("cgroup/cpus", 1.5, "CPU limit of the cgroup unlimited against 1.5"),
        ("environment", {"ROS_X": "1"}, "environment variable ROS_X not set against 1"),
        ("software/perflab/git/modified", True, "perflab changed since its revision no against yes"),
        ("software/programs/perflab-node/sha256", "12", "perflab-node 11 against 12"),
        ("software/middlewares/cyclonedds/plugin/sha256", "23", "plug-in of cyclonedds 22 against 23"),
        (
            "software/middlewares/cyclonedds/libraries",
            [library("libddsc.so.0.10.3", "34", "1-2")],
            "libddsc of cyclonedds 1-1 against 1-2",
        ),
        (
            "software/middlewares/cyclonedds/libraries",
            [library("libddsc.so.0.10.2", "34", "1-1")],
            "libddsc of cyclonedds 33 against 34",
        ),
    ],
)
def test_what_matters_is_told_in_a_line(path: str, value: Any, line: str) -> None:
    assert difference(BASE, changed(path, value)) == [line]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("uptime_s", 7.0),
        ("memory_kb", 16_001_000),
        ("clock_source", None),
        ("sysctls/vm.swappiness", "60"),
        ("software/python", "3.12"),
        ("software/middlewares/sim", {"version": None, "plugin": None, "libraries": None}),
        ("software", None),
        ("cpus", None),
    ],
)
def test_what_does_not_matter_or_is_not_known_is_no_difference(path: str, value: Any) -> None:
    assert difference(BASE, changed(path, value)) == []
    assert difference(changed(path, value), BASE) == []


def test_runs_of_other_middlewares_and_of_older_versions_are_compared_in_what_both_have() -> None:
    other = copy.deepcopy(BASE)
    del other["software"]["middlewares"]["cyclonedds"]
    assert difference(BASE, other) == []
    assert difference(BASE, {"kernel": "6.8.0"}) == ["kernel 6.1.0 against 6.8.0"]
    assert difference({}, {}) == []
