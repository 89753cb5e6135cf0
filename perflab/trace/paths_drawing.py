"""The message flow as a drawing: Graphviz (dot) or Mermaid.

Vertices are callbacks, in boxes of their nodes; edges are topics with how many messages arrived and their median
latency. The bottleneck of a path is bold and red, what is inferred dashed, what is declared dotted; an edge along which
nothing arrived is grey.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from perflab.trace.flow import CAUSAL, DECLARED, INFERRED
from perflab.trace.paths import Paths, edges_of, vertices_of
from perflab.units import format_count, format_time

FORMATS = ("dot", "mermaid")
_RED, _GREY = "#c0392b", "#999999"


@dataclass(frozen=True)
class _Edge:
    source: int  # vertices of the flow
    target: int
    lines: tuple[str, ...]
    link: str
    bottleneck: bool = False
    silent: bool = False  # nothing arrived


@dataclass(frozen=True)
class _Vertex:
    number: int
    lines: tuple[str, ...]
    kind: str
    bottleneck: bool


def _drawing(p: Paths) -> tuple[list[tuple[str | None, list[_Vertex]]], list[_Edge]]:
    """The vertices of each node, and the edges; None is the node of a vertex that stands alone."""
    slow_edges, slow_vertices = _bottlenecks(p)
    groups: dict[tuple[Any, ...], list[_Vertex]] = {}
    for row in vertices_of(p.flow).iter_rows(named=True):
        node, lines = row["node"], [row["label"].removeprefix(f"{row['node']} ")]
        if row["runs"]:
            lines.append(_n(row["runs"], row["duration_p50_ns"]))
        vertex = _Vertex(row["vertex"], tuple(lines), row["kind"], row["label"] in slow_vertices)
        of_node = (row["process"], row["pid"], row["host"]) if node is not None else (row["label"],)
        groups.setdefault((node, *of_node), []).append(vertex)
    edges = []
    for row in edges_of(p.flow).iter_rows(named=True):
        if row["link"] != CAUSAL:
            # The message itself is an edge of its own: what is inferred leads to the run that published it.
            edges.append(_Edge(row["from_vertex"], row["via_vertex"], (row["link"],), row["link"]))
            continue
        lines = [row["topic"], _n(row["arrived"], row["latency_p50_ns"])]
        if row["not_arrived"]:
            lines.append(f"{format_count(row['not_arrived'])} not arrived")
        ends = (row["from_vertex"], row["to_vertex"])
        edges.append(_Edge(*ends, tuple(lines), CAUSAL, (*ends, row["topic"]) in slow_edges, not row["arrived"]))
    return [(key[0], found) for key, found in groups.items()], list(dict.fromkeys(edges))


def _n(n: int, p50_ns: int | None) -> str:
    return f"n {format_count(n)}" + ("" if p50_ns is None else f", p50 {format_time(p50_ns)}")


def _bottlenecks(p: Paths) -> tuple[set[tuple[int, int, str]], set[str]]:
    """Edges (vertices and topic) and labels of vertices that are the median bottleneck of a path."""
    edges: set[tuple[int, int, str]] = set()
    vertices: set[str] = set()
    for told in p.named or p.told:
        hop = told.bottleneck("median")
        if hop is None:
            continue
        if hop["kind"] == "message" and hop["edge"] in p.flow.edge:
            edge = p.flow.edge[hop["edge"]]
            sender = edge["from_vertex"] if edge["via_vertex"] is None else edge["via_vertex"]
            edges.add((sender, edge["to_vertex"], edge["topic"]))
        elif hop["kind"] in ("callback", "sink"):
            vertices.add(hop["what"])
    return edges, vertices


# Graphviz -------------------------------------------------------------------------------------------------------------


def _dot_text(lines: tuple[str, ...]) -> str:
    """A quoted string of dot; lines are separated by \\n."""
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines)
    return '"' + "\\n".join(escaped) + '"'


_SHAPES = {"timer": "ellipse", "code": "ellipse", "service": "hexagon", "take": "note"}


def dot(p: Paths) -> str:
    """A digraph for Graphviz."""
    groups, edges = _drawing(p)
    out = [
        "digraph message_flow {",
        "  rankdir=LR;",
        '  node [shape=box, fontname="sans-serif", fontsize=11];',
        '  edge [fontname="sans-serif", fontsize=10];',
    ]
    for i, (node, vertices) in enumerate(groups):
        indent = "  "
        if node is not None:
            out += [f"  subgraph cluster_{i} {{", f"    label={_dot_text((node,))};", '    color="#bbbbbb";']
            indent = "    "
        for vertex in vertices:
            shape = _SHAPES.get(vertex.kind, "box")
            mark = f', color="{_RED}", penwidth=2' if vertex.bottleneck else ""
            out.append(f"{indent}v{vertex.number} [label={_dot_text(vertex.lines)}, shape={shape}{mark}];")
        if node is not None:
            out.append("  }")
    styles = {INFERRED: ", style=dashed", DECLARED: ", style=dotted", CAUSAL: ""}
    for edge in edges:
        style = styles[edge.link]
        if edge.bottleneck:
            style += f', color="{_RED}", fontcolor="{_RED}", penwidth=2'
        elif edge.silent:
            style += f', color="{_GREY}", fontcolor="{_GREY}"'
        out.append(f"  v{edge.source} -> v{edge.target} [label={_dot_text(edge.lines)}{style}];")
    out.append("}")
    return "\n".join(out) + "\n"


# Mermaid --------------------------------------------------------------------------------------------------------------

_MERMAID_BRACKETS = {"timer": ("([", "])"), "code": ("([", "])"), "service": ("{{", "}}"), "take": (">", "]")}


def _mermaid_text(lines: tuple[str, ...]) -> str:
    """A quoted label of Mermaid: what has a meaning in it or in HTML stands as an entity."""
    made = ["".join(c if c.isalnum() or c in " ./_-,:%()–µ" else f"#{ord(c)};" for c in line) for line in lines]
    return f'"{"<br/>".join(made)}"'


def mermaid(p: Paths) -> str:
    """A flowchart for Mermaid."""
    groups, edges = _drawing(p)
    out = ["flowchart LR"]
    for i, (node, vertices) in enumerate(groups):
        indent = "  "
        if node is not None:
            out.append(f"  subgraph g{i}[{_mermaid_text((node,))}]")
            indent = "    "
        for vertex in vertices:
            left, right = _MERMAID_BRACKETS.get(vertex.kind, ("[", "]"))
            out.append(f"{indent}v{vertex.number}{left}{_mermaid_text(vertex.lines)}{right}")
        if node is not None:
            out.append("  end")
    for edge in edges:
        arrow = "-->" if edge.link == CAUSAL else "-.->"
        out.append(f"  v{edge.source} {arrow}|{_mermaid_text(edge.lines)}| v{edge.target}")
    slow = [str(i) for i, edge in enumerate(edges) if edge.bottleneck]
    silent = [str(i) for i, edge in enumerate(edges) if edge.silent and not edge.bottleneck]
    if slow:
        out.append(f"  linkStyle {','.join(slow)} stroke:{_RED},stroke-width:3px")
    if silent:
        out.append(f"  linkStyle {','.join(silent)} stroke:{_GREY}")
    marked = [f"v{v.number}" for _, vertices in groups for v in vertices if v.bottleneck]
    if marked:
        out += [f"  classDef bottleneck stroke:{_RED},stroke-width:3px", f"  class {','.join(marked)} bottleneck"]
    return "\n".join(out) + "\n"
