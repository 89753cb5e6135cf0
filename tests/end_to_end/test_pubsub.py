"""`pubsub` as a user runs it: layouts, messages, and mistakes that only the graph's own rules find."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("message=arra1k", "perflab: workload pubsub: type 'arra1k' is unknown; did you mean array1k?\n"),
        ("message=unbounded_sequence", "perflab: workload pubsub: the publisher misses the key 'size'"),
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
