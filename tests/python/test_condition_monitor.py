"""The monitor where conditions need it to look more often than the observer asked for: tables at the asked interval."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from made_trial import INTERVAL_NS, MS, MadeMonitor, MadeTrial, S

from perflab.observer.monitor import KIND, Monitor

SAMPLES = 54  # 5.3 s: five whole seconds, and a part of one


def made(tmp_path: Path, interval: str) -> tuple[Monitor, MadeTrial]:
    observer = KIND.make({"interval": interval}, "monitor")
    assert isinstance(observer, Monitor)
    monitor = MadeMonitor(tmp_path / "m.jsonl").thread("a", 11).thread("a", 12).thread("b", 21)
    monitor.samples(SAMPLES, cpu=lambda tid, i: tid / 100, delay=lambda tid, i: None if tid == 21 else 0.1, idle=0.25)
    return observer, MadeTrial(tmp_path, monitor.reader())


def tables(tmp_path: Path, interval: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    observer, trial = made(tmp_path, interval)
    threads, cpus = (pl.read_parquet(artifact.path) for artifact in observer.begin(trial).stop())
    return threads, cpus


def test_tables_have_the_interval_that_was_asked_for(tmp_path: Path) -> None:
    observer, trial = made(tmp_path, "1s")
    assert observer.interval == S
    assert trial.monitor.interval_ns == INTERVAL_NS
    threads, cpus = tables(tmp_path, "1s")
    of_one = threads.filter(tid=12)
    instants = [0, S, 2 * S, 3 * S, 4 * S, 5 * S, 53 * INTERVAL_NS]
    assert of_one["at_ns"].to_list() == instants
    assert of_one["cpu_interval_ns"].to_list() == pytest.approx([None, *[120 * MS] * 5, 36 * MS])
    assert cpus.filter(cpu=1)["at_ns"].to_list() == instants[1:]
    assert cpus.filter(cpu=1)["interval_ns"].to_list() == [*[S] * 5, 3 * INTERVAL_NS]
    assert cpus.filter(cpu=1)["idle_ns"].to_list() == [*[250 * MS] * 5, 75 * MS]


def test_nothing_is_lost_or_made_up(tmp_path: Path) -> None:
    every, every_cpu = tables(tmp_path, "100ms")
    few, few_cpu = tables(tmp_path, "5s")
    assert every.filter(tid=12).height == SAMPLES
    assert few.filter(tid=12).height == 3
    assert (every.schema, every_cpu.schema) == (few.schema, few_cpu.schema)
    for column in ("cpu_interval_ns", "run_delay_interval_ns", "voluntary"):
        assert every[column].sum() == few[column].sum()
    assert every_cpu["busy_ns"].sum() == few_cpu["busy_ns"].sum()
    assert few.filter(tid=21)["run_delay_interval_ns"].to_list() == [None] * 3  # unknown stays unknown


def test_an_interval_shorter_than_the_monitors_changes_nothing(tmp_path: Path) -> None:
    assert tables(tmp_path, "10ms")[0].equals(tables(tmp_path, "100ms")[0])
