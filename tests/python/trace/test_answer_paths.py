"""`perflab trace paths` on recorded systems and as a user meets it."""

from __future__ import annotations

import fnmatch
import json
import os
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from opened import needs_library
from reference_traces import RECORDED, reference_trace
from support import SOURCE

from perflab.cli import main
from perflab.trace import open_trace, paths_named
from perflab.trace.messages import messages
from perflab.trace.paths import Asked, paths, paths_of

HUMBLE = "ros2_fastrtps_humble_fork"


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = main(["trace", "paths", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def line(text: str) -> str:
    assert text.startswith("perflab: ") and text.endswith("\n") and text.count("\n") == 1, text
    return text


# Recorded systems -----------------------------------------------------------------------------------------------------


def test_the_path_of_the_recorded_chain() -> None:
    needs_library()
    found = paths(open_trace([reference_trace(HUMBLE)]))
    (row,) = found.section("paths").frame.to_dicts()
    assert row["path"] == "/source timer 5 ms → /topic_a → /sync_one_to_one → /topic_b → /sink"
    assert (row["link"], row["set_out"], row["complete"]) == ("causal", 2_031, 1_986)
    # The last 40 went to a process of which the trace has no publications: on their way when it ends.
    ended = found.section("incomplete").frame.select("message", "reason", "n").rows()
    assert ended == [(1, "before_first", 5), (1, "end_of_trace", 40)]
    assert row["not_arrived"] == 0
    # The 40 that the sink handled beside are takes whose publication is not known.
    assert any(note.startswith("40 callbacks began with a message") for note in found.section("paths").notes)
    # What the sink publishes is of a publisher that the trace does not know.
    assert any(note.startswith("2 063 publications of which the topic") for note in found.section("paths").notes)
    assert row["bottleneck"] == "/topic_a: /source → /sync_one_to_one"


def test_the_hops_of_messages_are_the_latencies_of_their_edges() -> None:
    needs_library()
    trace = open_trace([reference_trace(HUMBLE)])
    edges = messages(trace).section("messages").frame.filter(pl.col("topic").is_in(["/topic_a", "/topic_b"]))
    of_edges = {
        row["topic"]: (row["handled"], row["latency_p50_ns"], row["latency_p99_ns"]) for row in edges.to_dicts()
    }
    flow = paths(trace).section("edges").frame
    of_flow = {row["topic"]: (row["arrived"], row["latency_p50_ns"], row["latency_p99_ns"]) for row in flow.to_dicts()}
    assert of_flow == of_edges


@pytest.mark.parametrize("name", ["jazzy_small", "jazzy_small_ipc"])
def test_a_chain_within_a_process_is_followed_with_and_without_the_middleware(name: str) -> None:
    needs_library()
    found = paths(open_trace([reference_trace(name)]))
    row = found.section("paths").frame.filter(pl.col("sink") == "/actuator /command").row(0, named=True)
    n = 500 if name == "jazzy_small" else 1_000
    assert (row["source"].split(" timer")[0], row["messages"], row["set_out"], row["complete"]) == ("/sensor", 3, n, n)
    deliveries = found.section("edges").frame.filter(pl.col("topic") == "/raw")["delivery"].to_list()
    assert deliveries == ["same_process" if name == "jazzy_small" else "intra_process"]


def test_the_parts_of_a_path_add_up_on_every_recorded_instance() -> None:
    needs_library()
    for name in (HUMBLE, "jazzy_small", "caret_end_to_end_sample"):
        found = paths_of(open_trace([reference_trace(name)]), Asked(inferred=True)).told
        assert any(told.followed.complete.height for told in found), name
        for told in found:
            f = told.followed
            legs = pl.sum_horizontal(f"leg_{i}" for i in range(len(f.route.hops) - 1))
            whole = pl.col("started_ns") - pl.col("start_ns")
            assert f.complete.select((legs == whole).all()).item(), told.route.name
            assert f.set_out == f.complete.height + f.ended["n"].sum()
            assert f.complete.height == f.route.n


def test_a_timer_driven_node_is_joined_only_by_inference() -> None:
    needs_library()
    trace = open_trace([reference_trace("caret_end_to_end_sample")])
    causal, asked = paths_of(trace, Asked()), paths_of(trace, Asked(inferred=True))
    assert {t.route.link for t in causal.told} == {"causal"}
    assert [t.route.name for t in causal.told] == [t.route.name for t in asked.told if t.route.link == "causal"]
    whole = next(
        t.route
        for t in asked.told
        if t.route.source.startswith("/sensor") and t.route.sink == "/actuator_dummy_node /topic4"
    )
    assert whole.link == "inferred"
    assert [h.kind for h in whole.hops].count("held") == 2


# The command ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_traces_are_answered(capsys: pytest.CaptureFixture[str], name: str) -> None:
    needs_library()
    for more in ([], ["--inferred"], ["--all"]):
        code, out, err = run(capsys, reference_trace(name), "--json", *more)
        assert (code, err) == (0, "")
        document = json.loads(out)
        assert document["kind"] == "paths"
    for width in ("80", "140"):
        os.environ["COLUMNS"] = width
        try:
            code, out, err = run(capsys, reference_trace(name), "--top", "5")
        finally:
            del os.environ["COLUMNS"]
        assert (code, err) == (0, "")
        assert max(map(len, out.splitlines())) <= int(width)


def test_named_paths_a_baseline_and_drawings(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    needs_library()
    folder = reference_trace(HUMBLE)
    file = tmp_path / "paths.yaml"
    file.write_text("paths:\n  - {name: chain, nodes: [/source, /sink], deadline: 500us, weight: 2}\n")
    code, out, err = run(capsys, folder, "--paths", file, "--baseline", folder, "--json")
    assert (code, err) == (0, "")
    document: dict[str, Any] = json.loads(out)
    (named,) = document["named"]["rows"]
    assert (named["judged"], named["never_arrived"], named["not_judged"]) == (1_986, 0, 45)
    assert 0 < named["misses_low_percent"] < named["misses_percent"] < named["misses_high_percent"] < 100
    assert {row["ratio"] for row in document["objective"]["rows"]} == {1}
    for format_, first in (("dot", "digraph"), ("mermaid", "flowchart")):
        code, out, err = run(capsys, folder, "--format", format_)
        assert (code, err) == (0, "")
        assert out.startswith(first)
        code, said, err = run(capsys, folder, "--format", format_, "--output", tmp_path / format_)
        assert (code, said, err) == (0, "", "")
        assert (tmp_path / format_).read_text() == out


def test_sections_and_columns_are_those_of_the_documentation() -> None:
    needs_library()
    text = (SOURCE / "docs/formats.md").read_text()
    table = {
        s: re.findall(r"`([^`]+)`", c) for s, c in re.findall(r"^\| paths \| (\w+) \| (`.*`) \|$", text, re.MULTILINE)
    }
    folder = SOURCE / "tests" / "data" / "paths" / "humble_fork.yaml"
    trace = open_trace([reference_trace(HUMBLE)])
    found = paths(trace, Asked(wanted=paths_named.read(folder)), trace)
    assert {section.name for section in found.sections} == set(table)
    for section in found.sections:
        columns = section.frame.columns
        unknown = [c for c in columns if not any(fnmatch.fnmatchcase(c, known) for known in table[section.name])]
        gone = [known for known in table[section.name] if not fnmatch.filter(columns, known)]
        assert (unknown, gone) == ([], []), section.name


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--format", "svg"], 2, "table, dot, mermaid"),
        (["--output", "x"], 2, "--format dot"),
        (["--format", "dot", "--json"], 2, "choose one"),
        (["--paths", "/nothing/paths.yaml"], 2, "cannot read --paths"),
        (["--from", "/sourc"], 2, "--from /sourc: no node or topic '/sourc'"),
        (["--to", "/sinc"], 2, "did you mean /sink or"),
        (["--format", "dot", "--output", "/nothing/at/all.dot"], 1, "cannot write --output"),
        (["--baseline", "/nothing"], 2, "/nothing"),
    ],
)
def test_what_is_wrong_is_one_line(
    capsys: pytest.CaptureFixture[str], options: list[str], code: int, said: str
) -> None:
    needs_library()
    ended, out, err = run(capsys, reference_trace(HUMBLE), *options)
    assert (ended, out) == (code, "")
    assert said in line(err)


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--help")
    assert (code, err) == (0, "")
    assert "    perflab trace paths " in out
