"""Pictures as data: known answers for curves, edges, intervals and resources; scales; and colours that can be told."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from made_run import MANIFEST
from numpy.typing import NDArray
from support import checkpoint, edge, publisher

from perflab.errors import BadInput
from perflab.formats import checkpoints
from perflab.formats.checkpoints import Interval
from perflab.formats.records import RecordError
from perflab.formats.tables import empty_tables
from perflab.report import (
    against_target,
    axes,
    captions,
    distributions,
    draw,
    multiples,
    palette,
    pictures,
    resources,
    results,
    timelines,
)
from perflab.report.figures import Figure, Series, Target
from perflab.report.results import Trials, results_of
from perflab.results.outcome import Outcome
from perflab.results.run import IROBOT, PERFLAB, RunData, TrialTables
from perflab.results.summary import Summary
from perflab.statistics import histogram as hg
from perflab.statistics.accounting import account

S = 1_000_000_000
START = 5 * S


def values_edge(values: Sequence[int], **more: Any) -> dict[str, Any]:
    h = hg.to_record(hg.from_values(values))
    return edge(len(values), 0, len(values) - 1, latency=h, response=h, **more)


def trial(
    *edges: dict[str, Any],
    number: int = 1,
    samples: Sequence[dict[str, Any]] = (),
    events: Sequence[dict[str, Any]] = (),
    **more: Any,
) -> TrialTables:
    """A trial of 10 s with these edges of one publisher each."""
    from perflab.formats import tables

    publishers = [publisher(e["received"], node=e["publisher"], topic=e["topic"]) for e in edges]
    unique = list({(p["node"], p["topic"]): p for p in publishers}.values())
    fields: dict[str, Any] = {
        "number": number,
        "workload": "w",
        "middleware": "m",
        "executor": None,
        "ipc": None,
        "pass_by": None,
        "conditions": (),
        "outcome": "success",
        "started_ns": START,
        "duration_s": 10.0,
        **empty_tables(),
    }
    if edges:
        accounts = account([checkpoint(unique, list(edges))])
        of_accounts = tables.of(accounts, ())
        fields |= {name: of_accounts[name] for name in ("edges", "publishers")}
    if samples:
        fields["resources"] = pl.concat([fields["resources"], pl.DataFrame(samples)], how="diagonal")
    if events:
        fields["events"] = pl.concat([fields["events"], pl.DataFrame(events)], how="diagonal")
    made = {**fields, **more}
    return TrialTables(**{**made, "outcome": Outcome(made["outcome"])})


def run(*trials: TrialTables, name: str = "r", cpus: str | None = "0-3", path: Path = Path("nowhere")) -> RunData:
    manifest = replace(MANIFEST, host={"cpus_online": cpus})
    return RunData(name, path, PERFLAB, Summary(run=name, valid=True, results=()), manifest, tuple(trials), ())


def one_result(*trials: TrialTables) -> list[Trials]:
    found = results_of([run(*trials)])
    assert len(found) == 1
    return found


def series_named(figure: Figure, name: str) -> list[Series]:
    return [s for s in figure.series if s.name == name]


def the_series(figure: Figure, name: str) -> Series:
    (found,) = series_named(figure, name)
    return found


def at(series: Series, x: float) -> float:
    """The value of a series at the point next to x."""
    places = [math.inf if p is None else abs(p - x) for p in series.x]
    value = series.y[places.index(min(places))]
    assert min(places) < 1e-6
    assert value is not None
    return value


# -- percentiles -----------------------------------------------------------------------------------------------------


def thousand(start: int = 1) -> list[int]:
    return [k * 1000 for k in range(start, start + 1000)]


def test_a_percentile_curve_has_the_values_of_its_messages() -> None:
    figure = distributions.percentiles(one_result(trial(values_edge(thousand()))), ("latency",))
    assert figure is not None
    assert figure.y.title == "latency (µs)"
    curve = the_series(figure, "m")
    for percentile, value_us in ((50, 500), (90, 900), (99, 990)):
        assert at(curve, percentile) == pytest.approx(value_us, rel=1 / 1000)
    assert (curve.x[0], curve.y[0]) == (0.0, 1.0)
    assert "1 000 messages" in figure.subtitle
    assert "10 s" in figure.subtitle


def test_a_curve_is_reliable_up_to_ten_slower_messages_and_ends_at_the_exact_maximum() -> None:
    values = [*thousand()[:-1], 7_654_321]
    figure = distributions.percentiles(one_result(trial(values_edge(values))), ("latency",))
    assert figure is not None
    assert the_series(figure, "m").x[-1] == 99.0
    assert the_series(figure, "m, last").x == (99.0,)
    tail = the_series(figure, "m, up to the maximum")
    assert tail.x[0] == 99.0
    assert tail.x[-1] == pytest.approx(99.95)
    assert tail.y[-1] == pytest.approx(7654.321)


def test_every_marked_percentile_lies_on_the_curve() -> None:
    figure = distributions.percentiles(one_result(trial(values_edge(thousand()))), ("latency",))
    assert figure is not None
    curve = the_series(figure, "m")
    assert curve.signed is not None
    assert [curve.x[i] for i in curve.signed] == [50.0, 90.0, 99.0]


def test_curves_merge_edges_and_trials_exactly() -> None:
    slow = [k * 1_000_000 for k in range(1, 501)]
    trials = [
        trial(values_edge(thousand()[:300]), values_edge(thousand()[300:], subscription="/c"), number=1),
        trial(values_edge(slow), number=2),
    ]
    merged = results.histogram(trials, "latency")
    assert merged is not None
    whole = hg.from_values([*thousand(), *slow])
    assert merged.count == whole.count == 1500
    assert np.array_equal(merged.indices, whole.indices)
    assert np.array_equal(merged.counts, whole.counts)
    figure = distributions.percentiles(one_result(*trials), ("latency",))
    assert figure is not None
    expected = hg.value_at_percentile(whole, 90.0)
    assert expected is not None
    unit_ns = 1e3 if "µs" in figure.y.title else 1e6
    assert at(the_series(figure, "m"), 90.0) * unit_ns == pytest.approx(expected)
    assert {s.weight for s in series_named(figure, "m, trial 1")} == {"thin"}
    assert any(key.label == "single trials" for key in figure.keys)


def test_of_many_trials_ten_have_a_line_of_their_own_and_all_are_in_the_thick_one() -> None:
    found = one_result(*(trial(values_edge(thousand(k)), number=k) for k in range(1, 26)))
    figure = distributions.percentiles(found, ("latency",))
    assert figure is not None
    thin = [s.name for s in figure.series if s.weight == "thin" and s.stroke == "solid"]
    assert 5 <= len(thin) <= captions.MAX_SINGLE
    assert thin[0].endswith("trial 1")
    assert figure.subtitle.startswith("w: 25 000 messages, 25 trials")
    assert any(note.startswith("At most 10 trials of a result have their own line") for note in figure.notes)


def test_levels_of_one_factor_stand_in_their_order_with_what_has_none_before_them() -> None:
    def at_level(level: float | None, middleware: str) -> TrialTables:
        factors = {} if level is None else {"flood.rate": level}
        return trial(values_edge([1]), middleware=middleware, factors=factors, treatment=f"rate={level}")

    asked = [(1000, "b"), (20, "b"), (None, "b"), (300, "a"), (4, "a")]
    found = results_of([run(*(at_level(level, middleware) for level, middleware in asked))])
    ordered = results.by_level(found)
    assert ordered is not None
    levels = [result.trials[0].factors.get("flood.rate") for result in ordered]
    assert levels == [None, 20, 1000, 4, 300]
    assert [r.label for r in results.evenly(ordered, 3)] == [ordered[i].label for i in (0, 2, 4)]
    assert results.evenly(ordered, 9) == ordered


def test_levels_that_are_no_numbers_or_of_several_factors_have_no_order() -> None:
    words = [trial(values_edge([1]), factors={"flood.qos": level}, treatment=level) for level in ("x", "y")]
    assert results.by_level(results_of([run(*words)])) is None
    two = [trial(values_edge([1]), factors={name: 1}, treatment=name) for name in ("a.b", "c.d")]
    assert results.by_level(results_of([run(*two)])) is None


def test_few_messages_have_no_reliable_percentile() -> None:
    figure = distributions.percentiles(one_result(trial(values_edge([1000] * 19))), ("latency",))
    assert figure is not None
    assert not series_named(figure, "m")
    assert the_series(figure, "m, up to the maximum").y[-1] == 1.0
    assert any("too few" in note for note in figure.notes)


def test_a_second_figure_is_dashed() -> None:
    figure = distributions.percentiles(one_result(trial(values_edge(thousand()))), ("latency", "response"))
    assert figure is not None
    assert the_series(figure, "m, latency").stroke == "solid"
    assert the_series(figure, "m, response").stroke == "dashed"
    assert [(k.label, k.stroke) for k in figure.keys][:2] == [("latency", "solid"), ("response", "dashed")]


def test_a_latency_of_nothing_is_drawn_and_said() -> None:
    figure = distributions.percentiles(one_result(trial(values_edge([0] * 100))), ("latency",))
    assert figure is not None
    assert set(the_series(figure, "m").y) == {1.0}
    assert any("0 ns is drawn at 1 ns" in note for note in figure.notes)


def test_results_keep_their_groups_and_their_names() -> None:
    found = results_of([run(trial(values_edge(thousand())), trial(values_edge(thousand()), number=2, middleware="n"))])
    assert [r.label for r in found] == ["m", "n"]
    figure = distributions.percentiles(found, ("latency",))
    assert figure is not None
    assert figure.groups == ((0, "m"), (1, "n"))
    assert the_series(figure, "n").group == 1


# -- which trials count ----------------------------------------------------------------------------------------------


def test_a_failed_trial_is_left_out_and_named() -> None:
    found = one_result(trial(values_edge(thousand())), trial(values_edge([5_000_000] * 50), number=2, outcome="failed"))
    figure = distributions.percentiles(found, ("latency",))
    assert figure is not None
    assert "1 000 messages" in figure.subtitle
    assert "m: trial 2 (failed) is left out." in figure.notes


def test_a_trial_that_missed_a_criterion_is_in_the_picture_and_named() -> None:
    missed = trial(values_edge(thousand()), number=2, outcome="failed", missed_criterion=True)
    for others in ([], [trial(values_edge(thousand()))]):
        figure = distributions.percentiles(one_result(*others, missed), ("latency",))
        assert figure is not None
        assert [note for note in figure.notes if "trial" in note and "lines" not in note] == [
            "m: trial 2 did not succeed, and counts as measured."
        ]


def test_where_no_trial_succeeded_what_there_is_is_shown_and_said() -> None:
    figure = distributions.percentiles(one_result(trial(values_edge(thousand()), outcome="failed")), ("latency",))
    assert figure is not None
    assert any("no trial succeeded" in note for note in figure.notes)


def test_trials_without_any_data_are_no_result() -> None:
    assert results_of([run(trial(outcome="failed"))]) == []


# -- edges -----------------------------------------------------------------------------------------------------------


def test_edges_stand_worst_first_with_p50_p99_and_maximum() -> None:
    quick = values_edge([10_000] * 99 + [20_000], subscription="/quick")
    slow = values_edge([30_000] * 50 + [90_000] * 50, subscription="/slow", topic="/u")
    figure = distributions.edges(one_result(trial(quick, slow)), "latency")
    assert figure is not None
    assert [label for _, label in figure.y.ticks] == ["a → slow · u", "a → quick · t"]
    assert the_series(figure, "m, middle").x == pytest.approx((30.0, 10.0), rel=1e-3)
    assert the_series(figure, "m, p99").x == pytest.approx((90.0, 10.0), rel=1e-3)
    assert the_series(figure, "m, maximum").x == (90.0, 20.0)
    assert the_series(figure, "m, maximum").y == (0.0, 1.0)


def test_of_many_edges_the_worst_are_shown_with_a_note() -> None:
    edges = [values_edge([1000 * (k + 1)] * 10, subscription=f"/s{k}") for k in range(40)]
    figure = distributions.edges(one_result(trial(*edges)), "latency")
    assert figure is not None
    assert len(figure.y.ticks) == distributions.MAX_ROWS
    assert figure.y.ticks[0][1] == "a → s39 · t"
    assert any("worst 24 of 40 edges" in note for note in figure.notes)


def test_an_edge_that_one_result_has_stands_in_the_middle_of_its_row() -> None:
    both = [values_edge([1000] * 10, subscription="/x")]
    found = results_of([run(trial(*both, values_edge([9000] * 10, subscription="/y")), name="a"),
                        run(trial(*both, middleware="n"), name="b")])  # fmt: skip
    figure = distributions.edges(found, "latency")
    assert figure is not None
    assert the_series(figure, "m, maximum").y == pytest.approx((0.0, 1.0 - 0.18))
    assert the_series(figure, "n, maximum").y == pytest.approx((1.0 + 0.18,))


def test_publishers_are_rows_of_their_own_figures() -> None:
    figure = distributions.edges(one_result(trial(values_edge(thousand()))), "publish_delay")
    assert figure is not None
    assert [label for _, label in figure.y.ticks] == ["a · t"]
    assert "by publisher" in figure.title


def test_an_edge_that_received_nothing_is_no_row() -> None:
    figure = distributions.edges(one_result(trial(values_edge([1000]), values_edge([], subscription="/c"))), "latency")
    assert figure is not None
    assert len(figure.y.ticks) == 1


# -- over time -------------------------------------------------------------------------------------------------------


def records(path: Path, *checkpoints_: tuple[int, Sequence[int]], cut: str = "") -> Path:
    """A record file that starts at START; each checkpoint has all values so far in its only edge."""
    lines = [{"type": "start", "at_ns": START, "measured_from_ns": START, "measured_until_ns": 0, "matched": True}]
    for at_ns, values in checkpoints_:
        latency = hg.to_record(hg.from_values(values))
        more = {"type": "checkpoint", "at_ns": at_ns}
        lines.append({**checkpoint([], [edge(len(values), latency=latency)]), **more})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + cut)
    return path


def test_successive_checkpoints_differ_by_what_was_counted_between_them(tmp_path: Path) -> None:
    first, second = [1000, 2000, 3000], [5000, 2000]
    path = records(tmp_path / "p.jsonl", (START + S, first), (START + 6 * S, first + second), cut='{"type":"che')
    intervals = checkpoints.intervals(checkpoints.read(path, "latency"))
    assert [(i.begin_ns - START, i.end_ns - START) for i in intervals] == [(0, S), (S, 6 * S)]
    for interval, values in zip(intervals, (first, second), strict=True):
        expected = hg.from_values(values)
        assert np.array_equal(interval.histogram.indices, expected.indices)
        assert np.array_equal(interval.histogram.counts, expected.counts)
        assert (interval.histogram.count, interval.histogram.sum) == (expected.count, expected.sum)
    assert intervals[1].histogram.max == 5000


def test_the_progress_of_every_second_is_finer_than_the_checkpoints(tmp_path: Path) -> None:
    path = records(tmp_path / "p.jsonl", (START + 3 * S, [1000, 2000, 3000]))
    progress = [
        {"type": "progress", "at_ns": START + n * S, "latency": hg.encode(hg.from_values(values))}
        for n, values in ((-1, []), (1, [1000]), (2, [1000, 2000]))
    ]
    start, checkpoint_ = path.read_text().splitlines()
    path.write_text("\n".join([start, *map(json.dumps, progress), checkpoint_]) + "\n")
    intervals = checkpoints.intervals(checkpoints.read(path, "latency"))
    assert [(i.end_ns - START, i.histogram.count) for i in intervals] == [(S, 1), (2 * S, 1), (3 * S, 1)]
    assert [i.histogram.indices.tolist() for i in intervals] == [
        hg.from_values([value]).indices.tolist() for value in (1000, 2000, 3000)
    ]


def test_the_maximum_of_an_interval_is_exact_when_it_is_new_and_the_bound_of_its_cell_otherwise() -> None:
    earlier = hg.from_values([9_999_999])
    bounded = checkpoints.difference(hg.merge([earlier, hg.from_values([1_234_567])]), earlier)
    assert bounded.max is not None
    assert 1_234_567 <= bounded.max <= 1_234_567 * (1 + 1 / 1000)
    assert checkpoints.difference(hg.merge([earlier, hg.from_values([12_345_678])]), earlier).max == 12_345_678
    assert checkpoints.difference(earlier, earlier).count == 0


def test_a_checkpoint_that_counts_less_than_before_is_refused() -> None:
    with pytest.raises(hg.HistogramError, match="less than an earlier one"):
        checkpoints.difference(hg.from_values([1]), hg.from_values([2]))


def test_what_belongs_to_a_condition_is_left_out(tmp_path: Path) -> None:
    path = records(tmp_path / "p.jsonl", (START + S, [1000, 2000]))
    start, line = (json.loads(text) for text in path.read_text().splitlines())
    flood = hg.to_record(hg.from_values([9_000_000] * 50))
    line["edges"].append(edge(50, publisher="/flood", latency=flood) | {"condition": "message_flood"})
    path.write_text(f"{json.dumps(start)}\n{json.dumps(line)}\n")
    (interval,) = checkpoints.intervals(checkpoints.read(path, "latency"))
    assert (interval.histogram.count, interval.histogram.max) == (2, 2000)


def test_the_hiccups_of_a_process_have_checkpoints_of_their_own(tmp_path: Path) -> None:
    path = records(tmp_path / "p.jsonl", (START + S, [1000]), (START + 2 * S, [1000]))
    start, *lines = (json.loads(text) for text in path.read_text().splitlines())
    for line, values in zip(lines, ([70_000], [70_000, 4_000_000]), strict=True):
        line["hiccup"] = hg.to_record(hg.from_values(values))
    path.write_text("".join(json.dumps(line) + "\n" for line in (start, *lines)))
    intervals = checkpoints.intervals(checkpoints.read(path, checkpoints.HICCUP))
    assert [(i.histogram.count, i.histogram.max) for i in intervals] == [(1, 70_000), (1, 4_000_000)]
    path.write_text("".join(json.dumps(line | {"hiccup": None}) + "\n" for line in (start, *lines)))
    assert checkpoints.read(path, checkpoints.HICCUP) == ()


def test_a_figure_that_was_not_measured_has_no_checkpoints(tmp_path: Path) -> None:
    path = records(tmp_path / "p.jsonl", (START + S, [1000]))
    assert checkpoints.read(path, "dispatch") == ()
    assert checkpoints.read(tmp_path / "none.jsonl", "latency") == ()


def test_a_damaged_checkpoint_names_its_file(tmp_path: Path) -> None:
    path = records(tmp_path / "p.jsonl", (START + S, [1000]))
    path.write_text(path.read_text().replace('"edges"', '"hedges"'))
    with pytest.raises(RecordError, match=r"p\.jsonl: a record is damaged: KeyError: 'edges'"):
        checkpoints.read(path, "latency")


def test_intervals_of_processes_are_merged_where_they_belong_together() -> None:
    h = hg.from_values([1000])
    one = [Interval(0, 100, h), Interval(100, 600, h)]
    other = [Interval(3, 104, h), Interval(104, 590, h), Interval(590, 640, h)]
    merged = checkpoints.merge([one, other])
    assert [(i.begin_ns, i.end_ns, i.histogram.count) for i in merged] == [(0, 104, 2), (100, 600, 2), (590, 640, 1)]


def with_records(tmp_path: Path, *trials: TrialTables) -> list[Trials]:
    """Results whose processes left records: 1 s of 10 µs, then 5 s of 100 µs with one message of 20 ms."""
    quick, slow = [10_000] * 1000, [100_000] * 4999 + [20_000_000]
    for t in trials:
        processes = tmp_path / "trials" / f"{t.number:04d}_baseline" / "processes"
        records(processes / "p.jsonl", (START + S, quick), (START + 6 * S, quick + slow))
    return results_of([run(*trials, path=tmp_path)])


def test_time_shows_each_interval_and_each_late_message(tmp_path: Path) -> None:
    events = [
        {"process": "p", "at_ns": START + 3 * S, "code": "late", "text": "", "details": '{"latency_ns": 20000000}'},
        {"process": "p", "at_ns": START + 4 * S, "code": "lost", "text": "", "details": '{"count": 7}'},
    ]
    figure = timelines.time(with_records(tmp_path, trial(values_edge(thousand()), events=events)), "latency")
    assert figure is not None
    assert figure.y.title == "latency (µs)"
    steps, signs = series_named(figure, "m, p50")
    assert steps.x == (0.0, 1.0, 1.0, 6.0)
    assert steps.y == pytest.approx((10, 10, 100, 100), rel=1e-3)
    assert signs.x == (0.5, 3.5)
    assert series_named(figure, "m, maximum")[0].y[-1] == 20_000.0
    late = the_series(figure, "m, late")
    assert (late.x, late.y) == ((3.0,), (20_000.0,))
    assert "7 lost" in the_series(figure, "m, lost").hover[0]
    assert "6 000 messages" in figure.subtitle
    assert any("intervals of 1 to 5 s" in note for note in figure.notes)


def test_time_merges_trials_and_shows_each_of_them_thinly(tmp_path: Path) -> None:
    trials = [trial(values_edge(thousand()), number=n) for n in (1, 2)]
    figure = timelines.time(with_records(tmp_path, *trials), "latency")
    assert figure is not None
    assert "12 000 messages" in figure.subtitle
    assert {s.weight for s in series_named(figure, "m, trial 2, p50")} == {"thin"}
    assert series_named(figure, "m, p50")[0].weight == "thick"


def test_time_never_runs_backwards_where_intervals_of_short_trials_lie_across_each_other(tmp_path: Path) -> None:
    trials = [trial(values_edge(thousand()), number=n) for n in (1, 2)]
    with_records(tmp_path, *trials)
    lasting = {1: (1.5, 2.5), 2: (0.6, 2.6)}
    for number, (first, last) in lasting.items():
        path = tmp_path / "trials" / f"{number:04d}_baseline" / "processes" / "p.jsonl"
        records(path, (START + int(first * S), thousand()), (START + int(last * S), [*thousand(), *thousand()]))
    figure = timelines.time(results_of([run(*trials, path=tmp_path)]), "latency")
    assert figure is not None
    for series in figure.series:
        if series.shape == "line":
            for before, after in pairwise(series.x):
                assert before is None or after is None or before <= after, series


def test_time_without_records_is_no_picture() -> None:
    assert timelines.time(one_result(trial(values_edge(thousand()))), "latency") is None


def test_damaged_records_are_bad_input(tmp_path: Path) -> None:
    found = with_records(tmp_path, trial(values_edge(thousand())))
    path = next(tmp_path.glob("trials/*/processes/*.jsonl"))
    path.write_text("{\n" + path.read_text())
    with pytest.raises(BadInput, match=r"p\.jsonl:1: not a JSON object"):
        timelines.time(found, "latency")


# -- resources -------------------------------------------------------------------------------------------------------


def sample(
    at_s: float, cpu_percent: float | None, rss_kb: int = 2048, process: str = "p", interval_s: float = 1.0
) -> Any:
    interval_ns = round(interval_s * S)
    used = None if cpu_percent is None else round(cpu_percent / 100 * interval_ns)
    return {
        "process": process, "at_ns": START + round(at_s * S), "interval_ns": interval_ns, "cpu_interval_ns": used,
        "rss_kb": rss_kb,
    }  # fmt: skip


def test_cpu_is_per_cent_of_one_cpu_and_a_target_is_converted() -> None:
    found = one_result(trial(samples=[sample(1, 50), sample(2, 150)]))
    figure = resources.cpu(found, Target("limit", {"cpu_perc": 15.0}))
    assert figure is not None
    assert figure.y.title == "CPU (% of one CPU)"
    assert (the_series(figure, "p").x, the_series(figure, "p").y) == ((1.0, 2.0), (50.0, 150.0))
    (line,) = figure.references
    assert (line.value, line.label) == (60.0, "limit: 15 % of all 4 CPUs")
    assert figure.y.high > 150


def test_cpu_before_the_start_and_after_the_end_is_not_shown() -> None:
    samples = [sample(0.2, 900), sample(1, 50), sample(10.2, 60), sample(10.3, 900, interval_s=0.1)]
    figure = resources.cpu(one_result(trial(samples=samples)))
    assert figure is not None
    assert the_series(figure, "p").y == (50.0, 60.0)


def test_a_target_without_a_known_number_of_cpus_has_no_line() -> None:
    found = results_of([run(trial(samples=[sample(1, 50)]), cpus=None)])
    figure = resources.cpu(found, Target("limit", {"cpu_perc": 15.0}))
    assert figure is not None
    assert figure.references == ()
    assert any("not recorded" in note for note in figure.notes)


def test_shares_of_a_whole_machine_are_drawn_as_that() -> None:
    machine = [{"process": "q", "at_ns": S, "interval_ns": S, "cpu_percent_of_machine": 5.0, "rss_peak_kb": 1024}]
    foreign = replace(run(trial(samples=machine, started_ns=None, middleware="n")), origin=IROBOT, manifest=MANIFEST)
    both = results_of([run(trial(samples=[sample(1, 50)])), foreign])
    figure = resources.cpu(both, Target("limit", {"cpu_perc": 15.0}))
    assert figure is not None
    assert figure.y.title == "CPU (% of all CPUs)"
    assert [s.y for s in figure.series] == [(12.5,), (5.0,)]
    assert figure.references[0].value == 15.0


def test_memory_is_in_mib_and_so_is_its_target() -> None:
    figure = resources.rss(
        one_result(trial(samples=[sample(1, None), sample(2, None, 4096)])), Target("t", {"rss_KB": 10240})
    )
    assert figure is not None
    assert the_series(figure, "p").y == (2.0, 4.0)
    assert figure.references[0].value == 10.0


def test_trials_are_averaged_where_all_have_a_sample() -> None:
    trials = [trial(samples=[sample(1, 10), sample(2, 20)]), trial(samples=[sample(1.1, 30)], number=2)]
    figure = resources.cpu(one_result(*trials))
    assert figure is not None
    assert (the_series(figure, "p").x, the_series(figure, "p").y) == ((1.0,), (20.0,))
    assert len(series_named(figure, "p, a single trial")) == 2


def test_every_process_is_a_line_up_to_a_limit() -> None:
    samples = [sample(1, k, process=f"p{k}") for k in range(1, 20)]
    figure = resources.cpu(one_result(trial(samples=samples)))
    assert figure is not None
    assert len(figure.groups) == resources.MAX_LINES
    assert figure.groups[0][1] == "p19"
    assert any("12 largest of 19" in note for note in figure.notes)


def test_a_result_keeps_its_group_and_further_processes_have_others() -> None:
    both = [sample(1, 1, process="p"), sample(1, 2, process="q")]
    found = results_of([run(trial(samples=both)), run(trial(samples=[sample(1, 3)], middleware="n"))])
    figure = resources.cpu(found)
    assert figure is not None
    assert figure.groups == ((0, "m, p"), (2, "m, q"), (1, "n"))
    assert the_series(figure, "n").group == 1


# -- what cannot be drawn --------------------------------------------------------------------------------------------


def test_what_a_foreign_run_does_not_hold_is_said() -> None:
    row = {"publisher": "/a", "topic": "/t", "subscription": "/b", "latency_count": 4, "latency_mean": 2500.0,
           "latency_min": 1000, "latency_max": 4000}  # fmt: skip
    table = pl.concat([empty_tables()["edges"], pl.DataFrame([row])], how="diagonal")
    foreign = replace(run(replace(trial(), edges=table)), origin=IROBOT)
    made = pictures.build(results_of([foreign]), ("percentiles", "edges", "time", "cpu"), ("latency",))
    assert [kind for kind, _ in made.drawn] == ["edges"]
    assert [missing.kind for missing in made.missing] == ["percentiles", "time", "cpu"]
    assert "irobot_benchmark leaves no histograms" in str(made.missing[0])
    (figure,) = made.figures
    assert the_series(figure, "m, middle").x == (2.5,)
    assert the_series(figure, "m, maximum").x == (4.0,)
    assert not series_named(figure, "m, p99")
    assert [key.label for key in figure.keys] == ["mean if there is no p50", "maximum"]
    assert figure.subtitle == "w: 4 messages, 10 s"
    uncounted = replace(foreign, trials=(replace(foreign.trials[0], edges=table.drop("latency_count")),))
    (figure,) = pictures.build(results_of([uncounted]), ("edges",), ("latency",)).figures
    assert figure.subtitle == "w: 10 s"


# -- scales ----------------------------------------------------------------------------------------------------------


def test_units_suit_their_values() -> None:
    assert axes.time_unit([5_000, 20_000_000]).name == "µs"
    assert axes.time_unit([900_000, 80_000_000]).name == "ms"
    assert axes.time_unit([3, 500]).name == "ns"
    assert axes.time_unit([2e9]).name == "s"


def test_the_scale_of_nines() -> None:
    assert [round(axes.nines(p), 9) for p in (0, 90, 99, 99.9)] == [0, 1, 2, 3]
    assert [label for _, label in axes.percentile_ticks(99.95)] == ["0", "50", "90", "99", "99.9"]


def test_ticks_lie_within_their_axis_and_are_round() -> None:
    assert [label for _, label in axes.log_ticks(8, 120)] == ["10", "20", "50", "100"]
    assert [label for _, label in axes.log_ticks(0.5, 200_000)] == [
        "1",
        "10",
        "100",
        "1\u2009000",
        "10\u2009000",
        "100\u2009000",
    ]
    assert [at for at, _ in axes.linear_ticks(0, 12.1)] == [0, 2, 4, 6, 8, 10, 12]
    assert axes.number(0.05) == "0.05"


@pytest.mark.parametrize("values", [[5.0], [1.0, 1.0], [], [1e-3, 1e6]])
def test_a_logarithmic_axis_always_has_room_and_a_tick(values: list[float]) -> None:
    low, high = axes.log_range(values)
    assert 0 < low < high
    assert all(low < v < high for v in values)
    assert axes.log_ticks(low, high)


# -- colours ---------------------------------------------------------------------------------------------------------

# What colours become with each kind of colour blindness, on linear RGB (Machado, Oliveira and Fernandes, 2009).
BLINDNESS = {
    "none": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])

Floats = NDArray[np.float64]


def linear(color: str) -> Floats:
    c = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def luminance(color: str) -> float:
    return float(linear(color) @ TO_XYZ[1])


def lab(rgb: Floats) -> Floats:
    xyz = TO_XYZ @ np.clip(rgb, 0, 1) / np.array([0.9505, 1, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("theme", [palette.LIGHT, palette.DARK], ids=["light", "dark"])
def test_colours_have_contrast_and_stay_apart_whatever_the_eye(theme: palette.Theme) -> None:
    def contrast(color: str) -> float:
        dark, bright = sorted((luminance(color), luminance(theme.background)))
        return (bright + 0.05) / (dark + 0.05)

    assert min(map(contrast, theme.groups)) >= 3
    assert contrast(theme.ink) >= 7
    assert contrast(theme.faint) >= 4.5
    for kind, matrix in BLINDNESS.items():
        seen = [lab(np.array(matrix) @ linear(c)) for c in theme.groups]
        nearest = min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2))
        assert nearest > 20, kind


def test_a_result_and_what_it_is_compared_with_stay_apart_on_paper_without_colours() -> None:
    """By lightness alone, of 100; what is printed is light."""
    reference, result = (lab(linear(palette.LIGHT.groups[g]))[0] for g in (multiples.REFERENCE, multiples.RESULT))
    assert abs(reference - result) > 20


@pytest.mark.parametrize("theme", [palette.LIGHT, palette.DARK], ids=["light", "dark"])
def test_shades_of_cells_tell_shares_without_colour(theme: palette.Theme) -> None:
    channels = np.array([[int(tone[i : i + 2], 16) for i in (1, 3, 5)] for tone in theme.shades])
    between = [[round(np.interp(p, palette.SHADES, channel)) for channel in channels.T] for p in range(0, 101, 5)]
    steps = [luminance("#" + "".join(f"{channel:02x}" for channel in mixed)) for mixed in between]
    away = [abs(step - luminance(theme.background)) for step in steps]
    assert away == sorted(away), "ever further from the background"
    assert away[-1] - away[0] > 0.5


def test_colour_and_mark_together_repeat_late() -> None:
    pairs = [(draw.tone_of(g), palette.mark(g)) for g in range(42)]
    assert len(set(pairs)) == 42
    assert draw.tone_of(42) == draw.tone_of(0)


def test_bars_against_a_target_are_shares_of_its_bounds() -> None:
    def row(value: float | None, bound: float) -> float | None:
        return against_target._Row(found[0], "mean_us", value, bound).percent

    found = one_result(trial(samples=[sample(1, 50)]))
    assert (row(25, 50), row(100, 50), row(0, 0), row(None, 50)) == (50, 200, 0, None)
    assert row(1, 0) == math.inf  # a bound of 0 is met by 0 alone
    words = against_target._Row(found[0], "mean_us", None, 50).words
    assert words == "latency, mean: not measured, bound 50"
