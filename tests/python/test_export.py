"""`perflab export`: what it writes, what comes back when it is read, and what it refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from irobot_tracker import Arrival, replay
from made_run import MS, START_NS, MadeTrial, Stream, arrivals, make_run
from test_irobot_formats import DATA

from perflab.cli import main
from perflab.formats.irobot import parse
from perflab.models import as_json
from perflab.runs.rundata import open_run
from perflab.statistics.irobot import UINT32, Options
from perflab.statistics.metrics import METRICS

Captured = pytest.CaptureFixture[str]

PROCESSES = {"left": ["talker", "echo"], "right": ["listener"]}


def streams() -> list[Stream]:
    twice = [Arrival(n, 80_500, START_NS + (k + 1) * 20 * MS) for k, n in enumerate((0, 1, 1, 2, 3))]
    return [
        Stream("talker", "chat", "listener", 10, 6, arrivals([100.9, 200, 2500, 12_000, 300])),  # the last one is lost
        Stream("talker", "chat", "echo", 10, 6, arrivals([40, 50, 60, 70, 80, 90])),
        Stream("echo", "answer", "listener", 20, 4, twice),
        Stream("talker", "add", "echo", 100, 3, arrivals([400, 500, 900], 100), service=True),
    ]


@pytest.fixture
def run_path(tmp_path: Path) -> Path:
    lost = {"at_ns": START_NS + 60 * MS, "code": "lost", "edge": 0, "sequence": 3, "count": 3}
    return make_run(tmp_path / "made", PROCESSES, [MadeTrial(streams(), more_events=[lost], cpu_ms=50)])


def export(run: Path, *arguments: str | Path) -> int:
    return main(["export", str(run), *map(str, arguments)])


def test_each_process_gets_its_directory_and_what_was_written_is_printed(run_path: Path, capsys: Captured) -> None:
    assert export(run_path) == 0
    folder = run_path / "export" / "irobot"
    assert sorted(p.name for p in folder.iterdir()) == ["left_log", "right_log"]
    printed = capsys.readouterr().out.splitlines()
    names = ["latency_all.txt", "latency_total.txt", "resources.txt", "events.txt", "metadata.txt"]
    assert printed[:5] == [str(folder / "left_log" / name) for name in names]
    assert printed[10:12] == ["", "System total:"]
    assert printed[13].split()[0] == "18"


def test_what_was_written_can_be_had_as_json(run_path: Path, capsys: Captured) -> None:
    assert export(run_path, "--json") == 0
    (trial,) = json.loads(capsys.readouterr().out)["trials"]
    assert len(trial["files"]) == 10
    assert all(Path(path).is_file() for path in trial["files"])
    assert (trial["system_total"]["received"], trial["system_total"]["lost"]) == (18, 1)


def test_what_is_exported_says_the_phase_of_its_timers(tmp_path: Path, capsys: Captured) -> None:
    for phase in ("aligned", "as_created"):
        run = make_run(tmp_path / phase, PROCESSES, [MadeTrial(streams(), phase=phase)])
        assert export(run, "--output", tmp_path / "out" / phase) == 0
        note = "Note: trial 1: irobot_benchmark's timers have the phase as_created; these had aligned\n"
        assert (note in capsys.readouterr().out) is (phase == "aligned")
        back = open_run(tmp_path / "out" / phase)
        assert back.summary.results[0].phase == phase
        assert f"phase: {phase}" in (tmp_path / "out" / phase / "left_log" / "metadata.txt").read_text()


def test_what_is_exported_comes_back_with_the_same_counts(run_path: Path) -> None:
    assert export(run_path) == 0
    before = as_json(open_run(run_path).summary)["results"][0]
    after = as_json(open_run(run_path / "export" / "irobot").summary)["results"][0]
    for key in ("received", "late", "too_late", "on_time"):
        assert after["totals"][key] == before["totals"][key], key
    assert after["totals"]["lost"]["gap"] == sum(before["totals"]["lost"].values()) == 1
    own = {(e["publisher"], e["topic"], e["subscription"]): e for e in before["edges"]}
    assert len(after["edges"]) == len(own) == 3
    for edge in after["edges"]:
        same = own[edge["publisher"], edge["topic"], edge["subscription"]]
        for key in ("received", "late", "too_late", "size_bytes", "frequency_hz"):
            assert edge[key] == same[key], key
        for key in ("mean", "min", "max"):
            assert edge["latency_ns"][key] == pytest.approx(same["latency_ns"][key], abs=1), key
    (service,) = after["services"]
    assert (service["client"], service["service"], service["received"]) == ("talker", "add", 3)
    assert service["round_trip_ns"]["max"] == 900_000
    cpu = before["resources"]["processes"][0]["cpu_percent_mean"]
    assert after["resources"]["processes"][0]["cpu_percent_mean"] == pytest.approx(cpu)
    assert (after["middleware"], after["executor"], after["duration_s"]) == ("cyclonedds", "single_threaded", 2.0)


@pytest.mark.parametrize("options", [["--csv"], ["--format", "irobot-legacy"], ["--format", "irobot-legacy", "--csv"]])
def test_every_dialect_comes_back_with_the_same_counts(options: list[str], run_path: Path, tmp_path: Path) -> None:
    assert export(run_path, *options, "--output", tmp_path / "out") == 0
    totals = as_json(open_run(tmp_path / "out").summary)["results"][0]["totals"]
    assert (totals["received"], totals["late"], totals["too_late"], totals["lost"]["gap"]) == (15, 1, 1, 1)


def test_the_original_accounting_is_that_of_its_tracker(run_path: Path, tmp_path: Path) -> None:
    assert export(run_path, "--accounting", "original", "--output", tmp_path / "out") == 0
    rows = {(r.node, r.topic): r for r in parse.parse(tmp_path / "out" / "right_log").subscriptions or ()}
    for stream in streams()[:3]:
        if stream.receiver != "listener":
            continue
        expected = replay(stream.arrivals, 8, 1000 / stream.period_ms, Options()).row
        row = rows["listener", stream.subject]
        assert (row.received, row.late, row.too_late, row.lost) == (
            expected.received,
            expected.late,
            expected.too_late,
            expected.lost,
        )
        assert (row.min_us, row.max_us) == (expected.min_us, expected.max_us)
        assert row.mean_us == pytest.approx(expected.mean_us, abs=1)
    assert rows["listener", "chat"].lost == 0  # the tail is not seen
    assert rows["listener", "answer"].lost == UINT32 - 1  # one came twice


def test_nodes_stand_in_the_order_of_the_graph_and_topics_in_that_of_the_alphabet(run_path: Path) -> None:
    assert export(run_path) == 0
    left = parse.parse(run_path / "export/irobot/left_log")
    assert [(r.node, r.topic) for r in left.subscriptions or ()] == [("echo", "chat")]
    assert [(r.node, r.topic) for r in left.clients] == [("talker", "add")]
    assert [(r.node, r.topic) for r in left.publishers] == [("talker", "chat"), ("echo", "answer")]
    right = parse.parse(run_path / "export/irobot/right_log")
    assert [(r.node, r.topic) for r in right.subscriptions or ()] == [("listener", "answer"), ("listener", "chat")]
    assert right.publishers == ()


@pytest.mark.parametrize(
    ("accounting", "late", "lost"),
    [("original", "msg 2 late. 2500us > 2000us", "msgs 5 to 8 lost."),
     ("corrected", "msg 2 late. 2500us > 2000us", "msgs 3 to 5 lost.")],
)  # fmt: skip
def test_events_are_in_the_words_of_the_original(accounting: str, late: str, lost: str, run_path: Path) -> None:
    assert export(run_path, "--accounting", accounting) == 0
    events = parse.parse(run_path / "export/irobot/right_log").events or ()
    # Milliseconds from when the endpoints existed, 800 ms before the start; message 2 was sent at 30 ms.
    assert [(e.time_ms, e.caller, e.code, e.description) for e in events] == [
        (90, "SYSTEM", 0, "[discovery] PDP completed"),
        (151, "SYSTEM", 0, "[discovery] EDP completed"),
        (832, "chat->listener", 1, late),
        (852, "chat->listener", 2, "msg 3 too late. 12000us > 10000us"),
        (860, "chat->listener", 3, lost),
    ]


def test_resources_begin_with_zeros_and_rss_is_the_peak_for_the_original_only(run_path: Path, tmp_path: Path) -> None:
    for accounting, rss in (("original", [0, 6000, 7000, 7000]), ("corrected", [0, 6000, 7000, 6500])):
        assert export(run_path, "--accounting", accounting, "--output", tmp_path / accounting) == 0
        samples = parse.parse(tmp_path / accounting / "left_log").resources or ()
        assert [s.rss_kb for s in samples] == rss
        assert [s.time_ms for s in samples] == [0, 500, 1000, 1500]
        assert [s.cpu_percent for s in samples] == [0, 2.5, 2.5, 2.5]  # 50 ms of 500 ms on 4 CPUs


@pytest.mark.parametrize(
    ("dialect", "names", "cpu"),
    [
        ("irobot", ["time_ms", "cpu_perc"], ["0", "1", "2", "3"]),
        ("irobot-legacy", ["time[ms]", "cpu[%]"], ["0", "1", "1.5", "2"]),
    ],
)
def test_cpu_is_of_each_interval_or_in_the_older_dialect_since_the_start(
    dialect: str, names: list[str], cpu: list[str], tmp_path: Path
) -> None:
    path = make_run(tmp_path / "made", PROCESSES, [MadeTrial(streams(), cpu_ms=(20, 40, 60))])  # of 2000 ms on 4 CPUs
    assert export(path, "--format", dialect, "--accounting", "original") == 0
    header, *lines = (path / "export" / dialect / "left_log/resources.txt").read_text().splitlines()
    assert header.split()[:2] == names
    assert [line.split()[1] for line in lines] == cpu


def test_late_replies_are_those_of_their_client(tmp_path: Path) -> None:
    asked = Stream("talker", "add", "echo", 100, 2, arrivals([400, 6000], 100), service=True)
    path = make_run(tmp_path / "made", PROCESSES, [MadeTrial([*streams()[:3], asked])])
    assert export(path, "--accounting", "original") == 0
    left = parse.parse(path / "export/irobot/left_log")
    assert [(r.node, r.topic, r.received, r.late) for r in left.clients] == [("talker", "add", 2, 1)]
    assert ("add->talker", "msg 1 late. 6000us > 5000us") in [(e.caller, e.description) for e in left.events or ()]


def test_without_tracking_there_are_zeros_and_no_events(run_path: Path) -> None:
    for accounting in ("original", "corrected"):
        assert export(run_path, "--tracking", "off", "--accounting", accounting, "--force") == 0
        folder = run_path / "export/irobot/right_log"
        assert not (folder / "events.txt").exists()
        rows = parse.parse(folder).subscriptions or ()
        assert {(r.late, r.too_late, r.lost) for r in rows} == {(0, 0, 0)}
        assert max(r.max_us for r in rows) == 12_000
        totals = as_json(open_run(run_path / "export/irobot").summary)["results"][0]["totals"]
        assert totals["late"] is None  # read back it is what it is: not measured


def test_the_metadata_say_how_the_run_was_made(run_path: Path) -> None:
    assert export(run_path, "--csv") == 0
    text = (run_path / "export/irobot/left_log/metadata.txt").read_text()
    lines = dict(line.split(": ", 1) for line in text.splitlines() if line)
    assert list(lines)[:3] == ["topology_json_list", "system_executor", "node_type"]
    assert lines["topology_json_list"] == "left.yaml right.yaml"
    assert lines["system_executor"] == "SingleThreadedExecutor"
    assert (lines["csv_out"], lines["duration_sec"], lines["late_absolute_us"]) == ("on", "2 seconds", "5000")
    assert (lines["accounting"], lines["middleware"], lines["cpus"]) == ("corrected", "cyclonedds", "4")
    assert text.endswith("\n\n")


def test_the_metadata_say_with_which_nodes_of_ros_2(tmp_path: Path) -> None:
    middleware = "rclcpp/rmw_cyclonedds_cpp"
    trials = [MadeTrial(streams(), middleware=middleware, executor="static_single_threaded")]
    path = make_run(tmp_path / "made", PROCESSES, trials)

    def metadata(**options: str) -> dict[str, str]:
        manifest = json.loads((path / "manifest.json").read_text())
        manifest["middlewares"][0]["options"] = options
        (path / "manifest.json").write_text(json.dumps(manifest))
        assert export(path, "--force") == 0
        text = (path / "export/irobot/left_log/metadata.txt").read_text()
        return dict(line.split(": ", 1) for line in text.splitlines() if line)

    lines = metadata()
    assert lines["system_executor"] == "StaticSingleThreadedExecutor"
    assert (lines["node_type"], lines["ros_params"]) == ("Node", "on")
    lines = metadata(node="lifecycle", parameter_services="off")
    assert (lines["node_type"], lines["ros_params"]) == ("LifecycleNode", "off")


def test_several_trials_get_a_folder_each(tmp_path: Path) -> None:
    trials = [MadeTrial(streams(), ipc="off"), MadeTrial(streams(), executor="events", ipc="on")]
    path = make_run(tmp_path / "made", PROCESSES, trials)
    assert export(path) == 0
    assert sorted(p.name for p in (path / "export/irobot").iterdir()) == [
        "0001_cyclonedds_ipc_off",
        "0002_cyclonedds_events_ipc_on",
    ]
    assert export(path, "--trial", "2", "--output", tmp_path / "second") == 0
    metadata = (tmp_path / "second/left_log/metadata.txt").read_text()
    assert "system_executor: EventsExecutor\n" in metadata
    assert "ipc: on\n" in metadata


def test_folders_tell_treatments_of_one_condition_apart(tmp_path: Path) -> None:
    path = make_run(tmp_path / "made", PROCESSES, [MadeTrial(streams(), conditions=["cpu_load"])] * 3)
    treatments: list[dict[str, object]] = [
        {"treatment": "cpu_load load=20", "factors": {"cpu_load.load": 20}},
        {"treatment": "lunch", "factors": {}},
        {"treatment": "baseline", "conditions": [], "factors": {"workload.depth": 10}},
    ]
    for file, treatment in zip(sorted(path.glob("trials/*/trial.json")), treatments, strict=True):
        file.write_text(json.dumps({**json.loads(file.read_text()), **treatment}))
    assert export(path) == 0
    assert sorted(p.name for p in (path / "export/irobot").iterdir()) == [
        "0001_cyclonedds_cpu_load_load_20",
        "0002_cyclonedds_lunch",
        "0003_cyclonedds_depth_10",
    ]


def test_tables_become_csv_without_the_encoded_histograms(run_path: Path) -> None:
    assert export(run_path, "--format", "csv") == 0
    folder = run_path / "export/csv"
    assert sorted(p.stem for p in folder.iterdir()) == sorted(
        ["edges", "publishers", "services", "resources", "threads", "events", "trials", "trials_columns"]
    )
    header = (folder / "edges.csv").read_text().splitlines()[0].split(",")
    assert "latency_count" in header
    assert not [name for name in header if name.endswith("_v2")]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_trial_has_a_row_with_each_metric_that_any_of_them_measured(tmp_path: Path, capsys: Captured) -> None:
    nothing = MadeTrial(streams(), outcome="failed", rss_kb=(), checkpoint=False, final=False)
    path = make_run(tmp_path / "made", PROCESSES, [nothing, MadeTrial(streams()), MadeTrial(streams(), cpu_ms=50)])
    assert export(path, "--format", "csv") == 0
    table = path / "export/csv/trials.csv"
    assert str(table) in capsys.readouterr().out.splitlines()
    rows = rows_of(table)
    assert [(row["trial"], row["outcome"], row["enters"]) for row in rows] == [
        ("1", "failed", "false"),
        ("2", "success", "true"),
        ("3", "success", "true"),
    ]
    trials = [t for r in open_run(path).summary.results for t in r.trials_detail]
    for row, trial in zip(rows, sorted(trials, key=lambda t: t.trial), strict=True):
        for name, metric in METRICS.items():
            written = row.get(name) or None
            assert metric.read(trial).value == (None if written is None else float(written))
    assert rows[1]["latency.mean"] and rows[1]["received"]
    assert "hiccup.p50" not in rows[1]  # nobody observed it
    told = {row["column"]: row for row in rows_of(table.with_name("trials_columns.csv"))}
    assert list(told) == list(rows[0])
    assert all(row["meaning"] for row in told.values())
    assert (told["latency.mean"]["unit"], told["latency.mean"]["meaning"]) == ("ns", METRICS["latency.mean"].help)


def test_the_table_of_trials_has_the_one_that_was_asked_for(tmp_path: Path) -> None:
    path = make_run(tmp_path / "made", PROCESSES, [MadeTrial(streams()), MadeTrial(streams())])
    assert export(path, "--format", "csv", "--trial", "2") == 0
    assert [row["trial"] for row in rows_of(path / "export/csv/trials.csv")] == ["2"]


def test_a_process_that_was_not_sampled_has_no_resources(tmp_path: Path) -> None:
    path = make_run(tmp_path / "made", PROCESSES, [MadeTrial(streams(), rss_kb=())])
    assert export(path) == 0
    assert not (path / "export/irobot/left_log/resources.txt").exists()


def test_a_trial_that_recorded_nothing_is_not_exported(tmp_path: Path, capsys: Captured) -> None:
    nothing = MadeTrial(streams(), outcome="failed", rss_kb=(), checkpoint=False, final=False)
    path = make_run(tmp_path / "made", PROCESSES, [nothing, MadeTrial(streams(), outcome="failed", final=False)])
    assert export(path) == 0
    assert (path / "export/irobot/right_log/latency_all.txt").is_file()  # of the second: it has no folder of its own
    assert capsys.readouterr().out.startswith("Note: trial 2 did not succeed (failed)\n")
    assert export(path, "--trial", "1", "--force") == 2
    assert "with records" in capsys.readouterr().err


def test_losses_that_are_not_known_are_no_number(tmp_path: Path) -> None:
    path = make_run(tmp_path / "made", PROCESSES, [MadeTrial(streams(), outcome="failed", final=False)])
    assert export(path) == 0
    right = parse.parse(path / "export/irobot/right_log")
    assert [row.lost for row in right.subscriptions or ()] == [None, None]
    assert right.total is not None
    assert right.total.lost is None
    assert as_json(open_run(path / "export/irobot").summary)["results"][0]["totals"]["lost"]["gap"] is None


def test_an_unknown_number_of_cpus_leaves_cpu_open(tmp_path: Path) -> None:
    path = make_run(tmp_path / "made", PROCESSES, [MadeTrial(streams())], cpus=None)
    assert export(path) == 0
    samples = parse.parse(path / "export/irobot/left_log").resources or ()
    assert [s.cpu_percent for s in samples] == [0, None, None, None]


def test_nothing_is_overwritten_without_force(run_path: Path, tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "precious").write_text("mine")
    assert export(run_path, "--output", out) == 2
    assert "is not empty; name another with --output, or write into it with --force" in capsys.readouterr().err
    assert [p.name for p in out.iterdir()] == ["precious"]
    assert export(run_path, "--output", out, "--force") == 0
    assert (out / "precious").read_text() == "mine"
    (tmp_path / "file").write_text("")
    assert export(run_path, "--output", tmp_path / "file") == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--format", "pdf"], "--format 'pdf' is not one of csv, irobot, irobot-legacy, mcap, performance_test"),
        (["--accounting", "mine"], "--accounting 'mine' is not original or corrected"),
        (["--tracking", "maybe"], "--tracking 'maybe' is not on or off"),
        (["--trial", "7"], "--trial 7: "),
        (
            ["--format", "csv", "--accounting", "original"],
            "--accounting belongs to --format irobot, irobot-legacy and performance_test",
        ),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], complaint: str, run_path: Path, capsys: Captured) -> None:
    assert export(run_path, *arguments) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1
    assert not (run_path / "export").exists()


def test_foreign_output_is_not_exported_again_but_its_tables_are(tmp_path: Path, capsys: Captured) -> None:
    assert export(DATA / "two", "--output", tmp_path / "out") == 2
    assert "is already output of irobot_benchmark" in capsys.readouterr().err
    assert export(DATA / "two", "--format", "csv", "--output", tmp_path / "out") == 0
    assert (tmp_path / "out" / "edges.csv").read_text().count("\n") == 5


def test_a_full_disk_is_one_line(run_path: Path, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "out" / "left_log" / "latency_all.txt").mkdir(parents=True)
    assert export(run_path, "--output", tmp_path / "out", "--force") == 1
    assert "cannot write" in capsys.readouterr().err
