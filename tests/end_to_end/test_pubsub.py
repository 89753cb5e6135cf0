"""`pubsub` as a user runs it: layouts, messages, and mistakes that only the graph's own rules find."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perflab import native

from .conftest import Run


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("layout=thread,publishers=2,subscribers=2", 40),
        ("layout=threads,message=struct32k", 10),
        ("layout=processes,message=unbounded_sequence,size=100kB", 10),
        ("layout=relay,message=radar_track", 20),
    ],
)
def test_every_message_comes_in_every_layout(run: Run, tmp_path: Path, words: str, expected: int) -> None:
    folder = tmp_path / "made"
    done = run("run", f"pubsub:rate=20,depth=1000,{words}", "--time", "0.5", "--output", str(folder))
    assert done.returncode == 0, done.stderr
    trial = json.loads((folder / "summary.json").read_text())["results"][0]["trials_detail"][0]
    assert (trial["outcome"], trial["totals"]["received"], sum(trial["totals"]["lost"].values())) == (
        "success",
        expected,
        0,
    )
    if "relay" in words:
        figure = trial["key_figures"]["relay_round_trip"]
        assert (figure["response_ns"]["count"], figure["missed"]) == (10, 0)


def built(name: str) -> Any:
    """Those in Rust are tested where `make plugins` has built them."""
    is_there = native.find().middleware_library(name).is_file()
    return pytest.param(name, marks=pytest.mark.skipif(not is_there, reason="not built; `make plugins`"))


@pytest.mark.parametrize("middleware", ["cyclonedds", "fastdds", "shm", built("zenoh"), built("iceoryx2")])
def test_as_fast_as_it_goes_every_message_is_received_or_counted_as_lost(
    run: Run, tmp_path: Path, middleware: str
) -> None:
    folder = tmp_path / "made"
    done = run(
        "run", "pubsub:rate=0,layout=threads", "--middleware", middleware, "--time", "2", "--output", str(folder)
    )
    assert done.returncode == 0, done.stderr
    trial = json.loads((folder / "summary.json").read_text())["results"][0]["trials_detail"][0]
    (edge,) = json.loads((folder / "summary.json").read_text())["results"][0]["edges"]
    assert edge["sent"] > 2000  # it is not throttled to the rate that pubsub has by default
    assert trial["totals"]["received"] + sum(trial["totals"]["lost"].values()) == edge["sent"]
    assert edge["frequency_hz"] == 0


def test_bursts_and_arrivals_at_random_keep_their_mean_rate(run: Run, tmp_path: Path) -> None:
    sent = {}
    for words in ("burst=50", "arrivals=poisson"):
        folder = tmp_path / words
        workload = f"pubsub:rate=2000,depth=1000,layout=thread,{words}"
        done = run("run", workload, "--middleware", "virtual", "--time", "10", "--output", str(folder))
        assert done.returncode == 0, done.stderr
        sent[words] = json.loads((folder / "summary.json").read_text())["results"][0]["edges"][0]["sent"]
    assert sent["burst=50"] == 20_000
    assert sent["arrivals=poisson"] == pytest.approx(20_000, abs=850)  # six standard deviations
    assert sent["arrivals=poisson"] != 20_000


def test_in_virtual_time_nothing_is_sent_as_fast_as_it_goes(run: Run, tmp_path: Path) -> None:
    done = run("run", "pubsub:rate=0", "--middleware", "virtual", "--output", str(tmp_path / "made"))
    assert done.returncode == 2
    assert "arrivals are unthrottled, which never ends in virtual time" in done.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("message=arra1k", "perflab: workload pubsub: type 'arra1k' is unknown; did you mean array1k?\n"),
        ("message=unbounded_sequence", "perflab: workload pubsub: the publisher lacks the key 'size'"),
        ("size=1kB", "perflab: workload pubsub: size 1000 does not fit type array1k, which always has 1024 bytes"),
    ],
)
def test_a_mistake_is_told_without_the_places_of_a_file_that_nobody_wrote(
    run: Run, tmp_path: Path, words: str, complaint: str
) -> None:
    done = run("run", f"pubsub:{words}", "--output", str(tmp_path / "made"))
    assert done.returncode == 2
    assert done.stderr.startswith(complaint)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("words", "factor", "complaint"),
    [
        ("rate=0", "timer_speed=2,4", "factor workload.timer_speed: pubsub has no timer with a period"),
        ("arrivals=poisson", "phase=random", "factor workload.phase: pubsub has no periodic timer"),
    ],
)
def test_a_factor_that_would_change_nothing_is_refused(
    run: Run, tmp_path: Path, words: str, factor: str, complaint: str
) -> None:
    done = run("run", f"pubsub:{words}", "--factor", f"workload.{factor}", "--output", str(tmp_path / "made"))
    assert (done.returncode, done.stderr) == (2, f"perflab: {complaint}\n")


@pytest.mark.alone  # beside other tests, discovery was once seen to allocate in the measured part
def test_a_middleware_that_does_not_allocate_is_told_from_one_that_does(run: Run, tmp_path: Path) -> None:
    """After a second of warm-up, in which threads begin; perflab's own threads allocate all the time."""
    watched = ("--observer", "allocations:call_sites=on", "--success", "allocations_per_message == 0")
    found = {}
    for middleware in ("shm", "cyclonedds"):
        folder = tmp_path / middleware
        words = ("pubsub:rate=200,layout=threads", "--middleware", middleware, "--warmup", "1", "--time", "1", *watched)
        run("run", *words, "--output", str(folder))
        found[middleware] = json.loads((folder / "summary.json").read_text())["results"][0]["trials_detail"][0]
    shm = found["shm"]
    assert (shm["outcome"], shm["allocations"], shm["allocation_sites"]) == ("success", 0, [])
    assert found["cyclonedds"]["allocations"] > 100
    most = found["cyclonedds"]["allocation_sites"][0]
    assert most["count"] > 100
    assert any("cyclonedds" in frame for frame in most["frames"])
