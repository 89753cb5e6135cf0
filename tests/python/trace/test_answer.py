"""Answers as JSON, and the distributions that all of them state."""

from __future__ import annotations

import json
import math
import random

import polars as pl
import pytest

from perflab.trace.answer import Answer, Section
from perflab.trace.columns import Table, count, time
from perflab.trace.quantiles import PER_MILLE, describe, needed, quantile


def section(name: str = "things", **columns: list[object]) -> Section:
    defined = (count("n", "how many"), time("mean", "how long", "nothing ended", kind="number"))
    table = Table(name, "Things", tuple(column for column in defined if column.name in (columns or ("n",))))
    return Section(table, pl.DataFrame(columns or {"n": [1]}), notes=("a note",))


def test_a_document_has_every_section_under_its_name_and_is_json() -> None:
    answer = Answer("kinds", (section(n=[1, None], mean_ns=[2.5, float("nan")]),), ("one loss",))
    document = json.loads(json.dumps(answer.document(), allow_nan=False))
    assert document == {
        "schema_version": 1,
        "kind": "kinds",
        "quality": ["one loss"],
        "warnings": [],
        "scope": None,
        "things": {
            "rows": [{"n": 1, "mean_ns": 2.5}, {"n": None, "mean_ns": None}],
            "notes": ["a note"],
            "reasons": {"mean_ns": "nothing ended"},
        },
    }


def test_sections_of_one_name_reserved_names_and_reasons_of_no_column_are_refused() -> None:
    with pytest.raises(ValueError, match="two sections of one name"):
        Answer("kind", (section(), section()))
    with pytest.raises(ValueError, match="cannot be called 'quality'"):
        section("quality")
    with pytest.raises(ValueError, match="no column 'm'"):
        Section(section().table, pl.DataFrame({"n": [1]}), because={"m": "why"})


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"n": [1], "m": [1]}, "has columns"),
        ({}, "has columns"),
        ({"n": [1.5]}, "column n is Float64, not integer"),
        ({"n": ["many"]}, "column n is String, not integer"),
        ({"n": [True]}, "column n is Boolean, not integer"),
    ],
)
def test_a_frame_that_is_not_what_the_columns_say_is_refused(columns: dict[str, list[object]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Section(section().table, pl.DataFrame(columns))


def test_a_table_has_each_column_once_and_leaves_out_none_that_it_does_not_have() -> None:
    with pytest.raises(ValueError, match="two columns of one name"):
        Table("things", "Things", (count("n", "how many"), count("n", "how often")))
    with pytest.raises(ValueError, match="no column 'm'"):
        Table("things", "Things", (count("n", "how many"),), spare=("m",))


def test_what_an_answer_knows_better_replaces_why_a_column_is_null() -> None:
    made = section(mean_ns=[1.0])
    assert made.reasons == {"mean_ns": "nothing ended"}
    assert Section(made.table, made.frame, because={"mean_ns": "not recorded"}).reasons == {"mean_ns": "not recorded"}


def test_a_section_is_found_by_its_name() -> None:
    answer = Answer("kind", (section("a"), section("b")))
    assert answer.section("b").name == "b"
    with pytest.raises(KeyError):
        answer.section("c")


@pytest.mark.parametrize("n", [1, 2, 9, 10, 99, 100, 101, 999, 1000, 1001, 2500])
def test_quantiles_are_the_ceil_of_q_n_smallest_values_or_null_where_there_are_too_few(n: int) -> None:
    rng = random.Random(n)
    values = [rng.randrange(10**9) for _ in range(n)]
    frame = pl.DataFrame({"key": ["a"] * n, "value": values})
    row = describe(frame, ["key"], {"x": pl.col("value")}).to_dicts()[0]
    ordered = sorted(values)
    for name, per_mille in PER_MILLE.items():
        enough = n * (1000 - per_mille) >= 1000
        expected = ordered[-(-n * per_mille // 1000) - 1] if enough else None
        assert row[f"x_{name}_ns"] == expected
        assert frame.select(quantile(pl.col("value"), per_mille)).item() == expected
    assert (row["x_n"], row["x_min_ns"], row["x_max_ns"]) == (n, ordered[0], ordered[-1])
    mean = sum(values) / n
    assert row["x_mean_ns"] == pytest.approx(mean)
    sd = math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1)) if n > 1 else None
    assert row["x_sd_ns"] == (None if sd is None else pytest.approx(sd))


def test_how_many_values_a_quantile_needs() -> None:
    assert {name: needed(q) for name, q in PER_MILLE.items()} == {"p50": 2, "p90": 10, "p99": 100, "p99_9": 1000}


def test_nulls_are_no_values_and_groups_keep_their_order() -> None:
    frame = pl.DataFrame({"key": ["b", "a", "b"], "value": [3, None, 1]})
    rows = describe(frame, ["key"], {"x": pl.col("value")}, [pl.len().alias("n")]).to_dicts()
    assert [(r["key"], r["n"], r["x_n"], r["x_min_ns"], r["x_p50_ns"], r["x_max_ns"]) for r in rows] == [
        ("b", 2, 2, 1, 1, 3),
        ("a", 1, 0, None, None, None),
    ]


def test_without_groups_there_is_one_row_even_of_nothing() -> None:
    frame = pl.DataFrame({"value": [5, 7]})
    assert describe(frame, [], {"x": pl.col("value")})["x_max_ns"].to_list() == [7]
    assert describe(frame.clear(), [], {"x": pl.col("value")}).select("x_n", "x_max_ns").rows() == [(0, None)]
