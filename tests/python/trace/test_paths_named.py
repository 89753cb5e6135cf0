"""Named paths: which route one is, deadline misses, objectives and their sensitivity (docs/tracing.md, Paths)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_trace import MadeTrace
from opened import opened
from test_flow import MS, Chain, System, run_timer_driven, timer_driven

from perflab.errors import BadInput
from perflab.statistics import histogram as hg
from perflab.statistics.objectives import changed_totals, total
from perflab.trace import paths_named
from perflab.trace.answer import Answer
from perflab.trace.paths import Asked, paths


def asked(folder: Path, text: str, **more: Any) -> Asked:
    file = folder / "paths.yaml"
    file.write_text(text)
    return Asked(wanted=paths_named.read(file), **more)


def answer(made: MadeTrace, folder: Path, text: str, **more: Any) -> Answer:
    return paths(opened(made, folder / "trace"), asked(folder, text, **more))


def named(found: Answer) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in found.section("named").frame.to_dicts()}


def objective(found: Answer) -> dict[str, dict[str, Any]]:
    return {row["measure"]: row for row in found.section("objective").frame.to_dicts()}


def chain_with_delays(*delays: int) -> Chain:
    """/b takes so long to hear of each message; the rest is as in Chain.whole: 310 ns and 50 until the end."""
    chain = Chain()
    for i, delay in enumerate(delays):
        at = (i + 1) * MS
        (x,) = chain.tick("a", chain.a_timer, at, chain.x)
        (y,) = chain.hear("b", chain.b_heard, x, at + delay, chain.y)
        chain.hear("c", chain.c_heard, y, at + delay + 300, end=50)
    return chain


ABC = "paths:\n  - {name: abc, nodes: [/a, /c], deadline: 1us}\n"


# Misses ---------------------------------------------------------------------------------------------------------------


def test_misses_are_the_late_and_those_that_never_arrived(tmp_path: Path) -> None:
    chain = chain_with_delays(200, 649, 650, 651, 5_000)  # 550, 999, 1 000, 1 001 and 5 350 until the end
    chain.tick("a", chain.a_timer, 10 * MS, chain.x)  # lost
    chain.tick("a", chain.a_timer, 450 * MS, chain.x)  # on its way at the end
    chain.end(500 * MS)
    row = named(answer(chain.made, tmp_path, ABC))["abc"]
    assert (row["set_out"], row["judged"], row["late"], row["never_arrived"], row["misses"]) == (7, 6, 2, 1, 3)
    assert (row["not_judged"], row["stopped"]) == (1, 0)
    assert row["misses_percent"] == 50
    assert (row["misses_low_percent"], row["misses_high_percent"]) == pytest.approx((18.76, 81.24), abs=0.01)  # Wilson
    assert (row["latency_min_ns"], row["latency_p50_ns"], row["latency_max_ns"]) == (550, 1_000, 5_350)
    assert row["median_of_deadline"] == 1.0
    assert row["route"] == "/a timer 1 ms → /x → /b → /y → /c"


def test_latency_is_until_the_end_or_the_start_of_the_last_callback_as_the_file_says(tmp_path: Path) -> None:
    chain = chain_with_delays(200, 200)
    chain.end(500 * MS)
    text = ABC.replace("deadline: 1us", "deadline: 1us, until: start") + ABC.split("\n")[1].replace("abc", "end") + "\n"
    rows = named(answer(chain.made, tmp_path, text))
    assert (rows["abc"]["latency_max_ns"], rows["end"]["latency_max_ns"]) == (500, 550)


def test_a_callback_that_publishes_nothing_is_a_miss_unless_the_path_may_stop_there(tmp_path: Path) -> None:
    chain = chain_with_delays(200)
    for at in (5 * MS, 6 * MS):
        (x,) = chain.tick("a", chain.a_timer, at, chain.x)
        chain.hear("b", chain.b_heard, x, at + 200)
    chain.end(500 * MS)
    text = ABC + "  - {name: stops, nodes: [/a, /c], deadline: 1us, may_stop: true}\n"
    rows = named(answer(chain.made, tmp_path, text))
    assert [(r["judged"], r["never_arrived"], r["stopped"], r["misses"]) for r in rows.values()] == [
        (3, 2, 2, 2),
        (1, 0, 2, 0),
    ]


def test_since_due_is_from_when_the_timer_was_due_and_null_where_nobody_says(tmp_path: Path) -> None:
    chain = chain_with_delays(200, 200)
    chain.end(500 * MS)
    text = "paths:\n  - {name: due, nodes: [/a, /c], deadline: 1us, since: due}\n"
    found = answer(chain.made, tmp_path, text)
    row = named(found)["due"]
    assert row["reason"] == "the trace does not say when its timer was due"
    assert row["judged"] is None and row["misses"] is None and row["latency_p50_ns"] is None
    assert objective(found)["median"]["total"] is None


def test_a_path_on_which_nothing_arrived_is_all_misses_and_has_no_latency(tmp_path: Path) -> None:
    chain = Chain()
    for at in (1 * MS, 2 * MS):
        chain.tick("a", chain.a_timer, at, chain.x)
    chain.end(500 * MS)
    found = answer(chain.made, tmp_path, "paths:\n  - {name: x, topics: /x, deadline: 1us}\n")
    row = named(found)["x"]
    assert (row["judged"], row["never_arrived"], row["misses_percent"], row["latency_p50_ns"]) == (2, 2, 100, None)
    assert objective(found)["misses"]["total"] == 1
    assert objective(found)["median"]["total"] is None
    assert objective(found)["median"]["reason"] == "x: median needs 2 instances that arrived, and there are 0"


# Which route ----------------------------------------------------------------------------------------------------------


def test_names_are_exact_or_patterns_and_what_is_not_there_is_one_line_with_what_is_close(tmp_path: Path) -> None:
    chain = chain_with_delays(200)
    chain.end(500 * MS)
    assert (
        named(answer(chain.made, tmp_path, "paths:\n  - {name: p, nodes: ['/[a]', '/?', /c]}\n"))["p"]["set_out"] == 1
    )
    for text, said in (
        ("paths:\n  - name: p\n    nodes: [/a,\n      /bb]\n", "paths.yaml:4: no node '/bb' on the ways of messages"),
        ("paths:\n  - name: p\n    topics: [/xx]\n", "paths.yaml:3: no topic '/xx'"),
    ):
        with pytest.raises(BadInput) as raised:
            answer(chain.made, tmp_path, text)
        assert said in str(raised.value)
        assert "did you mean /" in str(raised.value)


def test_a_path_that_fits_several_ways_is_refused_and_one_more_name_tells_them_apart(tmp_path: Path) -> None:
    s = System()
    timer, x = s.timer("a"), s.publisher("a", "/x")
    left, right = s.subscription("l", "/x"), s.subscription("r", "/x")
    yl, yr = s.publisher("l", "/yl"), s.publisher("r", "/yr")
    el, er = s.subscription("e", "/yl"), s.subscription("e", "/yr")
    (sent,) = s.tick("a", timer, 1 * MS, x)
    (of_left,) = s.hear("l", left, sent, 1 * MS + 200, yl)
    (of_right,) = s.hear("r", right, sent, 1 * MS + 220, yr)
    s.hear("e", el, of_left, 1 * MS + 500)
    s.hear("e", er, of_right, 1 * MS + 700)
    s.end(500 * MS)
    with pytest.raises(BadInput, match=r"paths.yaml:2: path 'p' fits 2 ways through the graph"):
        answer(s.made, tmp_path, "paths:\n  - {name: p, nodes: [/a, /e]}\n")
    rows = named(answer(s.made, tmp_path, "paths:\n  - {name: p, nodes: [/a, /r, /e]}\n"))
    assert rows["p"]["route"] == "/a timer 1 ms → /x → /r → /yr → /e"
    rows = named(answer(s.made, tmp_path, "paths:\n  - {name: p, topics: [/x, /yl]}\n"))
    assert rows["p"]["route"] == "/a timer 1 ms → /x → /l → /yl → /e"


def test_topics_beside_nodes_are_the_only_ones_that_messages_go_over(tmp_path: Path) -> None:
    s = System()
    timer, x = s.timer("a"), s.publisher("a", "/x")
    near, far, y = s.subscription("e", "/x"), s.subscription("b", "/x"), s.publisher("b", "/y")
    end = s.subscription("e", "/y")
    (to_e, to_b) = s.tick("a", timer, 1 * MS, x) * 2
    s.hear("e", near, to_e, 1 * MS + 200)
    (sent,) = s.hear("b", far, to_b, 1 * MS + 300, y)
    s.hear("e", end, sent, 1 * MS + 700)
    s.end(500 * MS)
    with pytest.raises(
        BadInput, match=r"fits 2 ways through the graph .*; name what lies between, or the topics beside"
    ):
        answer(s.made, tmp_path, "paths:\n  - {name: p, nodes: [/a, /e]}\n")
    rows = named(answer(s.made, tmp_path, "paths:\n  - {name: p, nodes: [/a, /e], topics: /x}\n"))
    assert rows["p"]["route"] == "/a timer 1 ms → /x → /e"
    with pytest.raises(BadInput, match="no topic '/z'"):
        answer(s.made, tmp_path, "paths:\n  - {name: p, nodes: [/a, /e], topics: /z}\n")


def test_times_of_the_processes_stand_in_for_a_path_and_are_in_the_objectives(tmp_path: Path) -> None:
    chain = chain_with_delays(200, 200)
    chain.end(500 * MS)
    text = ABC + "  - {name: cycle, times: cycle, deadline: 2ms}\n"
    times = {"cycle": hg.from_values([1 * MS, 1 * MS, 3 * MS, 3 * MS])}
    found = answer(chain.made, tmp_path, text, times=times)
    row = named(found)["cycle"]
    assert (row["link"], row["route"], row["judged"], row["late"]) == ("times", "times cycle", 4, 2)
    assert objective(found)["misses"]["total"] == 0.25
    found = answer(chain.made, tmp_path, text)
    assert named(found)["cycle"]["reason"].startswith("the processes of a run measure its times")
    assert objective(found)["misses"]["total"] is None


def test_a_path_begins_with_its_first_node_and_not_before(tmp_path: Path) -> None:
    chain = chain_with_delays(200, 200)
    chain.end(500 * MS)
    row = named(answer(chain.made, tmp_path, "paths:\n  - {name: p, nodes: [/b, /c]}\n"))["p"]
    assert (row["route"], row["latency_max_ns"]) == ("/b /x → /y → /c", 350)


def test_a_named_path_uses_an_inferred_link_only_where_there_is_no_other_way_and_says_so(tmp_path: Path) -> None:
    chain, timer = timer_driven()
    run_timer_driven(chain, timer)
    found = answer(chain.made, tmp_path, ABC + "  - {name: bc, nodes: [/b, /c], deadline: 1ms}\n")
    rows = named(found)
    assert (rows["abc"]["link"], rows["abc"]["set_out"], rows["abc"]["never_arrived"]) == ("inferred", 3, 1)
    assert rows["bc"]["link"] == "causal"
    assert any("rests on a guess" in note for note in found.section("named").notes)
    assert set(found.section("paths").frame["link"]) == {"causal"}
    assert found.section("edges").frame["link"].to_list() == ["causal", "causal", "inferred"]


def test_a_path_that_no_message_can_go_is_not_measured(tmp_path: Path) -> None:
    chain = chain_with_delays(200, 200)
    chain.end(500 * MS)
    found = answer(chain.made, tmp_path, ABC + "  - {name: back, nodes: [/c, /a], deadline: 1ms}\n")
    row = named(found)["back"]
    assert row["judged"] is None
    assert row["reason"].startswith("no message can go this way")
    total_of = objective(found)["median"]
    assert total_of["total"] is None and total_of["weights"] == 2  # it stays in the denominator
    assert total_of["reason"] == f"back was not measured: {row['reason']}"


# Objectives -----------------------------------------------------------------------------------------------------------


def test_the_total_is_the_weighted_mean_of_scores_over_all_paths(tmp_path: Path) -> None:
    chain = chain_with_delays(200, 200, 1_200, 1_200)  # until the end: 550, 550, 1 550, 1 550
    chain.end(500 * MS)
    text = "paths:\n  - {name: ac, nodes: [/a, /c], deadline: 1us, weight: 3}\n"
    text += "  - {name: bc, nodes: [/b, /c], deadline: 700ns}\n"
    found = answer(chain.made, tmp_path, text)
    rows = objective(found)
    assert rows["median"]["total"] == pytest.approx((3 * 0.55 + 1 * 0.5) / 4)  # medians 550 of 1 000, 350 of 700
    assert rows["misses"]["total"] == pytest.approx((3 * 0.5 + 1 * 0.0) / 4)
    assert (rows["p99"]["total"], rows["p99"]["reason"]) == (
        None,
        "ac: p99 needs 100 instances that arrived, and there are 4",
    )
    table = found.section("sensitivity").frame.to_dicts()
    of_misses = {(r["name"], r["change"]): r for r in table if r["measure"] == "misses"}
    assert of_misses["ac", "+50 %"]["total"] == pytest.approx(4.5 * 0.5 / 5.5)
    assert of_misses["ac", "+50 %"]["difference_percent"] == pytest.approx(100 * (4.5 * 0.5 / 5.5 / 0.375 - 1))
    assert of_misses["ac", "left out"]["total"] == 0
    assert of_misses["bc", "left out"]["total"] == 0.5
    assert {r["change"] for r in table} == {"-50 %", "-10 %", "+10 %", "+50 %", "left out"}


def test_a_total_never_loses_a_path_that_is_not_known() -> None:
    assert total([0.5, None], [1.0, 1.0]) is None
    assert total([], []) is None
    assert total([0.5, 1.0], [1.0, 3.0]) == 0.875
    changes = {change: value for change, _, value in changed_totals([0.5, 1.0], [1.0, 3.0], 1)}
    assert changes == pytest.approx(
        {"-50 %": 0.8, "-10 %": 3.2 / 3.7, "+10 %": 3.8 / 4.3, "+50 %": 5 / 5.5, "left out": 0.5}
    )


def test_a_path_without_a_deadline_is_measured_and_in_no_objective(tmp_path: Path) -> None:
    chain = chain_with_delays(200, 200)
    chain.end(500 * MS)
    found = answer(chain.made, tmp_path, ABC + "  - {name: watched, nodes: [/b, /c]}\n")
    row = named(found)["watched"]
    assert (row["latency_max_ns"], row["misses"], row["weight"]) == (350, None, None)
    assert objective(found)["median"]["paths"] == 1
    assert "without a deadline, and so in no objective: watched" in found.section("objective").notes


# Beside a baseline ----------------------------------------------------------------------------------------------------


def test_a_baseline_stands_beside_with_ratios_and_what_it_lacks_is_null(tmp_path: Path) -> None:
    chain, before = chain_with_delays(1_200, 1_200), chain_with_delays(200, 200)
    chain.end(500 * MS)
    before.end(500 * MS)
    wanted = asked(tmp_path, ABC)
    found = paths(opened(chain.made, tmp_path / "new"), wanted, opened(before.made, tmp_path / "old"))
    row = found.section("compared").frame.row(0, named=True)
    assert (row["path"], row["latency_p50_ns"], row["baseline_latency_p50_ns"]) == ("abc", 1_550, 550)
    assert row["p50_ratio"] == pytest.approx(1_550 / 550)
    assert (row["misses_percent"], row["baseline_misses_percent"], row["only_in"]) == (100, 0, "no")
    median = objective(found)["median"]
    assert (median["total"], median["baseline_total"]) == (1.55, 0.55)
    assert median["ratio"] == pytest.approx(1_550 / 550)
    other = System()
    timer, x, heard = other.timer("q"), other.publisher("q", "/q"), other.subscription("r", "/q")
    (sent,) = other.tick("q", timer, 1 * MS, x)
    other.hear("r", heard, sent, 1 * MS + 300)
    other.end(500 * MS)
    found = paths(opened(chain.made, tmp_path / "new2"), wanted, opened(other.made, tmp_path / "other"))
    assert objective(found)["median"]["baseline_total"] is None
    assert "no node '/a'" in objective(found)["median"]["reason"]
    only = {r["path"]: r["only_in"] for r in found.section("compared").frame.to_dicts()}
    assert only == {
        "abc": "this trace",
        "/a timer 1 ms → /x → /b → /y → /c": "this trace",
        "/q timer 1 ms → /q → /r": "the baseline",
    }
