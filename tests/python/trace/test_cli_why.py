"""`perflab trace why` as a user meets it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from opened import needs_library
from reference_traces import reference_trace
from support import SOURCE
from why_system import BASE, HOG, System

from perflab.cli import main
from perflab.design.document import Thresholds
from perflab.runs import traced
from perflab.workload import Graph


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """One message that waited 4.1 µs for CPU 1."""
    needs_library()
    system = System()
    system.switch(-500, 1, 0, HOG)
    system.switch(-100, 0, 0, system.talking)
    sent = system.talk()
    system.wake(900, system.listening, by_cpu=0, cpu=1)
    system.switch(1_000, 0, system.talking, 0)
    system.switch(5_000, 1, HOG, system.listening, "running")
    system.listening.get_next_ready(BASE + 5_100)
    system.listen(sent, 5_200)
    system.switch(6_000, 1, system.listening, 0)
    return system.trace.write(tmp_path / "session")


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = main(["trace", "why", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize("width", [60, 80, 160])
def test_the_sentence_comes_first_and_everything_fits(
    capsys: pytest.CaptureFixture[str], session: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, err = run(capsys, session)
    assert (code, err) == (0, "")
    assert out.startswith("Of 1 late message (the slowest 1 % of every edge; 1 in all)")
    assert "1 waited for CPU 1 behind hog (pid 99)" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= width
    assert "Parts of the messages" not in out
    assert "Parts of the messages" in run(capsys, session, "--all")[1]


def test_json_has_every_part(capsys: pytest.CaptureFixture[str], session: Path) -> None:
    code, out, err = run(capsys, session, "--json", "--later-than", "1us")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["kind"] == "why"
    (message,) = document["messages"]["rows"]
    assert sum(part["part_ns"] for part in document["parts"]["rows"]) == message["total_ns"]
    assert json.loads(run(capsys, session, "--json", "--slow-callbacks", "--top", "1")[1])["kind"] == "why_callbacks"


def test_nothing_late_is_an_answer(capsys: pytest.CaptureFixture[str], session: Path) -> None:
    code, out, err = run(capsys, session, "--later-than", "1s")
    assert (code, err) == (0, "")
    assert out.startswith("Of 1 message none was late (longer than 1.00 s)")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--later-than", "5ms", "--top", "3"], "--later-than and --top"),
        (["--later-than", "soon"], "'soon' is not a duration"),
        (["--quantile", "1"], "--quantile 1 is not in"),
        (["--quantile", "0.9999"], "at most three decimals"),
        (["--topic", "/x"], "'/x'"),
        (["--node", "/x"], "'/x'"),
        (["--top", "0"], "--top"),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], session: Path, options: list[str], says: str
) -> None:
    code, out, err = run(capsys, session, *options)
    assert (code, out) == (2, "")
    assert says in err
    assert err.startswith("perflab: ") and err.count("\n") == 1


@pytest.mark.parametrize("options", [[], ["--slow-callbacks"]])
def test_columns_are_those_of_the_documentation(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    needs_library()
    document: dict[str, Any] = json.loads(run(capsys, reference_trace("jazzy_small"), "--json", *options)[1])
    rows = re.findall(r"^\| (why\w*) \| (\w+) \| (`.*`) \|$", (SOURCE / "docs/formats.md").read_text(), re.MULTILINE)
    told = {section: re.findall(r"`([^`]+)`", columns) for kind, section, columns in rows if kind == document["kind"]}
    found = {name: list(value["rows"][0]) for name, value in document.items() if isinstance(value, dict)}
    assert found == told


@pytest.mark.parametrize(("late_ns", "limit"), [(1_000, "response above the limit of their topic"), (10**9, "1 %")])
def test_of_a_trial_it_is_asked_what_the_report_of_its_run_asked(
    capsys: pytest.CaptureFixture[str], session: Path, tmp_path: Path, late_ns: int, limit: str
) -> None:
    (tmp_path / "trial").mkdir()
    session.rename(tmp_path / "trial" / "trace")
    publisher = {"topic": "/chatter", "frequency_hz": 0.0}
    node = {"name": "talker", "namespace": "/", "publishers": [publisher]}
    graph = Graph({"name": "g", "processes": [{"name": "p", "nodes": [node]}]})
    assert traced.explain(tmp_path / "trial", graph, Thresholds.model_construct(late_ns=late_ns)) == []
    kept = json.loads((tmp_path / "trial" / "trace" / "why.json").read_text())
    assert limit in kept["why"]["rows"][0]["limit"]
    assert kept["why"]["rows"][0]["late"] == 1
    for place in (tmp_path / "trial", tmp_path / "trial" / "trace"):
        code, out, err = run(capsys, place, "--json")
        assert (code, err) == (0, "")
        assert json.loads(out)["why"] == kept["why"]
    code, out, _ = run(capsys, tmp_path / "trial", "--json", "--later-than", "1s")
    assert (code, json.loads(out)["why"]["rows"][0]["limit"]) == (0, "longer than 1.00 s"), "options are what they say"
