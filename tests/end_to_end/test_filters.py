"""Content filters of subscribers: what they want is received, the rest is filtered, and a real loss is still found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.marks import long_but

from .conftest import Json, Run

# Of 200 messages of each of two publishers, with the keys 0 to 3 in turn, every subscriber wants half.
WANTS = "key BETWEEN 1 AND 2 AND NOT id < 0"
PUBSUB = f"pubsub:message=keyed_array1k,instances=4,filter={WANTS},publishers=2,subscribers=2,rate=200,history=keep_all"
PUBLISHED, WANTED = 400, 400


def only(run: Run, out: Path, *options: str) -> Json:
    run("run", PUBSUB, "-t", "1", *options, "-o", out)
    result: Json
    (result,) = json.loads((out / "summary.json").read_text())["results"]
    return result


def effective(out: Path, process: str) -> Json:
    (file,) = out.glob(f"trials/*/processes/{process}.jsonl")
    records = [json.loads(line) for line in file.read_text().splitlines()]
    said: Json = next(r for r in records if r["type"] == "process_end")["middleware"]["effective"]
    return said


@pytest.mark.parametrize("middleware", ["cyclonedds", "fastdds"])
def test_subscribers_receive_what_they_want_and_nothing_of_it_is_lost(
    run: Run, tmp_path: Path, middleware: str
) -> None:
    totals = only(run, tmp_path / "run", "--middleware", middleware)["totals"]
    assert (totals["published"], totals["sent"], totals["received"], totals["filtered"]) == (
        PUBLISHED,
        WANTED,
        WANTED,
        400,
    )
    assert totals["lost"] == {"pre_match": 0, "gap": 0, "tail": 0}
    # Where it took place.
    sender, receiver = (effective(tmp_path / "run", f"{of}_1")["content_filters"] for of in ("publisher", "subscriber"))
    if middleware == "cyclonedds":
        assert (sender["at_readers"]["left_out"], receiver["at_readers"]["left_out"]) == (0, 200)
    else:
        assert (sender["at_writers"]["left_out"], receiver["at_readers"]["left_out"]) == (200, 0)


@pytest.mark.parametrize("middleware", long_but(["cyclonedds"], ["cyclonedds", "fastdds"]))
def test_a_loss_of_what_a_filter_wants_is_found(run: Run, tmp_path: Path, middleware: str) -> None:
    every = ("--middleware-option", "disturb.loss_every=10")
    totals = only(run, tmp_path / "run", "--middleware", middleware, *every)["totals"]
    assert (totals["published"], totals["sent"], totals["received"], totals["filtered"]) == (
        PUBLISHED,
        WANTED,
        360,
        400,
    )
    assert sum(totals["lost"].values()) == 40


def test_a_middleware_without_filters_refuses_in_one_line(run: Run, tmp_path: Path) -> None:
    for middleware in ("shm", "virtual"):
        done = run("run", PUBSUB, "--middleware", middleware, "-o", tmp_path / middleware)
        assert done.returncode == 3
        assert f"{middleware} has no content filters" in done.stderr
        assert not (tmp_path / middleware).exists()


def test_a_filter_of_an_unknown_field_is_refused_with_what_would_be_right(run: Run, tmp_path: Path) -> None:
    done = run("run", "pubsub:message=keyed_array1k,filter=keys < 1", "-o", tmp_path / "run")
    assert done.returncode == 2
    assert "perflab_msgs/msg/KeyedArray1k has no field 'keys'; did you mean key?" in done.stderr
