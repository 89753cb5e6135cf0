"""Durations in, readable quantities out."""

from __future__ import annotations

import pytest

from perflab.errors import BadInput
from perflab.units import (
    format_bytes,
    format_count,
    format_duration,
    format_rate,
    format_time,
    is_zero,
    level_value,
    parse_duration,
)


@pytest.mark.parametrize(
    "alike",
    [
        (0, 0.0, "0", "0%", " 0 % ", "-0"),
        (25, "25", "25%", "25.0 %", "2.5e1"),
        ("10ms", "10 ms", "0.01s", "10000us"),
        ("1KiB", "1024B", "1 KiB"),
        (True, "on"),
        (False, "off"),
    ],
)
def test_levels_that_say_the_same_are_equal_however_they_are_written(alike: tuple[object, ...]) -> None:
    assert len({repr(level_value(level)) for level in alike if level != "-0"}) == 1
    assert {level_value(level) == level_value(alike[0]) for level in alike} == {True}


def test_levels_that_say_something_else_are_not_equal() -> None:
    levels = (0, 1, "0ms", "0B", "1ms", "1s", "1kB", "1KiB", True, "many", "middleware", None, "1 1")
    assert len({repr(level_value(level)) for level in levels}) == len(levels)


@pytest.mark.parametrize(
    ("level", "zero"),
    [
        (0, True), (0.0, True), ("0", True), ("0%", True), ("0 %", True), ("0ms", True), ("0MiB", True), ("-0", True),
        (1, False), ("10%", False), (False, False), (None, False), ("off", False), ("", False), ((), False),
    ],
)  # fmt: skip
def test_zero_is_zero_in_every_unit(level: object, zero: bool) -> None:
    assert is_zero(level) is zero


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10", 10_000_000_000),
        ("2.5", 2_500_000_000),
        (".5s", 500_000_000),
        ("500ms", 500_000_000),
        ("1us", 1_000),
        ("1µs", 1_000),
        ("7ns", 7),
        ("2min", 120_000_000_000),
        ("1h", 3_600_000_000_000),
        (" 1 ".strip(), 1_000_000_000),
        ("168h", 604_800_000_000_000),
    ],
)
def test_durations(text: str, expected: int) -> None:
    assert parse_duration(text, "--time") == expected


@pytest.mark.parametrize(
    "text", ["", "s", "1m", "1 s", "-1", "1e3", "inf", "nan", "0x10", "1,5", "\u0663", "169h", "0", "0.1ns"]
)
def test_what_is_no_duration_names_the_option(text: str) -> None:
    with pytest.raises(BadInput, match=r"^--time "):
        parse_duration(text, "--time")


def test_zero_is_a_duration_where_it_is_allowed() -> None:
    assert parse_duration("0", "--warmup", zero_allowed=True) == 0


@pytest.mark.parametrize(
    ("ns", "expected"),
    [
        (None, "–"),
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (9_994, "9.99 µs"),
        (9_996, "10.0 µs"),
        (99_960, "100 µs"),
        (999_499, "999 µs"),
        (999_600, "1.00 ms"),
        (12_345_678, "12.3 ms"),
        (100_000_000_000, "100 s"),
        (-1_500, "-1.50 µs"),
    ],
)
def test_times_have_three_digits(ns: float | None, expected: str) -> None:
    assert format_time(ns) == expected


def test_other_quantities() -> None:
    assert [format_duration(s) for s in (0.5, 10, 60, 125, 3600)] == ["0.5 s", "10 s", "1 min", "2 min 5 s", "1 h"]
    assert [format_count(n) for n in (None, 0, 999, 126480)] == ["–", "0", "999", "126 480"]
    assert [format_bytes(n) for n in (None, 36, 1024, 10_000, 256_000, 8 << 20, 3 << 30)] == [
        "–", "36 B", "1 KiB", "9.77 KiB", "250 KiB", "8 MiB", "3.00 GiB",
    ]  # fmt: skip
    assert [format_rate(hz) for hz in (None, 100.0, 2.0, 0.5, 66.6666, 12_345.0)] == [
        "–",
        "100",
        "2",
        "0.5",
        "66.7",
        "12345",
    ]
