"""What the command line asks for, as variants: lists, their product, mixtures of middlewares, service framings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support import build_plugin

from perflab import middleware
from perflab.cli import main
from perflab.design.variant import (
    Executor,
    Variant,
    parse_executors,
    parse_framing,
    parse_ipc,
    parse_pass_by,
    product_of,
)
from perflab.errors import BadInput, Unavailable
from perflab.middleware import Middleware, common_framing, select
from perflab.middleware.kind import MiddlewareKind
from perflab.native import Native

ONE = Middleware("one", "dds", None, None, wire="rtps", service_framings=("framing_a", "framing_b"))
OTHER = Middleware("other", "dds", None, None, wire="rtps", service_framings=("framing_b",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, (None,)),
        ("inline", (Executor("inline"),)),
        (
            "events, multi_threaded,multi_threaded:4",
            (Executor("events"), Executor("multi_threaded"), Executor("multi_threaded", 4)),
        ),
        ("multi_threaded:64", (Executor("multi_threaded", 64),)),
        ("priority,let,let:2.5ms", (Executor("priority"), Executor("let"), Executor("let", period_ns=2_500_000))),
    ],
)
def test_executors(text: str | None, expected: tuple[Executor | None, ...]) -> None:
    assert parse_executors(text) == expected


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "",
            "unknown executor ''; choose from inline, single_threaded, static_single_threaded, events, polling, multi",
        ),
        ("magic", "unknown executor 'magic'"),
        ("inline,", "unknown executor ''"),
        ("inline:2", "only multi_threaded has a number of threads"),
        ("priority:3", "only multi_threaded has a number of threads, and only let a period"),
        ("let:", "is not a duration"),
        ("let:0", "must be longer than 0"),
        ("let:500ns", "the period is not from 1us to 24h"),
        ("let:2d", "is not a duration"),
        ("let:25h", "the period is not from 1us to 24h"),
        ("multi_threaded:", "the number of threads is not within 1..64"),
        ("multi_threaded:0", "not within 1..64"),
        ("multi_threaded:65", "not within 1..64"),
        ("multi_threaded:-1", "not within 1..64"),
        ("multi_threaded:٣", "not within 1..64"),
        ("multi_threaded:" + "9" * 5000, "not within 1..64"),
        ("events,events", "--executor 'events,events' names one twice"),
    ],
)
def test_executors_that_there_are_not(text: str, complaint: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_executors(text)
    assert complaint in str(error.value)


def test_switches_and_ways_to_pass() -> None:
    assert parse_ipc("off,on") == (False, True)
    assert parse_pass_by(None) == (None,)
    assert parse_pass_by("unique,loaned") == ("unique", "loaned")
    assert parse_framing("rmw_fastrtps") == "rmw_fastrtps"
    for parse, text, complaint in (
        (parse_ipc, "on,maybe", "--ipc 'maybe' is not on or off"),
        (parse_ipc, "on,on", "names one twice"),
        (parse_pass_by, "hand", "--pass-by 'hand' is not shared, unique or loaned"),
        (parse_framing, "x", "--service-framing 'x' is not rmw_fastrtps or rmw_cyclonedds"),
    ):
        with pytest.raises(BadInput, match=complaint):
            parse(text)


def test_the_product_varies_what_stands_last_first() -> None:
    both = product_of([(ONE,), (OTHER,)], [None, Executor("multi_threaded", 2)], [False, True], ["unique"])
    assert [v.words for v in both] == [
        "one, by unique",
        "one, ipc on, by unique",
        "one, multi_threaded:2, by unique",
        "one, multi_threaded:2, ipc on, by unique",
        "other, by unique",
        "other, ipc on, by unique",
        "other, multi_threaded:2, by unique",
        "other, multi_threaded:2, ipc on, by unique",
    ]
    assert both[3].document() == {"executor": "multi_threaded:2", "ipc": "on", "pass_by": "unique"}
    assert Variant((ONE,)).document() == {"executor": None, "ipc": "off", "pass_by": None}


def test_processes_have_their_own_middleware_or_all_the_same() -> None:
    mixed = Variant((ONE, OTHER))
    assert [mixed.middleware_of(n).name for n in (0, 1)] == ["one", "other"]
    assert mixed.middleware_name == "one+other"
    assert Variant((ONE,)).middleware_of(7) == ONE


def test_a_service_framing_is_common_to_all() -> None:
    assert common_framing([ONE], None) is None
    assert common_framing([ONE, OTHER], None) == "framing_b"
    assert common_framing([ONE], "framing_a") == "framing_a"
    with pytest.raises(Unavailable, match="--service-framing framing_a: middleware other can only carry framing_b"):
        common_framing([ONE, OTHER], "framing_a")
    strange = Middleware("strange", "dds", None, None, service_framings=("framing_c",))
    with pytest.raises(Unavailable, match=r"one\+strange: they have no service framing in common"):
        common_framing([ONE, strange], None)


@pytest.fixture
def native(tmp_path: Path, native_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Native:
    """A second middleware, which meets cyclonedds on the wire."""
    kind = MiddlewareKind(name="second", summary="", runtime="dds", install="", wire=middleware.cyclonedds.KIND.wire)
    monkeypatch.setitem(middleware.REGISTRY.kinds, "second", kind)
    (tmp_path / "middleware").mkdir()
    for name in ("middleware/cyclonedds.so", "perflab-node", "perflab-graph"):
        (tmp_path / name).symlink_to(native_folder / name)
    build_plugin(tmp_path / "middleware/second.so", "second")
    monkeypatch.setenv("PERFLAB_NATIVE", str(tmp_path))
    return Native(tmp_path)


def test_mixtures_are_selected_with_their_options(native: Native) -> None:
    chosen = select("cyclonedds, second+cyclonedds", ["second.a=1", "b=2"], native)
    assert [[m.name for m in mixture] for mixture in chosen] == [["cyclonedds"], ["second", "cyclonedds"]]
    assert [m.options for m in chosen[1]] == [{"a": "1", "b": "2"}, {"b": "2"}]


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        ("cyclonedds+sim", "cyclonedds and sim have different wire"),
        ("second+virtual", "second and virtual have different wire"),
        ("cyclonedds+", "unknown middleware ''"),
        ("second+cyclonedd", "unknown middleware 'cyclonedd'; did you mean cyclonedds"),
        ("sim+sim", "sim[+]sim mixes nothing; sim alone is for all processes"),
        ("second+cyclonedds,second+cyclonedds", "names one twice"),
    ],
)
def test_what_cannot_be_mixed(native: Native, names: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        select(names, [], native)


def test_options_of_the_disturbance_have_their_prefix_where_there_is_one_and_are_refused_where_nothing_holds_them(
    native: Native, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = select("cyclonedds,virtual", ["disturb.loss=0.1", "virtual.delay=1ms"], native)
    assert [m.options for (m,) in chosen] == [
        {"disturb.loss": "0.1"},
        {"disturb.loss": "0.1", "disturb.delay": "1ms"},
    ]
    assert [m.programmed_delay_ns for (m,) in chosen] == [0, 1_000_000]
    seeds = [m.configuration(1, "lo", 17)["options"].get("disturb.seed") for (m,) in chosen]
    assert seeds == ["17", "17"]
    (plain,) = select("cyclonedds", [], native)[0]
    assert plain.configuration(1, "lo", 17)["options"] == {}
    with pytest.raises(BadInput, match=r"delay and disturb\.delay are the same option of virtual; give one"):
        select("virtual", ["delay=1ms", "disturb.delay=2ms"], native)
    kind = replace(middleware.REGISTRY["second"], disturbed=False)
    monkeypatch.setitem(middleware.REGISTRY.kinds, "second", kind)
    with pytest.raises(BadInput, match=r"disturb\.\*: second gets its messages directly from ROS 2"):
        select("second", ["disturb.delay=1ms"], native)


def test_each_process_runs_on_its_own_middleware(native: Native, tmp_path: Path, graph_file: Path) -> None:
    out = tmp_path / "run"
    mixed = ["--middleware", "cyclonedds,second+cyclonedds", "--middleware-option", "second.a=1"]
    assert (
        main(["run", str(graph_file), "-t", "0.2", "-s", "0.1", *mixed, "--order", "as_written", "-o", str(out), "-q"])
        == 0
    )
    configs = [
        json.loads((out / f"trials/0002_baseline/processes/{n}.config.json").read_text()) for n in ("ping", "pong")
    ]
    assert [c["middleware"]["name"] for c in configs] == ["second", "cyclonedds"]
    assert configs[0]["middleware"]["domain"] == configs[1]["middleware"]["domain"]
    assert [c["service_framing"] for c in configs] == [None] * 2, "the graph has no service"
    trial = json.loads((out / "trials/0002_baseline/trial.json").read_text())
    assert trial["middleware"]["name"] == "second+cyclonedds"
    of_machine = dict.fromkeys(("prefix", "library", "sha256"))
    used = {"name": "second", "version": "0.0.1", "options": {"a": "1"}, **of_machine}
    assert trial["middleware"]["processes"]["ping"] == used
    manifest = json.loads((out / "manifest.json").read_text())
    assert [m["name"] for m in manifest["middlewares"]] == ["cyclonedds", "second"]
    assert [v["middleware"] for v in manifest["variants"]] == ["cyclonedds", "second+cyclonedds"]
    results = json.loads((out / "summary.json").read_text())["results"]
    assert [(r["middleware"], r["totals"]["received"]) for r in results] == [
        ("cyclonedds", 50),
        ("second+cyclonedds", 50),
    ]


def test_a_mixture_names_one_for_each_process(
    native: Native, graph_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(graph_file), "--middleware", "second+cyclonedds+second"]) == 2
    expected = "--middleware second+cyclonedds+second names 3 of them, but 'small' has 2 processes; name one for each"
    assert expected in capsys.readouterr().err
