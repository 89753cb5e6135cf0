"""The workload `executor` with the real programs: every message of every case is sent and received."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.schemas import published

from .conftest import NATIVE, Json, Run

# Deep queues: a machine that stands still for some tenths of a second shall lose nothing.
DEEP = "executor:depth=1000"
OPTIONS = ("--time", "2s", "--cool-down", "0", "--discovery-timeout", "100s")
SENT, RECEIVED = 2 * 20 * 50, 2 * 20 * 50 * 10  # in two seconds

needs_cyclonedds = pytest.mark.skipif(
    not (Path(NATIVE) / "middleware/cyclonedds.so").is_file(), reason="the plug-in cyclonedds was not built"
)


def results(run: Path) -> list[Json]:
    found: Json = json.loads((run / "summary.json").read_text())
    published("summary").validate(found)
    return list(found["results"])


def assert_whole(result: Json) -> None:
    totals = result["totals"]
    assert result["outcomes"] == {
        "success": 1,
        "failed": 0,
        "invalid": 0,
        "harness_error": 0,
        "interrupted": 0,
        "own": [],
    }
    assert (totals["published"], totals["sent"], totals["received"]) == (SENT, RECEIVED, RECEIVED)
    assert sum(totals["lost"].values()) == totals["not_sent"] == totals["duplicate"] == 0
    assert len({(e["publisher"], e["topic"], e["subscription"]) for e in result["edges"]}) == len(result["edges"])


@needs_cyclonedds
@pytest.mark.long
def test_executors_and_timers_alone_on_a_real_middleware(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    cases = "workload.case=middleware,ros,nopub"
    done = run("run", DEEP, "--executor", "single_threaded,events", "--factor", cases, *OPTIONS, "-o", out)
    assert done.returncode == 0, done.stderr
    found = {(r["executor"], r["factors"]["workload.case"]): r for r in results(out)}
    assert sorted(found) == [
        ("events", "nopub"), ("events", "ros"), ("inline", "middleware"),
        ("single_threaded", "nopub"), ("single_threaded", "ros"),
    ]  # fmt: skip
    for (_, case), result in found.items():
        if case != "nopub":
            assert_whole(result)
            continue
        assert result["outcomes"]["success"] == 1
        assert result["edges"] == []
        assert result["totals"]["received"] is None, "nothing was measured, which is not 0"
        assert result["totals"]["latency_ns"] is None
        assert result["resources"]["cpu_percent_mean"] > 0
    shown = run("show", out)
    assert shown.returncode == 0, shown.stderr
    (out / "summary.json").unlink()
    assert run("show", out).returncode == 0, "a summary is made again from the trials, each with its own graph"


def test_every_case_is_exact_on_the_virtual_middleware(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ("--middleware", "virtual", "--factor", "workload.case=middleware,rosonenode,ros,nopub", *OPTIONS)
    done = run("run", "executor", *options, "-o", out)
    assert done.returncode == 0, done.stderr
    found = {r["factors"]["workload.case"]: r for r in results(out)}
    for case in ("middleware", "rosonenode", "ros"):
        assert_whole(found[case])
    assert {e["subscription"] for e in found["rosonenode"]["edges"]} == {"node", *(f"node#{n}" for n in range(2, 11))}
    assert found["nopub"]["totals"]["received"] is None
    assert found["nopub"]["edges"] == []


def asked(run: Path) -> list[tuple[str, int]]:
    (result,) = results(run)
    return [(service["service"], service["received"]) for service in result["services"]]


SERVED = "executor:nodes=3,services=2,clients=1,interval=50ms,depth=1000"
REPLIES = [(f"service_{n}", 40) for n in (0, 2, 4)]  # in two seconds; the others have no client


def test_services_are_exact_on_the_virtual_middleware(run: Run, tmp_path: Path) -> None:
    done = run("run", SERVED, "--middleware", "virtual", *OPTIONS, "-o", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert sorted(asked(tmp_path / "run")) == REPLIES


GUARDED = "executor:nodes=3,waitables=4,triggered=2,interval=50ms,depth=1000"


def answered(run: Path) -> dict[str, tuple[int, bool]]:
    """Of each waitable its triggers, and whether each was executed or coalesced."""
    (records,) = run.glob("trials/*/processes/*.jsonl")
    *_, last = (r for r in map(json.loads, records.read_text().splitlines()) if r["type"] == "checkpoint")
    return {
        f"{w['node']} {w['name']}": (w["triggers"], w["triggers"] == w["executed"] + w["coalesced"])
        for w in last["waitables"]
    }


TRIGGERS = {f"/node_{n} waitable_{w}": (40 if w < 2 else 0, True) for n in range(3) for w in range(4)}  # in 2 s


def test_waitables_are_exact_on_the_virtual_middleware(run: Run, tmp_path: Path) -> None:
    done = run("run", GUARDED, "--middleware", "virtual", *OPTIONS, "-o", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert answered(tmp_path / "run") == TRIGGERS


@needs_cyclonedds
def test_waitables_are_what_the_loop_is_made_of_on_a_real_middleware(run: Run, tmp_path: Path) -> None:
    done = run("run", GUARDED, "--executor", "single_threaded", *OPTIONS, "-o", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert answered(tmp_path / "run") == TRIGGERS


@needs_cyclonedds
def test_services_are_what_the_loop_is_made_of_on_a_real_middleware(run: Run, tmp_path: Path) -> None:
    done = run("run", SERVED, "--executor", "single_threaded", *OPTIONS, "-o", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert sorted(asked(tmp_path / "run")) == REPLIES
