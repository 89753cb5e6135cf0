"""Whether results can be trusted: the grade, and each of its reasons, of runs of which is known what is wrong."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from made_experiment import Effect, Made, result, trial, with_findings
from made_run import MANIFEST

from perflab.host import OK, WARN, Check
from perflab.results.files import DesignedTrial, Manifest, UsedExperiment
from perflab.results.trust import Reason, Trust
from perflab.statistics.trust import STEADY, trust_of

Json = dict[str, Any]

QUIET = Check("cpus", OK, "64", None)
NOISY = Check("virtual machine", WARN, "KVM", "use a dedicated machine")


def judged(summary: Json, *checks: Check, planned: int = 0) -> Trust:
    return trust_of(with_findings(summary), manifest(*(checks or (QUIET,)), planned=planned))


def manifest(*checks: Check, planned: int = 0) -> Manifest:
    return replace(MANIFEST, preflight=checks, trials=(DesignedTrial(),) * planned)


def reason(trust: Trust, kind: str) -> Reason:
    (found,) = [r for r in trust.reasons if r.kind == kind]
    return found


def loaded(latency: float = 2.0, blocks: int = 8, spread: float = 0.02) -> Json:
    return Made(treatments={"cpu_load": Effect(latency=latency)}, blocks=blocks, spread=spread).summary()


def test_a_quiet_run_that_decides_everything_is_trusted() -> None:
    trust = judged(loaded(blocks=12, spread=0.01))
    assert (trust.grade, trust.words) == ("good", "These results can be trusted"), trust.reasons
    assert [r.kind for r in trust.reasons] == ["invalid", "machine", "spread", "comparisons"]
    assert all(r.grade == "good" for r in trust.reasons)
    assert reason(trust, "invalid").words == "No trial was invalid."


def test_checks_of_the_machine_that_warn_are_named() -> None:
    trust = judged(loaded(), QUIET, NOISY)
    words = reason(trust, "machine").words
    assert words == "Noise on this machine: virtual machine (KVM); `perflab doctor` says what to do."
    assert trust.grade == "warn"


def test_simulated_time_has_no_noise_of_the_machine() -> None:
    summary = Made(variants={"virtual": Effect()}, treatments={"cpu_load": Effect()}, blocks=3).summary()
    assert reason(judged(summary, NOISY), "machine").grade == "good"


def test_a_machine_that_nobody_looked_at_is_not_called_quiet() -> None:
    trust = trust_of(with_findings(loaded()), manifest())
    assert reason(trust, "machine").grade == "warn" and "not recorded" in reason(trust, "machine").words


@pytest.mark.parametrize(("invalid", "grade"), [(1, "warn"), (8, "warn"), (9, "bad")])
def test_invalid_trials_count_and_more_than_a_third_of_all_are_too_many(invalid: int, grade: str) -> None:
    summary = loaded()  # 8 disturbed trials, 16 baselines
    spoiled = [*summary["results"][1]["trials_detail"], *summary["results"][0]["trials_detail"]][:invalid]
    for one in spoiled:
        one |= {"outcome": "invalid", "reason": "cpu_load: a worker ended", "measured": False}
    for of in summary["results"]:
        outcomes = [one["outcome"] for one in of["trials_detail"]]
        of["outcomes"] |= {"success": outcomes.count("success"), "invalid": outcomes.count("invalid")}
    found = reason(judged(summary), "invalid")
    assert found.grade == grade
    assert found.words.startswith(f"{invalid} of 24 trials w")
    assert "cpu_load: a worker ended" in found.details[0]


def test_a_quick_run_is_called_rough() -> None:
    quick = replace(manifest(QUIET), experiment=UsedExperiment(document={"quick": True}))
    found = reason(trust_of(with_findings(loaded()), quick), "rough")
    assert found.grade == "warn" and found.words.startswith("Rough: made with --quick")


def test_a_trial_that_a_signal_cut_off_is_missing_and_no_fault() -> None:
    summary: Json = {"schema": 1, "run": "r", "valid": False, "results": [result([trial(1), trial(2)])]}
    summary["results"][0]["trials_detail"][1] |= {"outcome": "harness_error", "interrupted": True, "measured": False}
    trust = judged(summary, planned=4)
    assert reason(trust, "planned").words == "1 of 4 planned trials ran."
    assert reason(trust, "invalid").grade == "good"


def test_one_trial_is_not_enough_to_rely_on() -> None:
    trust = judged({"schema": 1, "run": "r", "valid": True, "results": [result([trial(1)])]})
    assert trust.grade == "bad"
    assert reason(trust, "spread").words.startswith("One trial of each: the scatter of trials is unknown")


def test_no_measured_trial_is_not_enough_to_rely_on() -> None:
    trust = judged({"schema": 1, "run": "r", "valid": False, "results": []}, planned=3)
    assert trust.grade == "bad" and reason(trust, "planned").words == "No trial was measured to its end."


@pytest.mark.parametrize(("spread", "grade"), [(STEADY / 4, "good"), (STEADY * 3, "warn")])
def test_baselines_that_scatter_are_said_with_the_metrics_at_both_ends(spread: float, grade: str) -> None:
    found = reason(judged(loaded(spread=spread)), "spread")
    assert found.grade == grade
    assert found.words.count("%") == 2 and "standard deviation of up to 16 trials" in found.words


def test_comparisons_that_are_not_decided_are_counted_with_what_would_help() -> None:
    found = reason(judged(loaded(blocks=2)), "comparisons")
    assert found.grade == "warn"
    assert re.search(r"comparisons are inconclusive; about \d+ more trials of each would probably decide", found.words)


def test_what_outlasts_its_trial_is_said() -> None:
    summary = Made(treatments={"cpu_load": Effect(latency=2)}, blocks=10, carry_over=1.5).summary()
    assert "outlast their trial" in reason(judged(summary), "carry_over").words


def test_the_terminal_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    from perflab.report import terminal

    summary = with_findings(json.loads(json.dumps(loaded())))
    terminal.print_summary(Console(width=400), summary, manifest(NOISY))
    said = capsys.readouterr().out
    trust = trust_of(summary, manifest(NOISY))
    assert f"{trust.sign} {trust.words}" in said
    for one in trust.reasons:
        assert f"{one.sign} {one.words}" in said
