"""memory_pressure and io_load on made monitor data; the folders that they write to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from made_trial import MadeCompanion, MadeMonitor, MadeTrial, S, graph_of

from perflab.condition import Window, io_load, memory_pressure, stress_ng, temporary
from perflab.errors import BadInput, Unavailable
from perflab.host import Host
from perflab.models import as_json
from perflab.processes import Process

WINDOW = Window(S, 4 * S)
MIB = 1 << 20


@pytest.fixture(autouse=True)
def stress_ng_of_a_machine_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stress_ng, "find", lambda: Path("/usr/bin/stress-ng"))
    monkeypatch.setattr(stress_ng, "version", lambda: "0.15.06")


def machine(root: Path, available_mib: int) -> Host:
    (root / "proc").mkdir()
    (root / "proc/meminfo").write_text(f"MemTotal: 9 kB\nMemAvailable: {available_mib * 1024} kB\n", encoding="utf-8")
    return Host(root)


def applied(tmp_path: Path, condition: Any, monitor: MadeMonitor) -> tuple[MadeTrial, stress_ng.Load]:
    """A trial in which the condition began; its only worker is this test itself, which lives."""
    trial = MadeTrial(tmp_path, monitor.reader(), MadeCompanion(condition.label, os.getpid()))
    load: stress_ng.Load = condition.begin(trial)
    load.workers = [_this_process()]
    load.scheduling[os.getpid()] = {"policy": "OTHER", "priority": 0, "nice": 0}
    return trial, load


def _this_process() -> Process:
    stat = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return Process(os.getpid(), int(stat[19]))


# -- memory ----------------------------------------------------------------------------------------------------------


def pressure(tmp_path: Path, **parameters: Any) -> memory_pressure.MemoryPressure:
    condition = memory_pressure.KIND.make(parameters, "memory_pressure")
    assert isinstance(condition, memory_pressure.MemoryPressure)
    here = machine(tmp_path, 4096)
    condition.check(here, graph_of("a"), "dds")
    return condition.resolved(here)


def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rss_mib: list[int], now_mib: int) -> dict[str, Any]:
    """Evidence of 100 MiB held, with 4 MiB of overhead."""
    monkeypatch.setattr(memory_pressure, "_overhead", lambda load: 4 * MIB)
    monkeypatch.setattr(memory_pressure, "_held", lambda load: now_mib * MIB)
    condition = pressure(tmp_path, bytes="100MiB", access="hold")
    monitor = MadeMonitor(tmp_path / "m.jsonl").thread("memory_pressure", os.getpid())
    monitor.samples(51, rss_kb=lambda group, i: rss_mib[min(i // 10, len(rss_mib) - 1)] * 1024)
    _, load = applied(tmp_path, condition, monitor)
    return dict(as_json(load.verify(WINDOW)))


def test_memory_that_stays_resident_is_in_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = held(tmp_path, monkeypatch, [104], 100)
    assert evidence["in_effect"], evidence
    assert evidence["achieved"]["resident_bytes"] == 100 * MIB
    assert evidence["achieved"]["samples"] == 31


def test_memory_that_was_away_for_a_moment_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = held(tmp_path, monkeypatch, [104, 104, 54, 104], 100)
    assert evidence["reason"] == "it held 50 MiB of 100 MiB"


def test_memory_that_is_gone_at_the_end_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = held(tmp_path, monkeypatch, [104], 10)
    assert evidence["reason"] == "it held 10 MiB of 100 MiB at the end"


def test_memory_that_is_not_rewritten_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_pressure, "_overhead", lambda load: 0)
    monkeypatch.setattr(memory_pressure, "_held", lambda load: 100 * MIB)
    condition = pressure(tmp_path, bytes="100MiB")
    monitor = MadeMonitor(tmp_path / "m.jsonl").thread("memory_pressure", os.getpid())
    monitor.samples(51, rss_kb=lambda group, i: 100 * 1024, cpu=lambda tid, i: 1.0 if i <= 20 or i > 30 else 0.0)
    _, load = applied(tmp_path, condition, monitor)
    reason = as_json(load.verify(WINDOW))["reason"]
    assert reason.startswith("it did not rewrite its memory: ")
    assert "part 2 of 3" in reason


def test_what_would_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as raised:
        pressure(tmp_path, bytes="3900MiB")
    assert str(raised.value) == (
        "memory_pressure: 3.81 GiB exceed the 3.75 GiB that can be taken here: 4.00 GiB are available, 256 MiB of "
        "them stay free"
    )


def test_a_share_of_the_memory_is_the_same_in_every_trial(tmp_path: Path) -> None:
    condition = pressure(tmp_path, percent="25%", workers=2)
    (tmp_path / "proc/meminfo").write_text("MemAvailable: 9 kB\n", encoding="utf-8")
    trial, _ = applied(tmp_path, condition, MadeMonitor(tmp_path / "m.jsonl"))
    words = trial.commands[0]
    assert words[words.index("--vm-bytes") + 1] == str(1024 * MIB)
    assert {"--vm-keep", "--oomable"} <= set(words)


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({}, "give exactly one of bytes and percent"),
        ({"bytes": "1GiB", "percent": 10}, "give exactly one of bytes and percent"),
        ({"bytes": "2MiB", "workers": 4}, "bytes 2097152 is less than 1 MiB for each worker"),
        ({"percent": 99}, "percent: 99% must be at most 95%"),
    ],
)
def test_bad_parameters_of_memory_pressure(parameters: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput, match=f"^memory_pressure: {complaint}"):
        memory_pressure.KIND.make(parameters, "memory_pressure")


# -- storage ---------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def on_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(io_load, "_file_system", lambda folder: "ext4")


def load(**parameters: Any) -> io_load.IoLoad:
    condition = io_load.KIND.make(parameters, "io_load")
    assert isinstance(condition, io_load.IoLoad)
    return condition


def written(tmp_path: Path, condition: io_load.IoLoad, mb: Sequence[float]) -> dict[str, Any]:
    """Evidence where `mb` are the MB written in each interval of 100 ms, the last one again and again."""
    monitor = MadeMonitor(tmp_path / "m.jsonl").thread("io_load", os.getpid())
    monitor.samples(51, written=lambda group, i: round(mb[min(i, len(mb) - 1)] * 1e6))
    _, load = applied(tmp_path, condition, monitor)
    evidence = as_json(load.verify(WINDOW))
    load.remove()
    return dict(evidence)


def test_writing_all_the_time_is_in_effect(tmp_path: Path) -> None:
    evidence = written(tmp_path, load(rate=19), [2])
    assert evidence["in_effect"], evidence
    assert evidence["achieved"]["written_mb_per_s"] == pytest.approx(20)
    assert evidence["achieved"]["written_mb_per_s_by_part"] == pytest.approx([20, 20, 20])


def test_short_pauses_of_the_storage_are_allowed(tmp_path: Path) -> None:
    evidence = written(tmp_path, load(), [2] * 12 + [0] * 8 + [2])
    assert evidence["in_effect"], evidence
    assert evidence["achieved"]["longest_pause_s"] == pytest.approx(0.9)


def test_a_second_without_a_byte_is_not(tmp_path: Path) -> None:
    evidence = written(tmp_path, load(), [2] * 16 + [0] * 11 + [2])  # not within one part of the window
    assert evidence["reason"] == "it wrote nothing for 1.2 s"
    assert written(tmp_path, load(rate=1), [2] * 16 + [0] * 11 + [2])["reason"] == "it wrote nothing for 1.2 s"
    evidence = written(tmp_path, load(), [2] * 25 + [0])
    assert evidence["reason"] == "it wrote nothing for 1.6 s"
    assert written(tmp_path, load(), [0])["reason"] == "it wrote nothing"


def test_less_than_the_rate_is_not(tmp_path: Path) -> None:
    reason = "it wrote 20 MB/s in part 1 of 3 of the measured time, but 25 were promised"
    assert written(tmp_path, load(rate=25), [2])["reason"] == reason


def test_a_rate_holds_in_every_second(tmp_path: Path) -> None:
    evidence = written(tmp_path, load(rate=15), [4] * 21 + [1] * 10 + [4])  # 30 MB/s in the mean
    assert evidence["achieved"]["written_mb_per_s"] == pytest.approx(30)
    assert evidence["reason"] == "it wrote 10 MB/s in part 2 of 3 of the measured time, but 15 were promised"


def test_a_load_that_stands_still_most_of_the_time_is_none(tmp_path: Path) -> None:
    evidence = written(tmp_path, load(), ([2] + [0] * 6) * 8)
    assert evidence["achieved"]["longest_pause_s"] < 1
    assert evidence["achieved"]["idle_intervals_share"] == pytest.approx(26 / 30, abs=0.001)
    assert evidence["reason"] == "it wrote nothing in 87% of the time"
    assert written(tmp_path, load(), [2, 0] * 26)["in_effect"]


def test_a_pause_of_half_a_short_window_is_too_long(tmp_path: Path) -> None:
    monitor = MadeMonitor(tmp_path / "m.jsonl").thread("io_load", os.getpid())
    monitor.samples(51, written=lambda group, i: 0 if 13 <= i <= 17 else 2_000_000)
    _, writers = applied(tmp_path, load(), monitor)
    assert as_json(writers.verify(Window(S, 2 * S)))["reason"] == "it wrote nothing for 0.6 s"
    assert as_json(writers.verify(WINDOW))["in_effect"]


@pytest.mark.parametrize("name", ["io_load", "memory_pressure"])
def test_a_worker_that_only_runs_when_nobody_else_does_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(memory_pressure, "_overhead", lambda load: 0)
    monkeypatch.setattr(memory_pressure, "_held", lambda load: 100 * MIB)
    condition: Any = load() if name == "io_load" else pressure(tmp_path, bytes="100MiB")
    monitor = MadeMonitor(tmp_path / "m.jsonl").thread(name, os.getpid())
    monitor.thread(name, os.getpid(), at=20, policy="IDLE")
    monitor.samples(51, written=lambda group, i: 10**6, cpu=lambda tid, i: 1.0, rss_kb=lambda group, i: 100 * 1024)
    _, applied_load = applied(tmp_path, condition, monitor)
    evidence = as_json(applied_load.verify(WINDOW))
    assert evidence["reason"] == (
        f"thread {os.getpid()} of stress-ng had policy IDLE instead of OTHER, 1.0 s into the measured time"
    )


def test_every_write_waits_for_the_storage(tmp_path: Path) -> None:
    for sync in ("fsync", "dsync", "direct"):
        trial, _ = applied(tmp_path, load(sync=sync, workers=3, bytes="2MiB"), MadeMonitor(tmp_path / "m.jsonl"))
        words = trial.commands[0]
        assert words[words.index("--hdd-opts") + 1] == f"wr-seq,{sync}"
        assert words[words.index("--hdd-bytes") + 1] == str(6 * MIB)


def test_a_disk_without_room_and_a_run_in_memory_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unavailable, match=r"io_load: .* are free in the run's file system, but .* GiB are needed"):
        applied(tmp_path, load(workers=256, bytes="100GiB"), MadeMonitor(tmp_path / "m.jsonl"))
    monkeypatch.setattr(io_load, "_file_system", lambda folder: "tmpfs")
    with pytest.raises(Unavailable, match="the run is on tmpfs, which is memory"):
        applied(tmp_path, load(), MadeMonitor(tmp_path / "m.jsonl"))
    assert not (tmp_path / "io_load").exists()


# -- folders ---------------------------------------------------------------------------------------------------------


def test_a_folder_left_by_a_crash_is_found_and_removed(tmp_path: Path) -> None:
    trial = MadeTrial(tmp_path, MadeMonitor(tmp_path / "m.jsonl").reader())
    folder = temporary.make(trial, "io_load")
    (folder / "tmp-1").mkdir()
    (folder / "tmp-1/file").write_bytes(b"x")
    (tmp_path / "processes").mkdir()
    assert temporary.remove_left_over(tmp_path) == [folder]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.jsonl", "processes"]
    assert temporary.remove_left_over(tmp_path) == []


def test_another_folder_of_that_name_is_not_touched(tmp_path: Path) -> None:
    trial = MadeTrial(tmp_path, MadeMonitor(tmp_path / "m.jsonl").reader())
    folder = temporary.make(trial, "io_load")
    folder.rename(folder.with_name("moved"))
    folder.mkdir()
    (folder / "precious").write_bytes(b"x")
    assert temporary.remove_left_over(tmp_path) == []
    assert (folder / "precious").exists()
    (folder.parent / temporary.RECORD).write_text("damaged", encoding="utf-8")
    assert temporary.remove_left_over(tmp_path) == []


def test_what_else_a_condition_keeps_stays(tmp_path: Path) -> None:
    trial = MadeTrial(tmp_path, MadeMonitor(tmp_path / "m.jsonl").reader())
    folder = temporary.make(trial, "io_load")
    (folder.parent / "note.json").write_text("{}", encoding="utf-8")
    temporary.remove(folder)
    temporary.remove(folder)
    assert [p.name for p in (tmp_path / "io_load").iterdir()] == ["note.json"]
