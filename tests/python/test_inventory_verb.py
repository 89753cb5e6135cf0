"""`perflab inventory`: of this machine, of a run, of two; in every format it says the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Perflab
from made_experiment import write_run
from test_latex import check

from perflab.report.inventory import rows, table
from perflab.report.tables.plain import markdown

Json = dict[str, Any]

INVENTORY: Json = {
    "cpu_model": "Test_CPU | 100%",
    "kernel": "6.1.0",
    "cpus_online": "0-3",
    "cpus_allowed": 2,
    "memory_kb": 16 << 20,
    "hypervisor": None,
    "container": None,
    "cpus": [
        {
            "cpu": n,
            "core": n // 2,
            "socket": 0,
            "governor": "performance",
            "khz_min": 800_000,
            "khz_max": 3_600_000,
        }
        for n in range(4)
    ],
    "caches": [
        {"level": 1, "type": "Data", "size": "32K", "cpus": "0"},
        {"level": 1, "type": "Data", "size": "32K", "cpus": "1"},
        {"level": 3, "type": "Unified", "size": "8M", "cpus": "0-3"},
    ],
    "mitigations": {"meltdown": "Not affected", "mds": "Mitigation: on", "srso": "Vulnerable"},
    "limits": {"Max locked memory": {"soft": 8 << 20, "hard": "unlimited"}},
    "cgroup": {"cpus": 1.5, "cpuset": "0-1", "memory_bytes": "unlimited"},
    "environment": {"ROS_DOMAIN_ID": "7"},
    "software": {
        "perflab": {"version": "0.1.0", "git": {"revision": "abcdef0123456789", "modified": True}},
        "middlewares": {
            "cyclonedds": {
                "version": "0.10.2",
                "libraries": [
                    {"path": "/l/libddsc.so", "package": "libddsc0", "package_version": "0.10.2-2", "sha256": "1"},
                    {"path": "/l/libc.so", "package": "libc6", "package_version": "2.36", "sha256": "2"},
                ],
            }
        },
        "packages": {"numpy": "2.0", "rich": None},
    },
}


def made(path: Path, **changes: Any) -> Path:
    summary = {"schema": 1, "valid": True, "results": [], "findings": None}
    return write_run(path, summary, inventory={**INVENTORY, **changes})


def test_rows_say_what_is_known_and_what_is_not() -> None:
    found = {(r.section, r.label): r.value for r in rows(INVENTORY)}
    assert found["Machine", "CPUs"] == "4 (0-3), 2 of them usable"
    assert found["Machine", "cores and sockets"] == "2 cores on 1 socket"
    assert found["Machine", "frequency"] == "0.8 to 3.6 GHz"
    assert found["Machine", "caches"] == "L1 data 2 × 32K, L3 8M"
    assert found["Machine", "hypervisor"] == "none"
    assert found["Machine", "turbo"] is None
    assert found["System", "mitigations"] == "mds; vulnerable: srso"
    assert found["Limits", "CPUs of the cgroup"] == "1.5, on 0-1"
    assert found["Limits", "locked memory"] == "8 MiB"
    assert found["Software", "perflab"] == "0.1.0 (abcdef012345, changed since)"
    assert found["Software", "cyclonedds"] == "0.10.2 (libddsc0 0.10.2-2)"
    assert found["Software", "Python packages"] == "numpy 2.0"
    assert found["Environment", "ROS_DOMAIN_ID"] == "7"


def test_an_inventory_with_nothing_in_it_is_not_known() -> None:
    values = {r.value for r in rows({}) if r.label not in ("hypervisor", "container")}
    assert values == {None}


def test_markdown_escapes_what_means_something() -> None:
    text = markdown(table(INVENTORY))
    assert r"| CPU | Test\_CPU \| 100% |" in text
    assert "| turbo | not known |" in text


def test_the_table_fits_80_columns(perflab: Perflab, tmp_path: Path) -> None:
    done = perflab("inventory", made(tmp_path / "run", kernel_command_line="word " * 60), COLUMNS="80")
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "Test_CPU | 100%" in done.stdout
    assert done.stdout.count("word") == 60


def test_json_is_the_manifests(perflab: Perflab, tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    assert json.loads(perflab("inventory", run, "--json").stdout) == INVENTORY
    assert json.loads(perflab("inventory", run, "--format", "json").stdout) == INVENTORY


@pytest.mark.parametrize("fmt", ["table", "json", "latex", "markdown"])
def test_a_file_has_what_is_printed(perflab: Perflab, tmp_path: Path, fmt: str) -> None:
    run, out = made(tmp_path / "run"), tmp_path / "out"
    printed = perflab("inventory", run, "--format", fmt, COLUMNS="80").stdout
    done = perflab("inventory", run, "--format", fmt, "--output", out)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [line.rstrip() for line in printed.splitlines()] == out.read_text().splitlines()


def test_latex_is_well_formed(perflab: Perflab, tmp_path: Path) -> None:
    text = perflab("inventory", made(tmp_path / "run"), "--format", "latex").stdout
    check(text)
    assert r"Test\_CPU \textbar{} 100\%" in text


def test_this_machine_is_the_default(perflab: Perflab) -> None:
    done = perflab("inventory", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["kernel"] == Path("/proc/sys/kernel/osrelease").read_text().strip()
    assert set(found["software"]["middlewares"]) == {"cyclonedds", "shm", "sim"}  # the doubles; fastdds is missing


def test_of_two_runs_the_differences_are_told(perflab: Perflab, tmp_path: Path) -> None:
    one, other = made(tmp_path / "one"), made(tmp_path / "other", kernel="6.8.0")
    done = perflab("inventory", one, other)
    assert (done.returncode, done.stdout) == (0, "kernel 6.1.0 against 6.8.0\n")
    assert json.loads(perflab("inventory", one, other, "--json").stdout)["differences"] == [
        "kernel 6.1.0 against 6.8.0"
    ]
    assert "No known difference" in perflab("inventory", one, one).stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["RUN", "RUN", "RUN"], "one run, or two to compare, not 3"),
        (["RUN", "RUN", "--format", "latex"], "--format latex is for one inventory"),
        (["RUN", "--format", "word"], "--format 'word' is not one of table, json, latex, markdown"),
        (["RUN", "--format", "latex", "--json"], "--json excludes --format latex"),
        (["nowhere"], "no run 'nowhere'"),
        (["EMPTY"], "has no inventory"),
        (["DAMAGED"], "the inventory is damaged"),
    ],
)
def test_bad_input_is_one_line(perflab: Perflab, tmp_path: Path, arguments: list[str], expected: str) -> None:
    summary = {"schema": 1, "valid": True, "results": [], "findings": None}
    paths = {
        "RUN": made(tmp_path / "run"),
        "EMPTY": write_run(tmp_path / "empty", summary, host={}),
        "DAMAGED": made(tmp_path / "damaged", cpus=["what"]),
    }
    done = perflab("inventory", *(str(paths.get(word, word)) for word in arguments))
    assert (done.returncode, done.stdout) == (2, "")
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_that_cannot_be_written_is_told(perflab: Perflab, tmp_path: Path) -> None:
    done = perflab("inventory", made(tmp_path / "run"), "--output", tmp_path / "no" / "file")
    assert done.returncode == 1
    assert "choose another place with --output" in done.stderr
