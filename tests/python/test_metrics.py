"""Metrics of a trial, and criteria that bound them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from perflab.errors import BadInput
from perflab.models import as_json, read
from perflab.results.outcome import FAILED, SUCCESS
from perflab.results.trial import Judged, Trial
from perflab.statistics import metrics
from perflab.statistics.metrics import METRICS, parse, parse_criterion

Json = dict[str, Any]


def distribution(count: int | None = 2000, **changes: Any) -> Json:
    values = {"min": 1, "mean": 1.5e6, "p50": 1_000_000, "p90": 2_000_000, "p99": 7_000_000, "p99_9": 8_000_000}
    return {"count": count, **values, "p99_99": 9_000_000, "max": 10_000_000, **changes}


def trial(**changes: Any) -> Trial:
    """2,000 of 2,010 messages received, 10 late; 30 % of a CPU for 2 s."""
    totals: Json = {
        "received": 2000,
        "late": 8,
        "too_late": 2,
        "lost": {"pre_match": 1, "gap": 7, "tail": 2},
        "latency_ns": distribution(),
        "response_ns": distribution(p99=9_000_000),
        "dispatch_ns": None,
    }
    resources = {"cpu_percent_mean": 30.0, "rss_kb_max": 7000}
    known = {"trial": 1, "order": 1, "outcome": SUCCESS, "measured_s": 2.0}
    return read(Trial, {**known, "totals": totals, "resources": resources, **changes})


def service(count: int, **changes: Any) -> Json:
    return {
        "client": "c",
        "service": "s",
        "server": "d",
        "received": count,
        "late": 1,
        "too_late": 0,
        "lost": {"pre_match": 0, "gap": 0, "tail": 5},
        "round_trip_ns": distribution(count, **changes),
    }


def value(name: str, of: Trial) -> float | None:
    return parse(name).read(of).value


def reason(name: str, of: Trial) -> str | None:
    reading = parse(name).read(of)
    assert reading.value is None
    return reading.reason


def test_cpu_per_message_of_several_trials_is_of_their_seconds_and_of_their_messages() -> None:
    busy = trial(resources={"cpu_percent_mean": 100.0}, measured_s=4.0, outcome=FAILED)
    assert metrics.cpu_per_message([trial(), busy]).value == pytest.approx((0.6e9 + 4e9) / 4000)
    silent = trial(totals={"received": 0})
    assert metrics.cpu_per_message([trial(), silent]).value == pytest.approx((0.6e9 + 0.6e9) / 2000)
    assert metrics.cpu_per_message([silent]).reason == "no message was received"
    for unknown in (trial(resources={}), trial(measured_s=None), trial(totals={})):
        assert metrics.cpu_per_message([trial(), unknown]).value is None
    assert metrics.cpu_per_message([]).value is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("latency.p50", 1e6),
        ("latency.mean", 1.5e6),
        ("latency.max", 1e7),
        ("response.p99", 9e6),
        ("received", 2000),
        ("lost", 10),
        ("lost_share", 100 * 10 / 2010),
        ("late", 8),
        ("late_share", 0.4),
        ("too_late_share", 0.1),
        ("cpu_percent", 30),
        ("rss_kb", 7000),
        ("cpu_per_message", 300_000),
    ],
)
def test_a_metric_is_one_number_of_a_trial(name: str, expected: float) -> None:
    assert value(name, trial()) == pytest.approx(expected)


def test_every_metric_of_a_trial_that_recorded_nothing_is_none_with_a_reason() -> None:
    nothing = Trial(trial=1, order=1, outcome=FAILED)
    for metric in METRICS.values():
        reading = metric.read(nothing)
        assert reading.value is None
        assert reading.reason


@pytest.mark.parametrize(
    ("statistic", "fewest"), [("p50", 20), ("p90", 100), ("p99", 1000), ("p99_9", 10_000), ("p99_99", 100_000)]
)
def test_a_percentile_needs_ten_messages_above_it(statistic: str, fewest: int) -> None:
    assert metrics.needed(statistic) == fewest
    enough = trial(totals={**as_json(trial().totals), "latency_ns": distribution(fewest)})
    too_few = trial(totals={**as_json(trial().totals), "latency_ns": distribution(fewest - 1)})
    assert value(f"latency.{statistic}", enough) is not None
    assert "messages in a trial, there are" in str(reason(f"latency.{statistic}", too_few))
    assert value("latency.max", too_few) == 1e7


def test_losses_that_are_not_all_known_are_none() -> None:
    cut_off = trial(totals={**as_json(trial().totals), "lost": {"pre_match": 0, "gap": 3, "tail": None}})
    assert reason("lost", cut_off) == "losses at the end are unknown"
    assert value("lost_share", cut_off) is None


def test_the_round_trip_is_that_of_the_slowest_service_and_its_mean_that_of_all() -> None:
    of = trial(services=[service(1000, p99=5, mean=2.0), service(3000, p99=9, mean=6.0)])
    assert value("round_trip.p99", of) == 9
    assert value("round_trip.mean", of) == 5
    assert value("lost", of) == 20
    assert value("received", of) == 6000
    short = trial(services=[service(999), service(3000)])
    assert "p99 needs 1 000 messages" in str(reason("round_trip.p99", short))


def test_services_alone_have_counts_and_no_latency() -> None:
    totals = {**as_json(trial().totals), "received": None, "lost": dict.fromkeys(("pre_match", "gap", "tail"))}
    of = trial(totals={**totals, "latency_ns": None}, services=[service(1000)])
    assert value("lost", of) == 5
    assert reason("latency.p50", of) == "not measured"


def test_figures_of_observers_are_there_when_these_were() -> None:
    assert "observer hiccup was not on" in str(reason("hiccup.p99", trial()))
    assert "observer allocations was not on" in str(reason("allocations_per_message", trial()))
    of = trial(observed_ns={"hiccup": distribution()}, allocations=5000)
    assert value("hiccup.max", of) == 1e7
    assert value("allocations_per_message", of) == 2.5


def test_names_are_forgiving_in_form_and_nothing_else() -> None:
    assert parse(" Latency.P99.9 ").name == "latency.p99_9"
    with pytest.raises(BadInput, match=r"^--metric: no metric 'latncy.p99'; did you mean latency.p99\?$"):
        parse("latncy.p99")
    with pytest.raises(BadInput, match=r"there are latency\.\{mean,p50,.*, lost, "):
        parse("zzz")


def test_the_default_metrics_exist_and_can_be_replaced() -> None:
    assert [m.name for m in metrics.chosen(None)] == list(metrics.DEFAULT)
    assert [m.name for m in metrics.chosen(["lost,latency.max", "lost"])] == ["lost", "latency.max"]


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("latency.p99 <= 5ms", False),
        ("latency.p99 <= 7ms", True),
        ("latency.p99 < 7 ms", False),
        ("latency.p99<7000.1us", True),
        ("lost == 0", False),
        ("lost <= 10", True),
        ("late_share < 1 %", True),
        ("late_share<0.4%", False),
        ("response.max <= 0.05 s", True),
        ("received >= 2000", True),
        ("received > 2e3", False),
        ("cpu_percent < 31", True),
        ("rss_kb <= 7000", True),
        ("rss_kb <= 7 MB", False),
    ],
)
def test_a_criterion_is_kept_or_not(text: str, met: bool) -> None:
    judged = parse_criterion(text).evaluate(trial())
    assert judged.met is met
    assert (": met with " in judged.words) is met


def test_two_metrics_of_one_unit_are_a_ratio_in_one_trial() -> None:
    assert value("response.p99/latency.p99", trial()) == pytest.approx(9 / 7)
    assert parse("latency.p99.9/latency.p50").format(8.0) == "8.00"
    assert parse_criterion("response.p99/latency.p99 <= 1.3").evaluate(trial()).met
    assert not parse_criterion("response.p99/latency.p99 < 1.2").evaluate(trial()).met
    assert reason("latency.p99/cyclictest.p99", trial()) == reason("cyclictest.p99", trial())
    none = trial(observed_ns={"cyclictest": distribution(p99=0)})
    assert reason("latency.p99/cyclictest.p99", none) == "cyclictest p99 is 0 ns"


@pytest.mark.parametrize(
    "name", ["latency.p99/lost", "lost/lost", "latency.p99/", "a/b", "latency.p50/latency.p99/lost"]
)
def test_what_is_no_ratio_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=r"is not a ratio|no metric"):
        parse(name)


def test_a_criterion_says_what_was_wanted_and_measured() -> None:
    judged = parse_criterion("latency.p99 <= 5ms").evaluate(trial())
    assert judged.words == "latency p99 <= 5.00 ms: not met with 7.00 ms"
    close = trial(totals={**as_json(trial().totals), "latency_ns": distribution(p99=7_000_001)})
    assert parse_criterion("latency.p99 <= 7ms").evaluate(close).words.endswith("not met with 7000001 ns")


def test_what_was_not_measured_is_neither_kept_nor_broken() -> None:
    judged = parse_criterion("dispatch.p50 <= 5ms").evaluate(trial())
    assert judged == Judged(
        criterion="dispatch.p50 <= 5ms",
        met=None,
        words="dispatch p50 <= 5.00 ms cannot be judged: not measured",
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("latency.p99", "'latency.p99' is not a criterion; write it like 'latency.p99 <= 5ms'"),
        ("", "'' is not a criterion"),
        ("5ms >= latency.p99", "is not a criterion"),
        ("latency.p99 <= -5ms", "is not a criterion"),
        ("latency.p99 <= 5ms extra", "is not a criterion"),
        ("latency.p98 <= 5ms", "no metric 'latency.p98'; did you mean latency.p9"),
        ("latency.p99 <= 5", "has no unit; write latency.p99 <= 5ms"),
        ("latency.p99 <= 5 apples", "'apples' is not a unit of latency.p99; use one of ns, us"),
        ("late_share < 0.01", "has no unit; write late_share < 0.01 %"),
        ("lost = 0", "has =; use one of"),
        ("lost == 0 ms", "'ms' is not a unit of lost; it is a plain number"),
        ("lost <= 1e999", "1e999 is too large"),
    ],
)
def test_nonsense_is_refused_in_one_line(text: str, complaint: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_criterion(text)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("--success: ")


def documented() -> list[str]:
    """The rows of the documents' table: each statistic of a distribution is one of S there."""
    compared, rows = {metrics.RATIO: "factor", metrics.DIFFERENCE: "difference"}, {}
    for metric in METRICS.values():
        name = re.sub(r"\..*", ".S", metric.name)
        rows[name] = f"| `{name}` | {metric.help} | {metric.unit} | {compared[metric.compared]} |"
    return list(rows.values())


def test_the_documents_list_every_metric() -> None:
    text = (Path(__file__).parents[2] / "docs/findings.md").read_text()
    table = text[text.index("| metric | meaning |") :]
    assert table[: table.index("\n\n")].splitlines()[2:] == documented()


@pytest.mark.parametrize("text", ["hiccup.p99 < 1ms", "latency.p99/hiccup_waited.p99 < 20"])
def test_a_criterion_needs_the_observers_that_record_its_metric(text: str) -> None:
    with pytest.raises(BadInput, match=r"--success: \S+ is recorded by the observer hiccup.*add --observer hiccup$"):
        parse_criterion(text, observers=["monitor"])
    assert parse_criterion(text, observers=["hiccup"]).text == text
    assert parse_criterion(text).text == text  # for trials whose observers are unknown
