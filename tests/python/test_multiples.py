"""Small multiples: each result against its baseline, on the axes of the picture of all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from made_run import MadeTrial, Stream, arrivals, make_run

from perflab.report import multiples, pictures
from perflab.report.distributions import edges, percentiles
from perflab.report.draw import draw
from perflab.report.results import Trials, results_of
from perflab.runs.rundata import open_run


def trial(latency_us: float, *conditions: str, middleware: str = "cyclonedds") -> MadeTrial:
    latencies = [latency_us + n % 7 for n in range(200)]
    return MadeTrial([Stream("a", "t", "b", 10, 200, arrivals(latencies))], middleware, conditions=conditions)


@pytest.fixture
def results(tmp_path: Path) -> list[Trials]:
    """What is disturbed first, as in a plan at random."""
    trials = [
        trial(900, "cpu_load"), trial(100), trial(150, "message_flood"), trial(40, middleware="fastdds"),
        trial(20_000, "cpu_load", middleware="fastdds"),
    ]  # fmt: skip
    return results_of([open_run(str(make_run(tmp_path / "run", {"p": ["a", "b"]}, trials)))])


def test_each_result_stands_against_its_baseline_and_baselines_against_the_first(results: list[Trials]) -> None:
    labels = [result.label for result in results]
    found = [(labels[p.group], labels[p.reference]) for p in multiples.against(results)]
    assert found == [
        ("cyclonedds, cpu_load", "cyclonedds, baseline"),
        ("cyclonedds, message_flood", "cyclonedds, baseline"),
        ("fastdds, baseline", "cyclonedds, baseline"),
        ("fastdds, cpu_load", "fastdds, baseline"),
    ]


def test_all_have_the_axes_of_the_whole_and_only_their_two_results(results: list[Trials]) -> None:
    whole = percentiles(results, ("latency",))
    assert whole is not None
    found = multiples.apart(whole, multiples.against(results))
    assert [(f.title, f.subtitle) for f in found][-1] == ("fastdds, cpu_load", "against baseline")
    for figure in found:
        assert (figure.x, figure.y) == (whole.x, whole.y)
        assert {s.group for s in figure.series} == {multiples.REFERENCE, multiples.RESULT}
        assert not figure.groups and not figure.keys and not figure.notes
    # Nothing of the whole is lost: the slowest message of all is in one of them.
    slowest = max(y for s in whole.series for y in s.y if y is not None)
    assert slowest in {y for figure in found for s in figure.series for y in s.y}


def test_lines_have_their_names_at_their_ends_the_lower_one_below(results: list[Trials]) -> None:
    whole = percentiles(results, ("latency",))
    assert whole is not None
    by_title = {f.title: f for f in multiples.apart(whole, multiples.against(results))}
    baseline, loaded = by_title["fastdds, cpu_load"].labels
    assert (baseline.text, baseline.below, loaded.text, loaded.below) == ("baseline", True, "cpu_load", False)
    assert loaded.y > baseline.y
    first, other = by_title["fastdds, baseline"].labels
    assert (first.text, other.text) == ("cyclonedds, baseline", "fastdds, baseline")


def test_a_picture_with_what_is_compared_with_nothing_stays_whole(results: list[Trials]) -> None:
    whole = percentiles(results, ("latency",))
    assert whole is not None
    assert multiples.apart(whole, multiples.against(results)[:1]) == []
    alone = percentiles(results[:1], ("latency",))
    assert alone is not None and multiples.apart(alone, multiples.against(results[:1])) == []


def test_rows_have_the_reference_above_the_result_and_names_beside_the_first(results: list[Trials]) -> None:
    whole = edges(results, "latency")
    assert whole is not None
    for small in multiples.apart(whole, multiples.against(results)):
        ranges = {s.group: s for s in small.series if s.shape == "ranges"}
        assert (ranges[0].y[:2], ranges[1].y[:2]) == ((-0.18, -0.18), (0.18, 0.18))
        assert [(label.text, label.below) for label in small.labels] == [
            (small.subtitle.removeprefix("against "), False), (small.title.rpartition(", ")[2] if "baseline" not in
             small.title else small.title, True),
        ]  # fmt: skip


def test_a_file_has_all_of_them_with_names_beside_lines_and_no_legend_of_results(results: list[Trials]) -> None:
    whole = percentiles(results, ("latency",))
    assert whole is not None
    small = multiples.apart(whole, multiples.against(results))
    svg = draw(whole, "svg", small=small).decode()
    texts = [text for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg) if text]
    assert [t for t in texts if t in {s.title for s in small}].count("fastdds, cpu_load") == 1
    for one in small:
        assert one.title in texts and all(label.text in texts for label in one.labels)
    assert "cyclonedds, message_flood" in texts and whole.title in texts
    assert len(texts) > 40, "each has its own axes"
    assert draw(whole, "pdf", small=small).startswith(b"%PDF-") and draw(whole, "svg", small=small).decode() == svg


def test_only_pictures_of_results_are_taken_apart(results: list[Trials]) -> None:
    """The groups of a curve are variants, and no results."""
    assert {kind.name for kind in pictures.KINDS if kind.of_results} == {"percentiles", "edges", "time", "cpu", "rss"}
    made = pictures.build(results, ["percentiles", "distributions"], ["latency"])
    of = {kind: made.apart(kind, figure) for kind, figure in made.drawn}
    assert (len(of["percentiles"]) == 4 and "distributions" not in of) or of.get("distributions") == []
    assert len(made.every) == sum(len(parts) or 1 for parts in of.values())
