"""The published schema of graph files and the parser agree.

tests/data/graphs holds good files, and bad ones by what is wrong with them:

- good/            both accept
- bad/syntax/      not well-formed YAML or JSON: the parser refuses; there is nothing that a schema could look at
- bad/structure/   both refuse
- bad/meaning/     well-formed in structure, so the schema accepts; the parser refuses
- irobot/          irobot_benchmark's format, which the schema does not describe

Beside each bad file stands the one line with which perflab-graph refuses it, in <file>.expected.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
GRAPHS = ROOT / "tests" / "data" / "graphs"
CATALOG = ROOT / "catalog" / "topologies"
SCHEMA = ROOT / "docs" / "schema" / "graph.schema.json"

pytestmark = pytest.mark.native


def files(*folders: Path) -> list[Path]:
    found = [path for folder in folders for path in folder.rglob("*") if path.suffix in {".yaml", ".json"}]
    assert found, f"no graph files below {folders}"
    return sorted(found)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


GOOD = files(GRAPHS / "good", CATALOG)
GOOD_IROBOT = files(GRAPHS / "irobot" / "good")
BAD_STRUCTURE = files(GRAPHS / "bad" / "structure")
BAD_MEANING = files(GRAPHS / "bad" / "meaning")
BAD = files(GRAPHS / "bad", GRAPHS / "irobot" / "bad")


@functools.cache
def program() -> Path:
    folder = os.environ.get("PERFLAB_NATIVE")
    path = (Path(folder) if folder else Path(sys.prefix) / "lib" / "perflab") / "perflab-graph"
    if not path.exists():
        pytest.skip(f"{path} is missing; build the native programs and set PERFLAB_NATIVE to their folder")
    return path


def run(*arguments: str, cwd: Path = ROOT, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program(), *arguments], cwd=cwd, input=text, capture_output=True, text=True, timeout=60, check=False
    )


@functools.cache
def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


class CoreLoader(yaml.SafeLoader):
    """The core schema of YAML 1.2, as editors and the parser have it; to PyYAML, which reads 1.1, `on` is true."""


CoreLoader.yaml_implicit_resolvers = {}
for tag, pattern, first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
    ("float", r"^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$", "-+."),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
):
    CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), list(first))


def construct_float(loader: CoreLoader, node: yaml.ScalarNode) -> float:
    """PyYAML's own wants a point in every number with an exponent."""
    text = str(loader.construct_scalar(node)).lower()
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


CoreLoader.add_constructor("tag:yaml.org,2002:float", construct_float)


def load(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else yaml.load(text, CoreLoader)


def test_the_program_prints_the_published_schema() -> None:
    result = run("schema")
    assert result.returncode == 0
    assert result.stdout == SCHEMA.read_text()


@functools.cache
def types() -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(run("types").stdout)
    return listed


def short_names(kind: str) -> list[str]:
    """Those that the schema knows; other types are known by their packages."""
    names: list[str] = json.loads(SCHEMA.read_text())["$defs"][kind]["anyOf"][0]["enum"]
    return names


def fits(kind: str, name: str) -> bool:
    return jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())["$defs"][kind]).is_valid(name)


def test_the_schema_names_exactly_the_short_names_of_types() -> None:
    assert short_names("type") == [t["name"] for t in types() if "/" not in t["name"]]


def test_the_schema_names_exactly_the_short_names_of_services() -> None:
    services = {path.stem for path in (ROOT / "ros/perflab_msgs/srv").glob("*.srv")}
    messages = {t["ros_type"].rpartition("/")[2]: t["name"] for t in types() if "/" not in t["name"]}
    assert sorted(short_names("service_type")) == sorted(messages[service] for service in services)


def test_the_schema_takes_every_type_by_its_full_name() -> None:
    """Those of a user's folder have such names, too; whether they are known is for the parser to say."""
    assert [t["ros_type"] for t in types() if not fits("type", t["ros_type"])] == []
    assert fits("type", "my_msgs/Scan") and fits("service_type", "my_msgs/srv/Ask")
    assert not any(fits("type", name) for name in ("Scan", "my_msgs/msg/scan", "My/Scan", "a/b/C", "my_msgs/Scan[]"))


@pytest.mark.parametrize("path", GOOD, ids=name_of)
def test_a_good_file_is_accepted_by_schema_and_parser(path: Path) -> None:
    validator().validate(load(path))
    result = run("resolve", str(path))
    assert (result.returncode, result.stderr) == (0, "")
    resolved = json.loads(result.stdout)
    assert resolved["schema"] == 1
    assert resolved["processes"]


@pytest.mark.parametrize("path", GOOD_IROBOT, ids=name_of)
def test_a_good_irobot_file_is_accepted_by_the_parser(path: Path) -> None:
    result = run("resolve", str(path))
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["name"] == path.stem


@pytest.mark.parametrize("path", BAD_STRUCTURE, ids=name_of)
def test_a_bad_structure_is_refused_by_the_schema(path: Path) -> None:
    assert not validator().is_valid(load(path))


@pytest.mark.parametrize("path", BAD_MEANING, ids=name_of)
def test_a_bad_meaning_is_beyond_the_schema(path: Path) -> None:
    validator().validate(load(path))


@pytest.mark.parametrize("path", BAD, ids=name_of)
def test_a_bad_file_is_refused_with_one_line_and_exit_2(path: Path) -> None:
    result = run("resolve", path.name, cwd=path.parent)
    expected = path.with_name(path.name + ".expected").read_text(encoding="utf-8")
    assert (result.returncode, result.stdout, result.stderr) == (2, "", expected)
    assert re.fullmatch(re.escape(path.name) + r":\d+:\d+: [^\n]+\n", expected)


def test_no_expected_line_is_left_without_its_file() -> None:
    lines = {path.with_suffix("") for path in GRAPHS.rglob("*.expected")}
    assert lines == set(BAD)


def test_standard_input_is_called_by_its_name() -> None:
    good = run("resolve", "-", "--name", "typed", text="nodes: [{name: a}]")
    assert json.loads(good.stdout)["name"] == "typed"
    bad = run("resolve", "-", "--name", "typed", text="nodes: 1")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "typed:1:8: 'nodes' must be a list, but it is a number\n"


def test_several_files_become_one_process_each() -> None:
    names = ["sierra_nevada", "debug_sierra_nevada_reliable"]
    result = run("resolve", *(str(CATALOG / f"{name}.yaml") for name in names))
    assert result.returncode == 0
    graph = json.loads(result.stdout)
    assert graph["name"] == "+".join(names)
    assert [process["name"] for process in graph["processes"]] == names


def test_describe_tells_counts_and_rates() -> None:
    description = json.loads(run("describe", str(CATALOG / "sierra_nevada.yaml")).stdout)
    expected = {
        "nodes": 10,
        "publishers": 13,
        "subscriptions": 17,
        "edges": 17,
        "published_per_s": 654.0,
        "delivered_per_s": 1054.0,
    }
    assert {key: description[key] for key in expected} == expected
    assert len(description["topics"]) == 13


def test_describe_tells_services_apart_from_topics() -> None:
    description = json.loads(run("describe", str(CATALOG / "examples" / "services.yaml")).stdout)
    expected = {"clients": 4, "servers": 2, "requests_per_s": 80.0, "edges": 1, "published_per_s": 10.0}
    assert {key: description[key] for key in expected} == expected
    assert description["services"][1] == {
        "service": "/map/cost",
        "type": "stamped1kb",
        "server": "/map",
        "clients": ["/planner", "/monitor"],
        "requests_per_s": 60.0,
        "request_bytes_per_s": 61440.0,
    }


def test_describe_each_tells_every_file_by_itself_and_null_of_what_is_no_graph() -> None:
    paths = [str(CATALOG / "sierra_nevada.yaml"), str(BAD[0]), "no/such.yaml", str(CATALOG / "examples/services.yaml")]
    result = run("describe", "--each", "--", *paths)
    assert (result.returncode, result.stderr) == (0, "")
    alone = [json.loads(run("describe", paths[index]).stdout) for index in (0, 3)]
    assert json.loads(result.stdout) == [alone[0], None, None, alone[1]]


@pytest.mark.parametrize(
    "arguments",
    [[], ["resolve"], ["resolve", "--unknown", "x"], ["unknown"], ["resolve", "no/such.yaml"], ["resolve", "."]],
    ids=" ".join,
)
def test_wrong_usage_is_one_line_and_exit_2(arguments: list[str]) -> None:
    result = run(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert result.stderr.endswith("\n")


def test_an_unwritable_output_is_exit_1() -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [program(), "resolve", str(CATALOG / "mont_blanc.yaml")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
