"""One loader for every kind of run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from made_run import START_NS, MadeTrial, Stream, arrivals, make_run

import perflab
from perflab.errors import BadInput
from perflab.formats import tables
from perflab.models import as_json
from perflab.results.run import PERFLAB, TABLES
from perflab.runs.rundata import open_run


def talk(latencies_us: Sequence[float], sent: int | None = None) -> Stream:
    count = len(latencies_us) if sent is None else sent
    return Stream("talker", "chat", "listener", 10, count, arrivals(latencies_us))


PROCESSES = {"mouth": ["talker"], "ear": ["listener"]}


@pytest.fixture
def run_path(tmp_path: Path) -> Path:
    trials = [
        MadeTrial([talk([100, 200, 3000])], executor="events", ipc="on", pass_by="unique"),
        MadeTrial([talk([50, 60], sent=3)], middleware="sim", conditions=["cpu_load"]),
    ]
    return make_run(tmp_path / "made", PROCESSES, trials)


def test_a_run_of_perflab_opens_with_all_its_tables(run_path: Path) -> None:
    run = open_run(run_path)
    assert (run.origin, run.name, run.path, run.notes) == (PERFLAB, "made", run_path, ())
    assert [t.number for t in run.trials] == [1, 2]
    first, second = run.trials
    assert (first.middleware, first.executor, first.ipc, first.pass_by) == ("cyclonedds", "events", "on", "unique")
    assert (second.middleware, second.executor, second.conditions) == ("sim", None, ("cpu_load",))
    assert (first.workload, first.outcome, first.duration_s, first.started_ns) == ("made", "success", 2.0, START_NS)
    assert first.edges["received"].to_list() == [3]
    assert second.edges["tail"].to_list() == [1]
    assert first.resources["process"].unique().sort().to_list() == ["ear", "mouth"]
    assert as_json(run.summary)["results"][0]["totals"]["late"] == 1


def test_the_public_name_is_the_same_loader(run_path: Path) -> None:
    assert perflab.open(run_path).summary == open_run(run_path).summary


def test_a_name_below_runs_is_enough(run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (run_path.parent / "elsewhere" / "runs").mkdir(parents=True)
    run_path.rename(run_path.parent / "elsewhere" / "runs" / "made")
    monkeypatch.chdir(run_path.parent / "elsewhere")
    assert open_run("made").name == "made"


def test_tables_can_be_left_out(run_path: Path) -> None:
    run = open_run(run_path, with_tables=False)
    assert run.trials == ()
    assert len(as_json(run.summary)["results"]) == 2


@pytest.mark.parametrize("name", [name for name in TABLES if name != "services"])
def test_tables_that_are_missing_or_damaged_are_made_from_the_records(name: str, run_path: Path) -> None:
    whole = open_run(run_path).trials[0]
    path = run_path / "trials/0001_baseline" / f"{name}.parquet"
    path.write_bytes(b"PAR1 and nothing else")
    damaged = open_run(run_path)
    assert getattr(damaged.trials[0], name).equals(getattr(whole, name))
    assert any(f"{name}.parquet cannot be read" in note for note in damaged.notes)
    path.unlink()
    missing = open_run(run_path)
    assert getattr(missing.trials[0], name).equals(getattr(whole, name))
    assert missing.notes == ()


def test_a_run_without_the_table_of_services_has_an_empty_one(run_path: Path) -> None:
    (run_path / "trials/0001_baseline/services.parquet").unlink()
    trial = open_run(run_path).trials[0]
    assert trial.services.height == 0
    assert trial.services.schema == tables.of(None, [])["services"].schema


def test_a_column_that_an_older_version_did_not_write_is_null(run_path: Path) -> None:
    import polars as pl

    path = run_path / "trials/0001_baseline/threads.parquet"
    pl.read_parquet(path).drop("cpu").write_parquet(path)
    assert "cpu" in open_run(run_path).trials[0].threads.columns


def test_a_run_without_summary_is_rebuilt_and_says_so(tmp_path: Path) -> None:
    trial = MadeTrial([talk([100, 200])], final=False, outcome="failed")
    path = make_run(tmp_path / "cut", PROCESSES, [trial], with_tables=False, with_summary=False)
    run = open_run(path)
    assert any("perflab ended before the run was" in note for note in run.notes)
    assert as_json(run.summary)["results"][0]["totals"]["received"] == 2
    assert run.trials[0].edges["received"].to_list() == [2]
    assert run.trials[0].outcome == "failed"


def test_a_damaged_summary_is_rebuilt(run_path: Path) -> None:
    before = open_run(run_path).summary
    (run_path / "summary.json").write_text("{")
    run = open_run(run_path)
    assert run.summary == before
    assert any("summary.json" in note for note in run.notes)


def test_a_trial_that_was_being_prepared_is_left_out(run_path: Path) -> None:
    (run_path / "trials/0003_baseline").mkdir()
    assert [t.number for t in open_run(run_path).trials] == [1, 2]


def _damaged_trials(run_path: Path) -> list[str]:
    return [note for note in open_run(run_path).notes if "trial.json is damaged" in note]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("{", "Expecting property name"),
        ("[1]", "not a JSON object"),
        ("[" * 100_000, "recursion"),
        ('{"schema": 1}', "it lacks order"),
        ("duration_s=x", 'duration_s: must be a valid number, unable to parse string as a number, not "x"'),
        ("duration_s=NaN", "duration_s: must be a finite number, not NaN"),
        ("order=1.5", "order: must be a valid integer, got a number with a fractional part, not 1.5"),
        ("outcome=good", "outcome: must be 'success', 'failed', 'invalid' or 'harness_error', not \"good\""),
        ("conditions=7", "conditions: must be a list, not 7"),
        ("treatment=[]", "treatment: must be a valid string, not []"),
        ("middleware={}", "it lacks middleware.name"),
        ("processes=[]", "processes: must be an object, not []"),
        ('factors={"workload.depth": []}', "factors.workload.depth.bool"),
    ],
)
def test_one_damaged_trial_is_named_and_left_out(run_path: Path, damage: str, words: str) -> None:
    path = run_path / "trials/0001_baseline/trial.json"
    key, equals, value = damage.partition("=")
    if equals:
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = value
        path.write_text(json.dumps({**json.loads(path.read_text()), key: parsed}))
    else:
        path.write_text(damage)
    whole = open_run(run_path)
    assert [t.number for t in whole.trials] == [2]
    assert len(as_json(whole.summary)["results"]) == 2
    (note,) = _damaged_trials(run_path)
    assert note.startswith(f"{path} is damaged: ")
    assert words in note
    assert note.endswith("; what only its files have is left out")
    (run_path / "summary.json").unlink()
    rebuilt = open_run(run_path)
    assert [t.number for t in rebuilt.trials] == [2]
    assert [d["trial"] for r in as_json(rebuilt.summary)["results"] for d in r["trials_detail"]] == [2]
    (note,) = _damaged_trials(run_path)
    assert note.endswith("; the trial is left out")


def test_records_that_are_damaged_take_their_trial_alone(run_path: Path) -> None:
    (run_path / "summary.json").unlink()
    for path in (run_path / "trials/0001_baseline").glob("*.parquet"):
        path.unlink()
    for path in (run_path / "trials/0001_baseline/processes").glob("*.jsonl"):
        path.write_text(path.read_text().replace('"sent": 3', '"sent": "x"'))
    run = open_run(run_path)
    assert [t.number for t in run.trials] == [2]
    assert [note for note in run.notes if note.endswith("the trial is left out")]


def test_a_damaged_manifest_or_trial_is_one_line(run_path: Path) -> None:
    manifest = json.loads((run_path / "manifest.json").read_text())
    (run_path / "manifest.json").write_text(json.dumps({**manifest, "schema": 2}))
    with pytest.raises(BadInput, match="of another version: schema 2 instead of 1"):
        open_run(run_path)
    (run_path / "manifest.json").write_text(json.dumps({**manifest, "workload": None}))
    with pytest.raises(BadInput, match="is damaged: workload: must be"):
        open_run(run_path)
    (run_path / "manifest.json").write_text(json.dumps(manifest))
    (run_path / "trials/0001_baseline/trial.json").write_text('{"schema": 1}')
    (second,) = run_path.glob("trials/0002_*/trial.json")
    second.write_text("{")
    with pytest.raises(BadInput, match=r"trial\.json is damaged: it lacks order"):
        open_run(run_path)


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no run 'nothing'"):
        open_run("nothing")
    with pytest.raises(BadInput, match="is not a run directory"):
        open_run(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="is a file"):
        open_run(tmp_path / "file")


def test_a_run_and_its_trials_are_short_to_look_at(run_path: Path) -> None:
    run = open_run(run_path)
    for text in (repr(run), repr(run.trials[0])):
        assert "\n" not in text
        assert len(text) < 600
        assert "DataFrame" not in text
    assert "made" in repr(run)


def test_trials_say_where_they_stood_in_the_plan(run_path: Path) -> None:
    path = run_path / "trials/0001_baseline/trial.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "block": 3, "after": "cpu_load"}))
    first, second = open_run(run_path).trials
    assert (first.order, first.block, first.after) == (1, 3, "cpu_load")
    assert (second.order, second.block, second.after) == (2, None, None)


NOT_SET = "not set by perflab: rclcpp/rmw: max_blocking_time: it has none"


@pytest.mark.parametrize("with_summary", [True, False])
def test_what_perflab_could_not_set_is_said_once(with_summary: bool, run_path: Path) -> None:
    """Each process says it in its records, from which the note in trial.json is made."""
    effective = {"not_set": ["max_blocking_time: it has none"]}
    for trial in (run_path / "trials").iterdir():
        records = trial / "processes" / "ear.jsonl"
        process = {"type": "process", "middleware": {"name": "rclcpp/rmw", "version": "1", "effective": effective}}
        records.write_text(f"{records.read_text()}{json.dumps(process)}\n")
        file = json.loads((trial / "trial.json").read_text())
        (trial / "trial.json").write_text(json.dumps(file | {"notes": [NOT_SET, "not whole"] if with_summary else []}))
    if not with_summary:
        (run_path / "summary.json").unlink()
    notes = open_run(run_path, with_tables=False).notes
    assert notes.count(NOT_SET) == 1
    assert "not whole" not in notes


@pytest.mark.parametrize("effective", [{"participants": 2}, {"participants": [{"not_set": ["a"]}, {"not_set": ["a"]}]}])
def test_each_of_several_participants_says_what_could_not_be_set(effective: dict[str, object], run_path: Path) -> None:
    records = run_path / "trials/0001_baseline/processes/ear.jsonl"
    process = {"type": "process", "middleware": {"name": "one", "version": "1", "effective": effective}}
    records.write_text(f"{records.read_text()}{json.dumps(process)}\n")
    (run_path / "summary.json").unlink()
    said = [note for note in open_run(run_path).notes if note.startswith("not set")]
    assert said == (["not set by perflab: one: a"] if isinstance(effective["participants"], list) else [])


def test_messages_that_are_none_fail_a_trial_and_forgotten_ones_are_a_note(tmp_path: Path) -> None:
    trials = [
        MadeTrial([talk([100, 200])]),
        MadeTrial([talk([100, 200])], malformed=3),
        MadeTrial([talk([100, 200], sent=6)], forgotten=2),
        MadeTrial([talk([100, 200])], malformed=1, outcome="failed"),
    ]
    run = open_run(make_run(tmp_path / "made", PROCESSES, trials, with_summary=False, with_tables=False))
    said = "6 messages do not have the type of their topic, and are in no figure"  # of two processes
    details = [detail for result in run.summary.results for detail in result.trials_detail]
    assert [(d.outcome, d.reason) for d in details][:3] == [
        ("success", None),
        ("harness_error", said),
        ("success", None),
    ]
    assert details[3].outcome == "failed"
    forgotten = [note for note in run.notes if "due times are no longer known" in note]
    assert [note.partition(" ")[0] for note in forgotten] == ["4"]
