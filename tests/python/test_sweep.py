"""Sweeps: levels as people write them, conditions that need no naming, levels at which there is nothing, and such that
a machine cannot do."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support import graph, node

from perflab.condition.evidence import allowed_cpus
from perflab.condition.kinds import REGISTRY as CONDITIONS
from perflab.design import treatments as design
from perflab.design.document import Document, Written, validate
from perflab.design.levels import Scalar, listed, quantity, spread, with_unit
from perflab.design.settings import Experiment
from perflab.design.sweep import as_search, as_sweep, possible
from perflab.design.treatments import BASELINE, is_whole, timer_speed
from perflab.design.variant import Variant
from perflab.errors import BadInput
from perflab.experiment.build import build
from perflab.host import Host
from perflab.middleware import Middleware
from perflab.native import Native
from perflab.results.trial import Circumstances
from perflab.workload import Graph, Made
from perflab.workload.command import Command, CommandParameters

NATIVE = Native(Path(os.environ.get("PERFLAB_NATIVE") or Path(sys.prefix) / "lib" / "perflab"))
needs_native = pytest.mark.skipif(
    not os.access(NATIVE.folder / "perflab-graph", os.X_OK),
    reason=f"perflab-graph is not in {NATIVE.folder}; build the native programs and set PERFLAB_NATIVE",
)
ONE = Variant((Middleware("one", "dds", None, None),))
GRAPH = Graph(graph({"p": [node("/a", {"/t": 10}), node("/b", None, ["/t"], asks={"/s": 20})]}))


def document(**keys: Any) -> Document:
    return validate(Written({"workload": "w", **keys}))


def treatments(**keys: Any) -> list[design.Treatment]:
    said = document(**keys)
    design.check_factors(said)
    return design.treatments(said, [(ONE, {})], Made(GRAPH))


# -- levels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("0,25,50", [0, 25, 50]),
        ("a, 1.5 ,2", ["a", 1.5, 2]),
        ("0..90:15", [0, 15, 30, 45, 60, 75, 90]),
        ("0..1:0.1", [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]),
        ("90..0:-30", [90, 60, 30, 0]),
        ("0..10:4", [0, 4, 8]),
        ("100..3000/6", [100, 680, 1260, 1840, 2420, 3000]),
        (" 100 .. 10000 / 3log ", [100, 1000, 10000]),
        ("100..3000/6log", [100, 197, 390, 770, 1520, 3000]),
        ("8..1/4log", [8, 4, 2, 1]),
        ("-1..1/3", [-1, 0, 1]),
    ],
)
def test_levels_are_read_as_they_are_written(text: str, levels: list[Any]) -> None:
    found = listed(text)
    assert found == levels
    assert [type(level) for level in found] == [type(level) for level in levels], "whole numbers are whole"


def test_a_list_stays_as_it_is() -> None:
    assert listed([1, "2", True]) == [1, "2", True]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("0..90", "lacks the number of levels; write LOW..HIGH:STEP"),
        ("5..5:1", "is empty: both ends are the same"),
        ("0..9:-1", "is empty: a step of -1 leads away from the end"),
        ("9..0:1", "is empty: a step of 1 leads away"),
        ("0..9:0", "a step of 0 is 0"),
        ("a..b:1", "'a..b:1' is not a range; write LOW..HIGH:STEP"),
        ("0..5/1", "1 is not a number of levels within 2..1000"),
        ("0..5/2.5", "2.5 is not a number of levels"),
        ("0..100/4log", "a logarithmic range must begin and end above 0"),
        ("0..9:1log", "log needs a number of levels"),
        ("0..1:1e-9", "more than 1000 levels"),
        ("0..1e999:1", "too large"),
        ("1..2..3:1", "is not a range"),
    ],
)
def test_a_range_that_is_none_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        spread(text)
    assert complaint in str(caught.value)
    with pytest.raises(BadInput) as told:
        document(conditions="cpu_load", factors={"cpu_load.load": text})
    assert complaint in str(told.value)
    assert "\n" not in str(told.value)


# -- conditions that need no naming ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conditions", "factors", "expected"),
    [
        (None, {"cpu_load.load": "0..90:15"}, ["cpu_load"]),
        (None, {"cpu_load.load": [1, 2], "message_flood.rate": [3, 4]}, ["cpu_load+message_flood"]),
        (["cpu_load:workers=2"], {"cpu_load.load": [1, 2]}, ["cpu_load:workers=2"]),
        (["cpu_pinning:count=1"], {"cpu_load.load": [1, 2]}, ["cpu_pinning:count=1+cpu_load"]),
        ("io_load", {"cpu_load.load": [1, 2]}, ["io_load+cpu_load"]),
        ([{"name": "x", "io_load": {}}], {"cpu_load.load": [1, 2]}, [{"name": "x", "io_load": {}, "cpu_load": None}]),
        (None, {"workload.depth": [1, 2]}, None),
    ],
)
def test_a_factor_brings_its_condition(conditions: Any, factors: Mapping[str, Any], expected: Any) -> None:
    given = {} if conditions is None else {"conditions": conditions}
    written = as_sweep(Written({"workload": "w", "factors": factors, **given}))
    assert written.mapping.get("conditions") == expected
    assert written.mapping["factors"] == factors


def test_a_sweep_over_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match=r"a sweep needs a factor, e.g. --factor cpu_load.load"):
        as_sweep(Written({"workload": "w"}))
    with pytest.raises(BadInput, match=r"factor cpu_load.load has one level; a sweep needs two"):
        as_sweep(Written({"workload": "w", "factors": {"cpu_load.load": "50"}}))


def test_a_search_brings_its_condition_and_must_say_what_is_searched() -> None:
    asked = {"factor": "message_flood.rate", "low": 1, "high": 9}
    written = as_search(Written({"workload": "w", "conditions": ["cpu_pinning:count=1"], "breaking_point": asked}))
    assert written.mapping["conditions"] == ["cpu_pinning:count=1+message_flood"]
    with pytest.raises(BadInput, match="--low, --high missing: name the factor and its range"):
        as_search(Written({"workload": "w", "breaking_point": {"factor": "message_flood.rate"}}))


# -- the level at which there is nothing -----------------------------------------------------------------------------


def test_a_load_of_nothing_is_the_baseline() -> None:
    found = treatments(conditions="cpu_load", factors={"cpu_load.load": [0, 20, 80]})
    assert [(t.label, dict(t.factors)) for t in found] == [
        (BASELINE, {"cpu_load.load": 0}),
        ("cpu_load load=20", {"cpu_load.load": 20}),
        ("cpu_load load=80", {"cpu_load.load": 80}),
    ]
    assert found[0].conditions == ()
    assert len({t.place for t in found}) == 1


def test_of_two_factors_one_may_be_nothing() -> None:
    found = treatments(
        conditions="cpu_load+message_flood", factors={"cpu_load.load": [0, 50], "message_flood.rate": [0, 100]}
    )
    assert [(dict(t.factors), [c.name for c in t.conditions]) for t in found] == [
        ({"cpu_load.load": 0, "message_flood.rate": 0}, []),
        ({"cpu_load.load": 0, "message_flood.rate": 100}, ["message_flood"]),
        ({"cpu_load.load": 50, "message_flood.rate": 0}, ["cpu_load"]),
        ({"cpu_load.load": 50, "message_flood.rate": 100}, ["cpu_load", "message_flood"]),
    ]
    made = [
        Circumstances(workload="w", middleware="one", conditions=tuple(c.name for c in t.conditions), factors=t.factors)
        for t in found
    ]
    assert [r.outer_factors for r in made] == [{}] * 4, "all have the same baseline"
    assert len({r.place for r in made}) == 1


def test_without_a_baseline_the_level_of_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match=r"cpu_load.load=0 is the baseline, which is off"):
        treatments(conditions="cpu_load", baseline="off", factors={"cpu_load.load": [0, 50]})


@pytest.mark.parametrize(
    ("name", "parameters", "off"),
    [
        ("cpu_load", {"load": 0}, True),
        ("cpu_load", {"load": "0 %"}, True),
        ("cpu_load", {"workers": 0}, True),
        ("cpu_load", {"load": 1}, False),
        ("cpu_load", {}, False),
        ("message_flood", {"rate": 0.0}, True),
        ("message_flood", {"publishers": "0"}, True),
        ("message_flood", {"publishers": 0, "churn": 5}, False),
        ("message_flood", {"payload": 0}, False),
        ("memory_pressure", {"percent": 0}, True),
        ("io_load", {"workers": 0}, True),
        ("priority_inhibitor", {"load": 0}, True),
        ("cpu_pinning", {"count": 0}, False),
    ],
)
def test_what_asks_for_nothing(name: str, parameters: dict[str, Any], off: bool) -> None:
    assert CONDITIONS[name].is_off(parameters) is off


# -- factors of the workload -----------------------------------------------------------------------------------------


def test_the_speed_of_timers_is_that_of_all_of_a_graph() -> None:
    slow, fast = treatments(factors={"workload.timer_speed": [1, 4]})
    assert slow.graph is GRAPH
    a, b = fast.graph.document["processes"][0]["nodes"]
    assert [t["period_ns"] for t in a["timers"]] == [2_500_000]
    assert a["publishers"][0]["frequency_hz"] == 400
    assert b["clients"][0]["frequency_hz"] == 200
    assert GRAPH.document["processes"][0]["nodes"][0]["timers"][0]["period_ns"] == 10_000_000, "the graph is as it was"
    for wrong in (0, -1, 1001, "fast", True):
        with pytest.raises(BadInput, match=r"must be at (least 0.001|most 1000)|is not a number"):
            treatments(factors={"workload.timer_speed": [wrong]})


def test_the_speed_of_timers_is_read_by_its_former_name_and_not_written() -> None:
    assert [timer_speed(f) for f in ({}, {"workload.timer_speed": 4}, {"workload.rate": 4})] == [1, 4, 4]
    assert is_whole("workload.rate", 1, 10) is False
    with pytest.raises(BadInput, match=r"^factor workload.rate is now called workload.timer_speed"):
        treatments(factors={"workload.rate": [2]})


def test_the_phase_is_a_factor_of_all_timers() -> None:
    aligned, created = treatments(factors={"workload.phase": ["aligned", "as_created"]})
    assert (aligned.graph.phase, created.graph.phase) == ("aligned", "as_created")
    nodes = created.graph.document["processes"][0]["nodes"]
    assert {t["phase"] for node in nodes for t in node["timers"]} == {"as_created"}
    both = treatments(factors={"workload.phase": ["random"], "workload.timer_speed": [2], "workload.depth": [3]})[
        0
    ].graph
    assert both.phase == "random"
    assert both.document["processes"][0]["nodes"][0]["timers"][0]["period_ns"] == 5_000_000
    with pytest.raises(BadInput, match="'together' is not as_created, aligned, staggered or random"):
        treatments(factors={"workload.phase": ["together"]})


def test_a_level_stands_in_the_words_of_a_command() -> None:
    parameters = CommandParameters.model_validate({"command": ["prog", "--rate={rate}", "{rate}", "{other}"]})
    at = Command("prog", parameters).set_to(
        {"workload.argument.rate": 50, "workload.environment.A": 1, "cpu_load.load": 2}
    )
    assert at.parameters.command == ["prog", "--rate=50", "50", "{other}"]
    assert at.parameters.environment == {"A": "1"}
    assert at.parameters.folder == Path.cwd()
    said = validate(
        Written({"workload": {"command": "prog --rate={rate}"}, "factors": {"workload.argument.rate": [1, 2]}})
    )
    design.check_factors(said)
    wrong = validate(Written({"workload": {"command": "prog"}, "factors": {"workload.argument.rate": [1, 2]}}))
    with pytest.raises(BadInput, match=r"no word of the command contains \{rate\}"):
        design.check_factors(wrong)


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("mesage_flood.rate", "did you mean message_flood?"),
        ("message_flood.rat", "did you mean rate"),
        ("cpu_load.lod", "did you mean load?"),
        ("workload.dept", "of a workload are workload.depth"),
    ],
)
def test_a_factor_that_does_not_exist_has_the_closest_named(path: str, complaint: str) -> None:
    name = path.partition(".")[0]
    conditions = {"conditions": name} if name in CONDITIONS else {}
    with pytest.raises(BadInput) as caught:
        design.check_factors(document(factors={path: [1, 2]}, **conditions))
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("path", "low", "high", "whole"),
    [
        ("cpu_load.load", 10, 90, True),  # whole percent
        ("cpu_pinning.count", 1, 2, True),
        ("message_flood.rate", 100, 8000, False),
        ("message_flood.publishers", 1, 50, True),
        ("workload.depth", 1, 100, True),
        ("workload.timer_speed", 1, 10, False),
        ("workload.argument.rate", 1, 10, True),
        ("workload.argument.rate", 0.5, 10, False),
        ("workload.argument.rate", 1.0, 10.0, False),  # as written
        ("sim.loss", 0, 1, False),  # no whole number is between them
        ("sim.loss_every", 2, 100, True),
        ("sim.delay", "1ms", "20ms", False),
        ("network_shaping.delay", "1ms", "20ms", False),
        ("message_flood.payload", "1kB", "64kB", False),
    ],
)
def test_which_levels_are_whole(path: str, low: Scalar, high: Scalar, whole: bool) -> None:
    assert design.is_whole(path, low, high) is whole


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [("20ms", 20, "ms"), ("1.5 MiB", 1.5, "MiB"), (3, 3, ""), ("-2", -2, ""), ("10%", 10, "%"), (".5us", 0.5, "us")],
)
def test_a_level_is_a_number_with_or_without_a_unit(text: Scalar, number: float, unit: str) -> None:
    assert quantity(text) == (number, unit)


def test_a_level_with_a_unit_is_written_without_an_exponent() -> None:
    assert [with_unit(n, "ms") for n in (20.0, 2.5, 0.00003, 2e7)] == ["20ms", "2.5ms", "0.00003ms", "20000000ms"]
    assert [with_unit(n, "") for n in (20.0, 2.5)] == [20, 2.5]
    for wrong in ("fast", "", "1..2", "nan", "1e999", True, "3 m s"):
        with pytest.raises(ValueError, match="is not a number"):
            quantity(wrong)


@needs_native
def test_a_search_over_what_a_condition_must_be_told_needs_no_other_value_of_it() -> None:
    """cpu_pinning without a count is no condition."""
    asked = {"factor": "cpu_pinning.count", "low": 1, "high": 2, "breaks": "below"}
    said = as_search(Written({"workload": "sierra_nevada", "middlewares": "sim", "breaking_point": asked}))
    search = build(said, NATIVE, output=None, command_line=("perflab",)).search
    assert search is not None
    (treatment,) = search.at_level(2)
    assert [c.parameters["count"] for c in treatment.conditions] == [2]


@needs_native
def test_a_search_on_what_the_factor_is_not_of_is_refused() -> None:
    asked = {"factor": "virtual.loss", "low": 0, "high": 1}
    with pytest.raises(BadInput, match=r"--factor virtual\.loss does not affect sim; search only on what it affects"):
        built(middlewares="sim,virtual", breaking_point=asked)


# -- what this machine cannot do -------------------------------------------------------------------------------------


def built(**keys: Any) -> Experiment:
    written = Written({"workload": "sierra_nevada", "middlewares": "sim", "baseline_again": "off", **keys})
    return build(written, NATIVE, output=None, command_line=("perflab",))


@needs_native
def test_levels_that_the_machine_cannot_do_are_left_out_and_told() -> None:
    cpus = len(allowed_cpus())
    if cpus < 2:
        pytest.skip("this machine allows one CPU: no two levels of cpu_pinning.count remain")
    experiment = built(
        sweep="on", conditions="cpu_pinning", factors={"cpu_pinning.count": [1, 2, 4000, 4001]}, trials=2
    )
    kept = possible(experiment, Host())
    assert [(u.factor, u.level) for u in kept.unavailable] == [("cpu_pinning.count", 4000), ("cpu_pinning.count", 4001)]
    assert all("count 400" in u.reason and "this machine allows" in u.reason for u in kept.unavailable)
    assert {t.factors.get("cpu_pinning.count") for t in kept.treatments} == {None, 1, 2}
    assert [p.order for p in kept.order] == list(range(1, len(kept.order) + 1))
    assert sum(1 for p in kept.order if p.treatment.conditions) == 2 * 2
    assert experiment.unavailable == ()


@needs_native
def test_a_treatment_that_is_not_required_is_left_out_where_it_cannot_be_done() -> None:
    entry = {"name": "many CPUs", "cpu_pinning": {"count": 4000}}
    experiment = built(conditions=[{**entry, "required": "off"}, {"cpu_pinning": {"count": 1}}], trials=2)
    kept = possible(experiment, Host())
    assert {t.label for t in kept.treatments} == {"baseline", "cpu_pinning"}
    assert [p.order for p in kept.order] == list(range(1, len(kept.order) + 1))
    (left,) = kept.left_out
    assert left.treatment == "many CPUs"
    assert left.words.startswith("many CPUs is left out: cpu_pinning: count 4000")
    alone = built(conditions=[{**entry, "required": False}], baseline="off")
    for refused in (alone, built(conditions=[entry]), built(conditions=[{**entry, "required": "on"}])):
        assert possible(refused, Host()) == refused, "what is asked for by name, or all there is, is refused"
    with pytest.raises(BadInput, match="conditions, entry 1: required: 3 is not on or off"):
        built(conditions=[{**entry, "required": 3}])


@needs_native
def test_nothing_is_left_out_of_what_is_no_sweep_or_would_have_no_levels() -> None:
    plain = built(conditions="cpu_pinning", factors={"cpu_pinning.count": [1, 4000]})
    assert possible(plain, Host()) is plain
    hopeless = built(sweep="on", conditions="cpu_pinning", factors={"cpu_pinning.count": [1, 4000]})
    assert possible(hopeless, Host()) is hopeless, "one level is no sweep: the machine's complaint is what is told"
