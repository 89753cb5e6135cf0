"""The report fits the terminal: no line is longer, nothing wraps inside a table, what matters most stays."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import made_run
import pytest
from made_experiment import Effect, Made, with_findings
from rich.cells import cell_len
from rich.console import Console
from support import checkpoint, edge, publisher, service
from test_summary import trial

from perflab.columns import Column, Table
from perflab.host import Check
from perflab.quantity import PLAIN
from perflab.report import terminal
from perflab.report.live import LiveLine
from perflab.report.table import print_rows
from perflab.results.files import UsedMiddleware
from perflab.results.outcome import FAILED, HARNESS_ERROR
from perflab.results.trial import Judged, Passing, ThreadGroup
from perflab.runs.display import LiveProgress
from perflab.statistics import histogram as hg
from perflab.statistics.accounting import account
from perflab.statistics.summary import TrialData, summarize

MANIFEST = replace(
    made_run.MANIFEST,
    middlewares=(UsedMiddleware(name="m", version="1.2.3"),),
    preflight=(Check("load", "warn", "1.5 on 2 CPUs", "wait"),),
)


def large(edges: int = 12, namespace: str = "/") -> TrialData:
    records = [
        edge(
            90, 0, 89,
            publisher=f"{namespace}publisher_with_a_long_name_{i}", subscription=f"{namespace}subscription_{i}",
            topic=f"/topic_number_{i}", size_bytes=1000 * i, late=3, too_late=1,
        )
        for i in range(edges)
    ]  # fmt: skip
    publishers = [publisher(100, node=r["publisher"], topic=r["topic"]) for r in records]
    return replace(trial(), accounts=account([checkpoint(publishers, records)]))


def render(width: int, *trials: TrialData, notes: tuple[str, ...] = (), edges: bool | None = None) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, no_color=True, highlight=False)
    terminal.print_summary(console, summarize("run", trials), MANIFEST, notes, edges=edges)
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 72, 80, 100, 132, 160, 240])
def test_no_line_is_longer_than_the_terminal_and_rows_stay_rows(width: int) -> None:
    text = render(width, large())
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert sum("→" in line for line in text.splitlines()) == 13  # the header and 12 edges


def test_a_wide_terminal_shows_everything() -> None:
    text = render(200, large())
    for word in ("sent", "received", "lost", "late", "too late", "latency", "response", "p99.99", "size", "Hz"):
        assert word in text
    assert "m 1.2.3" in text
    assert "1 080 of 1 200 messages received, 120 lost (120 at the end)" in text


def test_a_narrow_terminal_keeps_what_matters() -> None:
    text = render(80, large())
    header = next(line for line in text.splitlines() if "→" in line)
    assert all(word in header for word in ("received", "lost", "p99"))
    assert "size" not in header


def test_namespaces_stay_visible_where_there_are_any() -> None:
    assert "robot/publisher" in render(200, large(namespace="/robot/"))
    assert "/publisher" not in render(200, large())


def test_a_huge_graph_shows_the_slowest_edges() -> None:
    text = render(160, large(edges=100))
    assert sum("→" in line for line in text.splitlines()) == 61
    assert "… and 40 more with a lower p99" in text


def test_a_failed_trial_shows_its_reason_and_what_is_not_known() -> None:
    accounts = account([checkpoint([publisher(10)], [edge(5, 0, 4)], final=False)])
    text = render(100, replace(trial(outcome=FAILED), accounts=accounts, reason="process 'p' was killed"))
    assert "trial 1: process 'p' was killed" in text
    assert "last checkpoints" in text
    assert "5 messages received, losses unknown" in text


def test_markup_in_names_is_printed_as_it_is() -> None:
    assert "[bold]w" in render(100, replace(trial(), workload="[bold]w"))
    assert "Note: [red]x" in render(100, trial(), notes=("[red]x",))


def test_the_noise_of_the_machine_is_mentioned() -> None:
    assert "Noise on this machine: load (1.5 on 2 CPUs)" in render(100, trial())


def test_the_live_line() -> None:
    line = LiveLine("m: ", 60.0)
    assert line.text(LiveProgress("discovery", 0, 0, 0, 0, note="3 unmatched")) == "m: discovery, 3 unmatched"
    h: Any = hg.encode(hg.from_values([1000, 2000]))
    line.text(LiveProgress("measuring", 1_000_000_000, 110, 100, 0, (h,)))
    text = line.text(LiveProgress("measuring", 2_000_000_000, 1160, 1154, 2, (h, h)))
    assert text == "m: 2/60 s  1 054/s received  latency p50 1.00 µs p99 2.00 µs max 2.00 µs  2 lost"
    assert line.text(LiveProgress("measuring", 2_000_000_000, 1160, 1154, 2, (h, h))) is None
    assert "latency" not in (line.text(LiveProgress("draining", 3, 1, 1, 0, ("damaged",))) or "")


def variants(*ways: dict[str, Any]) -> list[TrialData]:
    return [replace(large(4), number=n, order=n, **way) for n, way in enumerate(ways, start=1)]


@pytest.mark.parametrize("width", [60, 80, 100, 132, 160])
def test_variants_are_compared_by_what_they_differ_in(width: int) -> None:
    trials = variants({"ipc": "off"}, {"ipc": "on"})
    text = render(width, *trials)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    table = text[text.index("Compared:") :]
    rows = [line for line in table.splitlines() if line.startswith("ipc")]
    assert [row.split("  ")[0].strip() for row in rows] == ["ipc off", "ipc on"]
    assert all({"360", "400"} <= set(row.split()) for row in rows)
    if width == 160:
        assert all(word in table for word in ("lost", "late", "latency", "response", "CPU", "per message", "RSS peak"))
        # 15 % of one CPU for 1 s and 360 deliveries
        assert all("15 %" in row and "417 µs" in row and "300 KiB" in row for row in rows)


def test_cpu_per_message_counts_the_seconds_of_every_trial_whose_messages_it_counts() -> None:
    """A trial that missed a criterion is measured: its messages are counted, and so is its time."""
    missed: dict[str, Any] = {
        "outcome": FAILED,
        "reason": "late",
        "criteria": (Judged(criterion="c", met=False, words="late"),),
    }
    trials = variants({"ipc": "off"}, {"ipc": "on"})
    trials += [replace(large(4), number=3, order=3, ipc="on", measured_s=3.0, **missed)]
    trials += [replace(large(4), number=4, order=4, ipc="on", outcome=HARNESS_ERROR, reason="why")]
    text = render(160, *trials)
    rows = [line for line in text[text.index("Compared:") :].splitlines() if line.startswith("ipc")]
    assert "417 µs" in rows[0]  # 15 % of one CPU for 1 s and 360 deliveries
    assert {"720", "800"} <= set(rows[1].split())
    assert "833 µs" in rows[1]  # for 1 + 3 s and 720 deliveries


def test_the_comparison_says_that_it_pools_trials_where_findings_follow() -> None:
    summary = summarize(
        "run", [*variants({"ipc": "off"}, {"ipc": "on"}), replace(large(4), number=3, order=3, ipc="on")]
    )
    pair = Made({"cpu_load": Effect()}, blocks=3).summary()
    cases = (
        (None, "Compared:"),
        (with_findings(pair).findings, "All messages of all trials together"),
    )
    for findings, title in cases:
        out = io.StringIO()
        terminal.print_summary(Console(file=out, width=160), replace(summary, findings=findings), MANIFEST, edges=False)
        table = out.getvalue()[out.getvalue().index(title) :].split("\n\n")[0]
        assert [line.split()[:3] for line in table.splitlines() if line.startswith("ipc")] == [
            ["ipc", "off", "1"],
            ["ipc", "on", "2"],
        ]


def test_edges_of_many_variants_are_shown_where_asked_for() -> None:
    ways = [{"executor": name} for name in ("inline", "events", "multi_threaded:2")]
    assert render(160, *variants(*ways[:2])).count("publisher → subscription") == 2
    assert render(160, *variants(*ways)).count("publisher → subscription") == 0
    assert render(160, *variants(*ways), edges=True).count("publisher → subscription") == 3
    assert render(160, *variants(*ways[:1]), edges=False).count("publisher → subscription") == 0


def test_the_header_names_what_was_asked_for() -> None:
    (asked,) = variants({"executor": "events", "ipc": "on", "pass_by": "unique", "middleware": "m+other"})
    assert "w on m 1.2.3 + other, events, ipc on, by unique, baseline: 1 trial" in render(160, asked)


@pytest.mark.parametrize("width", [60, 80, 160])
def test_services_have_a_table_of_their_own(width: int) -> None:
    requests = publisher(100)
    records = [service(requests, edge(90, 0, 89, late=2), client=f"/client_with_a_long_name_{n}") for n in range(3)]
    accounts = account([checkpoint(services=records)])
    text = render(width, replace(trial(), accounts=accounts))
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert "270 of 300 replies received, 30 lost (30 at the end), 6 late" in " ".join(text.split())
    assert sum("→" in line for line in text.splitlines()) == 4
    assert "messages received" not in text
    if width == 160:
        assert all(
            word in text for word in ("client → server", "service", "round trip", "client_with_a_long_name_2 → s")
        )


def thread(name: str, role: str, asked: dict[str, Any] | None, **more: Any) -> ThreadGroup:
    state: dict[str, Any] = {"policy": "OTHER", "priority": 0, "cpus": (0, 1), "tids": (1,)}
    return ThreadGroup(process="ping", name=name, role=role, asked=asked, **{**state, **more})


def test_threads_are_shown_where_something_was_asked_for() -> None:
    pinned = {"policy": "RR", "priority": 98, "cpus": [1]}
    receivers = [thread(f"recv{n}", "middleware", None, tids=(n,)) for n in range(5)]
    asked = thread("executor_0", "executor", pinned, policy="RR", priority=98, cpus=(1,))
    text = render(160, replace(trial(), threads=(asked, *receivers, thread("sampler", "perflab", None))))
    assert "Threads: ping executor_0 RR 98 on CPU 1; middleware (5 threads) OTHER\n" in text
    assert "Threads" not in render(160, replace(trial(), threads=tuple(receivers)))


def passed(
    intra_process: int,
    copies: int,
    middleware: int,
    asked: str | None = None,
    *,
    topic: str = "t",
    loaned: bool = False,
) -> Passing:
    return Passing(
        node="a",
        topic=topic,
        asked=asked,
        intra_process=intra_process,
        copies=copies,
        middleware=middleware,
        loaned=loaned,
    )


@pytest.mark.parametrize(
    ("way", "passing", "expected"),
    [
        ({"ipc": "on"}, [passed(16, 1, 1)], "Intra-process: 16 of 17 subscriptions, 1.00 copies per message"),
        (
            {"ipc": "on"},
            [passed(2, 0, 0), passed(2, 3, 0, topic="unknown")],
            "Intra-process: 4 of 4 subscriptions\n",
        ),
        ({"ipc": "on"}, [passed(0, 0, 3)], "Note: --ipc on had no effect: no subscription is in the process"),
        ({"ipc": "off"}, [passed(0, 0, 3)], None),
        ({"pass_by": "unique"}, [passed(0, 0, 3, "unique")], "Passing: 1 of 1 publishers by unique"),
        ({"pass_by": "loaned"}, [passed(0, 0, 3, "loaned", loaned=True)], "Loaned: 1 of 1 publishers write into"),
        ({}, [passed(0, 0, 3, "loaned")], "Note: loaned: 0 of 1 publishers write into memory of the middleware"),
    ],
)
def test_what_took_effect_is_said_in_words(way: dict[str, Any], passing: list[Passing], expected: str | None) -> None:
    text = render(160, replace(trial(), passing=tuple(passing), **way))
    if expected is None:
        assert not any(word in text for word in ("Intra-process", "ipc", "Passing", "Loaned"))
    else:
        assert expected in text


def test_a_group_has_room_for_its_name_once() -> None:
    def table(width: int) -> str:
        out = io.StringIO()
        columns: list[Column[None]] = [Column("row", "", lambda _: "row", rank=0)]
        columns += [
            Column(name, name, lambda _: "1", PLAIN, rank=n, group="round trip") for n, name in enumerate("abc", 1)
        ]
        print_rows(Console(file=out, width=width, no_color=True), Table("rows", "Rows", columns, [None]))
        return out.getvalue()

    whole = len("row") + 2 + len("round trip") + 2 + 1 + 2 + 1
    assert table(whole).splitlines()[1].split() == ["a", "b", "c"]
    assert table(whole - 1).splitlines()[1].split() == ["a", "b"]
    assert "round trip" in table(whole)
