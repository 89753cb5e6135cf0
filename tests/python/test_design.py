"""Designs: which treatments an experiment has, in which order its trials run, and what the catalog's examples plan."""

from __future__ import annotations

import functools
import os
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest
from support import graph, node

from perflab import catalog
from perflab.design import treatments as design
from perflab.design.document import Document, Written, read, validate
from perflab.design.settings import Experiment
from perflab.design.treatments import BASELINE, CONTROL, EXTRA, MEASURED, Planned, Treatment
from perflab.design.variant import Executor, Variant
from perflab.errors import BadInput, Unavailable
from perflab.experiment.build import build
from perflab.host import Host
from perflab.middleware import Middleware
from perflab.native import Native
from perflab.observer import Observer
from perflab.observer.kinds import REGISTRY as OBSERVERS
from perflab.observer.tracing import Tracing as RealTracing
from perflab.registry import Kind
from perflab.workload import Graph, Made

NATIVE = Native(Path(os.environ.get("PERFLAB_NATIVE") or Path(sys.prefix) / "lib" / "perflab"))
needs_native = pytest.mark.skipif(
    not os.access(NATIVE.folder / "perflab-graph", os.X_OK),
    reason=f"perflab-graph is not in {NATIVE.folder}; build the native programs and set PERFLAB_NATIVE",
)

ONE = Variant((Middleware("one", "dds", None, None),))
OTHER = Variant((Middleware("other", "dds", None, None),), Executor("events"))
GRAPH = Graph(graph({"p": [node("/a", {"/t": 10}), node("/b", None, ["/t"])]}))
WORKLOAD = Made(GRAPH)


def document(**keys: Any) -> Document:
    return validate(Written({"workload": "w", **keys}))


def treatments(*variants: Variant, **keys: Any) -> list[Treatment]:
    return design.treatments(document(**keys), [(variant, {}) for variant in variants or (ONE,)], WORKLOAD)


def plan(*variants: Variant, **keys: Any) -> list[Planned]:
    said = document(**keys)
    found = design.treatments(said, [(variant, {}) for variant in variants or (ONE,)], WORKLOAD)
    return design.plan(said, found, design.extras(said, found))


def labels(found: list[Treatment]) -> list[str]:
    return [t.label for t in found]


# -- treatments ------------------------------------------------------------------------------------------------------


def test_without_conditions_there_is_the_baseline() -> None:
    (only,) = treatments()
    assert (only.label, only.conditions, only.purpose, only.words) == (BASELINE, (), MEASURED, "one")
    with pytest.raises(BadInput, match=r"^baseline is off and there is no condition: nothing to run$"):
        design.check_baseline(document(baseline="off"))


def test_each_entry_is_a_treatment_of_each_variant() -> None:
    found = treatments(ONE, OTHER, conditions=["cpu_load", "message_flood:rate=10+cpu_pinning:count=1"])
    assert [(t.variant.middleware_name, t.label) for t in found] == [
        (name, label) for name in ("one", "other") for label in (BASELINE, "cpu_load", "message_flood+cpu_pinning")
    ]
    combined = found[2]
    assert [c.name for c in combined.conditions] == ["message_flood", "cpu_pinning"]
    assert combined.conditions[0].parameters["rate"] == 10
    assert combined.words == "one, message_flood+cpu_pinning"


def test_text_and_mapping_say_the_same() -> None:
    (as_text,) = treatments(conditions="cpu_load:workers=3,load=40", baseline="off")
    (as_mapping,) = treatments(conditions=[{"cpu_load": {"workers": 3, "load": 40}}], baseline="off")
    assert as_text.key == as_mapping.key
    assert as_text.document() == as_mapping.document()
    assert as_text.document()["condition_parameters"]["cpu_load"]["workers"] == 3


def test_without_a_baseline_there_are_the_conditions_alone() -> None:
    assert labels(treatments(conditions="cpu_load", baseline="off")) == ["cpu_load"]
    assert [p.treatment.label for p in plan(conditions="cpu_load", baseline="off", trials=3)] == ["cpu_load"] * 3


def test_a_name_is_the_label() -> None:
    assert labels(treatments(conditions=[{"name": " lunch ", "cpu_load": None, "io_load": {}}])) == [BASELINE, "lunch"]


def test_a_list_of_parameters_is_the_condition_twice() -> None:
    found = treatments(conditions=[{"cpu_load": [{"load": 30, "cpus": 0}, {"load": 60, "cpus": 0}]}])
    assert [c.label for c in found[1].conditions] == ["cpu_load", "cpu_load_2"]
    assert found[1].label == "cpu_load+cpu_load"
    assert [p["load"] for p in found[1].document()["condition_parameters"].values()] == [30, 60]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (["cpu_load:load=20", "cpu_load:load=80"], ["cpu_load load=20", "cpu_load load=80"]),
        (
            ["cpu_load:load=20,workers=1", "cpu_load:load=20,workers=2", "cpu_load:load=80,workers=1"],
            ["cpu_load load=20 workers=1", "cpu_load load=20 workers=2", "cpu_load load=80"],
        ),
    ],
)
def test_alike_labels_get_what_differs(conditions: list[str], expected: list[str]) -> None:
    assert labels(treatments(conditions=conditions))[1:] == expected


@pytest.mark.parametrize(
    ("conditions", "complaint"),
    [
        (["cpu_load", "cpu_load"], "cpu_load is there twice; use `trials` to repeat it"),
        ([{"name": "cpu_load load=20", "io_load": {}}, "cpu_load:load=20", "cpu_load:load=30"], "give it another"),
    ],
)
def test_labels_are_distinct(conditions: list[Any], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        treatments(conditions=conditions)


# -- factors ---------------------------------------------------------------------------------------------------------


def test_levels_of_a_condition_are_treatments() -> None:
    found = treatments(
        conditions=["cpu_load", {"name": "both", "cpu_load": {"workers": 1}, "message_flood": {}}],
        factors={"cpu_load.load": [20, 80], "message_flood.rate": [10, 100]},
    )
    assert labels(found) == [
        BASELINE,
        "cpu_load load=20",
        "cpu_load load=80",
        "both load=20 rate=10",
        "both load=20 rate=100",
        "both load=80 rate=10",
        "both load=80 rate=100",
    ]
    assert [dict(t.factors) for t in found[:2]] == [{}, {"cpu_load.load": 20}]
    assert found[5].conditions[0].parameters["load"] == 80
    assert found[5].conditions[0].parameters["workers"] == 1
    assert found[5].conditions[1].parameters["rate"] == 10
    assert len({t.place for t in found}) == 1, "all have the same baseline"


def test_levels_of_the_workload_change_every_endpoint_and_have_baselines_of_their_own() -> None:
    found = treatments(conditions="cpu_load", factors={"workload.depth": [1, 7], "workload.reliability": ["reliable"]})
    assert [(t.label, t.factors["workload.depth"]) for t in found] == [
        (BASELINE, 1), ("cpu_load", 1), (BASELINE, 7), ("cpu_load", 7),
    ]  # fmt: skip
    for treatment in found:
        depth = treatment.factors["workload.depth"]
        for n in treatment.graph.document["processes"][0]["nodes"]:
            for endpoint in (*n["publishers"], *n["subscriptions"]):
                assert endpoint["qos"] == {"depth": depth, "history": "keep_last", "reliability": "reliable"}
    assert found[0].place == found[1].place != found[2].place
    assert all(e["qos"] == {} for n in GRAPH.document["processes"][0]["nodes"] for e in n["publishers"])


def test_a_reliability_alone_leaves_the_history() -> None:
    (found,) = treatments(factors={"workload.reliability": ["best_effort"]})
    assert found.graph.document["processes"][0]["nodes"][0]["publishers"][0]["qos"] == {"reliability": "best_effort"}


@pytest.mark.parametrize(
    ("factors", "complaint"),
    [
        ({"cpu_load.load": [1]}, "no treatment has the condition cpu_load"),
        ({"io_load.lod": [1]}, "io_load has no parameter 'lod'; there are workers"),
        ({"io_load": [1]}, "io_load has no parameter ''"),
        ({"io_load.workers": [1, 1]}, "level 1 is given twice"),
        ({"io_load.workers": [1, 1.0]}, "level 1.0 is given twice, once as 1"),
        ({"io_load.workers": [1, 2, "1"]}, "level '1' is given twice"),
        ({"io_load.workers": []}, "at least one level"),
        ({"workload.size": [1]}, "of a workload are workload.depth"),
        ({"workload.depth": [0]}, "0 must be at least 1"),
        ({"workload.depth": [True]}, "True is not a whole number"),
        ({"workload.depth": []}, "at least one level"),
        ({"workload.depth": [1, 1]}, "level 1 is given twice"),
        ({"workload.durability": ["forever"]}, "'forever' is not volatile, transient_local, transient or persistent"),
        ({"fastdds.transport": []}, "at least one level"),
        ({"fastdds.transport": ["udp", "udp"]}, "level 'udp' is given twice"),
        ({"sim.loss": [20, 20.0]}, "level 20.0 is given twice, once as 20"),
        ({"fastdds": ["udp"]}, "is not CONDITION.PARAMETER, workload.KEY or MIDDLEWARE.OPTION"),
        ({"fastdd.transport": ["udp"]}, "did you mean fastdds?"),
        ({"io_laod.workers": [1]}, "did you mean io_load?"),
        ({"speed": [1]}, "is not CONDITION.PARAMETER"),
    ],
)
def test_a_factor_of_nothing_is_refused(factors: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput) as caught:
        design.check_factors(document(conditions="io_load", factors=factors))
    assert complaint in str(caught.value)


@needs_native
def test_levels_of_a_middleware_option_are_variants() -> None:
    experiment = built(
        "middlewares: [virtual, sim]\nmiddleware_options: {loss_every: 7}\nfactors: {sim.delay: [1ms, 2ms]}\n"
    )
    found = [(t.variant.middleware_name, dict(t.variant.middlewares[0].options), dict(t.factors)) for t in experiment]
    assert found == [
        ("virtual", {"disturb.loss_every": "7"}, {}),
        ("sim", {"disturb.loss_every": "7", "disturb.delay": "1ms"}, {"sim.delay": "1ms"}),
        ("sim", {"disturb.loss_every": "7", "disturb.delay": "2ms"}, {"sim.delay": "2ms"}),
    ]


@needs_native
def test_only_a_topic_that_is_there_is_disturbed() -> None:
    with_topic = "middlewares: [%s]\nmiddleware_options: {disturb.loss: 1, disturb.topic: %s}\n"
    for same in ("amazon", "/amazon", "rt/amazon"):
        assert built(with_topic % ("virtual", same))
    with pytest.raises(BadInput, match=r"disturb\.topic 'amazn' is not a topic of this workload; did you mean amazon"):
        built(with_topic % ("virtual", "amazn"))
    services = "catalog/topologies/examples/services.yaml"
    for same in ("rq/map/costRequest", "rr/map/costReply"):
        assert built(with_topic % ("virtual", same), services)
    with pytest.raises(BadInput, match=r"disturb\.topic '/map/cost' is not a topic"):
        built(with_topic % ("virtual", "/map/cost"), services)
    flood = "conditions: [message_flood]\n"  # which brings topics of its own
    flooded = built("middlewares: [direct]\n" + flood)[-1]
    own, *_ = flooded.with_conditions.topics() - flooded.graph.topics()
    assert built(with_topic % ("direct", own) + flood)
    with pytest.raises(BadInput, match="'amazn' is not a topic"):
        built(with_topic % ("direct", "amazn") + flood)


@needs_native
def test_the_disturbance_is_a_factor_of_every_middleware() -> None:
    experiment = built("middlewares: [direct, virtual]\nfactors: {disturb.delay: [0ms, 1ms]}\n")
    found = [(t.variant.middleware_name, dict(t.variant.middlewares[0].options), dict(t.factors)) for t in experiment]
    assert found == [
        (name, {"disturb.delay": delay}, {"disturb.delay": delay})
        for delay in ("0ms", "1ms")
        for name in ("direct", "virtual")
    ]


@needs_native
def test_levels_of_every_middleware_together() -> None:
    experiment = built("middlewares: [virtual, sim]\nfactors: {middleware.delay: [1ms, 2ms]}\n")
    assert [(t.variant.middleware_name, t.factors["middleware.delay"]) for t in experiment] == [
        ("virtual", "1ms"), ("sim", "1ms"), ("virtual", "2ms"), ("sim", "2ms"),
    ]  # fmt: skip


def built(text: str, name: str = "sierra_nevada") -> tuple[Treatment, ...]:
    import yaml

    written = Written({"workload": name, **yaml.safe_load(text)})
    return build(written, NATIVE, output=None, command_line=()).treatments


# -- the order -------------------------------------------------------------------------------------------------------

RICH: dict[str, Any] = {
    "conditions": ["cpu_load", "message_flood", "io_load"],
    "factors": {"workload.depth": [1, 10]},
    "observers": "hiccup",
    "trials": 5,
}


def described(planned: list[Planned]) -> list[tuple[object, ...]]:
    return [(p.order, p.block, p.treatment.key, p.after) for p in planned]


def test_the_same_seed_is_the_same_order() -> None:
    first = described(plan(ONE, OTHER, **RICH, seed=42))
    assert first == described(plan(ONE, OTHER, **RICH, seed=42))
    assert first != described(plan(ONE, OTHER, **RICH, seed=43))


def test_blocks_differ_in_their_order() -> None:
    planned = plan(ONE, OTHER, **RICH)
    orders = [[p.treatment.key for p in planned if p.block == block] for block in range(1, 6)]
    assert len({tuple(order) for order in orders}) == 5


def test_every_block_has_each_treatment_once_beside_the_baselines_again() -> None:
    planned = plan(ONE, OTHER, **RICH)
    found = treatments(ONE, OTHER, **RICH)
    assert [p.order for p in planned] == list(range(1, len(planned) + 1))
    for block in range(1, 6):
        here = [p for p in planned if p.block == block]
        again = [p for before, p in pairwise(here) if before.treatment.conditions]
        first = Counter(p.treatment.key for p in here if p not in again)
        assert first == Counter(t.key for t in found)
        assert len(again) == sum(bool(t.conditions) for t in found)
    assert [p.block for p in planned] == sorted(p.block for p in planned)


def test_a_baseline_of_the_same_place_follows_every_disturbed_trial() -> None:
    planned = plan(ONE, OTHER, **RICH)
    assert sum(bool(p.treatment.conditions) for p in planned) == 3 * 2 * 2 * 5
    for before, after in pairwise(planned):
        if before.treatment.conditions:
            assert (after.treatment.label, after.treatment.purpose) == (BASELINE, MEASURED)
            assert after.treatment.place == before.treatment.place
            assert after.block == before.block
            assert after.after == before.treatment.label
        else:
            assert after.after is None
    assert not planned[-1].treatment.conditions


def test_baselines_again_can_be_left_out() -> None:
    planned = plan(conditions=["cpu_load", "io_load"], baseline_again="off", trials=4)
    assert len(planned) == 3 * 4
    assert all(p.treatment.label != BASELINE or p.after in (None, "cpu_load", "io_load") for p in planned)
    # Without a baseline there is none to run again.
    assert len(plan(conditions=["cpu_load", "io_load"], baseline="off", trials=4)) == 2 * 4


def test_the_order_can_be_as_written() -> None:
    planned = plan(conditions=["cpu_load", "io_load"], order="as_written", trials=2)
    assert [p.treatment.label for p in planned] == [BASELINE, "cpu_load", BASELINE, "io_load", BASELINE] * 2


def test_a_position_has_every_treatment_over_many_seeds() -> None:
    first = Counter(plan(conditions=["cpu_load", "io_load"], seed=seed)[0].treatment.label for seed in range(300))
    assert set(first) == {BASELINE, "cpu_load", "io_load"}
    # Three equally likely: less than 50 of 300 has a probability of 2e-11.
    assert min(first.values()) > 50


# -- observers -------------------------------------------------------------------------------------------------------


class Tracing(Observer):
    """Disturbs too much to be in every trial."""

    name: ClassVar[str] = "tracing"

    @property
    def extra(self) -> bool:
        return True

    def check(self, host: Host, runtime: str) -> None:
        pass


@pytest.fixture
def tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OBSERVERS.kinds, "tracing", Kind("tracing", "for this test", Tracing))


def test_observers_are_in_every_trial_and_controls_in_none() -> None:
    found = treatments(ONE, OTHER, conditions="cpu_load", observers=["hiccup", "monitor"], trials=2)
    seen = [(t.variant.middleware_name, t.label, t.purpose, [o.name for o in t.observers]) for t in found]
    both = ["hiccup", "monitor"]
    assert seen == [
        row
        for name in ("one", "other")
        for row in (
            (name, BASELINE, MEASURED, both),
            (name, "cpu_load", MEASURED, both),
            (name, BASELINE, CONTROL, []),
        )
    ]
    assert len({t.key for t in found}) == len(found)


@pytest.mark.parametrize(
    "keys", [{"trials": 1}, {"trials": 2, "observer_control": "off"}, {"trials": 2, "observers": []}]
)
def test_there_is_no_control_where_it_would_be_alone_or_is_not_wanted(keys: dict[str, Any]) -> None:
    assert all(t.purpose == MEASURED for t in treatments(**{"observers": "hiccup", **keys}))


def test_a_control_is_never_the_baseline_again() -> None:
    planned = plan(conditions=["cpu_load", "io_load"], observers="hiccup", trials=6)
    for before, after in pairwise(planned):
        if before.treatment.conditions:
            assert after.treatment.purpose == MEASURED
            assert [o.name for o in after.treatment.observers] == ["hiccup"]
    assert sum(p.treatment.purpose == CONTROL for p in planned) == 6


@pytest.mark.usefixtures("tracing")
def test_what_disturbs_much_gets_trials_of_its_own_at_the_end() -> None:
    keys: dict[str, Any] = {"conditions": "cpu_load", "observers": ["hiccup", "tracing"], "trials": 3}
    planned = plan(ONE, OTHER, **keys)
    extra = planned[-4:]
    assert [(p.treatment.variant.middleware_name, p.treatment.label) for p in extra] == [
        ("one", BASELINE), ("one", "cpu_load"), ("other", BASELINE), ("other", "cpu_load"),
    ]  # fmt: skip
    for p in extra:
        assert p.treatment.purpose == EXTRA
        assert [o.name for o in p.treatment.observers] == ["hiccup", "tracing"]
    for p in planned[:-4]:
        assert p.treatment.purpose in (MEASURED, CONTROL)
        assert "tracing" not in [o.name for o in p.treatment.observers]
    keys_seen = {p.treatment.key for p in planned}
    assert len(keys_seen) == 2 * (2 + 1 + 2), "extra trials are no trials of what is measured"


@pytest.mark.parametrize(
    ("observers", "complaint"),
    [
        (["monitor", "monitor"], "monitor is there twice"),
        (["monitr"], "did you mean monitor?"),
        (["hiccup:interval=5s"], "observer hiccup: interval: 5s must be at most 1s"),
        ([{"hiccup": "fast"}], "entry 1: hiccup: 'fast' is not a mapping of parameters"),
    ],
)
def test_observers_are_checked(observers: list[Any], complaint: str) -> None:
    with pytest.raises(BadInput) as caught:
        design.observers(document(observers=observers))
    assert complaint in str(caught.value)


# -- the catalog -----------------------------------------------------------------------------------------------------

# Of each example: its treatments without those of controls, and how many trials it plans.
EXAMPLES: dict[str, tuple[list[str], int]] = {
    "baseline": (["baseline"], 10),
    "cpu_load": (["baseline", "cpu_load"], 15),
    "cpu_pinning": (["baseline", *(f"cpu_pinning count={n}" for n in (1, 2, 4, 8))], 45),
    "cyclonedds_against_fastdds": (["baseline"] * 4, 32),
    "demo": (["baseline", "cpu_load", "message_flood", "one CPU"] * 2, 70),
    "executor_cases": (["baseline"] * 5, 50),
    "executor_nodes": (["baseline"] * 2, 16),
    "executors": (["baseline"] * 4, 48),
    "executors_rclcpp": (["baseline"] * 7, 56),
    "fan_out": (["baseline"] * 21, 63),
    "floor": (["baseline"] * 12, 144),
    "flood_dose": (["baseline", *(f"message_flood rate={n}" for n in (100, 500, 1000, 2000))], 45),
    "irobot_mont_blanc": (["baseline"] * 2, 20),
    "irobot_sierra_nevada": (["baseline"] * 2, 24),
    "layouts": (["baseline"] * 8, 64),
    "low_rates": (["baseline", "C-states held off"] * 3, 30),
    "manipulation_disturbed": (
        ["baseline", "load", "flood without readers", "flood read by move_group"] * 2, 84,
    ),
    "manipulation_cpu_budget": (["baseline", *(f"cpu_pinning count={n}" for n in (1, 2, 4, 8))], 50),
    "manipulation_cpu_load": (["baseline", "load"], 30),
    "manipulation_flood_dose": (
        ["baseline", *(f"message_flood rate={n}" for n in (250, 500, 1000, 2000, 4000))], 66,
    ),
    "manipulation_headline": (
        ["baseline", "flood without readers", "flood read by move_group", "second action server"], 42,
    ),
    "manipulation_load": (["baseline", "busy"] * 2, 48),
    "manipulation_message_flood": (["baseline", "flood"], 24),
    "manipulation_mitigation_priorities": (["baseline", "chains", "busy", "busy + chains"], 60),
    "manipulation_mitigation_throttling": (
        ["baseline", "throttle", "flood", "flood + throttle", "gentle", "gentle + throttle"], 110,
    ),
    "manipulation_mitigation_tuning": (
        ["baseline", "deep", "shared memory", "flood", "flood + deep", "flood + shared memory"], 99,
    ),
    "manipulation_pinning_and_load": (["baseline", "on one CPU", "CPU 0 loaded", "on the loaded CPU"], 42),
    "matching_time": (["baseline"] * 15, 75),
    "message_flood": (
        ["baseline", "flood without readers", "flood read by another process", "flood read by the robot"], 35,
    ),
    "manipulation_stacks": (["baseline"] * 2, 10),
    "message_sizes": (["baseline"] * 12, 96),
    "network_rate": (["baseline", "network_shaping"], 9),
    "observers": (["baseline"], 16),
    "order_and_statistics": (["baseline", "priority_inhibitor"], 18),
    "other_disturbances": (["baseline", "memory_pressure", "io_load", "priority_inhibitor"], 21),
    "performance_test_allocations": (["baseline"] * 2, 16),
    "performance_test_array1k": (["baseline"] * 2, 24),
    "performance_test_drift": (["baseline"] * 2, 20),
    "performance_test_qos": (["baseline"] * 4, 40),
    "pinning_and_load": (["baseline", "cpu_pinning", "load on CPU 0", "pinned to the loaded CPU"], 35),
    "pubsub_latency": (["baseline"] * 2, 16),
    "qos_matrix": (["baseline"] * 32, 160),
    "queue_sizes": (["baseline", "cpu_load"] * 3, 45),
    "realtime_rclcpp": (["baseline", "inhibitor"] * 8, 48),
    "reader_crash": (["baseline", "crash"] * 3, 30),
    "realtime_above": (["baseline", "priority_inhibitor"] * 4, 64),
    "realtime_claims": (["baseline", "inhibitor first", "inhibitor second"] * 6, 180),
    "realtime_inhibition": (["baseline", "inhibitor first", "inhibitor second"] * 12, 108),
    "realtime_inhibition_full": (["baseline", "inhibitor first", "inhibitor second"] * 12, 324),
    "realtime_other_cpu": (["baseline", "on another CPU"] * 2, 32),
    "realtime_packets": (["baseline"] * 6, 60),
    "realtime_priorities": (["baseline", "priority_inhibitor"] * 18, 144),
    "realtime_wakeup": (["baseline"] * 4, 40),
    "shared_memory": (["baseline"] * 2, 16),
    "success": (["baseline", "cpu_load"], 15),
    "sweep_cpu_load": (["baseline", *(f"cpu_load load={n}" for n in (15, 30, 45, 60, 75, 90))], 42),
    "sweep_cpus": (["baseline", *(f"cpu_pinning count={n}" for n in (1, 2, 4, 8))], 30),
    "sweep_flood_publishers": (["baseline", *(f"message_flood publishers={n}" for n in (1, 5, 10, 20, 50))], 36),
    "sweep_flood_rate": (["baseline", *(f"message_flood rate={n}" for n in (100, 500, 1000, 2000, 3000))], 36),
    "timer_latency": (["baseline", "load", "inhibitor"] * 2, 36),
    "throughput": (["baseline"] * 12, 96),
    "zero_copy": (["baseline"] * 16, 128),
}  # fmt: skip
SEARCHES = {  # factor, range, and how many searches it is
    "breaking_flood_rate": ("message_flood.rate", 100, 4000, 1),
    "manipulation_breaking_flood_rate": ("message_flood.rate", 200, 10_000, 1),
    "loss_free_rate": ("workload.rate", 200, 100_000, 8),
}


@functools.cache
def experiment_of(name: str) -> Experiment:
    (path,) = (entry.path for entry in catalog.experiments() if entry.name == name)
    written = read(path)
    for middleware in (*validate(written).middlewares, *(["direct"] if name == "executor_cases" else [])):
        if not middleware.startswith("rclcpp/") and not NATIVE.middleware_library(middleware).is_file():
            pytest.skip(f"{middleware} was not built")
    try:
        return build(written, NATIVE, output=None, command_line=())
    except Unavailable as error:
        if not name.endswith("_rclcpp"):
            raise
        pytest.skip(str(error))


def test_every_example_is_known_here() -> None:
    assert {entry.name for entry in catalog.experiments()} == {*EXAMPLES, *SEARCHES}


@needs_native
@pytest.mark.parametrize("name", SEARCHES)
def test_an_example_of_a_search_searches_what_it_says(name: str) -> None:
    experiment = experiment_of(name)
    assert experiment.search is not None
    space = experiment.search.goal.space
    *of, searches = SEARCHES[name]
    assert [experiment.search.goal.factor, space.low, space.high] == of
    assert experiment.order == ()
    course = experiment.course()
    first = course.next()
    assert first is not None
    assert first.treatment.label == BASELINE
    assert course.most == searches * (1 + experiment.search.goal.aim.max_trials)


@needs_native
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_the_catalog_plans_what_it_says(name: str) -> None:
    expected, trials = EXAMPLES[name]
    experiment = experiment_of(name)
    assert experiment.name == name
    assert [t.label for t in experiment.treatments if t.purpose == MEASURED] == expected
    assert sum(p.treatment.purpose != EXTRA for p in experiment.order) == trials  # extra: where it can be traced
    assert {id(p.treatment) for p in experiment.order} == {id(t) for t in experiment.treatments}
    assert [p.order for p in experiment.order] == list(range(1, len(experiment.order) + 1))
    assert max(p.block for p in experiment.order) == experiment.document.trials


@needs_native
def test_an_example_takes_as_long_as_is_said() -> None:
    experiment = experiment_of("demo")
    each_s = (experiment.settings.warmup_ns + experiment.settings.duration_ns) / 1e9
    assert len(experiment.order) * each_s < 120, "the demo is a matter of three minutes, with all that is around"


@needs_native
def test_the_observers_example_shows_their_cost() -> None:
    experiment = experiment_of("observers")
    assert [(t.purpose, [o.name for o in t.observers]) for t in experiment.treatments] == [
        (MEASURED, ["monitor", "hiccup", "allocations"]),
        (CONTROL, []),
    ]


@needs_native
def test_factors_of_the_examples_reach_what_they_name() -> None:
    depths = {
        endpoint["qos"]["depth"]
        for t in experiment_of("queue_sizes").treatments
        for process in t.graph.document["processes"]
        for n in process["nodes"]
        for endpoint in (*n["publishers"], *n["subscriptions"])
    }
    assert depths == {1, 10, 100}
    rates = [t.conditions[0].parameters["rate"] for t in experiment_of("flood_dose").treatments if t.conditions]
    assert rates == [100, 500, 1000, 2000]
    transports = [dict(t.variant.middlewares[0].options) for t in experiment_of("shared_memory").treatments]
    assert transports == [{"transport": "udp"}, {"transport": "shm"}]


# -- what this machine allows ----------------------------------------------------------------------------------------


def recordable(monkeypatch: pytest.MonkeyPatch, asked: str, missing: dict[str, str]) -> tuple[list[Any], list[Any]]:
    """Observers and what is not recorded, where tracing with these kinds of `scheduler` is refused."""

    def check(self: RealTracing, host: Host, runtime: str) -> None:
        if self.scheduler in missing:
            raise Unavailable(missing[self.scheduler])

    monkeypatch.setattr(RealTracing, "check", check)
    changed, lacks = design.recordable(document(observers=[asked, "hiccup"]), Host(), ["dds"])
    return [(o.name, getattr(o, "scheduler", None)) for o in design.observers(changed)], [m.words for m in lacks]


def test_what_is_required_is_left_for_the_run_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    found, lacks = recordable(monkeypatch, "tracing", {"auto": "no rights"})
    assert (found, lacks) == ([("tracing", "auto"), ("hiccup", None)], [])


def test_what_is_not_required_records_what_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    found, lacks = recordable(monkeypatch, "tracing:required=off", {"auto": "no rights; do this"})
    assert found == [("tracing", "none"), ("hiccup", None)]
    assert lacks == ["only tracing:scheduler=none is recorded: no rights; do this"]


def test_what_is_not_required_is_left_out_where_nothing_of_it_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    found, lacks = recordable(monkeypatch, "tracing:required=off", {"auto": "no rights", "none": "no LTTng; get it"})
    assert (found, lacks) == ([("hiccup", None)], ["tracing is missing: no LTTng; get it"])


def test_what_is_asked_for_by_name_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    found, lacks = recordable(monkeypatch, "tracing:required=off,scheduler=ebpf", {"ebpf": "no BPF"})
    assert (found, lacks) == ([("hiccup", None)], ["tracing is missing: no BPF"])
