"""Conditions, evidence and cells in the words of a report."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from jinja2 import UndefinedError

from perflab import page, registry
from perflab.columns import Column, Table
from perflab.condition.kinds import REGISTRY
from perflab.quantity import COUNT, PERCENT
from perflab.report.captions import left_out_words
from perflab.report.run_page.effects import condition_in_words, in_words, plain, treatment_in_words
from perflab.report.run_page.evidence import observed
from perflab.report.tables.results import left_out
from perflab.results.outcome import HARNESS_ERROR, SUCCESS, Outcomes
from perflab.results.summary import _with_interrupted
from perflab.results.trial import Circumstances

FLOOD: dict[str, Any] = {"publishers": 4, "rate": 1000.0, "payload": 1024, "readers": "external", "churn": 0.0}


@pytest.mark.parametrize(
    ("label", "parameters", "words"),
    [
        ("cpu_load", {"workers": 4, "load": 80.0}, "4 × 80 % CPU load"),
        ("cpu_load_2", {"workers": 1, "load": 30.0}, "1 × 30 % CPU load"),
        ("message_flood", FLOOD, "a flood of 4 × 1 000 messages/s of 1 KiB"),
        ("message_flood", {**FLOOD, "readers": "none"}, "a flood of 4 × 1 000 messages/s of 1 KiB without readers"),
        ("message_flood", {**FLOOD, "rate": 0.0}, "message_flood switched off"),
        (
            "message_flood",
            {**FLOOD, "publishers": 0, "churn": 20.0, "churn_of": "endpoints"},
            "20 endpoints coming and going per second",
        ),
        ("cpu_pinning", {"count": 1, "cpus": None}, "pinning to 1 CPU"),
        ("cpu_pinning", {"count": None, "cpus": [0, 2]}, "pinning on CPUs 0, 2"),
        (
            "network_shaping",
            {"rate": 1e7, "delay": "5ms", "jitter": "0s", "loss": 1.0},
            "a network with 10 Mbit/s, 5.00 ms delay, 1 % loss",
        ),
        ("network_shaping", {"delay": "soon"}, "network_shaping (its parameters cannot be read)"),
        (
            "priority_inhibitor",
            {"load": 90.0, "policy": "FIFO", "priority": 50, "cpus": [1]},
            "90 % load of FIFO 50 on CPU 1",
        ),
        ("cpu_load", {"of": "another version"}, "cpu_load"),
        ("solar_flare", {"class": "X"}, "solar_flare"),
    ],
)  # fmt: skip
def test_a_condition_is_called_by_what_it_does(label: str, parameters: dict[str, Any], words: str) -> None:
    assert condition_in_words(label, parameters) == words


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("cpu_load:load=80%,workers=3", "3 × 80 % CPU load"),
        ("cpu_pinning:count=1", "pinning to 1 CPU"),
        ("io_load:rate=5,workers=2", "2 writers to storage at 5 MB/s"),
        ("memory_pressure:bytes=10MiB,workers=1", "10 MiB rewritten by 1 worker(s)"),
        ("message_flood:publishers=2,rate=50", "a flood of 2 × 50 messages/s of 1 KiB"),
        (
            "network_shaping:rate=20Mbit,delay=10ms,jitter=1500us,loss=0.5%",
            "a network with 20 Mbit/s, 10.0 ms delay, 1.50 ms jitter, 0.5 % loss",
        ),
        ("network_shaping:rate=500kbit", "a network with 0.5 Mbit/s"),
        ("network_shaping:delay=1ms", "a network with 1.00 ms delay"),
        ("network_shaping:loss=3", "a network with 3 % loss"),
        ("priority_inhibitor:load=90,cpus=0", "90 % load of FIFO 50 on CPU 0"),
    ],
)
def test_every_condition_is_called_by_the_parameters_that_it_writes_itself(written: str, words: str) -> None:
    (condition,) = registry.parse([written], "condition", REGISTRY)
    assert condition_in_words(condition.label, json.loads(json.dumps(condition.parameters))) == words


def test_no_condition_is_without_words() -> None:
    assert [kind.name for kind in REGISTRY.values() if kind.words is None] == []


def disturbed(name: str, **parameters: Any) -> Circumstances:
    return Circumstances(
        workload="made",
        middleware="cyclonedds",
        treatment=name,
        conditions=("cpu_load",),
        condition_parameters={"cpu_load": parameters},
    )


def test_a_treatment_that_has_a_name_keeps_it() -> None:
    assert treatment_in_words(disturbed("busy", workers=2, load=50.0)) == "“busy” (2 × 50 % CPU load)"
    assert treatment_in_words(disturbed("cpu_load load=50", workers=2, load=50.0)) == "2 × 50 % CPU load"


def test_treatments_that_sound_alike_have_their_names_beside() -> None:
    one, other = disturbed("cpu_load cpus=0", workers=1, load=50.0), disturbed("cpu_load cpus=1", workers=1, load=50.0)
    assert in_words([one, other]) == {
        "cpu_load cpus=0": "1 × 50 % CPU load (cpu_load cpus=0)",
        "cpu_load cpus=1": "1 × 50 % CPU load (cpu_load cpus=1)",
    }


def test_evidence_has_what_was_promised_beside_what_was_achieved() -> None:
    promised = {"rate_hz": 100.0, "workers": 2, "cpus": [0, 1]}
    achieved = [
        {"rate_hz": 90.0, "workers_alive": 2, "part_s": 0.5, "sent_in_second": [90, 95], "threads": [{"tid": 1}]},
        {"rate_hz": 110.0, "workers_alive": 2, "part_s": 0.5, "sent_in_second": [100, None], "threads": []},
    ]
    rows = {row[0]: row[1:] for row in observed([promised, promised], achieved)}
    assert rows["rate"] == ("100 Hz", "100 Hz", "90 Hz to 110 Hz")
    assert rows["workers alive"] == ("2", "2", "2")
    assert rows["cpus"] == ("0, 1", "–", "–")
    assert rows["part"] == ("–", "500 ms", "500 ms")
    assert rows["sent in second"] == ("–", "95", "90 to 100")
    assert "threads" not in rows


def test_values_for_people() -> None:
    shown = [plain(value) for value in (None, True, 0.5, 12345.6, 1078176, [1, 2], {}, {"a": False})]
    assert shown == ["–", "on", "0.5", "12 346", "1 078 176", "1, 2", "none", "a off"]


def macro(name: str, *values: Any) -> str:
    return page.part("macros.html", name, *values)


def test_numbers_stay_with_their_units_and_code_is_code() -> None:
    assert page.unbroken("1 054 messages in 2 s") == "1\u00a0054 messages in 2\u00a0s"
    assert page.unbroken("3 seconds") == "3 seconds"
    assert page.inline("run `a <b>` now") == "run <code>a &lt;b&gt;</code> now"


def test_a_column_in_which_nothing_is_known_is_left_out() -> None:
    columns: list[Column[Any]] = [Column("a", "a"), Column("b", "b", None, COUNT), Column("c", "c", None, COUNT)]
    text = macro("table", Table("t", "t", columns, [{"a": "x", "b": None, "c": 1}]))
    assert ">b<" not in text and ">c<" in text
    assert macro("table", Table("t", "t", columns)).strip() == ""
    assert macro("facts", [("a", None), ("b", "")]).strip() == ""


def test_what_is_not_known_is_sorted_by_nothing_and_infinity_neither() -> None:
    columns: list[Column[Any]] = [Column("name", "name"), Column("a", "a", None, PERCENT)]
    values = [None, float("inf"), 0.1234567890123]
    text = macro("table", Table("t", "t", columns, [{"name": f"row {n}", "a": v} for n, v in enumerate(values)]))
    keys = [key for key in re.findall(r'data-by="([^"]*)"', text) if not key.startswith("row")]
    assert keys == ["0.123456789012"]


def test_a_name_does_not_turn_the_words_after_it() -> None:
    turned = "a\u202eb\u2067 <c> مرحبا"
    assert "<p>a\ufffdb\ufffd &lt;c&gt; مرحبا</p>" in macro("paragraph", turned)
    columns: list[Column[Any]] = [Column(turned, turned)]
    assert "\u202e" not in macro("table", Table("t", turned, columns, [{turned: turned}]))
    assert "\u202e" in macro("text_block", turned, "a source")  # is copied as it was written


def test_a_page_of_which_something_is_missing_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="title"):
        page.render("flamegraph.html", drawing={"groups": "threads"}, looks=[], facts=[])


def test_what_was_interrupted_is_called_so_wherever_it_is_counted() -> None:
    ended = [SUCCESS, HARNESS_ERROR, HARNESS_ERROR]
    outcomes = Outcomes.of(ended, interrupted=1)
    assert outcomes.words == "1 successful, 1 stopped by a perflab error, 1 interrupted"
    assert Outcomes.together([outcomes, outcomes]).interrupted == 2
    assert left_out(outcomes.left_out).text == "1 harness error, 1 interrupted"
    assert left_out_words(outcomes.left_out) == (
        "1 trial was stopped by a perflab error and 1 trial was interrupted: left out."
    )


def test_a_summary_from_before_knows_what_was_interrupted() -> None:
    result = {"outcomes": {"harness_error": 2}, "trials_detail": [{"interrupted": True}, {"interrupted": False}]}
    assert _with_interrupted(result)["outcomes"] == {"harness_error": 2, "interrupted": 1}
