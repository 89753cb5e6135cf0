"""Findings on a terminal: golden outputs, and what gives way when there is little room."""

from __future__ import annotations

import io

import pytest
from made_experiment import Effect, Made, with_findings

from perflab.output import plain_console
from perflab.report import answers
from perflab.report.tables import results
from perflab.results.comparison import Remark
from perflab.results.summary import Summary, read
from perflab.statistics import metrics


def printed(summary: Summary, width: int = 100) -> list[str]:
    target = io.StringIO()
    answers.print_findings(plain_console(target, width), summary)
    return [line.rstrip() for line in target.getvalue().rstrip().splitlines()]


@pytest.fixture(scope="module")
def experiment() -> Summary:
    made = Made(
        {"cpu_load": Effect(latency=1.8), "message_flood": Effect(lost=5)},
        {"cyclonedds": Effect(), "fastdds": Effect(latency=1.3)},
        blocks=6,
    )
    return with_findings(made.summary())


GOLDEN_80 = """\
cyclonedds
                        latency p99          response p99           lost
────────────────────────────────────────────────────────────────────────
baseline                     502 µs                897 µs              0
cpu_load       1.78x [1.68, 1.86] *  1.81x [1.75, 1.87] *             ±0
message_flood  1.00x [0.98, 1.03] =  1.00x [0.96, 1.03] =  +6 [+5, +7] *
Left out at 80 columns: n, success, latency p50, CPU

fastdds
                        latency p99          response p99              lost
───────────────────────────────────────────────────────────────────────────
baseline                     652 µs               1.17 ms                 0
cpu_load       1.79x [1.74, 1.83] *  1.79x [1.72, 1.88] *                ±0
message_flood  1.00x [0.97, 1.03] =    1.03x [0.97, 1.07]  +6.75 [+5, +7] *
Left out at 80 columns: n, success, latency p50, CPU

comparisons among baselines
                                     latency p99          response p99  lost
────────────────────────────────────────────────────────────────────────────
fastdds against cyclonedds  1.30x [1.28, 1.33] *  1.30x [1.27, 1.32] *    ±0
Left out at 80 columns: latency p50, CPU

Compared with the baseline, one value per trial; [intervals: 95 % for all 25
together]; * differs, = by no more than 5 %

- cyclonedds: lost, message_flood against baseline: +6 [5, 7] higher, n = 18 and
6 in 6 blocks, p = 0.014 for 25 comparisons together
- fastdds: lost, message_flood against baseline: +6.75 [5, 7] higher, n = 18 and
6 in 6 blocks, p = 0.014 for 25 comparisons together
- cyclonedds: response p99, cpu_load against baseline: 1.81x [1.75, 1.87]
higher, n = 18 and 6 in 6 blocks, p = 0.014 for 25 comparisons together
- fastdds: latency p50, cpu_load against baseline: 1.80x [1.76, 1.87] higher, n
= 18 and 6 in 6 blocks, p = 0.014 for 25 comparisons together
- latency p50, fastdds against cyclonedds: 1.30x [1.27, 1.34] higher, n = 18 and
18 in 6 blocks, p < 0.0001 for 25 comparisons together
- 4 comparisons are inconclusive; about 12 more trials of each would probably
decide them (`perflab run --resume RUN --until-decided`)
- no difference larger than 5 %: CPU (cyclonedds, cpu_load; fastdds against
cyclonedds); latency p50, latency p99, response p99, CPU (cyclonedds,
message_flood); latency p99 (fastdds, message_flood)
- inconclusive: CPU (fastdds, cpu_load); latency p50, response p99, CPU
(fastdds, message_flood)
- … and 6 more differences and 2 more remarks; `--json` has all of them
"""


def test_a_terminal_of_80_columns(experiment: Summary) -> None:
    assert "\n".join(printed(experiment, 80)) + "\n" == GOLDEN_80


def test_a_wide_terminal_has_every_metric(experiment: Summary) -> None:
    lines = printed(experiment, 140)
    header = next(line for line in lines if "latency p99" in line)
    assert header.split() == [
        "n", "success", "latency", "p50", "latency", "p99", "response", "p99", "lost", "CPU",
    ]  # fmt: skip
    assert next(line for line in lines if line.startswith("baseline ")).split()[1:3] == ["18", "18/18"]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_tables_never_wrap(experiment: Summary, width: int) -> None:
    lines = printed(experiment, width)
    assert all(len(line) <= width for line in lines)
    rows = [line for line in lines if line.startswith(("baseline  ", "cpu_load  ", "message_flood  "))]
    assert len(rows) == 6


def test_no_more_than_eight_sentences_and_what_is_left_out_is_said() -> None:
    remarks = [Remark("worse", f"claim {n}.") for n in range(10)]
    remarks += [Remark("equivalent", "no difference"), Remark("outliers", "far")]
    shown = [words for _, words in answers.sentences(remarks)]
    assert shown == [*(f"claim {n}." for n in range(6)), "no difference", "far",
                     "… and 4 more differences; `--json` has all of them"]  # fmt: skip


def test_one_trial_each_prints_one_sentence_and_no_table() -> None:
    made = Made({"cpu_load": Effect(latency=9)}, blocks=1).summary()
    made["results"][0]["trials_detail"] = made["results"][0]["trials_detail"][:1]
    assert printed(with_findings(made)) == [
        "- one trial each: no statements about differences are possible; use --trials 5 or more"
    ]


def test_a_summary_without_findings_prints_nothing() -> None:
    assert printed(read(Made(blocks=1).summary())) == []


def test_the_success_column_names_what_is_not_counted() -> None:
    made = Made({"cpu_load": Effect()}, blocks=3).summary()
    disturbed = made["results"][1]
    disturbed["trials_detail"][2] |= {"outcome": "invalid", "measured": False, "reason": "the load was killed"}
    disturbed["outcomes"] |= {"success": 2, "invalid": 1}
    lines = printed(with_findings(made), 140)
    assert "2/2 (+1 invalid)" in next(line for line in lines if line.startswith("cpu_load "))
    disturbed["trials_detail"][1] |= {"outcome": "harness_error", "measured": False, "reason": "disk full"}
    disturbed["outcomes"] |= {"success": 1, "harness_error": 1}
    lines = printed(with_findings(made), 140)
    assert "1/1 (+1 invalid, +1 harness error)" in next(line for line in lines if line.startswith("cpu_load "))


def test_metrics_beyond_the_usual_leave_one_by_one_before_the_number_of_trials_does() -> None:
    shown = [metrics.named(name) for name in ("latency.max", "lost", "response.max", "wire_packets")]
    rank = {column.name: column.rank or 0 for column in results.between("", [], shown).columns}
    assert rank["lost"] < (results.SUCCESS.rank or 0) < (results.N.rank or 0) < rank["latency.max"]
    assert rank["latency.max"] < rank["response.max"] < rank["wire_packets"]
