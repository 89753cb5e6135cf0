"""What a trace says of a process of a graph, beside what the process measured itself (docs/formats.md, checkpoint).

perflab stamps a message before it is encoded and given to publish(), whose first tracepoint follows, and reads the
clock after callback_start, in the handler. On the threads there are events around these instants: the start of the
callback that publishes is before the stamp, the end of the callback that receives is after the reading. So of each
message
    callback_start - rclcpp_publish <= latency as measured <= callback_end - the publisher's callback_start
however busy the machine is, and the medians of the three are in the same order. What lies between is what two
tracepoints, two readings of the clock and the encoding of the message cost at that moment.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from perflab.statistics import histogram
from perflab.trace.source import NativeTrace

Json = dict[str, Any]

EDGE = ("publisher", "topic", "subscription")
HISTOGRAM_ERROR = 1 / 1024
# Topics that rclcpp brings along, which no graph names.
OF_RCLCPP = ("/parameter_events", "/rosout")


def records_in(file: Path) -> list[Json]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def only(found: list[Json], kind: str) -> Json:
    return [record for record in found if record["type"] == kind][-1]


def process_of(trace: NativeTrace, pid: int) -> int:
    """Its row. A session records every process of this user that emits `ros2:*`: others may be in the trace."""
    processes = trace.table("processes")
    (row,) = (i for i, (own, events) in enumerate(processes.select("pid", "events").rows()) if own == pid and events)
    return row


def messages_of(trace: NativeTrace, process: int) -> pl.DataFrame:
    """Each message of the graph that a callback of the process handled: its edge, when it was published and when the
    callback began; and the bounds of what perflab measured."""
    nodes = trace.table("nodes")["name"]
    publishers, subscriptions = trace.table("publishers"), trace.table("subscriptions")
    wanted = ((subscriptions["process"] == process) & ~subscriptions["topic"].is_in(OF_RCLCPP)).arg_true()
    publications = trace.table("publications").with_columns(first_ns=pl.coalesce("intra_ns", "rclcpp_ns", "rcl_ns"))
    ways = [
        trace.table("takes").filter(pl.col("match") == "matched"),
        trace.table("intra_deliveries").filter(pl.col("dequeue_ns").is_not_null()),
    ]
    handled = pl.concat([way.select("subscription", "publication", "callback_instance") for way in ways])
    handled = handled.filter(pl.col("subscription").is_in(wanted.to_list()))
    assert handled.null_count().row(0) == (0, 0, 0)
    publication = publications[handled["publication"]]
    publisher = publishers[publication["publisher"]]
    instances = trace.table("callback_instances")
    callback = instances[handled["callback_instance"]]
    return pl.DataFrame(
        {
            "publisher": nodes[publisher["node"]],
            "topic": publisher["topic"],
            "subscription": nodes[subscriptions["node"][handled["subscription"]]],
            "started_ns": callback["start_ns"],
            "latency_ns": callback["start_ns"] - publication["first_ns"],
            # None where no callback of an executor published.
            "at_most_ns": callback["end_ns"] - instances["start_ns"].gather(publication["callback_instance"]),
        }
    )


def published_by(trace: NativeTrace, process: int) -> dict[tuple[str, str], int]:
    """How many messages each publisher of the graph published."""
    nodes, publishers = trace.table("nodes")["name"], trace.table("publishers")
    # Without a publisher: what the middleware itself writes about the graph.
    publications = trace.table("publications").filter(pl.col("publisher").is_not_null())
    publisher = publishers[publications["publisher"]]
    publisher = publisher.filter((pl.col("process") == process) & ~pl.col("topic").is_in(OF_RCLCPP))
    frame = pl.DataFrame({"publisher": nodes[publisher["node"]], "topic": publisher["topic"]})
    return {(p, t): n for p, t, n in frame.group_by("publisher", "topic").len().rows()}


def same_publications_as_measured(trace: NativeTrace, process: int, final: Json) -> None:
    counts = {(p["node"], p["topic"]): p["sent"] + p["warmup_sent"] for p in final["publishers"]}
    assert published_by(trace, process) == {edge: n for edge, n in counts.items() if n}


def median_of(values: pl.Series) -> int:
    """As the histograms have it: the value at which half are reached."""
    return int(values.sort()[(len(values) + 1) // 2 - 1])


def agrees(measured: histogram.Histogram, messages: pl.DataFrame, in_callbacks: bool) -> None:
    """The median that perflab measured is between its bounds."""
    own = histogram.value_at_percentile(measured, 50)
    assert own is not None
    assert not any(messages.drop("at_most_ns").null_count().row(0))
    assert median_of(messages["latency_ns"]) <= own
    if in_callbacks:
        assert messages["at_most_ns"].null_count() == 0
        assert own <= median_of(messages["at_most_ns"]) * (1 + HISTOGRAM_ERROR)


def same_edges_as_measured(handled: pl.DataFrame, final: Json, *, in_callbacks: bool = True) -> None:
    """Counts of every edge exactly, and the medians of its latency; `in_callbacks`: messages are published in some."""
    by_edge = {tuple(map(str, edge)): rows for edge, rows in handled.group_by(*EDGE)}
    assert by_edge.keys() == {tuple(edge[key] for key in EDGE) for edge in final["edges"]}
    measured = []
    for edge in final["edges"]:
        rows = by_edge[tuple(edge[key] for key in EDGE)].sort("started_ns")
        assert rows.height == edge["received"] + edge["warmup_received"], edge
        rows = rows[edge["warmup_received"] :]  # they come first
        measured.append(rows)
        agrees(histogram.from_record(edge["latency"]), rows, in_callbacks)
    agrees(
        histogram.merge(histogram.from_record(edge["latency"]) for edge in final["edges"]),
        pl.concat(measured),
        in_callbacks,
    )
