"""Content filters on encoded messages want what SQLite, an independent evaluator of the same expressions, selects."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from typing import Any

import numpy as np
from rosbags.typesys.store import Typestore

from .test_native_codec import ask, store

__all__ = ["ask", "store"]  # the fixtures

TYPE = "sensor_msgs/msg/NavSatFix"
NUMBERS = (
    "header.stamp.sec", "header.stamp.nanosec", "status.status", "status.service", "latitude", "longitude", "altitude",
    "position_covariance_type",
)  # fmt: skip
TEXT = "header.frame_id"
WORDS = ("", "map", "map2", "Map", "it's", "Größe", "base_link")
OPERATORS = ("=", "<>", "!=", "<", "<=", ">", ">=")
VALUES = ("0", "-1", "1", "2", "127", "-128", "65535", "2.5", "-2.5", "1e3", "0x10")
MESSAGES, EXPRESSIONS = 40, 60


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def condition(rng: random.Random, depth: int = 0) -> str:
    how = rng.random()
    if depth < 3 and how < 0.5:
        one, other = condition(rng, depth + 1), condition(rng, depth + 1)
        return rng.choice(
            (f"{one} AND {other}", f"{one} OR {other}", f"NOT {one}", f"({one} OR {other})", f"not ({one})")
        )
    if how < 0.6:
        return f"{TEXT} {rng.choice(OPERATORS)} {quoted(rng.choice(WORDS))}"
    field = rng.choice(NUMBERS)
    if how < 0.7:
        return f"{field} {rng.choice(('', 'NOT '))}BETWEEN {rng.choice(VALUES)} AND {rng.choice(VALUES)}"
    if how < 0.8:
        return f"{field} {rng.choice(OPERATORS)} {rng.choice(NUMBERS)}"
    one, other = (field, rng.choice(VALUES)) if how < 0.9 else (rng.choice(VALUES), field)
    return f"{one} {rng.choice(OPERATORS)} {other}"


def message(store: Typestore, rng: random.Random) -> tuple[Any, dict[str, Any]]:
    """A message, and its fields by their names in expressions."""
    made: dict[str, Any] = dict(store.types)
    small = (0, 1, 2, 16, 127)
    stamp = made["builtin_interfaces/msg/Time"](rng.choice((-1, *small)), rng.choice(small))
    header = made["std_msgs/msg/Header"](stamp, rng.choice(WORDS))
    status = made["sensor_msgs/msg/NavSatStatus"](rng.choice((-128, -1, *small)), rng.choice((65535, *small)))
    reals = [rng.choice((0.0, 2.5, -2.5, 1000.0, rng.uniform(-3, 3))) for _ in range(3)]
    whole = made[TYPE](header, status, *reals, np.zeros(9), rng.choice((0, 1, 2, 3)))
    values = (stamp.sec, stamp.nanosec, status.status, status.service, *reals, whole.position_covariance_type)
    return whole, dict(zip(NUMBERS, values, strict=True)) | {TEXT: header.frame_id}


def test_a_filter_wants_what_sqlite_selects(store: Typestore, ask: Callable[..., str]) -> None:
    rng = random.Random(7)
    database = sqlite3.connect(":memory:")
    expressions = [condition(rng) for _ in range(EXPRESSIONS)]
    wanted = 0
    for number in range(MESSAGES):
        whole, fields = message(store, rng)
        raw = bytes(store.serialize_cdr(whole, TYPE, little_endian=number % 2 == 0)).hex()
        for expression in expressions:
            names, sql = {name: name.replace(".", "_") for name in fields}, expression
            for name, column in names.items():
                sql = sql.replace(name, column)
            row = ", ".join(f"? AS {column}" for column in names.values())
            (expected,) = database.execute(f"SELECT ({sql}) FROM (SELECT {row})", [*fields.values()]).fetchone()
            assert ask("filter", TYPE, raw, expression) == ("yes" if expected else "no"), (expression, fields)
            wanted += expected
    assert 0.2 < wanted / (MESSAGES * EXPRESSIONS) < 0.8
