"""--quick: what it leaves of an experiment so that it takes about a minute, and that everything says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Perflab
from test_design import NATIVE, needs_native

from perflab import catalog
from perflab.design.document import Written, read, with_options
from perflab.design.quick import LEAST_S, MOST_TRIALS, WHOLE_S
from perflab.design.settings import BESIDE_S, Experiment
from perflab.errors import BadInput
from perflab.experiment.build import asked
from tests.marks import long_but

ON_VIRTUAL: dict[str, Any] = {"workload": "sierra_nevada", "middlewares": "virtual"}


def cut(written: Written | None = None, **keys: Any) -> Experiment:
    return asked(with_options(written, {"quick": True, **keys}), NATIVE, output=None, command_line=())


def planned_s(experiment: Experiment) -> float:
    each_s = (experiment.settings.warmup_ns + experiment.settings.duration_ns) / 1e9 + BESIDE_S
    return experiment.course().most * each_s


@needs_native
def test_one_treatment_is_tried_often_and_for_as_long_as_there_is_room() -> None:
    made = cut(**ON_VIRTUAL)
    assert (made.document.trials, made.settings.duration_ns) == (MOST_TRIALS, 10_000_000_000)
    assert planned_s(made) == WHOLE_S


@needs_native
@pytest.mark.parametrize(
    "name",
    long_but(
        ["breaking_flood_rate", "cpu_load", "floor", "message_sizes"], [entry.name for entry in catalog.experiments()]
    ),
)
def test_an_experiment_of_the_catalog_takes_a_minute_or_is_as_short_as_it_can_be(name: str) -> None:
    (path,) = (entry.path for entry in catalog.experiments() if entry.name == name)
    written = read(path)
    try:
        whole = asked(written, NATIVE, output=None, command_line=())
    except Exception as error:  # noqa: BLE001 - of a middleware that was not built
        pytest.skip(f"{name} cannot be made here: {error}")
    made = cut(written)
    assert [t.key for t in made.treatments if t.purpose == "measured"] == [
        t.key for t in whole.treatments if t.purpose == "measured"
    ]
    pinned = {t.pins.duration_ns for t in made.treatments} - {None}
    shortest = made.document.trials == 1 and made.settings.duration_ns in (LEAST_S * 1e9, *pinned)
    assert planned_s(made) <= WHOLE_S or shortest
    assert made.settings.warmup_ns == 0


@needs_native
def test_what_stands_beside_it_stays() -> None:
    assert cut(**ON_VIRTUAL, time=2).document.trials == MOST_TRIALS
    few = cut(**ON_VIRTUAL, trials=2, warmup=1)
    assert (few.document.trials, few.settings.duration_ns, few.settings.warmup_ns) == (2, 28_000_000_000, 1_000_000_000)
    with pytest.raises(BadInput, match=r"--quick chooses the time or the number of trials; leave one of these out"):
        cut(**ON_VIRTUAL, time=2, trials=2)


@needs_native
def test_a_file_that_says_it_keeps_what_it_says_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "experiment.yaml"
    path.write_text("workload: sierra_nevada\nmiddlewares: virtual\nquick: true\ntrials: 3\nwarmup: 1\n")
    made = asked(read(path), NATIVE, output=None, command_line=())
    assert (made.document.trials, made.settings.warmup_ns) == (3, 1_000_000_000)
    assert cut(read(path)).document.trials == MOST_TRIALS  # on the command line it stands for what the file says


@needs_native
def test_a_search_gets_fewer_trials() -> None:
    search = {"factor": "workload.timer_speed", "low": 1, "high": 100, "criterion": "lost == 0"}
    made = cut(**ON_VIRTUAL, breaking_point=search)
    assert made.document.breaking_point is not None
    assert made.document.breaking_point.max_trials == 20
    kept = cut(**ON_VIRTUAL, breaking_point={**search, "max_trials": 9}).document.breaking_point
    assert kept is not None
    assert kept.max_trials == 9


@needs_native
def test_manifest_terminal_and_report_say_that_it_is_rough(perflab: Perflab, work: Path) -> None:
    native = {"PERFLAB_NATIVE": str(NATIVE.folder)}
    command = ("sierra_nevada", "--middleware", "virtual", "--trials", "6", "--quick", "-o", "run")
    ran = perflab("run", *command, "--progress", "lines", **native)
    assert ran.returncode == 0, ran.stderr
    assert "Plan (--quick: rough): 6 trials, 8 s measured in each" in ran.stderr
    manifest = json.loads((work / "run" / "manifest.json").read_text())
    assert manifest["experiment"]["document"]["quick"] is True
    words = "rough: made with --quick, in trials of 8 s; run it without --quick before you rely on its figures"
    assert f"Note: {words}" in ran.stdout
    assert f"Note: {words}" in perflab("show", "run", **native).stdout
    perflab("report", "run", **native)
    assert "Rough: made with --quick" in (work / "run" / "report.html").read_text()
