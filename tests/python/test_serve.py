"""The state of a run for the live page: running, cut off, ended, killed, damaged, not there yet."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from made_live import SECOND_NS, LiveRun, Recorder, trial
from made_run import make_run

from perflab.errors import BadInput
from perflab.report.progress import quantiles
from perflab.report.serve import finished, present, state
from perflab.report.serve.present import MAX_POINTS, Seconds, Tail
from perflab.report.serve.state import Watch
from perflab.statistics import histogram as hg

Json = dict[str, Any]


def look(watch: Watch, known: str | None = None) -> Json:
    """The state of now, however often it is asked."""
    watch._looked_s = None
    found: Json = json.loads(watch.state().body({}, known))
    return found


def everything(watch: Watch) -> Json:
    """The state when all that is there has been read."""
    for _ in range(1000):
        found = look(watch)
        if not found["now"]["unread"]:
            return found
    raise AssertionError("it never came to the end")


# -- a file that grows -----------------------------------------------------------------------------------------------


def test_a_tail_gives_each_line_once_and_waits_for_the_rest_of_one(tmp_path: Path) -> None:
    path = tmp_path / "f"
    tail = Tail(path)
    assert tail.lines() == []
    path.write_bytes(b"one\ntw")
    assert tail.lines() == [b"one"]
    assert tail.lines() == []
    with path.open("ab") as file:
        file.write(b"o\n")
        file.flush()
        assert tail.lines() == [b"two"]
        file.write(b"thr")
        file.flush()
        assert tail.lines() == []
        file.write(b"ee\nfour\n")
        file.flush()
        assert tail.lines() == [b"three", b"four"]
    assert not tail.restarted


def test_a_tail_reads_large_files_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perflab.report.serve.present.CHUNK_BYTES", 5)
    path = tmp_path / "f"
    path.write_bytes(b"".join(b"line %d\n" % n for n in range(9)))
    tail, found = Tail(path), []
    for _ in range(40):
        found += tail.lines()
    assert found == [b"line %d" % n for n in range(9)]


def test_a_tail_notices_that_the_file_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"one\ntwo\n")
    tail = Tail(path)
    assert len(tail.lines()) == 2
    (tmp_path / "g").write_bytes(b"new\n")
    (tmp_path / "g").rename(path)
    assert tail.lines() == [b"new"]
    assert tail.restarted
    path.write_bytes(b"x\n")
    assert tail.lines() == [b"x"]
    assert tail.restarted


# -- second by second ------------------------------------------------------------------------------------------------


def test_neighbouring_seconds_of_a_long_trial_are_put_together_exactly() -> None:
    seconds = Seconds()
    for second in range(1, MAX_POINTS + 2):
        seconds.add(second, hg.from_values([second * 1000] * 10))
    assert seconds.width == 2
    points = seconds.points()
    assert len(points) == (MAX_POINTS + 2) // 2
    assert [p[0] for p in points[:3]] == [2, 4, 6]
    assert points[0][3] == pytest.approx(2000, rel=1e-3)
    pair = hg.merge([hg.from_values([1000] * 10), hg.from_values([2000] * 10)])
    assert points[0][1:3] == quantiles(pair)


def test_seconds_of_several_processes_are_one(tmp_path: Path) -> None:
    run = LiveRun(tmp_path / "run", ["baseline"], [])
    recorder = Recorder(run.begin(1))
    recorder.start()
    recorder.second(1, [100] * 100)
    for process, value in (("mouth", 300_000),):
        recorder.line(process, {"type": "progress", "at_ns": recorder.from_ns + SECOND_NS, "elapsed_ns": SECOND_NS,
                                "publishing": True, "sent": 1, "received": 100, "lost": 0,
                                "latency": hg.encode(hg.from_values([value] * 100))})  # fmt: skip
    (point,) = look(Watch(str(run.path)))["now"]["trial"]["latency"]
    assert point[0] == 1
    assert point[1] == pytest.approx(100_000, rel=1e-3)
    assert point[2] == pytest.approx(300_000, rel=1e-3)


# -- states ----------------------------------------------------------------------------------------------------------


def test_a_run_that_is_not_there_is_waited_for(tmp_path: Path) -> None:
    watch = Watch(str(tmp_path / "run"))
    found = look(watch)
    assert found["now"]["state"] == "waiting"
    assert found["run"]["name"] == "run"
    assert found["now"]["trial"] is None
    (tmp_path / "run").mkdir()
    assert look(watch)["now"]["state"] == "waiting"  # perflab makes the folder before the manifest
    (tmp_path / "run/something").write_text("")
    assert "run is not a run directory, it has no manifest.json; waiting" in look(watch)["now"]["words"]
    (tmp_path / "run/something").unlink()
    (tmp_path / "run").rmdir()
    LiveRun(tmp_path / "run", ["baseline"] * 3, [trial()])
    found = look(watch)
    assert found["now"]["state"] == "running"
    assert found["now"]["words"] == "running: 1 of 3 trials done"


def test_a_run_that_is_taken_away_is_waited_for_again(tmp_path: Path) -> None:
    run = LiveRun(tmp_path / "run", ["baseline"] * 2, [trial()])
    watch = Watch(str(run.path))
    assert look(watch)["now"]["state"] == "running"
    shutil.rmtree(run.path)
    assert look(watch)["now"]["state"] == "waiting"
    LiveRun(tmp_path / "run", ["baseline"] * 5, [trial(), trial()])
    assert look(watch)["now"]["words"] == "running: 2 of 5 trials done"


def test_a_file_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(BadInput, match="is a file; name the run directory"):
        Watch(str(tmp_path / "f"))


def test_a_running_run_tells_its_plan_its_trials_and_the_present_one(tmp_path: Path) -> None:
    run = LiveRun(tmp_path / "run", ["baseline", "cpu_load", "baseline", "cpu_load"], [trial(100), trial(300)])
    recorder = Recorder(run.begin(3), from_ns=time.monotonic_ns() - 3 * SECOND_NS)
    recorder.start()
    recorder.second(1, [100] * 100)
    recorder.second(2, [200] * 100, lost=3)
    recorder.resources("mouth", 0.5, 20)
    recorder.resources("mouth", 1.0, 30)
    recorder.event("ear", "late")
    recorder.event("ear", "late")
    recorder.event("ear", "too_late")
    recorder.event("ear", "matched")
    found = look(Watch(str(run.path)))
    now, whole = found["now"], found["run"]
    assert now["state"] == "running"
    assert whole["planned"] == 4
    assert [t["outcome"] for t in whole["trials"]] == ["success", "success", "running", None]
    assert [t["order"] for t in whole["trials"]] == [1, 2, 3, 4]
    assert [whole["results"][t["result"]]["label"] for t in whole["trials"]] == ["baseline", "cpu_load"] * 2
    assert whole["trials"][0]["p99_ns"] == pytest.approx(100_000, rel=1e-3)
    assert whole["trials"][1]["p50_ns"] == pytest.approx(300_000, rel=1e-3)
    assert whole["trials"][0]["received"] == 1000
    told = now["trial"]
    assert (told["order"], told["treatment"], told["running"], told["phase"]) == (3, "baseline", True, "measuring")
    assert told["received"] == 200 and told["sent"] == 200 and told["lost"] == 3
    assert (told["late"], told["too_late"]) == (2, 1)
    assert told["p50_ns"] == pytest.approx(100_000, rel=1e-3)
    assert told["p99_ns"] == pytest.approx(200_000, rel=1e-3)
    assert [p[0] for p in told["latency"]] == [1, 2]
    assert told["latency"][1][1] == pytest.approx(200_000, rel=1e-3)  # of that second alone
    assert told["cpu"][0] == {"process": "mouth", "points": [[0.5, 20.0], [1.0, 30.0]]}
    assert time.time() - told["measured_since"] == pytest.approx(3, abs=2)
    assert now["left_words"].startswith("about ")
    assert now["done"] == 2


def test_what_comes_is_taken_in_and_nothing_is_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = LiveRun(tmp_path / "run", ["baseline"] * 3, [trial(), trial()])
    recorder = Recorder(run.begin(3))
    recorder.start()
    recorder.second(1, [100] * 10)
    watch = Watch(str(run.path))
    first = everything(watch)
    collected: list[str] = []
    parsed: list[bytes] = []
    monkeypatch.setattr(finished, "collect", lambda *_: collected.append("again"))
    real = present._Process._take

    def take(self: present._Process, line: bytes, seconds: Seconds) -> None:
        parsed.append(line)
        real(self, line, seconds)

    monkeypatch.setattr(present._Process, "_take", take)
    same = look(watch)
    assert same["version"] == first["version"]
    assert parsed == []
    recorder.second(2, [100] * 10)
    second = look(watch)
    assert len(parsed) == 2
    assert second["version"] != first["version"]
    assert second["run_version"] == first["run_version"]
    assert second["now"]["trial"]["received"] == 20
    assert collected == []
    assert look(watch, known=second["run_version"])["run"] is None
    assert look(watch, known="another")["run"] is not None


def test_a_line_that_is_cut_off_waits_and_a_damaged_one_is_told(tmp_path: Path) -> None:
    run = LiveRun(tmp_path / "run", ["baseline"], [])
    recorder = Recorder(run.begin(1))
    recorder.start()
    recorder.second(1, [100] * 10)
    record = json.dumps({"type": "event", "at_ns": 1, "code": "late"})
    recorder.raw("ear", record[:20])
    watch = Watch(str(run.path))
    told = look(watch)["now"]["trial"]
    assert (told["late"], told["unreadable_lines"]) == (0, 0)
    recorder.raw("ear", record[20:] + "\n")
    assert look(watch)["now"]["trial"]["late"] == 1
    recorder.raw("ear", "nonsense\n" + '{"type":"progress","elapsed_ns":"x"}\n' + '{"type":"progress"\n')
    recorder.second(2, [100] * 10)
    told = look(watch)["now"]["trial"]
    assert told["unreadable_lines"] == 3
    assert told["received"] == 20
    recorder.raw("ear", '{"type":"progress","elapsed_ns":3000000000,"publishing":true,"latency":"HISTFAA=","lost":0}\n')
    assert look(watch)["now"]["trial"]["unreadable_lines"] == 4


def test_phases_of_the_present_trial(tmp_path: Path) -> None:
    run = LiveRun(tmp_path / "run", ["baseline"], [])
    folder = run.begin(1, launched=False)
    watch = Watch(str(run.path))

    def phase() -> str:
        return str(look(watch)["now"]["trial"]["phase"])

    assert phase() == "preparing"
    run.change(1, processes={n: {"process": n, "condition": None, "pid": 7} for n in ("mouth", "ear")})
    assert phase() == "starting"
    recorder = Recorder(folder, from_ns=time.monotonic_ns() + 3600 * SECOND_NS)
    run.change(1, warmup_s=1.0)
    recorder.start()
    assert phase() == "warming up"
    begun = LiveRun(tmp_path / "another", ["baseline"], [])
    watch = Watch(str(begun.path))
    Recorder(begun.begin(1), from_ns=time.monotonic_ns() - 3600 * SECOND_NS).start()
    assert phase() == "draining"


def test_a_command_is_running_until_its_figures_are_known(tmp_path: Path) -> None:
    run = LiveRun(tmp_path / "run", ["baseline"], [])
    run.begin(1)
    manifest = json.loads((run.path / "manifest.json").read_text())
    manifest["workload"] |= {"kind": "command", "command": {"command": ["sleep", "1"]}}
    (run.path / "manifest.json").write_text(json.dumps(manifest))
    told = look(Watch(str(run.path)))["now"]["trial"]
    assert (told["phase"], told["p50_ns"], told["latency"]) == ("running", None, [])


def test_a_name_that_is_not_text_is_shown_all_the_same(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xff"))
    assert "there is no run" in look(Watch(str(path)))["now"]["words"]
    LiveRun(tmp_path / "run", ["baseline"] * 2, [trial()]).path.rename(path)
    assert everything(Watch(str(path)))["now"]["words"] == "running: 1 of 2 trials done"


def test_a_run_that_ended_says_so_and_offers_its_report(tmp_path: Path) -> None:
    run = LiveRun(tmp_path / "run", ["baseline", "cpu_load"], [trial(), trial(outcome="failed")])
    run.summary()
    now = everything(Watch(str(run.path)))["now"]
    assert (now["state"], now["report"], now["resume"]) == ("finished", True, None)
    assert now["words"] == "finished: 2 of 2 trials, 1 of them not successful"
    assert now["trial"]["running"] is False
    assert now["left_words"] is None


def test_a_run_that_ended_before_its_plan_did(tmp_path: Path) -> None:
    run = LiveRun(tmp_path / "run", ["baseline"] * 3, [trial(), trial(outcome="harness_error")])
    run.change(2, interrupted=True)
    run.summary(valid=False)
    found = everything(Watch(str(run.path)))
    assert found["now"]["state"] == "ended_early"
    assert found["now"]["resume"] == f"perflab run --resume {run.path}"
    assert found["now"]["words"] == "ended before its plan was complete: 1 of 3 trials"
    assert [t["interrupted"] for t in found["run"]["trials"]] == [False, True, False]
    assert found["run"]["results"][0]["trials"] == 1


def test_a_run_whose_perflab_is_gone_says_how_to_go_on(tmp_path: Path) -> None:
    run = LiveRun(tmp_path / "a run", ["baseline"] * 3, [trial()])
    recorder = Recorder(run.begin(2))
    recorder.start()
    recorder.second(1, [100] * 10)
    watch = Watch(str(run.path))
    assert everything(watch)["now"]["state"] == "running"
    run.controlled_by(None)
    found = everything(watch)
    assert found["now"]["state"] == "crashed"
    assert found["now"]["resume"] == f"perflab run --resume '{run.path}'"
    assert found["now"]["trial"]["running"] is False
    assert found["run"]["trials"][1]["interrupted"] is True
    assert found["run"]["trials"][1]["took_s"] is None
    assert found["now"]["done"] == 1


def test_a_run_that_is_resumed_goes_on_although_it_has_a_summary(tmp_path: Path) -> None:
    run = LiveRun(tmp_path / "run", ["baseline"] * 3, [trial(), trial(outcome="harness_error")])
    run.change(2, interrupted=True)
    run.summary(valid=False)
    watch = Watch(str(run.path))
    assert everything(watch)["now"]["state"] == "ended_early"
    time.sleep(0.02)  # the clock of the file system has ticks
    run.controlled_by(os.getpid())
    run.begin(3, order=2)
    found = everything(watch)
    assert found["now"]["state"] == "running"
    assert [t["outcome"] for t in found["run"]["trials"]] == ["success", "running", None]
    assert found["now"]["done"] == 1


def test_a_run_elsewhere_cannot_be_seen_to_live(tmp_path: Path) -> None:
    run = LiveRun(tmp_path / "run", ["baseline"] * 3, [trial()])
    recorder = Recorder(run.begin(2))
    recorder.start()
    recorder.second(1, [100] * 10)
    run.controlled_by(os.getpid(), boot_id="another", hostname="another-machine")
    now = everything(Watch(str(run.path)))["now"]
    assert now["state"] == "elsewhere"
    assert now["trial"]["phase"] == "measuring"
    assert now["trial"]["measured_since"] is None
    assert now["resume"] is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "manifest.json is damaged"),
        ("[]", "manifest.json is damaged: not a JSON object"),
        ('{"schema": 2}', "of another version: schema 2 instead of 1"),
        ('{"schema": 1}', "is damaged: "),
    ],
)
def test_a_damaged_run_is_told_in_one_line_and_recovers(tmp_path: Path, text: str, expected: str) -> None:
    run = LiveRun(tmp_path / "run", ["baseline"], [trial()])
    whole = (run.path / "manifest.json").read_text()
    watch = Watch(str(run.path))
    (run.path / "manifest.json").write_text(text)
    now = look(watch)["now"]
    assert now["state"] == "damaged"
    assert expected in now["words"]
    assert "\n" not in now["words"]
    (run.path / "manifest.json").write_text(whole)
    assert everything(watch)["now"]["state"] == "running"


def test_a_damaged_trial_is_a_note_and_the_others_count(tmp_path: Path) -> None:
    run = LiveRun(tmp_path / "run", ["baseline"] * 4, [trial(), trial(), trial(), trial()])
    (run.folder(1) / "trial.json").write_text("{")
    run.change(2, processes=None)
    run.change(3, run_id="another")
    found = everything(Watch(str(run.path)))
    assert found["run"]["results"][0]["trials"] == 1
    notes = "\n".join(found["run"]["notes"])
    assert "0001_baseline/trial.json is damaged" in notes
    assert "0002_baseline/trial.json is damaged" in notes
    assert "0003_baseline belongs to another run and is left out" in notes


def test_a_run_of_an_older_version_is_shown(tmp_path: Path) -> None:
    make_run(tmp_path / "old", {"mouth": ["talker"], "ear": ["listener"]}, [trial(), trial(200)])
    found = everything(Watch(str(tmp_path / "old")))
    assert found["now"]["state"] == "finished"
    assert [t["outcome"] for t in found["run"]["trials"]] == ["success", "success"]
    assert found["run"]["results"][0]["p50_ns"]["n"] == 2


def test_many_finished_trials_are_read_bit_by_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = LiveRun(tmp_path / "run", ["baseline"] * 5, [trial() for _ in range(5)])
    monkeypatch.setattr(state, "READING_S", -1.0)
    watch = Watch(str(run.path))
    found = look(watch)
    assert found["now"]["unread"] == 5
    assert found["now"]["words"] == "reading 0 of 5 trials"
    monkeypatch.setattr(state, "READING_S", 60.0)
    assert look(watch)["now"]["unread"] == 0


# -- results ---------------------------------------------------------------------------------------------------------


def test_results_have_an_interval_as_soon_as_there_are_enough_trials(tmp_path: Path) -> None:
    slow = [trial(100 + n) for n in range(6)]
    few = [trial(50) for _ in range(2)]
    invalid = trial(999, outcome="invalid")
    run = LiveRun(tmp_path / "run", [*["baseline"] * 6, *["cpu_load"] * 3], [*slow, *few, invalid])
    baseline, load = everything(Watch(str(run.path)))["run"]["results"]
    assert baseline["p50_ns"]["n"] == 6
    assert baseline["p50_ns"]["value"] == pytest.approx(102_500, rel=1e-3)
    assert baseline["p50_ns"]["low"] == pytest.approx(100_000, rel=1e-3)
    assert baseline["p50_ns"]["high"] == pytest.approx(105_000, rel=1e-3)
    assert (load["p99_ns"]["n"], load["p99_ns"]["needed"], load["p99_ns"]["low"]) == (2, 6, None)
    assert load["p99_ns"]["value"] == pytest.approx(50_000, rel=1e-3)
    assert (load["trials"], load["judged"], load["successes"], load["invalid"]) == (3, 2, 2, 1)
    assert 0 < load["success_low"] < load["success_high"] == 1


def test_a_p99_of_few_messages_enters_no_result(tmp_path: Path) -> None:
    run = LiveRun(tmp_path / "run", ["baseline"] * 2, [trial(messages=50), trial(messages=50)])
    (result,) = everything(Watch(str(run.path)))["run"]["results"]
    assert result["p50_ns"]["n"] == 2
    assert (result["p99_ns"]["n"], result["p99_ns"]["value"]) == (0, None)
    assert "p99" in result["p99_ns"]["trial_reason"]


@pytest.mark.parametrize(("alpha", "expected"), [(0.05, 6), (0.01, 8), (0.1, 5), (0.5, 2)])
def test_how_many_trials_an_interval_takes_is_what_the_statistics_say(alpha: float, expected: int) -> None:
    from perflab.statistics.estimate import median
    from perflab.statistics.sample import Sample

    assert finished.needed(alpha) == expected
    assert median(Sample.of([float(n) for n in range(expected)]), 1 - alpha).interval is not None
    if expected > 2:
        assert median(Sample.of([float(n) for n in range(expected - 1)]), 1 - alpha).interval is None


def test_levels_of_a_factor_make_a_curve_of_which_the_baseline_is_the_beginning(tmp_path: Path) -> None:
    factors = {
        "baseline": {"cpu_load.load": 0},
        "cpu_load load=50": {"cpu_load.load": 50},
        "cpu_load load=90": {"cpu_load.load": 90},
    }
    run = LiveRun(tmp_path / "run", list(factors), [trial(10), trial(20), trial(30)], factors=factors)
    whole = everything(Watch(str(run.path)))["run"]
    (found,) = whole["levels"]
    assert found["factor"] == "cpu_load.load"
    (curve,) = found["curves"]
    assert [point["level"] for point in curve["points"]] == [0, 50, 90]
    values = [whole["results"][point["result"]]["p99_ns"]["value"] for point in curve["points"]]
    assert values == pytest.approx([10_000, 20_000, 30_000], rel=1e-3)


def test_curves_of_two_factors_are_named_by_the_other_one(tmp_path: Path) -> None:
    factors = {
        "baseline": {"cpu_load.load": 0, "cpu_load.workers": 2},
        **{
            f"cpu_load load={load} workers={workers}": {"cpu_load.load": load, "cpu_load.workers": workers}
            for load in (30, 60)
            for workers in (1, 2)
        },
    }
    run = LiveRun(tmp_path / "run", list(factors), [trial(10)] * 5, factors=factors)
    load, workers = everything(Watch(str(run.path)))["run"]["levels"]
    assert [c["label"] for c in load["curves"]] == ["workers=1", "workers=2"]
    assert [[p["level"] for p in c["points"]] for c in load["curves"]] == [[0, 30, 60], [0, 30, 60]]
    assert [c["label"] for c in workers["curves"]] == ["load=30", "load=60"]


def test_a_search_tells_where_it_breaks_by_now(tmp_path: Path) -> None:
    levels = [10, 90, 50, 30, 70]
    factors = {f"cpu_load load={level}": {"cpu_load.load": level} for level in levels}
    run = LiveRun(
        tmp_path / "run",
        ["baseline", *factors],
        [trial(100), *(trial(100 if level < 60 else 900) for level in levels)],
        factors=factors,
        document={"breaking_point": {"factor": "cpu_load.load", "low": 1, "high": 100, "scale": "linear",
                                     "criterion": "latency.p99 <= 500us", "max_trials": 20}},
    )  # fmt: skip
    found = everything(Watch(str(run.path)))
    assert [t["met"] for t in found["run"]["trials"]] == [True, True, False, True, True, False]
    (point,) = found["run"]["breaking_points"]
    assert [(x["level"], x["met"], x["n"]) for x in point["levels"]] == [
        (10, 1, 1), (30, 1, 1), (50, 1, 1), (70, 0, 1), (90, 0, 1),
    ]  # fmt: skip
    assert point["trials"] == 5
    assert all(isinstance(words, str) for words in point["words"]) and point["words"]
    assert found["run"]["planned"] is None
    assert found["now"]["left_words"] is None


def test_levels_that_are_words_make_no_curve(tmp_path: Path) -> None:
    factors = {"a": {"workload.kind": "x"}, "b": {"workload.kind": "y"}}
    run = LiveRun(tmp_path / "run", list(factors), [trial(10), trial(20)], factors=factors)
    assert everything(Watch(str(run.path)))["run"]["levels"] == []


# -- the run itself --------------------------------------------------------------------------------------------------


def test_watching_changes_nothing_in_the_run(tmp_path: Path) -> None:
    run = LiveRun(tmp_path / "run", ["baseline"] * 2, [trial()])
    recorder = Recorder(run.begin(2))
    recorder.start()
    recorder.second(1, [100] * 10)

    def files() -> list[tuple[str, int, int]]:
        return sorted(
            (str(p.relative_to(tmp_path)), p.stat().st_mtime_ns, p.stat().st_size) for p in tmp_path.rglob("*")
        )

    before = files()
    watch = Watch(str(run.path))
    for _ in range(3):
        look(watch)
    assert files() == before


def test_states_are_made_no_more_often_than_once_in_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = LiveRun(tmp_path / "run", ["baseline"] * 2, [trial()])
    monkeypatch.setattr(state, "LOOK_INTERVAL_S", 3600.0)
    watch = Watch(str(run.path))
    first = watch.state()
    run.begin(2)
    assert watch.state() is first
