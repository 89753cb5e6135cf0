"""Experiment files: every key, what options replace, and one line with file and line for whatever is wrong."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import pytest
import yaml
from pydantic import Field
from support import HERE

from perflab import catalog
from perflab.cli.options import mapping_of, parameters
from perflab.design.document import (
    Document,
    Written,
    is_experiment,
    option_at,
    options,
    read,
    validate,
    with_options,
)
from perflab.errors import BadInput, PerflabError
from perflab.experiment.build import build
from perflab.formats.yaml_file import MAX_BYTES
from perflab.native import Native
from perflab.option import Group, Option, declared
from perflab.parameters import DurationNs

BAD = sorted((HERE.parent / "data" / "experiments" / "bad").glob("*.yaml"))

NATIVE = Native(Path(os.environ.get("PERFLAB_NATIVE") or Path(sys.prefix) / "lib" / "perflab"))
needs_native = pytest.mark.skipif(
    not os.access(NATIVE.folder / "perflab-graph", os.X_OK),
    reason=f"perflab-graph is not in {NATIVE.folder}; build the native programs and set PERFLAB_NATIVE",
)

MS = 1_000_000
S = 1_000 * MS

# Each key as a user writes it, and as it is understood.
KEYS: dict[str, list[tuple[Any, Any]]] = {
    "name": [("lunch", "lunch")],
    "workload": [("a", ["a"]), (["a", "b"], ["a", "b"]), ("a, b", ["a", "b"])],
    "message_path": [("my_ws/src", ["my_ws/src"]), (["a", "b"], ["a", "b"])],
    "serialization": [("every", "every"), ("once", "once"), (None, None)],
    "middlewares": [("fastdds", ["fastdds"]), (["sim", "fastdds+sim"], ["sim", "fastdds+sim"])],
    "middleware_options": [({"fastdds.transport": "udp", "loss": 0.1}, {"fastdds.transport": "udp", "loss": 0.1})],
    "executors": [("events,inline", ["events", "inline"]), (["multi_threaded:4"], ["multi_threaded:4"])],
    "ipc": [([False, True], ["off", "on"]), (True, ["on"]), ("off,on", ["off", "on"])],
    "pass_by": [("unique", ["unique"])],
    "service_framing": [("rmw_fastrtps", "rmw_fastrtps")],
    "time": [(5, 5 * S), ("500ms", 500 * MS), (0.25, 250 * MS), ("2min", 120 * S)],
    "warmup": [(0, 0), ("1s", S)],
    "trials": [(1, 1), (10_000, 10_000)],
    "quick": [("on", True), (False, False)],
    "until_decided": [("on", True), (False, False)],
    "until_clear": [(9, 9), (None, None)],
    "at_most": [("30min", 1800 * S), (5, 5 * S)],
    "seed": [(0, 0), (2**63 - 1, 2**63 - 1)],
    "order": [("as_written", "as_written"), ("randomised", "randomised")],
    "baseline": [("off", False), (False, False), ("on", True)],
    "baseline_again": [(False, False)],
    "conditions": [
        ("cpu_load", ["cpu_load"]),
        ({"cpu_load": {"load": 5}}, [{"cpu_load": {"load": 5}}]),
        (["cpu_load:load=5", {"io_load": None}], ["cpu_load:load=5", {"io_load": None}]),
    ],
    "mitigations": [
        ("dds_tuning:depth=5", ["dds_tuning:depth=5"]),
        ([{"name": "deep", "dds_tuning": {"depth": 5}}], [{"name": "deep", "dds_tuning": {"depth": 5}}]),
    ],
    "factors": [
        ({"cpu_load.load": [20, 80.5, "x", True]}, {"cpu_load.load": [20, 80.5, "x", True]}),
        ({"cpu_load.load": "0..90:30"}, {"cpu_load.load": [0, 30, 60, 90]}),
        ({"workload.depth": "1, 10"}, {"workload.depth": [1, 10]}),
    ],
    "sweep": [("on", True), (False, False)],
    "breaking_point": [
        (None, None),
        (
            {"factor": "cpu_load.load", "low": 1, "high": "90", "precision": "5 %"},
            {"factor": "cpu_load.load", "low": 1.0, "high": 90.0, "scale": "auto", "breaks": "above",
             "criterion": "success", "share": None, "precision": 5.0, "max_trials": 60, "confidence": 95.0},
        ),
    ],
    "observers": [("monitor", ["monitor"]), ([{"hiccup": {"interval": "1ms"}}], [{"hiccup": {"interval": "1ms"}}])],
    "observer_control": [("off", False)],
    "success": [("lost == 0", ["lost == 0"]), (["lost == 0", "late < 1"], ["lost == 0", "late < 1"])],
    "assignments": [({"RR-TS": "executors=RR:98"}, {"RR-TS": ["executors=RR:98"]})],
    "threads": [("executors=RR:10", ["executors=RR:10"])],
    "lock_memory": [("on", True), (None, None)],
    "name_threads": [(False, False)],
    "network": [("eth0", "eth0")],
    "domain": [(42, 42), (None, None)],
    "sampling": [("100ms", 100 * MS)],
    "measure": [("work,dispatch", ["work", "dispatch"])],
    "claims": [
        (
            [{"says": "So it is.", "expects": "lost > baseline", "at": {"workload.depth": 1}}],
            [{"says": "So it is.", "source": None, "expects": "lost > baseline", "treatment": None,
              "at": {"workload.depth": 1}, "against": {}}],
        )
    ],
    "thresholds": [
        (
            {"late_percentage": "30 %", "late_absolute": "1ms", "too_late_percentage": 90, "too_late_absolute": 0.02},
            {"late_percentage": 30.0, "late_absolute": MS, "too_late_percentage": 90.0, "too_late_absolute": 20 * MS},
        )
    ],
    "discovery_timeout": [(0, 0), ("1min", 60 * S)],
    "drain_quiet": [("200ms", 200 * MS)],
    "drain_limit": [(3, 3 * S)],
    "cool_down": [
        ({"limit": 0}, {"limit": 0, "threshold": None}),
        ({"threshold": "20 %"}, {"limit": 10 * S, "threshold": 20.0}),
    ],
    "statistics": [
        (
            {"alpha": 0.01, "margin": "2 %", "metrics": "latency.p50,lost"},
            {"alpha": 0.01, "margin": 2.0, "metrics": ["latency.p50", "lost"]},
        )
    ],
}  # fmt: skip


def written(text: str, folder: Path) -> Written:
    path = folder / "experiment.yaml"
    path.write_text(text)
    return read(path)


def test_every_key_is_tried() -> None:
    assert set(KEYS) == set(Document.model_fields)


@pytest.mark.parametrize(
    ("key", "given", "understood"), [(key, *case) for key, cases in KEYS.items() for case in cases]
)
def test_a_key_of_a_file_is_understood(key: str, given: Any, understood: Any, tmp_path: Path) -> None:
    mapping = {"workload": "w", key: given}
    document = validate(written(yaml.safe_dump(mapping), tmp_path))
    assert document.model_dump(mode="json")[key] == understood


def test_a_file_says_where_everything_stands(tmp_path: Path) -> None:
    text = (
        "# a comment\nworkload: w\nconditions:\n  - cpu_load\n  - cpu_load:\n      load: 5\nstatistics:\n  alpha: 0.1\n"
    )
    found = written(text, tmp_path)
    path = tmp_path / "experiment.yaml"
    assert found.where(("workload",)) == f"{path}:2"
    assert found.where(("conditions",)) == f"{path}:3"
    assert found.where(("conditions", 0)) == f"{path}:4"
    assert found.where(("conditions", 1, "cpu_load", "load")) == f"{path}:6"
    assert found.where(("conditions", 1, "cpu_load", "cpus")) == f"{path}:5"  # the nearest that is there
    assert found.where(("statistics", "alpha")) == f"{path}:8"
    assert found.where(("trials",)) == str(path)
    assert [(source.path, source.text) for source in found.sources] == [(str(path), text)]


def test_options_replace_keys_one_by_one(tmp_path: Path) -> None:
    found = written(
        "workload: w\ntime: 5\ntrials: 2\nconditions: [cpu_load, io_load]\n"
        "statistics: {alpha: 0.01, margin: 2}\nmiddleware_options: {a: 1, b: 2}\n",
        tmp_path,
    )
    both = with_options(
        found,
        {
            "time": "7",
            "conditions": ["message_flood"],
            "statistics": {"margin": "9%"},
            "middleware_options": {"b": "3"},
        },
    )
    document = validate(both)
    assert (document.time, document.trials) == (7 * S, 2)
    assert document.conditions == ["message_flood"]  # as a whole: conditions of both would be another experiment
    assert (document.statistics.alpha, document.statistics.margin) == (0.01, 9.0)
    assert document.middleware_options == {"a": 1, "b": "3"}
    assert found.mapping["time"] == 5, "those in the file stays as it is"


def test_whoever_said_it_is_blamed(tmp_path: Path) -> None:
    found = written("workload: w\ntime: 5\ntrials: 2\n", tmp_path)
    with pytest.raises(BadInput, match=r"^--trials 0 must be at least 1$"):
        validate(with_options(found, {"trials": 0}))
    with pytest.raises(BadInput, match=rf"^{tmp_path}/experiment.yaml:2: trials 0 must be at least 1$"):
        validate(written("workload: w\ntrials: 0\n", tmp_path))
    with pytest.raises(BadInput, match=r"^--alpha|^--statistics"):
        validate(with_options(found, {"statistics": {"alpha": 3}}))


@pytest.mark.parametrize(
    ("location", "option"),
    [
        (("middlewares",), "--middleware"),
        (("conditions", 0, "cpu_load"), "--condition"),
        (("baseline_again",), "--baseline-again"),
        (("statistics", "metrics", 1), "--metric"),
        (("workload", "stop", "grace"), "--stop"),
        (("workload", "command"), "the command after --"),
        (("workload",), "WORKLOAD"),
        (("breaking_point", "max_trials"), "--max-trials"),
        (("cool_down",), "--cool-down"),
        ((), "the command line"),
    ],
)
def test_places_have_the_names_of_options(location: tuple[str | int, ...], option: str) -> None:
    assert option_at(location) == option


def test_what_has_no_option_is_said_to_have_none() -> None:
    """What a verb says by itself, and what files alone have."""
    set_by_options = {o.path for o in options()}
    without = [key for key in Document.model_fields if not any(path[0] == key for path in set_by_options)]
    assert without == ["assignments", "sweep", "claims"]
    assert all(str(o.field.description).endswith(".") for o in options()), "help is sentences"
    assert len({o.name for o in options()}) == len(options()) - 1, "--factor is also that of a search"


def test_options_in_complaints_become_keys_where_a_file_is_meant(tmp_path: Path) -> None:
    found = written("workload: w\nmiddlewares: a\n", tmp_path)
    error = BadInput("--middleware-option 'x.y=1' is for x, which --middleware does not name")
    said = str(found.complain(("middlewares",), error))
    assert said == f"{tmp_path}/experiment.yaml:2: middleware_options 'x.y=1' is for x, which middlewares does not name"
    assert found.complain(("middlewares",), BadInput("--middleware 'a' is bad")).args == (
        f"{tmp_path}/experiment.yaml:2: middlewares: 'a' is bad",
    )
    assert with_options(found, {"middlewares": "b"}).complain(("middlewares",), error) is error


def test_graph_files_are_named_relative_to_the_experiment(tmp_path: Path) -> None:
    for text, expected in (
        ("workload: graphs/a.yaml", [str(tmp_path / "graphs/a.yaml")]),
        ("workload: [a.json, sierra_nevada, /b.yaml]", [str(tmp_path / "a.json"), "sierra_nevada", "/b.yaml"]),
    ):
        assert validate(written(text, tmp_path)).workload == expected


def test_experiments_and_graphs_are_told_apart(tmp_path: Path) -> None:
    for name, text, expected in (
        ("a.yaml", "workload: w\n", True),
        ("b.yml", "time: 5\nworkload: w\n", True),
        ("c.yaml", "name: w\nnodes: []\n", False),
        ("d.json", '{"workload": "w"}', False),
        ("e.yaml", "a: [", False),
        ("h.yaml", "name: w\ntime: 5\n", True),
        ("i.yaml", "name: w\nexecutors: []\nthreads: {}\n", False),
        ("j.yaml", "time: 5\nprocesses: []\n", False),
        ("g.yaml", "workload: w\n" + "#" * MAX_BYTES, False),
    ):
        (tmp_path / name).write_text(text)
        assert is_experiment(tmp_path / name) is expected, name


@pytest.mark.parametrize("text", ["", "# nothing but this\n"])
def test_a_file_with_nothing_in_it_is_neither(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    for reader in (is_experiment, read):
        with pytest.raises(BadInput, match=rf"^{path} is empty$"):
            reader(path)


@needs_native
def test_the_default_of_sampling_fits_into_the_measured_time(tmp_path: Path) -> None:
    for time, expected in (("300ms", 300 * MS), ("5s", 500 * MS)):
        text = f"workload: sierra_nevada\ntime: {time}\n"
        experiment = build(written(text, tmp_path), NATIVE, output=None, command_line=())
        assert experiment.settings.sampling_ns == expected


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"workload: \xff\n", "is not UTF-8 text: byte 10"),
        (b"workload: w\n" + b"#" * MAX_BYTES, "exceeds the limit of 1 MiB for an experiment"),
        (b"workload: w\n\0", "not YAML"),
        (b"workload: " + b"[" * 5000 + b"\n", ":1:60: more than 50 nested values are not allowed"),
        (b"workload: &a [*a]\n", ":1:15: the alias *a is not allowed; write the value out"),  # contains itself
    ],
)
def test_what_is_no_text_is_one_line(content: bytes, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "experiment.yaml"
    path.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cannot read experiment .*: No such file or directory"):
        read(tmp_path / "nowhere.yaml")


@needs_native
@pytest.mark.parametrize("path", BAD, ids=[path.stem for path in BAD])
def test_a_bad_file_gets_the_expected_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    with pytest.raises(PerflabError) as caught:
        build(read(Path(path.name)), NATIVE, output=None, command_line=())
    assert f"{caught.value}\n" == path.with_name(f"{path.name}.expected").read_text()


def test_every_bad_file_has_its_line() -> None:
    assert BAD
    assert [path.with_name(f"{path.name}.expected") for path in BAD] == sorted(BAD[0].parent.glob("*.expected"))


@needs_native
def test_an_unknown_network_is_said_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(
        BadInput, match=rf"^{tmp_path}/experiment.yaml:2: no network interface 'nic99'; choose from .*lo"
    ):
        build(written("workload: sierra_nevada\nnetwork: nic99\n", tmp_path), NATIVE, output=None, command_line=())


@needs_native
def test_metrics_and_criteria_are_judged_before_anything_runs(tmp_path: Path) -> None:
    for text, complaint in (
        ("statistics:\n  metrics: latency.p98", "did you mean latency.p99?"),
        ("success:\n  - lost == 0\n  - losst == 0", ":4: success: no metric 'losst'"),
    ):
        with pytest.raises(BadInput) as caught:
            build(written(f"workload: sierra_nevada\n{text}\n", tmp_path), NATIVE, output=None, command_line=())
        assert complaint in str(caught.value)
    options = with_options(Written({"workload": ["sierra_nevada"]}), {"statistics": {"metrics": ["no_such"]}})
    with pytest.raises(BadInput, match=r"^--metric: no metric 'no_such'"):
        build(options, NATIVE, output=None, command_line=())


def test_the_catalog_has_a_comment_in_each_experiment() -> None:
    entries = catalog.experiments()
    assert len(entries) > 10
    for entry in entries:
        assert entry.path.read_text().startswith("# "), entry.name


def test_a_field_is_an_option_with_its_help_its_default_and_what_completes_it() -> None:
    """All that a new option takes is a field of a model."""

    class Wider(Document):
        pace: Annotated[Literal["slow", "fast"], Option(Group.LENGTH)] = Field("slow", description="How fast.")
        rest: Annotated[DurationNs | None, Option(Group.TRIAL, "--rests", short="-r", many=True)] = Field(
            None, description="How long."
        )

    found = {option.name: option for option in declared(Wider)}
    pace, rest = parameters([found["--pace"], found["--rests"]], {"pace": "fast"})
    assert (pace.name, pace.default, rest.name, rest.default) == ("pace", "fast", "rests", None)
    (_, told), (kind, about) = get_args(pace.annotation), get_args(rest.annotation)
    assert (told.metavar, told.help, told.rich_help_panel) == ("slow|fast", "How fast.", Group.LENGTH)
    assert told.autocompletion("f") == ["fast"]
    assert ((about.default, *about.param_decls), about.metavar, about.help) == (
        ("--rests", "-r"),
        "TIME",
        "How long. Repeatable.",
    )
    assert kind == list[str] | None
    assert mapping_of(found.values(), {"pace": "fast", "trials": "3", "alpha": "0.1", "late_absolute": "20"}) == {
        "pace": "fast",
        "trials": 3,
        "statistics": {"alpha": 0.1},
        "thresholds": {"late_absolute": "20us"},
    }
