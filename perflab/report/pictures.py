"""Which pictures can be made of runs, and why the others cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perflab.formats.rundata import PERFLAB
from perflab.report.distributions import edges, percentiles
from perflab.report.figures import Figure, Target
from perflab.report.parts import words
from perflab.report.resources import cpu, rss
from perflab.report.results import Result
from perflab.report.timelines import time


@dataclass(frozen=True)
class Pictures:
    """The figures that could be made of runs, and one line for each that could not."""

    figures: tuple[Figure, ...]
    missing: tuple[str, ...]


def build(
    results: Sequence[Result], kinds: Sequence[str], measured: Sequence[str], target: Target | None = None
) -> Pictures:
    """The pictures of `kinds`; percentiles show the figures `measured` together, edges and time one in each picture."""
    figures: list[Figure] = []
    missing: list[str] = []

    def add(figure: Figure | None, otherwise: str) -> None:
        if figure is None:
            missing.append(otherwise)
        else:
            figures.append(figure)

    for kind in kinds:
        match kind:
            case "percentiles":
                add(percentiles(results, measured), f"percentiles: {_no_histograms(results)}")
            case "edges":
                for name in measured:
                    add(edges(results, name), f"edges: no {words(name)} was measured")
            case "time":
                for name in measured:
                    add(time(results, name), f"time: {_no_histograms(results, 'records over time')}")
            case "cpu":
                add(cpu(results, target), "cpu: no CPU time was sampled")
            case "rss":
                add(rss(results, target), "rss: no memory was sampled")
            case _:
                raise ValueError(f"no picture {kind!r}")
    return Pictures(tuple(figures), tuple(missing))


def _no_histograms(results: Sequence[Result], what: str = "histograms") -> str:
    foreign = [r for r in results if r.run.origin != PERFLAB]
    if foreign and len(foreign) == len(results):
        return f"irobot_benchmark leaves no {what}"
    return f"there are no {what} of it in these runs"
