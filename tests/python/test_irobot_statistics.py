"""irobot_benchmark's rules on short lists of arrivals, and how far perflab's records reproduce them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from irobot_tracker import Arrival, replay
from made_run import arrivals

from perflab.statistics import histogram as hg
from perflab.statistics import irobot
from perflab.statistics.irobot import UINT32, Delivery, Options, Row, Total

MS = 1_000_000


def delivered(
    received: Sequence[Arrival], frequency_hz: float = 100.0, *, sent: int | None = None, one_by_one: bool = True
) -> Delivery:
    """What perflab records of these arrivals."""
    unique: dict[int, Arrival] = {}
    reordered, highest = 0, -1
    for arrival in received:
        if arrival.number in unique:
            continue
        unique[arrival.number] = arrival
        reordered += arrival.number < highest
        highest = max(highest, arrival.number)
    values = [a.latency_ns for a in unique.values()]
    late_ns, too_late_ns = min(5e6, 0.2e9 / frequency_hz), min(50e6, 1e9 / frequency_hz)
    above = [v for v in values if v > late_ns]
    too_late = sum(v > too_late_ns for v in above)
    return Delivery(
        size_bytes=8,
        frequency_hz=frequency_hz,
        received=len(unique),
        first_sequence=min(unique, default=None),
        highest_sequence=max(unique, default=None),
        lost=None if sent is None else sent - len(unique),
        reordered=reordered,
        duplicate=len(received) - len(unique),
        beyond_window=0,
        late=len(above) - too_late,
        too_late=too_late,
        latency=hg.from_values(values),
        late_ns=tuple(above) if one_by_one else None,
        recorded_above_ns=late_ns,
    )


def original(received: Sequence[Arrival], frequency_hz: float = 100.0, *, one_by_one: bool = True) -> Row:
    made = delivered(received, frequency_hz, one_by_one=one_by_one)
    return irobot.original_subscription("", "", [made], Options(), 2.0)


def numbered(*numbers: int) -> list[Arrival]:
    return [Arrival(n, 100_000, k * 10 * MS) for k, n in enumerate(numbers)]


@pytest.mark.parametrize(
    ("frequency_hz", "late_us", "too_late_us"),
    [
        (100.0, 2000, 10_000),
        (2.0, 5000, 50_000),
        (64.0, 3125, 15_625),
        (3.0, 5000, 50_000),
        (60.0, 3333, 16_666),  # the period of 16666.67 us is cut down
        (1000.0, 200, 1000),
        (None, 5000, 50_000),
        (0.0, 5000, 50_000),
    ],
)
def test_thresholds_are_the_smaller_of_share_and_absolute_in_whole_microseconds(
    frequency_hz: float | None, late_us: int, too_late_us: int
) -> None:
    options = Options()
    assert options.late_threshold_us(frequency_hz) == late_us
    assert options.too_late_threshold_us(frequency_hz) == too_late_us


def test_thresholds_are_compared_strictly_and_after_truncation() -> None:
    # 2000.999 us is 2000 us for the original, 2001 us is late; likewise at 10 ms.
    row = replay(arrivals([2000, 2000.999, 2001, 10_000.999, 10_001]), 8, 100.0, Options()).row
    assert (row.late, row.too_late) == (2, 1)
    own = delivered(arrivals([2000, 2000.999, 2001, 10_000.999, 10_001]))
    assert (own.late, own.too_late) == (2, 2)  # perflab does not truncate: two of them change their class
    again = irobot.original_subscription("", "", [own], Options(), 2.0)
    assert (again.late, again.too_late) == (2, 1)


def test_too_late_messages_are_received_but_in_none_of_the_times() -> None:
    received = arrivals([100, 300, 20_000, 4000])
    row = replay(received, 8, 100.0, Options()).row
    assert (row.received, row.late, row.too_late) == (4, 1, 1)
    assert row.mean_us == pytest.approx((100 + 300 + 4000) / 3)
    assert (row.min_us, row.max_us) == (100, 4000)
    corrected = irobot.corrected_subscription("", "", [delivered(received, sent=4)], 2.0)
    assert corrected.mean_us == pytest.approx((100 + 300 + 20_000 + 4000) / 4)
    assert corrected.max_us == 20_000


def test_without_tracking_there_are_no_classes_and_every_sample_counts() -> None:
    received = [*arrivals([100, 20_000]), *numbered(7)]
    off = Options(tracking=False)
    for row in (
        replay(received, 8, 100.0, off).row,
        irobot.original_subscription("", "", [delivered(received)], off, 2),
    ):
        assert (row.received, row.late, row.too_late, row.lost) == (3, 0, 0, 0)
        assert row.max_us == 20_000


def test_only_too_late_messages_leave_no_times_and_no_size() -> None:
    row = original(arrivals([20_000, 30_000]))
    assert (row.received, row.too_late, row.size_bytes, row.frequency_hz) == (2, 2, 0, 0.0)
    assert math.isnan(row.mean_us)
    assert math.isnan(row.sd_us)
    assert math.isnan(row.throughput_kib_s)
    assert math.isnan(replay(arrivals([20_000, 30_000]), 8, 100.0, Options()).row.throughput_kib_s)


@pytest.mark.parametrize(
    ("numbers", "lost"),
    [
        ((0, 1, 2), 0),
        ((3, 4), 3),  # sent before the match: lost
        ((0, 1, 4, 5), 2),
        ((0, 1), 0),  # whatever came after it was lost at the end, and is not seen
        ((0, 2, 1, 3), UINT32),  # 1 missing, then -2 wrapped, then 1 missing again
        ((0, 1, 1, 2), UINT32 - 1),
        ((0, 1, 5, 2, 6), 3 + UINT32 - 4 + 3),
    ],
)
def test_lost_is_a_difference_of_unsigned_numbers(numbers: tuple[int, ...], lost: int) -> None:
    received = numbered(*numbers)
    assert replay(received, 8, 100.0, Options()).row.lost == lost
    assert original(received).lost == lost


def test_lost_as_perflab_counts_it_differs_where_the_original_is_wrong() -> None:
    def both(sent: int, *numbers: int) -> tuple[int | None, int | None]:
        own = delivered(numbered(*numbers), sent=sent)
        corrected = irobot.corrected_subscription("", "", [own], 2.0)
        return irobot.original_subscription("", "", [own], Options(), 2.0).lost, corrected.lost

    assert both(4, 0, 1) == (0, 2)  # the tail
    assert both(4, 0, 2, 1, 3) == (UINT32, 0)  # a message out of order
    assert both(3, 0, 1, 1, 2) == (UINT32 - 1, 0)  # one that came twice
    assert both(5, 0, 1, 4) == (2, 2)


def test_several_messages_out_of_order_are_each_taken_for_a_wrap() -> None:
    received = numbered(0, 3, 1, 2, 4)  # only one of them has a lower number than the one before
    assert replay(received, 8, 100.0, Options()).row.lost == UINT32
    assert original(received).lost == 2 * UINT32


def test_a_negative_latency_is_too_late() -> None:
    # The ROS clock may step; perflab's cannot.
    row = replay([Arrival(0, -1_500_000, 0)], 8, 100.0, Options()).row
    assert row.too_late == 1


def test_events_have_the_words_of_the_original_and_its_range_that_runs_the_wrong_way() -> None:
    made = replay([*numbered(0, 2, 6), Arrival(7, 2_500_900, 0), Arrival(8, 11 * MS, 0)], 8, 100.0, Options())
    assert made.events == (
        (irobot.LOST, "msg 1 lost."),
        (irobot.LOST, "msgs 5 to 8 lost."),
        (irobot.LATE, "msg 7 late. 2500us > 2000us"),
        (irobot.TOO_LATE, "msg 8 too late. 11000us > 10000us"),
    )
    assert irobot.corrected_lost_text(3, 3) == "msgs 3 to 5 lost."
    assert irobot.corrected_lost_text(1, 1) == "msg 1 lost."


@pytest.mark.parametrize("one_by_one", [True, False], ids=["late-one-by-one", "cells-only"])
@pytest.mark.parametrize("seed", range(6))
def test_records_reproduce_the_original_within_the_stated_bounds(seed: int, one_by_one: bool) -> None:
    chance = random.Random(seed)
    scale = chance.choice([20, 900, 3000])
    latencies = [chance.expovariate(1 / scale) for _ in range(3000)]
    received = [a for a in arrivals(latencies) if a.number % 97 != 5]
    expected = replay(received, 8, 100.0, Options()).row
    row = original(received, one_by_one=one_by_one)
    assert (row.received, row.lost) == (expected.received, expected.lost)
    assert row.min_us == expected.min_us
    assert row.mean_us == pytest.approx(expected.mean_us, abs=0.5 if one_by_one else 1.0)
    assert row.sd_us == pytest.approx(expected.sd_us, rel=0.002, abs=0.6)
    assert row.throughput_kib_s == pytest.approx(expected.throughput_kib_s, rel=0.01)
    if one_by_one:
        assert (row.late, row.too_late) == (expected.late, expected.too_late)
    else:
        # A cell at 2 ms is 1 us wide, one at 10 ms 8 us.
        edges = [sum(abs(us - limit) < 9 for us in latencies) for limit in (2001, 10_001)]
        assert abs(row.late - expected.late) <= sum(edges)
        assert abs(row.too_late - expected.too_late) <= edges[1]
    if one_by_one and (expected.late or not expected.too_late):
        assert row.max_us == expected.max_us
    else:
        assert row.max_us == pytest.approx(expected.max_us, rel=0.002, abs=1)


def test_the_mean_is_exact_below_2048_ns() -> None:
    row = original(arrivals([0.4, 0.9, 1.2, 1.999]))
    assert row.mean_us == pytest.approx((0 + 0 + 1 + 1) / 4)


def test_publishers_of_one_topic_are_counted_each_by_itself() -> None:
    parts = [delivered(arrivals([100, 200])), delivered(arrivals([300], 20), 50.0)]
    row = irobot.original_subscription("n", "t", parts, Options(), 2.0)
    assert (row.received, row.lost, row.min_us, row.max_us) == (3, 0, 100, 300)


def row_of(received: int, mean_us: float, late: int = 0, too_late: int = 0, lost: int = 0) -> Row:
    return Row("n", "t", 8, received, late, too_late, lost, mean_us, 0.0, 0.0, 0.0, 100.0, 0.0)


def test_the_total_weighs_means_by_received_messages_and_rounds() -> None:
    total = irobot.original_total([row_of(100, 10.4, 2, 1, 3), row_of(300, 20.4, 1)])
    assert total == Total(400, 18.0, 3, 0.75, 1, 0.25, 3, 3 / 403 * 100)


def test_a_row_without_samples_spoils_the_original_total_only() -> None:
    rows = [row_of(100, 10.0), row_of(0, math.nan)]
    assert math.isnan(irobot.original_total(rows).mean_us)
    assert irobot.corrected_total(rows, [100, 0]).mean_us == 10.0


def test_shares_of_nothing_are_nan() -> None:
    total = irobot.original_total([])
    assert total.received == 0
    assert all(math.isnan(share) for share in (total.late_percent, total.too_late_percent, total.lost_percent))


def test_the_original_aggregate_is_an_unweighted_mean_of_means() -> None:
    totals = [irobot.original_total([row_of(1000, 11.0, 5)]), irobot.original_total([row_of(10, 100.0, 0, 0, 2)])]
    original = irobot.original_aggregate(totals)
    assert (original.received, original.mean_us, original.late, original.lost) == (1010, 55.0, 5, 2)
    corrected = irobot.corrected_aggregate(totals)
    assert corrected.mean_us == pytest.approx((1000 * 11 + 10 * 100) / 1010)


def test_cpu_is_of_all_cpus_of_the_machine() -> None:
    assert irobot.cpu_percent_of_machine(500 * MS, 1000 * MS, 4) == 12.5
    assert math.isnan(irobot.cpu_percent_of_machine(1, 0, 4))


@pytest.mark.parametrize(("value", "rounded"), [(0.5, 1), (1.5, 2), (2.5, 3), (2.49, 2), (-0.5, -1)])
def test_rounding_is_that_of_c(value: float, rounded: int) -> None:
    assert irobot.round_half_up(value) == rounded


def test_publisher_rows_hold_the_time_of_publish_and_no_counts() -> None:
    calls = hg.from_values([2500, 3999, 7001])
    row = irobot.original_publisher("n", "t", 36, 100.0, 3, calls, 2.0)
    assert (row.received, row.late, row.lost) == (0, 0, 0)
    assert row.mean_us == pytest.approx(4.0, abs=0.01)
    assert (row.min_us, row.max_us) == (2, 7)
    assert row.throughput_kib_s == pytest.approx(100 * 36 / 1024)
