"""Advice on priorities: the rule on made runs, what is said, the snippets, and the verb."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from made_experiment import Effect, result, trial, write_run

from perflab.cli import main
from perflab.design.document import Written, validate
from perflab.experiment.advised import written
from perflab.middleware import thread_settings
from perflab.middleware.kind import ThreadsWanted
from perflab.models import read
from perflab.report.advice import markdown, sentences, snippets
from perflab.results import summary as summaries
from perflab.results.advice import AVOIDS, FAILS, NOT_JUDGED, UNDECIDED, Advice, Counted, Situation
from perflab.results.files import Manifest
from perflab.statistics.advice import CONFIDENCE, advise, judged, more_trials, proof
from perflab.statistics.proportion import wilson

Captured = pytest.CaptureFixture[str]
Json = dict[str, Any]

NAMES = {"cyclonedds": ("gc", "recv", "recvUC", "tev"), "fastdds": ("fdds", "fdds.udp.user")}
TS = "OTHER"


def scheduled(level: str) -> Json:
    policy, _, priority = level.partition(":")
    return {"policy": policy, "priority": int(priority or 0), "cpus": [1], "asked": None, "process": "p"}


def made(
    executors: str,
    middleware: str,
    failed: int,
    n: int,
    *,
    name: str = "cyclonedds",
    inhibitor: str | None = "RR:90",
    latency: float = 1.0,
    invalid: int = 0,
) -> Json:
    """The result of an assignment, which is called by its levels."""
    trials = [
        trial(
            number,
            effect=Effect(latency=latency),
            spread=0.0,
            outcome="failed" if number <= failed else "invalid" if number > n else "success",
            own_outcome={"name": "stalled", "words": "stalled", "of": "failed"} if number <= failed else None,
        )
        for number in range(1, n + invalid + 1)
    ]
    threads = [
        {**scheduled(executors), "role": "executor", "name": "p", "tids": [1]},
        *(
            {**scheduled(middleware), "role": "middleware", "name": thread, "tids": [10 + number]}
            for number, thread in enumerate(NAMES[name])
        ),
        {**scheduled(TS), "role": "perflab", "name": "perflab-node", "tids": [2]},
    ]
    made = result(trials, middleware=name, threads=threads, factors={"workload.threads": f"{executors}/{middleware}"})
    if failed:
        made["outcomes"]["own"] = [{"name": "stalled", "words": "stalled", "of": "failed", "trials": failed}]
    if inhibitor is not None:
        policy, _, priority = inhibitor.partition(":")
        parameters = {"policy": policy, "priority": int(priority or 0), "cpus": [1], "load": 100.0}
        made |= {
            "conditions": ["priority_inhibitor"],
            "condition_parameters": {"priority_inhibitor": parameters},
            "treatment": "priority_inhibitor",
        }
    return made


def assignments(results: list[Json]) -> dict[str, list[str]]:
    found = {}
    for one in results:
        name = one["factors"]["workload.threads"]
        executors, middleware = name.split("/")
        found[name] = [f"executors={executors}@1", f"middleware={middleware}@1"]
    return found


def manifest(results: list[Json], **versions: str) -> Json:
    return {
        "experiment": {"document": {"assignments": assignments(results)}},
        "middlewares": [{"name": name, "version": version} for name, version in versions.items()],
    }


def advice(*results: Json, below: float = 0.5, versions: Mapping[str, str] | None = None) -> Advice:
    summary = summaries.read({"schema": 1, "run": "r", "valid": True, "results": list(results)})
    of = {"run": "r", "settings": {}, "workload": {"name": "made"}, "trials": [], "preflight": []}
    return advise(summary, read(Manifest, {**of, **manifest(list(results), **(versions or {}))}), below)


def situation(*results: Json, below: float = 0.5) -> Situation:
    (found,) = advice(*results, below=below).situations
    return found


SWEEP = (
    made(TS, TS, 4, 4),
    made("RR:98", TS, 4, 4),
    made("RR:98", "RR:85", 4, 4),
    made("RR:85", "RR:98", 4, 4),
    made("RR:98", "RR:98", 0, 4),
    made("RR:91", "RR:91", 0, 4),
    made("FIFO:98", "FIFO:98", 0, 4),
)


# -- the rule --------------------------------------------------------------------------------------------------------


def test_the_assignment_with_the_lowest_priorities_of_those_that_avoid_it_is_advised() -> None:
    found = situation(*SWEEP)
    assert found.advised == "RR:91/RR:91"
    assert found.words == (
        "Take RR:91/RR:91: 0 of 4 [0, 49] % of its trials failed; FIFO:98/FIFO:98 and RR:98/RR:98 do too, and all of "
        "them need higher priorities."
    )
    assert [one.verdict for one in found.tried] == [AVOIDS] * 3 + [FAILS] * 4
    assert found.name == "cyclonedds, beside priority_inhibitor (RR 90)"


def test_fewer_threads_with_a_real_time_policy_go_before_lower_priorities() -> None:
    found = situation(made("RR:99", TS, 0, 4), made("RR:91", "RR:91", 0, 4))
    assert found.advised == "RR:99/OTHER"
    assert found.words.endswith("RR:91/RR:91 does too, and it needs more threads with a real-time policy.")


def test_of_equal_needs_the_lower_response_is_advised() -> None:
    fast, slow = made("RR:98", "RR:98", 0, 4), made("FIFO:98", "FIFO:98", 0, 4, latency=3.0)
    found = situation(slow, fast)
    assert found.advised == "RR:98/RR:98"
    assert found.words.endswith(
        "FIFO:98/FIFO:98 does too, and none of them is less demanding or has a lower p99 of the response."
    )


def test_where_the_failure_begins_is_said_of_levels_on_both_sides_of_the_inhibitor() -> None:
    assert situation(*SWEEP).borders == (
        "With executors at RR 98, trials fail with threads of the middleware at RR 85 and below and not at RR 98: "
        "the boundary is the inhibitor's RR 90.",
        "With threads of the middleware at RR 98, trials fail with executors at RR 85 and not at RR 98: the "
        "boundary is the inhibitor's RR 90.",
    )
    contradicted = situation(*SWEEP, made("RR:98", "RR:95", 4, 4))
    assert not any(words.startswith("With executors at RR 98") for words in contradicted.borders)


def test_an_equal_priority_is_not_above_the_inhibitor() -> None:
    (border,) = situation(made("RR:98", "RR:90", 4, 4), made("RR:98", "RR:91", 0, 4)).borders
    assert "at RR 90 and not at RR 91" in border


def test_too_few_trials_advise_nothing_and_say_how_many_more_would() -> None:
    found = situation(made("RR:98", "RR:98", 0, 4), made(TS, TS, 4, 4), below=0.3)
    assert (found.advised, found.tried[0].verdict, found.tried[0].more_trials) == (None, UNDECIDED, 5)
    assert "not enough trials. 5 more trials of RR:98/RR:98 would suffice" in found.words
    assert situation(made("RR:98", "RR:98", 0, 9), below=0.3).advised == "RR:98/RR:98"


@pytest.mark.parametrize("failed", [0, 1, 3])
@pytest.mark.parametrize("below", [0.05, 0.3, 0.5])
def test_so_many_more_trials_and_no_fewer_would_do(failed: int, below: float) -> None:
    low, high = wilson(failed, 4, CONFIDENCE) or (0.0, 1.0)
    more = more_trials(Counted(failed=failed, judged=4, low=low, high=high), below)
    upper = [(wilson(failed, 4 + n, CONFIDENCE) or (0.0, 1.0))[1] for n in (more - 1, more)]
    assert upper[1] < below
    assert more == 1 or upper[0] >= below


def test_trials_that_were_not_judged_count_for_nothing() -> None:
    assert judged(Counted(failed=0, judged=0, low=None, high=None), 0.5) == NOT_JUDGED
    (one,) = situation(made("RR:98", "RR:98", 0, 4, invalid=3)).tried
    assert (one.trials.judged, one.verdict) == (4, AVOIDS)


@pytest.mark.parametrize(
    ("results", "words"),
    [
        (
            (made("RR:98", TS, 4, 4), made("RR:98", "RR:85", 4, 4)),
            "Nothing is recommended: no assignment was tried whose threads of the middleware are above the inhibitor's "
            "RR 90.",
        ),
        (
            (made("RR:98", TS, 4, 4), made(TS, "RR:98", 4, 4)),
            "Nothing is recommended: no assignment was tried with all threads above the inhibitor's RR 90.",
        ),
        (
            (made("RR:98", "RR:98", 4, 4),),
            "Nothing is recommended: trials failed even with all threads above the inhibitor's RR 90 "
            "(RR:98/RR:98), so its priority is not the only cause; `--observer tracing` shows more.",
        ),
    ],
)
def test_where_nothing_avoids_it_the_reason_is_said(results: tuple[Json, ...], words: str) -> None:
    found = situation(*results)
    assert (found.advised, found.words) == (None, words)


def test_every_middleware_and_every_priority_of_the_inhibitor_stands_alone() -> None:
    found = advice(
        *SWEEP,
        made("RR:98", TS, 0, 4, name="fastdds"),
        made("RR:98", "RR:85", 0, 4, inhibitor="RR:50"),
        made("RR:98", "RR:85", 1, 4, inhibitor=None),
    )
    assert [(s.middleware, s.disturber.words, s.advised) for s in found.situations] == [
        ("cyclonedds", "RR 90", "RR:91/RR:91"),
        ("fastdds", "RR 90", "RR:98/OTHER"),
        ("cyclonedds", "RR 50", "RR:98/RR:85"),
    ]
    (one,) = found.situations[2].tried
    assert one.without is not None and (one.without.failed, one.without.judged) == (1, 4)
    assert sentences(found.situations[2])[-1].startswith("Without priority_inhibitor, 1 of 4 trials failed, too")
    assert not any("failed, too" in words for words in sentences(found.situations[1]))


def test_what_is_tried_again_is_the_advised_assignment_beside_the_same_disturbance() -> None:
    found = situation(*SWEEP)
    assert found.chosen is not None
    of = {"run": "r", "settings": {}, "workload": {"name": "made"}, "middlewares": [], "trials": [], "preflight": []}
    asked = {"workload": "ping_pong", "middlewares": ["cyclonedds", "fastdds"], "trials": 4, "success": ["lost == 0"]}
    asked["factors"] = {"workload.threads": list(assignments(list(SWEEP))), "priority_inhibitor.priority": [50, 90]}
    again = written(read(Manifest, {**of, "experiment": {"written": asked}}), found, found.chosen, 20)
    document = validate(Written(again))
    assert (document.middlewares, document.trials, document.success) == (["cyclonedds"], 20, ["lost == 0"])
    assert document.factors == {"workload.threads": ["RR:91/RR:91"]}
    assert document.assignments == {"RR:91/RR:91": ["executors=RR:91@1", "middleware=RR:91@1"]}
    (entry,) = document.conditions
    assert isinstance(entry, dict)
    assert entry["priority_inhibitor"] == {"policy": "RR", "priority": 90, "cpus": [1], "load": 100.0}
    assert not document.baseline


# -- snippets --------------------------------------------------------------------------------------------------------


def texts(found: Situation) -> dict[str, str]:
    return {snippet.title.partition(":")[0]: snippet.text for snippet in snippets(found)}


def test_snippets_have_the_advised_levels() -> None:
    made_texts = texts(situation(*SWEEP))
    assert list(made_texts) == ["perflab", "Cyclone DDS", "A node of ROS 2"]
    assert made_texts["perflab"] == "--thread executors=RR:91@1 --thread middleware=RR:91@1"
    tree = ElementTree.fromstring(re.sub(' xmlns="[^"]*"', "", made_texts["Cyclone DDS"]))
    threads = {t.get("name"): t.findtext("Scheduling/Priority") for t in tree.findall("Domain/Threads/Thread")}
    assert threads == {"recv": "91", "tev": "91", "gc": "91"}  # recvUC has no name there, recv does its work
    assert tree.findtext("Domain/Internal/MultipleReceiveThreads") == "false"
    assert made_texts["A node of ROS 2"].index("SCHED_RR, 91") < made_texts["A node of ROS 2"].index("rclcpp::init")


def test_without_a_real_time_policy_of_its_threads_a_middleware_is_told_nothing() -> None:
    made_texts = texts(situation(made("RR:98", TS, 0, 4)))
    assert list(made_texts) == ["perflab", "A node of ROS 2"]
    assert "schedule(SCHED_OTHER, 0);  // threads of the middleware" in made_texts["A node of ROS 2"]


@pytest.mark.parametrize(
    ("version", "note"),
    [
        ("2.9.1", "Not for 2.9.1, which was measured: it has no thread settings."),
        ("2.13.0", "Thread settings exist since 2.13. perflab did not test this file."),
        (None, "Thread settings exist since 2.13. perflab did not test this file."),
    ],
)
def test_fast_dds_says_from_which_version_on_its_profile_holds(version: str | None, note: str) -> None:
    (settings,) = thread_settings("fastdds", ThreadsWanted("RR", 91, (0, 1), ("fdds",), version))
    assert settings.notes[0].startswith(note)
    tree = ElementTree.fromstring(re.sub(' xmlns="[^"]*"', "", settings.text))
    receivers = tree.find("profiles/participant/rtps/builtin_transports_reception_threads")
    assert receivers is not None
    assert [(e.tag, e.text) for e in receivers] == [("scheduling_policy", "2"), ("priority", "91"), ("affinity", "3")]


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")
def test_the_program_compiles(tmp_path: Path) -> None:
    """Against the few words of rclcpp that it uses."""
    (tmp_path / "rclcpp").mkdir()
    (tmp_path / "rclcpp/rclcpp.hpp").write_text(
        "#include <memory>\nnamespace rclcpp { void init(int, char**); void shutdown(); struct Node { explicit "
        "Node(const char*) {} }; void spin(std::shared_ptr<Node>); }\n"
    )
    (tmp_path / "node.cpp").write_text(texts(situation(*SWEEP))["A node of ROS 2"])
    words = ("g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", str(tmp_path), "node.cpp")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# -- the verb --------------------------------------------------------------------------------------------------------


def run_of(path: Path, *results: Json) -> Path:
    summary = {"schema": 1, "run": path.name, "valid": False, "results": list(results)}
    return write_run(path, summary, **manifest(list(results), cyclonedds="0.10.2"))


def test_the_verb_says_what_to_take_and_what_it_rests_on(tmp_path: Path, capsys: Captured) -> None:
    run = run_of(tmp_path / "run", *SWEEP)
    assert main(["advise", "realtime", str(run)]) == 0
    said = capsys.readouterr().out
    assert "Take RR:91/RR:91" in said
    assert "--thread executors=RR:91@1 --thread middleware=RR:91@1" in said
    assert "Recommended is an assignment whose share of failed trials is shown to be below 50 %" in " ".join(
        said.split()
    )
    assert main(["advise", "realtime", str(run), "--format", "markdown"]) == 0
    said = capsys.readouterr().out
    assert "### cyclonedds, beside priority_inhibitor (RR 90)" in said
    assert "| RR:91/RR:91 | RR 91 | RR 91 | avoids it | 0 of 4 \\[0, 49] % |" in said
    assert "```xml\n<CycloneDDS" in said
    assert main(["advise", "realtime", str(run), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["situations"][0]["advised"] == "RR:91/RR:91"
    assert document["proofs"] == []


def test_exit_code_1_where_nothing_is_advised(tmp_path: Path, capsys: Captured) -> None:
    run = run_of(tmp_path / "run", *SWEEP)
    assert main(["advise", "realtime", str(run), "--below", "10%"]) == 1
    captured = capsys.readouterr()
    assert "31 more trials of RR:91/RR:91 would suffice" in " ".join(captured.out.split())
    assert "nothing is recommended for cyclonedds, beside priority_inhibitor (RR 90)" in captured.err


def test_several_situations_without_advice_are_counted(tmp_path: Path, capsys: Captured) -> None:
    both = [made("RR:91", "RR:91", 0, 4, name=name) for name in NAMES]
    run = run_of(tmp_path / "run", *both)
    assert main(["advise", "realtime", str(run), "--below", "10%"]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "perflab: nothing is recommended for 2 of 2 situations"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--below", "0"), "--below '0' is no share between 0 and 1"),
        (("--format", "html"), "--format 'html' is not one of text, markdown"),
        (("--trials", "3"), "--trials goes with --try"),
        (("--json", "--format", "markdown"), "--json and --format exclude each other"),
    ],
)
def test_mistakes_are_said_in_one_line(words: tuple[str, ...], said: str, tmp_path: Path, capsys: Captured) -> None:
    run = run_of(tmp_path / "run", *SWEEP)
    assert main(["advise", "realtime", str(run), *words]) == 2
    assert said in capsys.readouterr().err


def test_a_run_that_cannot_say_it_is_refused(tmp_path: Path, capsys: Captured) -> None:
    plain = write_run(tmp_path / "plain", {"schema": 1, "run": "plain", "valid": True, "results": [result([trial(1)])]})
    assert main(["advise", "realtime", str(plain)]) == 2
    assert "plain has no assignments of threads as a factor" in capsys.readouterr().err
    calm = run_of(tmp_path / "calm", made("RR:98", TS, 0, 4, inhibitor=None))
    assert main(["advise", "realtime", str(calm)]) == 2
    assert "calm has no trial with priority_inhibitor" in capsys.readouterr().err


def test_the_report_has_the_same_advice(tmp_path: Path, capsys: Captured) -> None:
    page = tmp_path / "page.html"
    assert main(["report", str(run_of(tmp_path / "run", *SWEEP)), "--output", str(page)]) == 0
    text = page.read_text()
    assert "Which priorities prevent failures" in text
    assert "Take RR:91/RR:91" in text
    assert "--thread executors=RR:91@1" in text


def test_what_was_tried_again_is_said_with_its_share() -> None:
    found = advice(*SWEEP)
    summary = summaries.read({"schema": 1, "run": "again", "valid": True, "results": [made("RR:91", "RR:91", 1, 20)]})
    again = proof(found.situations[0], "RR:91/RR:91", summary, "runs/again", 0.5)
    assert again.verdict == AVOIDS
    said = "Run again: RR:91/RR:91, cyclonedds, beside priority_inhibitor (RR 90): 1 of 20 [1, 24] % trials failed"
    assert f"{said} (1 stalled, 19 successful)." in markdown(found, [again])
    assert "--try" not in markdown(found, [again])
    assert "--try" in markdown(found)
