"""The picture of a performance target: each figure of each result as a share of its bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perflab.report import axes
from perflab.report.captions import durations, first_of, workloads
from perflab.report.figures import Axis, Figure, Key, Plot, Span, Spans, Target, fixed, rows
from perflab.report.results import Trials, summary_of
from perflab.results.run import PERFLAB
from perflab.statistics import target as targets

MAX_ROWS = 40
LONGEST = 200.0  # percent of a bound; a longer bar is cut there, and shows its number

TOP, BOTTOM = -0.2, 0.4  # half height of a bar in its row; a page writes the name above it
WITHIN, ABOVE = 0, 1


@dataclass(frozen=True)
class _Row:
    """A bounded figure of a result. `value` None: not measured."""

    result: Trials
    key: str
    value: float | None
    bound: float

    @property
    def percent(self) -> float | None:
        """Share of the bound; infinite above a bound of 0."""
        if self.value is None:
            return None
        if self.bound == 0:
            return float("inf") if self.value else 0.0
        return 100 * self.value / self.bound

    @property
    def words(self) -> str:
        """ "latency, mean: 31.2 µs, bound 50"."""
        words, unit = targets.WORDS[self.key]
        value = "not measured" if self.value is None else f"{self.value:.4g} {unit}"
        return f"{words}: {value}, bound {self.bound:g}"


def against_target(results: Sequence[Trials], target: Target) -> Figure | None:
    """A bar for each bounded figure of each result; a line at its bound."""
    every = [row for key in target.bounds for row in _rows(results, key, target)]
    if all(row.value is None for row in every):
        return None
    drawn = every[:MAX_ROWS]
    several = len({id(row.result) for row in every}) > 1
    called = [f"{f'{row.result.label}, ' if several else ''}{row.words}" for row in drawn]
    bars: dict[int, list[Span]] = {WITHIN: [], ABOVE: []}
    for place, (row, name) in enumerate(zip(drawn, called, strict=True)):
        if (percent := row.percent) is None:
            continue
        label = "above" if percent == float("inf") else f"{percent:.0f} %"
        end = min(percent, LONGEST)
        bars[ABOVE if percent > 100 else WITHIN].append(
            Span(0.0, end, place + TOP, place + BOTTOM, label, f"{name}<br>{label} of the bound")
        )
    high = 1.05 * max(110.0, *(bar.end for of in bars.values() for bar in of))
    axis = Axis("measured, in % of the bound", "linear", 0.0, high, axes.linear_ticks(0.0, high))
    plot = Plot(fixed(axis), rows(called), notes=first_of(every, drawn, "figures"))
    if any((row.percent or 0) > LONGEST for row in drawn):
        plot.notes.append(f"Bars of more than {LONGEST:g} % are cut; the numbers are beside the names.")
    for name in dict.fromkeys(targets.WORDS[row.key][0] for row in every if row.value is None):
        plot.notes.append(f"{name} was not measured in every result.")
    plot.line("the bound", WITHIN, [100.0, 100.0], [-0.5, len(drawn) - 0.5], stroke="dashed", weight="thick")
    words = {WITHIN: "within its bound", ABOVE: "above its bound"}
    return plot.figure(
        "target",
        f"Measured against {target.name}",
        f"{workloads(results)}: {durations(results)}",
        list(words.items()),
        [Key("the bound", "dashed", "thick")],
        spans=tuple(Spans(words[group], group, tuple(of)) for group, of in bars.items() if of),
        lanes=2,
    )


def _rows(results: Sequence[Trials], key: str, target: Target) -> list[_Row]:
    found = []
    for result in results:
        if (entry := summary_of(result)) is None:
            continue
        measured = targets.measured(
            entry,
            targets.processes_of(entry, target.topology),
            targets.machine_cpus(result.run.manifest.host),
            one_class_of_loss=result.run.origin != PERFLAB,
        )
        found.append(_Row(result, key, measured[key], target.bounds[key]))
    return found
