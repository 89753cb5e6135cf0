"""The message flow as a drawing: valid for Graphviz and Mermaid, whatever names there are; what is marked, and how."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from opened import needs_library, opened
from reference_traces import reference_trace
from test_flow import MS, Chain, System, run_timer_driven, timer_driven

from perflab.trace import open_trace, paths_drawing
from perflab.trace.paths import Asked, Paths, paths_of

RECORDED = ("ros2_fastrtps_humble_fork", "caret_end_to_end_sample", "jazzy_small", "jazzy_small_ipc")
NASTY = '/x"]; rm | <b>\\n{#quot;}'

_QUOTED = r'"(?:[^"\\]|\\["\\n])*"'
_DOT_VALUE = rf"(?:{_QUOTED}|[A-Za-z0-9.]+)"
_DOT_LIST = rf"\[[a-z]+={_DOT_VALUE}(?:, [a-z]+={_DOT_VALUE})*\]"
DOT_LINE = re.compile(
    rf"digraph \w+ \{{|\}}|rankdir=LR;|(?:node|edge) {_DOT_LIST};|subgraph cluster_\d+ \{{"
    rf"|(?:label|color)={_QUOTED};|v\d+ {_DOT_LIST};|v\d+ -> v\d+ {_DOT_LIST};"
)
_TEXT = r'"(?:[\w ./,:%()–µ-]|#\d+;|<br/>)*"'
MERMAID_LINE = re.compile(
    rf"flowchart LR|subgraph g\d+\[{_TEXT}\]|end"
    rf"|v\d+(?:\[{_TEXT}\]|\(\[{_TEXT}\]\)|\{{\{{{_TEXT}\}}\}}|>{_TEXT}\])"
    rf"|v\d+ (?:-->|-\.->)\|{_TEXT}\| v\d+"
    r"|linkStyle \d+(?:,\d+)* stroke:#\w+(?:,stroke-width:3px)?"
    r"|classDef bottleneck stroke:#\w+,stroke-width:3px|class v\d+(?:,v\d+)* bottleneck"
)


def check_dot(text: str) -> None:
    """Every line is one that the writer means to write, braces match, and what is joined exists."""
    lines = [line.strip() for line in text.splitlines()]
    wrong = [line for line in lines if not DOT_LINE.fullmatch(line)]
    assert not wrong
    assert sum(line.endswith("{") for line in lines) == sum(line == "}" for line in lines)
    declared = {m[1] for line in lines if (m := re.match(r"(v\d+) \[", line))}
    joined = {v for line in lines if (m := re.match(r"(v\d+) -> (v\d+) ", line)) for v in m.groups()}
    assert joined <= declared
    assert len(joined) == len({v for line in lines if "->" in line for v in re.findall(r"\bv\d+", line.split("[")[0])})
    if (dot := shutil.which("dot")) is not None:
        done = subprocess.run([dot, "-Tsvg"], input=text, capture_output=True, text=True, check=False, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")


def check_mermaid(text: str) -> None:
    lines = [line.strip() for line in text.splitlines()]
    wrong = [line for line in lines if not MERMAID_LINE.fullmatch(line)]
    assert not wrong
    assert sum(line.startswith("subgraph ") for line in lines) == lines.count("end")
    declared = {m[1] for line in lines if (m := re.match(r"(v\d+)[\[({>]", line))}
    edges = [m.groups() for line in lines if (m := re.match(r"(v\d+) -\.?->?\S*\|.*\| (v\d+)", line))]
    assert {v for edge in edges for v in edge} <= declared
    styled = [int(n) for line in lines if line.startswith("linkStyle") for n in line.split()[1].split(",")]
    assert all(n < len(edges) for n in styled)


def drawn(p: Paths) -> tuple[str, str]:
    dot, mermaid = paths_drawing.dot(p), paths_drawing.mermaid(p)
    check_dot(dot)
    check_mermaid(mermaid)
    return dot, mermaid


@pytest.mark.parametrize("inferred", [False, True])
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_systems_are_drawn(name: str, inferred: bool) -> None:
    needs_library()
    trace = open_trace([reference_trace(name)])
    dot, mermaid = drawn(paths_of(trace, Asked(inferred=inferred)))
    assert ("dashed" in dot) == ("-.->" in mermaid)
    assert inferred or "dashed" not in dot


def test_edges_have_counts_and_medians_and_the_bottleneck_is_marked(tmp_path: Path) -> None:
    chain = Chain()
    for at in (1 * MS, 2 * MS):
        chain.whole(at)
    chain.tick("a", chain.a_timer, 3 * MS, chain.x)
    chain.end(500 * MS)
    dot, mermaid = drawn(chain.paths(tmp_path))
    assert r'[label="/x\nn 2, p50 190 ns\n1 not arrived"];' in dot
    assert r'[label="/y\nn 2, p50 290 ns", color="#c0392b"' in dot
    assert '|"/y<br/>n 2, p50 290 ns"|' in mermaid
    edges = re.findall(r"^ *v\d+ -->\|\"(/\w+)", mermaid, re.MULTILINE)
    assert f"linkStyle {edges.index('/y')} stroke:#c0392b" in mermaid
    assert dot.count("subgraph cluster_") == 3


def test_what_is_inferred_is_dashed_and_drawn_only_where_it_is_asked_for(tmp_path: Path) -> None:
    chain, timer = timer_driven()
    run_timer_driven(chain, timer)
    dot, mermaid = drawn(chain.paths(tmp_path))
    assert "dashed" not in dot and "-.->" not in mermaid
    dot, mermaid = drawn(chain.paths(tmp_path / "inferred", inferred=True))
    assert dot.count('label="inferred", style=dashed') == 1
    assert mermaid.count('-.->|"inferred"|') == 1


def test_names_are_escaped_whatever_they_are(tmp_path: Path) -> None:
    s = System()
    timer, x, heard = s.timer("a"), s.publisher("a", NASTY), s.subscription("b", NASTY)
    (sent,) = s.tick("a", timer, 1 * MS, x)
    s.hear("b", heard, sent, 1 * MS + 300)
    s.end(500 * MS)
    p = paths_of(opened(s.made, tmp_path), Asked())
    dot, mermaid = drawn(p)
    assert r"/x\"]; rm | <b>\\n{#quot;}" in dot
    assert "#34;#93;#59; rm #124; #60;b#62;#92;n#123;#35;quot#59;#125;" in mermaid


def test_an_edge_along_which_nothing_arrived_is_grey(tmp_path: Path) -> None:
    chain = Chain()
    chain.tick("a", chain.a_timer, 1 * MS, chain.x)
    chain.end(500 * MS)
    dot, mermaid = drawn(chain.paths(tmp_path))
    assert 'color="#999999"' in dot
    assert "linkStyle 0 stroke:#999999" in mermaid


def test_nothing_at_all_is_an_empty_drawing(tmp_path: Path) -> None:
    s = System()
    s.timer("a")
    s.end(5 * MS)
    dot, mermaid = drawn(s.paths(tmp_path))
    assert "->" not in dot
    assert mermaid == "flowchart LR\n"
