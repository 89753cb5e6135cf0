"""`perflab export --format mcap`: read back with MCAP's own reader, and decoded by the definitions in the file."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from irobot_tracker import Arrival
from made_messages import COUNTED, UNKNOWN, WARM_UP, pose, write_deliveries, write_log, write_publications
from made_run import MS, START_NS, US, MadeTrial, Stream, arrivals, make_run
from mcap.reader import McapReader, make_reader
from mcap_ros2.decoder import DecoderFactory

from perflab.cli import main
from perflab.errors import BadInput
from perflab.formats import messages
from perflab.formats.mcap import ros2msg

Captured = pytest.CaptureFixture[str]

WALL_NS = 1_700_000_000_000_000_000  # when the process that began first did
BEGAN_NS = START_NS - 1_000 * MS
SHIFT_NS = WALL_NS - BEGAN_NS
PROCESSES = {"left": ["talker"], "right": ["listener"]}
CHAT = ("/talker", "/chat", "/listener")
ADD = ("/talker", "/add", "/listener")


def streams() -> list[Stream]:
    return [
        Stream("talker", "chat", "listener", 10, 6, arrivals([100, 200, 300, 400, 500])),  # the last one is lost
        Stream("talker", "add", "listener", 100, 1, [Arrival(0, 700 * US, START_NS + 101 * MS)], service=True),
    ]


@pytest.fixture
def run_path(tmp_path: Path) -> Path:
    """A run of one trial that recorded no single messages."""
    lost = {"at_ns": START_NS + 60 * MS, "code": "lost", "edge": 0, "sequence": 5, "count": 2}
    path = make_run(tmp_path / "made", PROCESSES, [MadeTrial(streams(), more_events=[lost])])
    for name in PROCESSES:
        records = processes(path) / f"{name}.jsonl"
        began = {"type": "process", "pid": 1, "started_ns": BEGAN_NS, "wall_ns": WALL_NS, "timers": []}
        records.write_text(json.dumps(began) + "\n" + records.read_text())
    return path


def processes(run: Path) -> Path:
    return run / "trials" / "0001_baseline" / "processes"


# edge, flags, sequence, intended, published, arrived, callback, ended, deserialize
DELIVERIES = [
    (0, WARM_UP, 0, START_NS - 9 * MS, START_NS - 8 * MS, UNKNOWN, START_NS - 7 * MS, START_NS - 6 * MS, UNKNOWN),
    (0, COUNTED, 0, START_NS, START_NS + 10, START_NS + 1_010, START_NS + 62_292, START_NS + 70_000, 333),
    (0, COUNTED, 1, START_NS + MS, START_NS + MS + 10, UNKNOWN, START_NS + MS + 100_010, START_NS + 2 * MS, UNKNOWN),
]
REPLIES = [(1, COUNTED, 0, START_NS, START_NS + 7, UNKNOWN, START_NS + 700_007, UNKNOWN, UNKNOWN)]
# publisher, flags, sequence, intended, published, returned, serialize
PUBLICATIONS = [
    (0, WARM_UP, 0, START_NS - 9 * MS, START_NS - 8 * MS, START_NS - 7 * MS, UNKNOWN),
    (0, 0, 0, START_NS, START_NS + 10, START_NS + 1_234, 56),
    (0, 0, 1, START_NS + MS, START_NS + MS + 10, START_NS + MS + 20, UNKNOWN),
]
POSES = [(0.5, -1.0, "warm"), (1.5, 2.0, "a"), (2.5, 3.0, "somewhat longer")]


def record_messages(run: Path, counts: dict[str, Any] | None = None) -> Path:
    """Adds single messages to a made run, as if the observer had been there; the trial's folder."""
    folder = processes(run)
    write_log(folder, "left", publishers=[CHAT[:2]], services=[ADD])
    write_log(folder, "right", edges=[CHAT], services=[ADD], counts=counts)
    write_publications(folder, "left", PUBLICATIONS, [pose(*of) for of in POSES])
    # Services are numbered after the edges, of which this process has none.
    write_deliveries(folder, "left", [(0, *row[1:]) for row in REPLIES])
    write_deliveries(folder, "right", DELIVERIES)
    assert messages.write_tables(folder.parent) is not None
    return folder.parent


def export(run: Path, *arguments: str | Path) -> int:
    return main(["export", str(run), "--format", "mcap", "--force", *map(str, arguments)])


def open_file(run: Path) -> McapReader:
    (path,) = (run / "export" / "mcap").glob("*.mcap")
    return make_reader(path.open("rb"), decoder_factories=[DecoderFactory()])


def by_topic(reader: McapReader) -> dict[str, list[tuple[int, int, dict[str, Any]]]]:
    """Messages in JSON: when they were logged and published, and what they say. All are in the order of time."""
    found = defaultdict(list)
    last = 0
    for _, channel, message in reader.iter_messages(log_time_order=False):
        assert message.log_time >= last
        last = message.log_time
        if channel.message_encoding == "json":
            found[channel.topic].append((message.log_time, message.publish_time, json.loads(message.data)))
    return found


def test_every_recorded_message_is_there_with_its_times(run_path: Path) -> None:
    record_messages(run_path)
    assert export(run_path) == 0
    found = by_topic(open_file(run_path))
    assert found["/perflab/edges/chat/talker/to/listener"] == [
        (START_NS - 7 * MS + SHIFT_NS, START_NS - 8 * MS + SHIFT_NS,
         {"sequence": 0, "warm_up": 1, "latency_us": 1000, "response_us": 2000, "publish_delay_us": 1000,
          "work_us": 1000}),
        (START_NS + 62_292 + SHIFT_NS, START_NS + 10 + SHIFT_NS,
         {"sequence": 0, "warm_up": 0, "latency_us": 62.282, "response_us": 62.292, "publish_delay_us": 0.01,
          "dispatch_us": 61.282, "work_us": 7.708, "deserialize_us": 0.333}),
        (START_NS + MS + 100_010 + SHIFT_NS, START_NS + MS + 10 + SHIFT_NS,
         {"sequence": 1, "warm_up": 0, "latency_us": 100, "response_us": 100.01, "publish_delay_us": 0.01,
          "work_us": 899.99}),
    ]  # fmt: skip
    ((_, _, reply),) = found["/perflab/services/add/talker/to/listener"]
    assert reply == {
        "sequence": 0, "warm_up": 0, "round_trip_us": 700, "round_trip_response_us": 700.007, "publish_delay_us": 0.007
    }  # fmt: skip
    assert [said for *_, said in found["/perflab/publishers/chat/talker"]] == [
        {"sequence": 0, "warm_up": 1, "publish_delay_us": 1000, "publish_call_us": 1000},
        {"sequence": 0, "warm_up": 0, "publish_delay_us": 0.01, "publish_call_us": 1.224, "serialize_us": 0.056},
        {"sequence": 1, "warm_up": 0, "publish_delay_us": 0.01, "publish_call_us": 0.01},
    ]


def test_what_was_published_is_decoded_by_the_definitions_in_the_file(run_path: Path) -> None:
    record_messages(run_path)
    assert export(run_path) == 0
    decoded = list(open_file(run_path).iter_decoded_messages(topics=["/chat"]))
    schemas = {m.schema and (m.schema.name, m.schema.encoding, m.channel.message_encoding) for m in decoded}
    assert schemas == {("made_msgs/msg/Pose", "ros2msg", "cdr")}
    said = [(m.decoded_message.position.x, m.decoded_message.position.y, m.decoded_message.frame) for m in decoded]
    assert said == POSES
    assert [m.message.log_time for m in decoded] == [row[4] + SHIFT_NS for row in PUBLICATIONS]
    assert [m.message.sequence for m in decoded] == [0, 0, 1]


def test_a_definition_is_put_together_as_rosbag2_does() -> None:
    texts = {"a_msgs/msg/A": "b_msgs/B b\n", "b_msgs/msg/B": "int64 x\n\n"}
    assert ros2msg("a_msgs/msg/A", texts) == f"b_msgs/B b\n{'=' * 80}\nMSG: b_msgs/B\nint64 x\n"


def test_a_run_without_single_messages_has_its_course(run_path: Path, capsys: Captured) -> None:
    file = run_path / "trials" / "0001_baseline" / "trial.json"
    times = {"cpu_load": {"begun_ns": START_NS - 5 * MS, "removed_ns": START_NS + 3_000 * MS}}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"condition_times": times, "own_figures": {"goals": 3}}))
    assert export(run_path, "--json") == 0
    (trial,) = json.loads(capsys.readouterr().out)["trials"]
    reader = open_file(run_path)
    found = by_topic(reader)
    assert trial["messages"] == sum(map(len, found.values()))
    assert {topic for topic in found if "edges" in topic or topic == "/chat"} == set()
    used = [said for *_, said in found["/perflab/resources/left"]]
    assert [(said.get("cpu_percent"), said["rss_kb"]) for said in used] == [
        (None, 5000), (4, 6000), (4, 7000), (4, 6500)
    ]  # fmt: skip
    steps = [(at_ns - SHIFT_NS - START_NS, said["there"]) for at_ns, _, said in found["/perflab/conditions/cpu_load"]]
    assert steps == [(-5 * MS - 1, 0), (-5 * MS, 1), (3_000 * MS - 1, 1), (3_000 * MS, 0)]
    assert [said["lost"] for *_, said in found["/perflab/lost"]] == [2, 4]  # either process noticed it
    assert [said for *_, said in found["/perflab/outcome"]] == [{"success": 1, "outcome": "success"}]
    assert [said for *_, said in found["/perflab/figures"]] == [{"goals": 3}]
    (latency,) = (said for *_, said in found["/perflab/seconds/latency"])
    assert (latency["count"], latency["max_us"], latency["mean_us"]) == (5, 500, 300)
    logs = [(said["level"], said["message"]) for *_, said in found["/perflab/log"]]
    assert (3, 'lost {"edge": 0, "sequence": 5, "count": 2}') in logs
    assert logs[-1] == (2, "condition cpu_load is removed")
    assert (2, "trial 1: success") in logs
    assert {at_ns // 10**9 for *_, said in found["/perflab/log"] for at_ns in [said["timestamp"]["sec"] * 10**9]} >= {
        WALL_NS // 10**9
    }


def test_the_file_says_what_it_is_of_and_has_an_index(run_path: Path) -> None:
    record_messages(run_path)
    assert export(run_path, "--compression", "lz4") == 0
    reader = open_file(run_path)
    (metadata,) = reader.iter_metadata()
    assert (metadata.name, metadata.metadata["run"], metadata.metadata["trial"]) == ("perflab", "made", "1")
    assert metadata.metadata["middleware"] == "cyclonedds"
    assert metadata.metadata["outcome"] == "success"
    assert metadata.metadata["wall_minus_clock_ns"] == str(SHIFT_NS)
    attached = {a.name: json.loads(a.data) for a in reader.iter_attachments()}
    assert attached["trial.json"]["trial"] == 1
    assert {p["name"] for p in attached["graph.json"]["processes"]} == {"left", "right"}
    summary = reader.get_summary()
    assert summary is not None
    assert summary.statistics is not None
    assert summary.chunk_indexes
    assert {index.compression for index in summary.chunk_indexes} == {"lz4"}
    units = {
        name: member["description"]
        for schema in summary.schemas.values()
        if schema.encoding == "jsonschema" and schema.name.startswith("perflab.")
        for name, member in json.loads(schema.data)["properties"].items()
    }
    assert all("µs" in words for name, words in units.items() if name.endswith("_us"))


def test_contents_may_be_left_out(run_path: Path) -> None:
    record_messages(run_path)
    assert export(run_path, "--contents", "off") == 0
    summary = open_file(run_path).get_summary()
    assert summary is not None
    assert {channel.message_encoding for channel in summary.channels.values()} == {"json"}


def test_what_is_missing_is_said_wherever_the_messages_are(run_path: Path, capsys: Captured) -> None:
    record_messages(run_path, {"lost_deliveries": [3], "lost_publications": [], "limit_reached_ns": None})
    words = (
        "3 deliveries and 0 publications of process 'right' are not among its recorded messages: they came "
        "faster than they were written; `messages:buffer=SIZE` provides more room"
    )
    assert export(run_path) == 0
    assert f"Note: {words}\n" in capsys.readouterr().out
    reader = open_file(run_path)
    (metadata,) = reader.iter_metadata()
    assert metadata.metadata["missing"] == words
    assert (3, words) in [(said["level"], said["message"]) for *_, said in by_topic(reader)["/perflab/log"]]


@pytest.mark.parametrize("damaged", ["contents", "table", "order", "records"])
def test_a_damaged_trial_is_one_line_and_no_file(damaged: str, run_path: Path, capsys: Captured) -> None:
    folder = record_messages(run_path)
    contents, table = folder / "processes" / "left.contents", folder / messages.MESSAGES
    if damaged == "contents":
        contents.write_bytes(contents.read_bytes()[:-1])
        words = "the contents of messages of process 'left' are damaged"
    elif damaged == "table":
        table.write_bytes(table.read_bytes()[:100])
        words = f"{table} is damaged"
    elif damaged == "order":
        pl.read_parquet(table).reverse().write_parquet(table)
        words = f"{table} is damaged: not ordered by callback_ns"
    else:
        records = folder / "processes" / "left.jsonl"
        records.write_text("{\n" + records.read_text())
        words = "left.jsonl:1: not a JSON object"
    assert export(run_path) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not list((run_path / "export" / "mcap").glob("*"))


def test_contents_whose_types_nobody_knows_any_more_are_refused_and_may_be_left_out(
    run_path: Path, capsys: Captured
) -> None:
    folder = record_messages(run_path)
    for path in (folder / "processes").glob("*.jsonl"):  # as an archive without records
        path.unlink()
    manifest = run_path / "manifest.json"
    clock = {"monotonic_ns": BEGAN_NS, "wall_ns": WALL_NS}
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"clock": clock}))
    assert export(run_path) == 2
    assert "`--contents off` leaves them out" in capsys.readouterr().err
    assert export(run_path, "--contents", "off") == 0
    assert len(by_topic(open_file(run_path))["/perflab/edges/chat/talker/to/listener"]) == 3


def test_rows_of_ends_that_nobody_knows_are_damage(run_path: Path) -> None:
    folder = processes(run_path)
    write_log(folder, "right", edges=[CHAT])
    write_deliveries(folder, "right", [(7, *DELIVERIES[0][1:])])
    with pytest.raises(BadInput, match="the recorded messages of process 'right' are damaged: end 7 of 1"):
        messages.write_tables(folder.parent)


def test_a_row_that_a_killed_process_did_not_finish_is_left_out(run_path: Path) -> None:
    folder = processes(run_path)
    write_log(folder, "right", edges=[CHAT])
    write_deliveries(folder, "right", DELIVERIES)
    with (folder / f"right{messages.DELIVERED}").open("ab") as file:
        file.write(b"\1" * 10)
    assert messages.write_tables(folder.parent) is not None
    assert pl.read_parquet(folder.parent / messages.MESSAGES)["sequence"].to_list() == [0, 0, 1]
    assert not (folder / f"right{messages.DELIVERED}").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--compression", "zip"], "--compression 'zip' is not zstd, lz4 or none"),
        (["--contents", "perhaps"], "--contents 'perhaps' is not on or off"),
        (["--trial", "7"], "--trial 7: "),
        (["--accounting", "original"], "--accounting belongs to --format irobot"),
    ],
)
def test_what_cannot_be_asked_is_one_line(arguments: list[str], words: str, run_path: Path, capsys: Captured) -> None:
    assert export(run_path, *arguments) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_a_run_of_another_program_is_refused(run_path: Path, tmp_path: Path, capsys: Captured) -> None:
    assert main(["export", str(run_path), "--output", str(tmp_path / "out")]) == 0
    assert export(tmp_path / "out") == 2
    assert "is from irobot_benchmark, whose files have no instants" in capsys.readouterr().err


def _many(run: Path, count: int) -> None:
    folder = processes(run)
    write_log(folder, "right", edges=[CHAT], publishers=[CHAT[:2]])
    rows = np.zeros(count, messages.DELIVERY)
    rows["flags"] = COUNTED
    rows["sequence"] = np.arange(count)
    rows["callback_ns"] = START_NS + np.arange(count) * 1000
    rows["published_ns"] = rows["intended_ns"] = rows["callback_ns"] - 500
    rows.tofile(folder / f"right{messages.DELIVERED}")
    sent = np.zeros(count, messages.PUBLICATION)
    data = pose(1, 2, "x" * 32)
    for name in ("sequence", "published_ns", "intended_ns"):
        sent[name] = rows[name]
    sent["offset"], sent["size"] = np.arange(count) * len(data), len(data)
    sent.tofile(folder / f"right{messages.PUBLISHED}")
    (folder / f"right{messages.CONTENTS}").write_bytes(data * count)
    messages.write_tables(folder.parent)


@pytest.mark.long
def test_a_million_messages_are_written_piece_by_piece(run_path: Path) -> None:
    code = (
        "import sys; from perflab.cli import main; from pathlib import Path; status = main(sys.argv[1:]); "
        "print(Path('/proc/self/status').read_text()); sys.exit(status)"
    )
    words = [sys.executable, "-c", code, "export", str(run_path), "--format", "mcap", "--force"]
    peaks = []
    for count in (100_000, 1_000_000):
        _many(run_path, count)
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", done.stdout)
        peaks.append(int(peak) << 10)
        summary = open_file(run_path).get_summary()
        assert summary is not None
        assert summary.statistics is not None
        assert summary.statistics.message_count > 3 * count
    # The contents, which are mapped, and the index of chunks; the rows alone would be more.
    assert peaks[1] - peaks[0] < 160 * 2**20, peaks
