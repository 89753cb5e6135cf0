"""Observers: what they ask for, what they change and what they leave behind."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest

from perflab.condition import Launch, Trial
from perflab.errors import BadInput, Unavailable
from perflab.formats.json_file import write_json
from perflab.formats.monitor import MonitorReader
from perflab.formats.records import RecordError
from perflab.host import Host
from perflab.native import Native, find
from perflab.observer import Artifact, Observer, allocations, cyclictest, hiccup, monitor
from perflab.observer.cyclictest import Cyclictest
from perflab.observer.hiccup import Hiccup
from perflab.observer.monitor import Monitor
from perflab.registry import Kind
from perflab.results.trial import ThreadGroup
from perflab.statistics import histogram as hg
from perflab.units import duration_text

KINDS: tuple[Kind[Observer], ...] = (monitor.KIND, hiccup.KIND, allocations.KIND)


@dataclass
class MadeTrial:
    """As much of a trial as observers use."""

    directory: Path
    launch: Launch = field(default_factory=Launch)

    @property
    def native(self) -> Native:
        return find()

    @property
    def monitor(self) -> MonitorReader:
        return MonitorReader(self.directory / "monitor.jsonl")

    def as_trial(self) -> Trial:
        return cast(Trial, self)

    def sampled(self, *more: str) -> MadeTrial:
        cpu = {"cpu": 0, "busy_ns": 4, "idle_ns": 6, "steal_ns": 0}
        first: dict[str, Any] = {
            "type": "sample", "at_ns": 10, "interval_ns": None, "cpus": [], "pressure": None, "groups": {},
            "threads": [[7, 5, 1, 2, 3, 0]],
        }  # fmt: skip
        records = [
            {"type": "monitor", "schema": 1, "at_ns": 1, "interval_ns": 10, "pid": 1, "cpus": [0]},
            {"type": "thread", "at_ns": 10, "group": "g", "pid": 7, "tid": 7, "start_ticks": 1, "name": "n"}
            | {"policy": "OTHER", "priority": 0, "nice": 0, "cpus": [0]},
            first,
            {**first, "at_ns": 20, "interval_ns": 10, "cpus": [cpu], "threads": [[7, 9, 1, 2, 3, 0]]},
        ]
        lines = [*(json.dumps(record) for record in records), *more]
        self.monitor.path.write_text("".join(f"{line}\n" for line in lines))
        return self


@pytest.fixture
def trial(tmp_path: Path) -> MadeTrial:
    return MadeTrial(tmp_path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of native programs."""
    path = tmp_path / "native"
    path.mkdir()
    monkeypatch.setenv("PERFLAB_NATIVE", str(path))
    return path


def make(kind: Kind[Observer], **parameters: Any) -> Observer:
    return kind.make(parameters, f"--observer {kind.name}")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_is_described_and_makes_itself_from_nothing(kind: Kind[Observer]) -> None:
    observer = make(kind)
    assert kind.name == observer.name
    assert kind.summary
    assert all(described.description for described in kind.model.model_fields.values())
    assert not observer.extra


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_parameters_make_the_same_observer_again(kind: Kind[Observer]) -> None:
    parameters = make(kind, **({} if kind is allocations.KIND else {"interval": "20ms"})).parameters
    assert json.loads(json.dumps(parameters)) == parameters
    assert make(kind, **parameters).parameters == parameters


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_virtual_time_has_nothing_to_observe(kind: Kind[Observer], folder: Path) -> None:
    (folder / allocations.LIBRARY).touch()
    with pytest.raises(Unavailable, match=f"{kind.name}: .*use a real middleware"):
        make(kind).check(Host(), "virtual")


@pytest.mark.parametrize(
    ("kind", "given", "ns"),
    [
        (monitor.KIND, {}, 100_000_000),
        (monitor.KIND, {"interval": "10ms"}, 10_000_000),
        (monitor.KIND, {"interval": 10}, 10_000_000_000),
        (hiccup.KIND, {}, 1_000_000),
        (hiccup.KIND, {"interval": "10us"}, 10_000),
        (hiccup.KIND, {"interval": 1.0}, 1_000_000_000),
    ],
)
def test_intervals_are_durations(kind: Kind[Observer], given: dict[str, Any], ns: int) -> None:
    observer = make(kind, **given)
    assert isinstance(observer, Monitor | Hiccup)
    assert observer.interval == ns
    assert observer.parameters == {"required": True, "interval": duration_text(ns)}


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        (monitor.KIND, {"interval": "9ms"}, "interval: 9ms must be at least 10ms"),
        (monitor.KIND, {"interval": "11s"}, "interval: 11s must be at most 10s"),
        (monitor.KIND, {"interval": "soon"}, "interval: .*'soon' is not a duration"),
        (monitor.KIND, {"period": "1s"}, "no parameter 'period'; .*interval"),
        (hiccup.KIND, {"interval": "9us"}, "interval: 9us must be at least 10us"),
        (hiccup.KIND, {"interval": 0}, "interval: 0s must be at least 10us"),
        (allocations.KIND, {"interval": "1s"}, "no parameter 'interval'; .*required"),
    ],
)
def test_what_is_no_parameter_is_refused(kind: Kind[Observer], given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        make(kind, **given)


def test_hiccup_asks_every_node_for_it(trial: MadeTrial) -> None:
    configuration: dict[str, Any] = {"schema": 1}
    observer = make(hiccup.KIND, interval="2ms")
    observer.check(Host(), "dds")
    observer.configure(configuration, Native(Path()))
    assert configuration == {"schema": 1, "hiccup_ns": 2_000_000}
    assert observer.begin(trial.as_trial()).stop() == []


# -- cyclictest ------------------------------------------------------------------------------------------------------


def test_cyclictest_has_the_wake_ups_of_all_threads(tmp_path: Path) -> None:
    threads = {
        "0": {"histogram": {"12": 3, "40": 1}, "cycles": 4, "min": 12, "max": 40},
        "1": {"histogram": {"13": 1}, "cycles": 3, "min": 13, "max": 250_000},  # two were beyond its histogram
    }
    (tmp_path / cyclictest.FILE).parent.mkdir()
    (tmp_path / cyclictest.FILE).write_text(json.dumps({"thread": threads}))
    (found,) = Cyclictest.histograms(tmp_path, ()).values()
    assert (found.count, found.min, found.max) == (7, 12_500, 250_000_500)
    assert found.sum == 3 * 12_500 + 40_500 + 13_500 + 2 * 250_000_500
    assert [(hg.value_at_percentile(found, p) or 0) // 1000 for p in (40, 70, 100)] == [12, 40, 250_085]


def test_threads_of_cyclictest_that_starve_all_the_time_recorded_nothing(tmp_path: Path) -> None:
    (tmp_path / cyclictest.FILE).parent.mkdir()
    starved = '{"thread": {"0": {"histogram": {      }, "cycles": 0, "min": 1000000, "max": 0, "avg": -nan}}}'
    (tmp_path / cyclictest.FILE).write_text(starved)
    assert Cyclictest.histograms(tmp_path, ()) == {}


def test_without_its_file_cyclictest_recorded_nothing(tmp_path: Path) -> None:
    assert Cyclictest.histograms(tmp_path, ()) == {}


@pytest.mark.parametrize("given", [{"policy": "OTHER", "priority": 5}, {"priority": 0}])
def test_cyclictest_has_a_priority_that_its_policy_can_have(given: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"priority of (OTHER is 0, not 5|FIFO is 1 to 99, not 0)"):
        make(cyclictest.KIND, **given)


def test_cyclictest_like_executors_has_nothing_of_its_own() -> None:
    made = make(cyclictest.KIND, like="executors")
    assert isinstance(made, cyclictest.Cyclictest) and made.like == "executors"
    with pytest.raises(BadInput, match="like=executors says the cpus, priority"):
        make(cyclictest.KIND, like="executors", priority=5, cpus="0")


@pytest.mark.parametrize(
    ("executors", "said"),
    [
        ([("RR", 98, (1,)), ("FIFO", 98, (1,))], None),
        ([("RR", 98, (1,)), ("RR", 97, (1,))], "RR 97 on CPU 1"),
        ([("RR", 98, (0, 1))], "RR 98 on CPUs 0,1"),
        ([("OTHER", 0, (1,))], "OTHER on CPU 1"),
        ([], None),
    ],
)
def test_cyclictest_says_where_it_is_no_floor_of_the_executors(
    tmp_path: Path, executors: list[tuple[str, int, tuple[int, ...]]], said: str | None
) -> None:
    (tmp_path / cyclictest.THREADS).parent.mkdir()
    write_json(tmp_path / cyclictest.THREADS, {"policy": "FIFO", "priority": 98, "cpus": [1]})
    threads = [
        ThreadGroup(process="p", name="n", role=role, asked=None, policy=policy, priority=level, cpus=cpus, tids=(1,))
        for role, (policy, level, cpus) in [
            *(("executor", one) for one in executors), ("middleware", ("OTHER", 0, (0,)))
        ]
    ]  # fmt: skip
    expected = f"it ran with FIFO 98 on CPU 1, but executors with {said}: it is not a lower bound of their timers"
    assert list(Cyclictest.remarks(tmp_path, threads)) == ([] if said is None else [expected])


# -- monitor ---------------------------------------------------------------------------------------------------------


def test_the_monitor_needs_its_program(folder: Path) -> None:
    with pytest.raises(Unavailable, match=r"perflab-monitor is not in .*`make`"):
        make(monitor.KIND).check(Host(), "dds")
    (folder / "perflab-monitor").touch(mode=0o755)
    make(monitor.KIND).check(Host(), "dds")


def test_the_monitor_leaves_tables(trial: MadeTrial) -> None:
    observation = make(monitor.KIND).begin(trial.sampled().as_trial())
    expected = [Artifact(trial.directory / f"monitor_{name}.parquet", "table") for name in ("threads", "cpus")]
    assert observation.stop() == expected
    threads, cpus = (pl.read_parquet(artifact.path) for artifact in expected)
    assert threads.select("at_ns", "tid", "cpu_interval_ns", "cpus").rows() == [(10, 7, None, "0"), (20, 7, 4, "0")]
    assert cpus.rows() == [(20, 0, 4, 6, 0, 10)]
    assert {path.name for path in trial.directory.iterdir()} == {
        "monitor.jsonl", "monitor_threads.parquet", "monitor_cpus.parquet",
    }  # fmt: skip


def test_a_trial_that_ended_before_the_first_sample_leaves_no_tables(trial: MadeTrial) -> None:
    assert make(monitor.KIND).begin(trial.as_trial()).stop() == []
    assert list(trial.directory.iterdir()) == []


def test_a_damaged_file_is_no_table(trial: MadeTrial) -> None:
    trial.sampled("damaged", '{"type":"news"}')
    with pytest.raises(RecordError, match=r"monitor\.jsonl:5"):
        make(monitor.KIND).begin(trial.as_trial()).stop()
    assert {path.name for path in trial.directory.iterdir()} == {"monitor.jsonl"}


# -- allocations -----------------------------------------------------------------------------------------------------


def test_allocations_need_the_library(folder: Path) -> None:
    observer = make(allocations.KIND)
    with pytest.raises(Unavailable, match=r"libperflab_allocations\.so is not in .*`make`"):
        observer.check(Host(), "dds")
    (folder / allocations.LIBRARY).touch()
    observer.check(Host(), "dds")


def test_a_path_that_the_dynamic_linker_cannot_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "my programs" / allocations.LIBRARY
    library.parent.mkdir()
    library.touch()
    monkeypatch.setenv("PERFLAB_NATIVE", str(library.parent))
    with pytest.raises(Unavailable, match="LD_PRELOAD cannot name"):
        make(allocations.KIND).check(Host(), "dds")


@pytest.mark.parametrize(
    ("launch", "own", "after"),
    [
        ({}, None, ""),
        ({}, "/a.so /b.so", ":/a.so:/b.so"),
        ({"LD_PRELOAD": "/c.so"}, "/a.so", ":/c.so"),
        ({"LD_PRELOAD": ""}, "/a.so", ""),
        ({"LD_PRELOAD": "/c.so:{library}"}, None, ":/c.so"),
    ],
)
def test_the_library_is_preloaded_before_all_others(
    trial: MadeTrial,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    launch: dict[str, str],
    own: str | None,
    after: str,
) -> None:
    library = str(folder / allocations.LIBRARY)
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    if own is not None:
        monkeypatch.setenv("LD_PRELOAD", own)
    given = {name: value.replace("{library}", library) for name, value in launch.items()}
    trial.launch.environment |= {"OTHER": "1"} | given
    make(allocations.KIND).begin(trial.as_trial())
    assert trial.launch.environment == {"OTHER": "1", "LD_PRELOAD": f"{library}{after}"}
    assert os.environ.get("LD_PRELOAD") == own
