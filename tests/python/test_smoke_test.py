"""The smoke test: what it looks at, how strictly, and how it says what is missing and what failed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import made_experiment
import pytest
from conftest import Perflab
from made_run import MANIFEST
from made_sweep import made_breaking_point

from perflab.cli import main, smoke_checks
from perflab.cli.smoke_checks import (
    FAILED,
    OK,
    UNAVAILABLE,
    Answer,
    Check,
    carry_out,
    checks,
    condition_in_effect,
    exact_counts,
    known_breaking_point,
    recorded_by,
)
from perflab.condition.kinds import REGISTRY as CONDITIONS
from perflab.errors import Interrupted, NotAsExpected, TrialFailed
from perflab.experiment.run import RunResult
from perflab.host import Host
from perflab.middleware import REGISTRY as MIDDLEWARES
from perflab.native import Native
from perflab.observer.kinds import REGISTRY as OBSERVERS
from perflab.report.live import silent
from perflab.results.summary import Summary, read
from perflab.runs.rundir import RunDirectory

Json = dict[str, Any]

NOWHERE = RunDirectory(Path("/nowhere"), created=False)


def summary(**totals: Any) -> Json:
    counts = {
        "sent": 100,
        "received": 100,
        "duplicate": 0,
        "reordered": 0,
        "write_errors": 0,
        "not_sent": 0,
        "lost": {"pre_match": 0, "gap": 0, "tail": 0},
        "latency_ns": {"p99": 45_000},
        **totals,
    }
    edge = {"publisher": "a", "topic": "/t", "subscription": "b", "size_bytes": 8, "frequency_hz": 100.0}
    edge |= {"published": 100, "not_sent": 0}
    trial: Json = {"trial": 1, "order": 1, "outcome": "success", "totals": {}, "resources": {}}
    made = made_experiment.result([trial], totals=counts, resources={}, duration_s=1.0, edges=[edge])
    return {"run": "r", "valid": True, "results": [made]}


def test_exact_counts_are_told() -> None:
    assert exact_counts(NOWHERE, read(summary())) == "100 of 100 messages, p99 45.0 µs"


@pytest.mark.parametrize(
    ("totals", "expected"),
    [
        ({"received": 99}, "99 of 100 messages received"),
        ({"lost": {"pre_match": 0, "gap": 2, "tail": 0}}, "2 messages gap"),
        ({"lost": {"pre_match": 0, "gap": 0, "tail": None}}, "not known messages tail"),
        ({"duplicate": 1}, "1 messages duplicate"),
        ({"reordered": 3}, "3 messages reordered"),
    ],
)
def test_counts_that_are_not_exact_fail(totals: Json, expected: str) -> None:
    with pytest.raises(NotAsExpected, match=expected):
        exact_counts(NOWHERE, read(summary(**totals)))


def test_a_publisher_that_did_not_do_its_part_fails() -> None:
    made = summary()
    made["results"][0]["edges"][0]["published"] = 90
    with pytest.raises(NotAsExpected, match="published 90 messages on /t and skipped 0, 100 were due"):
        exact_counts(NOWHERE, read(made))
    made["results"][0]["edges"][0]["not_sent"] = 10  # late timers say so
    exact_counts(NOWHERE, read(made))


def test_a_condition_must_have_evidence_of_its_effect() -> None:
    made = summary()
    evidence = {"promised": {"demand_cpus": 0.3}, "achieved": {"cpus_wanted": 0.48}, "in_effect": True}
    made["results"][0]["trials_detail"][0]["evidence"] = {"cpu_load": evidence}
    assert condition_in_effect(NOWHERE, read(made)) == "CPUs wanted 0.48 (0.3 promised)"
    evidence |= {"in_effect": False, "reason": "worker 1 slept"}
    with pytest.raises(NotAsExpected, match="cpu_load: worker 1 slept"):
        condition_in_effect(NOWHERE, read(made))
    made["results"][0]["trials_detail"][0]["evidence"] = {}
    with pytest.raises(NotAsExpected, match="no evidence"):
        condition_in_effect(NOWHERE, read(made))


def test_a_trace_must_have_every_message(tmp_path: Path) -> None:
    trial = tmp_path / "trials/0001_baseline"
    (trial / "trace").mkdir(parents=True)
    usual = {"trial": 1, "order": 1, "status": "finished", "outcome": "success", "reason": None, "processes": {}}
    usual |= {"workload": "w", "middleware": {"name": "m"}, "duration_s": 1}
    artifacts = [{"kind": "trace", "path": str(trial / "trace")}]
    (trial / "trial.json").write_text(json.dumps({**usual, "artifacts": artifacts}))
    directory = RunDirectory(tmp_path, created=False)
    traced_messages = recorded_by("tracing")
    made = summary()
    why = {"sentence": "w", "limit": "1 ms", "messages": 100, "late": 0, "total_ns": 0}
    made["results"][0]["trials_detail"][0] |= {"why": why, "totals": {"received": 100}}
    assert "100 messages in the trace" in traced_messages(directory, read(made))
    made["results"][0]["trials_detail"][0]["why"]["messages"] = 99
    with pytest.raises(NotAsExpected, match="99 messages in the trace, but 100 were received"):
        traced_messages(directory, read(made))
    (trial / "trace").rmdir()
    with pytest.raises(NotAsExpected, match="left no trace"):
        traced_messages(directory, read(made))


def test_a_breaking_point_must_be_the_known_one() -> None:
    found = {"value": 0.098, "interval": {"low": 0.09, "high": 0.11, "level": 0.95}, "trials": 12, "words": ["w"]}

    def searched(**changes: Any) -> Summary:
        point = made_breaking_point(**{**found, **changes})
        return Summary(run="r", valid=True, results=(), breaking_points=(point,))

    assert "known to be 0.1" in known_breaking_point(NOWHERE, searched())
    for changes, complaint in (
        (
            {"interval": {"low": 0.101, "high": 0.11, "level": 0.95}},
            r"0\.098 \[0\.101, 0\.11\] after 12 trials, known to be 0\.1",
        ),
        ({"interval": None, "value": None, "state": "not_reached"}, "the known breaking point was not found: w"),
    ):
        with pytest.raises(NotAsExpected, match=complaint):
            known_breaking_point(NOWHERE, searched(**changes))


def test_every_middleware_condition_and_observer_is_looked_at(native_folder: Path) -> None:
    made = list(checks(Native(native_folder), None))
    assert [c.name for c in made if c.kind == "middleware"] == list(MIDDLEWARES)
    assert set(CONDITIONS) <= {c.name for c in made if c.kind == "condition"}
    assert [c.name for c in made if c.kind == "observer"] == list(OBSERVERS)
    assert next(c for c in made if c.name == "fastdds").unavailable  # there is no double of it
    others = [c for c in made if c.kind in ("condition", "observer")]
    assert all(c.unavailable is None and c.written["middlewares"] == ["cyclonedds"] for c in others)


def test_without_a_middleware_with_processes_conditions_are_unavailable(native_folder: Path) -> None:
    made = list(checks(Native(native_folder), ["virtual"]))
    assert {c.kind for c in made if c.unavailable is None} == {"middleware", "search"}
    assert all("perflab doctor" in (c.unavailable or "") for c in made if c.kind == "condition")


def test_a_middleware_that_stays_within_a_process_has_no_flood(native_folder: Path) -> None:
    made = {c.name: c for c in checks(Native(native_folder), ["sim"])}
    assert made["message_flood"].unavailable == "sim does not connect processes"
    assert made["network_shaping"].unavailable == "sim sends nothing over the network"
    assert made["cpu_load"].unavailable is None


class Made:
    """Stands for build and execute: an experiment with a scripted end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: Exception | None, raises: bool) -> None:
        self._error, self._raises = error, raises
        monkeypatch.setattr(smoke_checks, "build", lambda *_, output, **__: output)
        monkeypatch.setattr(smoke_checks, "execute", self._execute)

    def _execute(self, output: Path, *_: object) -> RunResult:
        if self._error is not None and self._raises:
            raise self._error
        return RunResult(RunDirectory(output, created=True), MANIFEST, read(summary()), self._error)  # type: ignore[arg-type]


def answer(tmp_path: Path, judge: Any = exact_counts) -> tuple[str, str]:
    written: Mapping[str, Any] = {"workload": ["x"]}
    made = carry_out(Check("middleware", "m", written, judge), Native(tmp_path), Host(), silent(), tmp_path / "run")
    return made.state, made.text


def test_how_a_check_comes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from perflab.errors import BadInput, Unavailable

    def broken(_: RunDirectory, made: Summary) -> str:
        return made.results[7].workload

    Made(monkeypatch, None, raises=False)
    assert answer(tmp_path)[0] == OK
    assert answer(tmp_path, broken) == (
        FAILED,
        "its results are wrong: IndexError: tuple index out of range",
    )
    Made(monkeypatch, Unavailable("stress-ng is missing; apt install stress-ng"), raises=True)
    assert answer(tmp_path) == (UNAVAILABLE, "stress-ng is missing; apt install stress-ng")
    Made(monkeypatch, BadInput("no such condition"), raises=True)
    assert answer(tmp_path) == (FAILED, "no such condition")
    Made(monkeypatch, TrialFailed("trial 1: invalid: it slept"), raises=False)
    assert answer(tmp_path) == (FAILED, "trial 1: invalid: it slept")
    Made(monkeypatch, Interrupted(2), raises=False)
    with pytest.raises(Interrupted):
        answer(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["--middleware", "cyclone"], 2, "unknown middleware 'cyclone'"),
        (["--middleware", "sim+cyclonedds"], 2, "one middleware at a time"),
        (["--middleware", "sim,sim"], 2, "names one twice"),
        (["--middleware", "fastdds"], 3, "fastdds is not available"),
    ],
)
def test_bad_input_is_one_line(perflab: Perflab, arguments: list[str], code: int, expected: str) -> None:
    done = perflab("smoke-test", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_native_programs_nothing_is_looked_at(perflab: Perflab, tmp_path: Path) -> None:
    done = perflab("smoke-test", PERFLAB_NATIVE=str(tmp_path), TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    assert "build it with `make`" in done.stderr
    assert list(tmp_path.glob("perflab-smoke-test-*")) == []


@pytest.mark.parametrize("as_json", [False, True])
def test_what_failed_stays_and_is_told(
    as_json: bool,
    native_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def answered(check: Check, _native: object, _host: object, _display: object, folder: Path) -> Answer:
        folder.mkdir()
        state = FAILED if check.name == "hiccup" else OK
        return Answer(check.kind, check.name, state, f"it is {state}", folder)

    monkeypatch.setattr(smoke_checks, "carry_out", answered)
    monkeypatch.setenv("PERFLAB_NATIVE", str(native_folder))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["smoke-test", "--middleware", "cyclonedds", *(["--json"] if as_json else [])]) == 1
    printed = capsys.readouterr().out
    (folder,) = tmp_path.glob("perflab-smoke-test-*")
    (run,) = folder.iterdir()  # of the others nothing is left
    if as_json:
        document = json.loads(printed)
        failed = [check for check in document["checks"] if check["state"] == "failed"]
        assert [(c["name"], c["text"], c["run"]) for c in failed] == [("hiccup", "it is FAILED", str(run))]
        assert document["kept"] == str(folder)
    else:
        lines = printed.splitlines()
        assert lines[:2] == ["One line per check, printed when it ends:", "ok          middleware cyclonedds: it is ok"]
        assert "FAILED      observer hiccup: it is FAILED" in lines
        assert ", 1 FAILED, in " in lines[-2]
        assert str(folder) in lines[-1]


def test_where_nothing_failed_nothing_is_left(
    native_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def answered(check: Check, _native: object, _host: object, _display: object, folder: Path) -> Answer:
        folder.mkdir()
        return Answer(check.kind, check.name, UNAVAILABLE, "install it", folder)

    monkeypatch.setattr(smoke_checks, "carry_out", answered)
    monkeypatch.setenv("PERFLAB_NATIVE", str(native_folder))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["smoke-test", "--middleware", "cyclonedds"]) == 0
    assert "unavailable middleware cyclonedds: install it" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
