"""A table that is declared once says the same in a terminal, on a page, in a paper and in a file."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from perflab import page, quantity
from perflab.columns import Cell, Column, Table
from perflab.report.latex.table import Table as Paper
from perflab.report.table import print_declared
from perflab.report.tables import plain
from perflab.results.figure import Median


@dataclass(frozen=True)
class Ride:
    name: str
    time: Median | None
    lost: int
    depth: int = 0


RIDES = [
    Ride("hill", Median(value=10_000_000, low=9_900_000, high=10_100_000, n=5), 0),
    Ride("valley", Median(value=None, low=None, high=None, n=0, reason="nobody rode"), 3, depth=1),
]
COLUMNS: list[Column[Ride]] = [
    Column("ride", "ride", lambda ride: Cell(ride.name, ride.name, depth=ride.depth), rank=0),
    Column(
        "time_ns", "whole", lambda ride: ride.time, quantity.TIME, group="time", rank=1, beside=True, help="to the end"
    ),
    Column("lost", "lost", lambda ride: ride.lost, quantity.COUNT, rank=2, tone="bad"),
    Column("room", "room", lambda ride: ride.name, rank=None),
    Column("unknown", "unknown", lambda ride: None, quantity.COUNT, rank=1),
]  # fmt: skip
TABLE = Table("rides", "Rides", COLUMNS, RIDES, ["Every ride."])


def printed(width: int) -> list[str]:
    out = Console(file=io.StringIO(), width=width, no_color=True, highlight=False)
    print_declared(out, TABLE)
    assert isinstance(out.file, io.StringIO)
    return [line.rstrip() for line in out.file.getvalue().splitlines()]


def test_a_terminal_has_the_columns_with_a_rank_in_which_something_is_known() -> None:
    lines = printed(80)
    assert lines[0] == "Rides"
    assert lines[2].split() == ["ride", "whole", "lost"]
    assert lines[4].split() == ["hill", "10.0", "[9.90,", "10.1]", "ms", "0"]
    assert lines[5] == "\u00a0\u00a0valley                     –     3"
    assert lines[6] == "Every ride."


def test_a_narrow_terminal_names_what_it_leaves_out() -> None:
    assert "Left out at 20 columns: time whole, lost" in " ".join(printed(20))


def test_a_page_has_every_column_with_its_help_and_says_why_a_cell_is_empty() -> None:
    html = page.part("macros.html", "table", TABLE)
    assert 'title="to the end">time whole<' in html
    assert '<span class="below">[9.90\u00a0ms, 10.1\u00a0ms]</span>' in html
    assert 'title="nobody rode">–</td>' in html
    assert '<td class="r bad" data-by="3">3</td>' in html
    assert ">room<" in html
    assert ">unknown<" not in html


def test_a_paper_has_numbers_in_one_unit_and_names_moved_in() -> None:
    lines = Paper(TABLE, "Rides.").floats("tab:rides").splitlines()
    assert r"hill & 10.00 & [9.90, 10.10] & 0 \\" in lines
    assert r"\quad valley & --\phantom{.00} &  & 3 \\" in lines
    assert not any("room" in line for line in lines)


def test_a_file_has_plain_values_and_another_one_their_units(tmp_path: Path) -> None:
    plain.write(TABLE, tmp_path / "rides.csv")
    assert (tmp_path / "rides.csv").read_text() == "ride,time_ns,lost,room\nhill,10000000,0,hill\nvalley,,3,valley\n"
    plain.write_columns(TABLE, tmp_path / "columns.csv")
    assert "time_ns,ns,to the end\n" in (tmp_path / "columns.csv").read_text()


@pytest.mark.parametrize(
    ("of", "value", "text"),
    [
        (quantity.TIME, 45_200, "45.2 µs"),
        (quantity.COUNT, 126_480.0, "126 480"),
        (quantity.COUNT, 2.5, "2.5"),
        (quantity.PLAIN, 1234, "1234"),
        (quantity.PERCENT, 0.1111, "0.111 %"),
        (quantity.SHARE, 0.5, "50.0 %"),
        (quantity.KILOBYTES, 2048, "2 MiB"),
        (quantity.FACTOR, 2, "2.00"),
        (quantity.TEXT, "", "–"),
        (quantity.TIME, None, "–"),
    ],
)
def test_a_quantity_is_written_in_one_way(of: quantity.Quantity, value: float | str | None, text: str) -> None:
    assert of.text(value) == text
