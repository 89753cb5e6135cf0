"""Floors beside other middlewares: levels that are types of messages, the shade below, and how far above others are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from made_experiment import Effect, read_results
from made_levels import sweep
from made_sweep import LEVELS, curve_document

from perflab.models import read
from perflab.report import levels
from perflab.report.against_floor import FLOOR, floors_among, is_floor
from perflab.report.figures import Figure, of_metric
from perflab.report.tables.curves import above_floors, level_cell
from perflab.results.curve import Curve
from perflab.statistics import curves
from perflab.statistics.metrics import METRICS

Json = dict[str, Any]
SIZES = {"array1k": 1024, "array32": 32, "array1m": 1 << 20}


def by_message(sizes: Mapping[str, int | tuple[int, ...]], **changes: Any) -> list[Json]:
    """A result for each type of message, with edges that have these payloads."""
    made = sweep("workload.message", dict.fromkeys(sizes, Effect()), **changes)
    for result, size in zip(made, sizes.values(), strict=True):
        result["edges"] = [
            {"publisher": "a", "topic": "t", "subscription": f"b{n}", "size_bytes": each, "frequency_hz": 1.0}
            for n, each in enumerate(size if isinstance(size, tuple) else (size,))
        ]
    return made


def found(results: list[Json]) -> list[Curve]:
    return curves.of(read_results(results), {"workload.message": []}, [METRICS["latency.p50"]])


def test_types_of_messages_stand_at_their_payload() -> None:
    (curve,) = found(by_message(SIZES))
    assert [(level.level, level.called) for level in curve.levels] == [
        (32, "array32"), (1024, "array1k"), (1 << 20, "array1m"),
    ]  # fmt: skip
    assert [curve.scale, curve.middleware, curve.by_payload] == ["log", "cyclonedds", True]
    assert level_cell(curve.factor, curve.levels[0]).text == "array32"
    figure = levels.curves([("", curve)])[0]
    assert [figure.x.title, figure.x.scale] == ["workload.message: payload", "log"]
    assert list(figure.x.ticks) == [(32, "32 B"), (1024, "1 KiB"), (1 << 20, "1 MiB")]
    assert any("at 32 B" in words for words in curve.metrics["latency.p50"].words)


@pytest.mark.parametrize(
    "sizes",
    [
        {"reliable": 1024, "best_effort": 1024},  # another kind of factor: it changes no payload
        {"array1k": (1024, 8), "array32": (32, 8)},  # several topics
        {"array1k": 1024},
    ],
)
def test_words_that_are_no_sizes_make_no_curve(sizes: dict[str, Any]) -> None:
    assert found(by_message(sizes)) == []


def beside(**variants: float) -> list[Curve]:
    """Curves of middlewares with so many times the latency of the usual one, all flat."""
    made = []
    for name, factor in variants.items():
        document = curve_document(name, None, middleware=name)
        for metric in document["metrics"].values():
            for point in metric["points"]:
                point |= {key: factor * point[key] for key in ("value", "low", "high")}
        made.append(read(Curve, document))
    return made


def picture(found: list[Curve], name: str = "latency_p99") -> Figure:
    return next(f for f in levels.curves([("", c) for c in found]) if f.name.endswith(name))


def test_a_floor_is_dashed_and_what_lies_below_every_floor_is_shaded() -> None:
    figure = picture(beside(udp=1.0, shm=0.5, cyclonedds=3.0))
    strokes = {s.name: s.stroke for s in figure.series if s.shape == "line"}
    assert strokes == {"udp": "dashed", "shm": "dashed", "cyclonedds": "solid"}
    (band,) = [s for s in figure.series if s.shape == "band"]
    shm = next(s for s in figure.series if s.shape == "line" and s.name == "shm")
    assert band.high == pytest.approx([y for y in shm.y if y is not None])
    assert all(low is not None and figure.y.low <= low < min(y for y in shm.y if y is not None) for low in band.low)
    assert {FLOOR, "below every floor"} <= {key.label for key in figure.keys}


def test_floors_alone_are_drawn_as_anything_else() -> None:
    figure = picture(beside(udp=1.0, shm=0.5))
    assert {s.stroke for s in figure.series} == {"solid"}
    assert floors_among(beside(udp=1.0)) == []
    assert above_floors(beside(udp=1.0, shm=0.5), "") is None
    assert above_floors(beside(cyclonedds=1.0, fastdds=0.5), "") is None


def test_the_table_says_how_many_times_each_floor_a_middleware_is() -> None:
    table = above_floors(beside(udp=1.0, shm=0.5, cyclonedds=3.0), "above")
    assert table is not None
    assert len(table.rows) == len(LEVELS)
    row = table.rows[0]
    assert row.variant == "cyclonedds"
    assert row.ratios["udp", "latency.p99"] == pytest.approx(3)
    assert row.ratios["shm", "latency.p99"] == pytest.approx(6)
    assert "latency.p99_over_shm" in [column.name for column in table.columns]


def test_who_is_a_floor_says_the_middleware() -> None:
    assert [name for name in ("udp", "shm", "direct", "cyclonedds", "udp+shm", None) if is_floor(name)] == [
        "udp", "shm", "direct",
    ]  # fmt: skip


def test_rates_far_apart_are_seen_on_a_logarithmic_axis() -> None:
    axis, place = of_metric("throughput", "B/s")([1e5, 1e8])
    assert (axis.scale, axis.title) == ("log", "throughput (MB/s)")
    assert place(1e8) == 100
    assert of_metric("throughput", "B/s")([1e6, 2e6])[0].scale == "linear"
    assert of_metric("throughput", "B/s")([0, 2e6])[0].scale == "linear"
