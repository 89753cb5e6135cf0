"""The observer `messages` over real processes: every message that was counted is written down, what was in it is
what was published, and what is missing is counted."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

from tests.end_to_end.conftest import Run

EDGE = ("publisher", "topic", "subscription")


def tables(out: Path) -> dict[str, pl.DataFrame]:
    (trial,) = (out / "trials").iterdir()
    return {
        name: pl.read_parquet(trial / f"{name}.parquet") for name in ("messages", "publications", "edges", "publishers")
    }


def decoded(out: Path) -> list[tuple[str, int, int]]:
    """Topic, number and instant of publication that stand in each message."""
    (path,) = (out / "export" / "mcap").glob("*.mcap")
    reader = make_reader(path.open("rb"), decoder_factories=[DecoderFactory()])
    found = reader.iter_decoded_messages(topics=["/ping", "/pong"])
    return [(m.channel.topic, m.decoded_message.header.sequence, m.decoded_message.header.published_ns) for m in found]


@pytest.mark.parametrize(
    ("middleware", "more"),
    [
        ("shm", []),
        ("virtual", []),
        ("cyclonedds", ["--serialization", "every"]),
        pytest.param("fastdds", ["--ipc", "on"], marks=pytest.mark.long),
    ],
)
def test_every_message_is_written_down_as_it_was_counted(
    middleware: str, more: list[str], run: Run, pingpong: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    if "--ipc" in more:  # both nodes in one process
        pingpong.write_text(pingpong.read_text().replace("  - name: pong\n    nodes:\n", "", 1))
    words = ("--middleware", middleware, "--time", "1", "--warmup", "200ms", "--observer", "messages", "--output", out)
    done = run("run", pingpong, *words, *more, "--cool-down", "0")
    assert done.returncode == 0, done.stderr
    of = tables(out)
    counted = of["messages"].filter("counted")
    latency = pl.col("callback_ns") - pl.col("published_ns")
    own = counted.group_by(EDGE).agg(pl.len().alias("n"), latency.sum().alias("sum"), latency.max().alias("max"))
    both = of["edges"].join(own, on=EDGE, how="full")
    assert both.height == 2
    for ours, theirs in (("n", "received"), ("sum", "latency_sum"), ("max", "latency_max")):
        assert both[ours].to_list() == both[theirs].to_list(), ours
    sent = of["publications"].filter(~pl.col("warm_up")).group_by("node", "topic").agg(pl.len().alias("n"))
    assert of["publishers"].join(sent, on=("node", "topic")).filter(pl.col("n") != pl.col("sent")).is_empty()
    # Contents say the number and the instant that the table has.
    assert run("export", out, "--format", "mcap").returncode == 0
    mask = (1 << 48) - 1  # above it is which of its topic's publishers sent it
    table = of["publications"].select("topic", "sequence", "published_ns").rows()
    assert [(topic, number & mask, at_ns) for topic, number, at_ns in decoded(out)] == table


def test_what_does_not_fit_is_counted_and_said(run: Run, pingpong: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    observer = "messages:topics=/ping,limit=4kB"
    words = ("--middleware", "shm", "--time", "1", "--observer", observer, "--output", out, "--cool-down", "0")
    done = run("run", pingpong, *words)
    assert done.returncode == 0, done.stderr
    of = tables(out)
    assert set(of["messages"]["topic"]) == set(of["publications"]["topic"]) == {"/ping"}
    (trial,) = (out / "trials").iterdir()
    lost = {}
    for name in ("ping", "pong"):
        lines = map(json.loads, (trial / "processes" / f"{name}.jsonl").read_text().splitlines())
        *_, last = (line for line in lines if line["type"] == "message_counts")
        lost[name] = sum(last["lost_deliveries"]) + sum(last["lost_publications"])
        assert last["bytes"] <= 4096
    received = of["edges"].filter(topic="/ping")["received"].item()
    assert of["publications"].height + lost["ping"] == of["publishers"].filter(topic="/ping")["sent"].item()
    assert of["messages"].height + lost["pong"] == received
    said = run("show", out)
    assert "are not among its recorded messages: the limit was reached" in said.stdout + said.stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--observer", "messages:topics=/nowhere"], 2, "messages: the graph has no topic or service '/nowhere'"),
        (["--observer", "messages:topics=ping"], 2, "'ping' is not a full topic name; use '/ping'"),
    ],
)
def test_what_cannot_be_recorded_is_one_line(
    words: list[str], status: int, said: str, run: Run, pingpong: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = run("run", pingpong, "--middleware", "shm", "--time", "1", *words, "--output", out)
    assert done.returncode == status
    assert done.stderr.splitlines()[-1].endswith(said)
    assert not out.exists()


def test_a_command_is_refused(run: Run, tmp_path: Path) -> None:
    done = run("run", "--observer", "messages", "--output", tmp_path / "out", "--", "true")
    assert (done.returncode, done.stderr) == (
        2, "perflab: messages: perflab-node records them, but this workload is a command\n"
    )  # fmt: skip
