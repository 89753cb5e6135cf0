"""Results are records: what is published of them is made from their types, and what is read is what was written."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from made_experiment import Effect, Made, with_findings
from made_sweep import made_breaking_point, made_curve
from support import SOURCE

from perflab import models
from perflab.models import Damaged, as_json
from perflab.results import comparison, costs, curve, files, outcome, summary, trial
from perflab.results.files import Manifest, TrialFile

MODULES = (comparison, costs, curve, files, outcome, summary, trial)
RECORDS = [
    found
    for module in MODULES
    for _, found in inspect.getmembers(module, inspect.isclass)
    if found.__module__ == module.__name__ and dataclasses.is_dataclass(found)
]


def published(name: str) -> Any:
    return json.loads((SOURCE / f"docs/schema/{name}.schema.json").read_text())


PUBLISHED = published("summary")


@pytest.mark.parametrize(
    ("name", "of_code"),
    [
        ("summary", summary.json_schema),
        ("manifest", lambda: files.json_schema(Manifest)),
        ("trial", lambda: files.json_schema(TrialFile)),
    ],
    ids=["summary", "manifest", "trial"],
)
def test_the_published_schema_is_that_of_the_code(name: str, of_code: Callable[[], Any]) -> None:
    assert json.loads(json.dumps(of_code())) == published(name)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_a_record_does_not_change(record: Any) -> None:
    assert record.__dataclass_params__.frozen


def test_a_summary_comes_back_as_it_was_written() -> None:
    made = with_findings(Made({"cpu_load": Effect(latency=2)}, blocks=3).summary())
    whole = dataclasses.replace(made, curves=(made_curve(),), breaking_points=(made_breaking_point(),))
    document = as_json(whole)
    Draft202012Validator(PUBLISHED).validate(document)
    assert summary.read(json.loads(json.dumps(document))) == whole


def test_keys_that_nobody_knows_are_no_damage_and_a_file_from_before_there_were_phases_says_aligned() -> None:
    document = Made(blocks=1).summary()
    document["results"][0]["of another version"] = 1
    assert summary.read(document).results[0].phase == "aligned"
    document["results"][0]["phase"] = None
    assert summary.read(document).results[0].phase is None


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("results",), None, "results: must be a list, not null"),
        (("results", 0, "trials"), "many", "results.0.trials: must be a valid integer"),
        (("results", 0, "trials_detail", 0, "outcome"), "odd", "results.0.trials_detail.0.outcome: must be"),
        (("results", 0, "totals", "latency_ns", "p99"), [], "results.0.totals.latency_ns.p99: must be"),
    ],
)
def test_what_is_not_a_summary_is_one_line_that_says_where(path: tuple[Any, ...], value: Any, words: str) -> None:
    document = Made(blocks=1).summary()
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(Damaged) as error:
        summary.read(document)
    assert str(error.value).startswith(words)
    assert "\n" not in str(error.value)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(Damaged, match="it lacks results"):
        summary.read({"run": "r", "valid": True})


def test_fields_that_a_record_inherits_are_described_too() -> None:
    assert models.docstrings(trial.EdgeResult).items() >= models.docstrings(trial.Counts).items()
    properties = PUBLISHED["$defs"]["EdgeResult"]["properties"]
    assert properties["sent"]["description"].startswith("Messages that subscriptions should have received")


def test_a_number_that_is_not_finite_is_null() -> None:
    assert as_json({"a": float("nan"), "b": (float("inf"), 1.5)}) == {"a": None, "b": [None, 1.5]}
