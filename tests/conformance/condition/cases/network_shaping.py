"""`network_shaping` with small parameters, and how it is sabotaged in the middle of a window."""

from __future__ import annotations

import subprocess

from perflab.condition.network_shaping import enter
from tests.conformance.condition.case import Case, Sabotage, kill_the_program
from tests.conformance.condition.real_trial import RealTrial


def _tc(trial: RealTrial, label: str, words: str) -> None:

    holder = trial.companions[label].pid
    assert holder is not None
    subprocess.run([*enter(holder), "tc", "qdisc", *words.split()], check=True)


def delete_the_discipline(trial: RealTrial, label: str) -> None:
    _tc(trial, label, "del dev lo root")


def replace_the_discipline(trial: RealTrial, label: str) -> None:
    """Away for a moment, and back as it was, handle and all."""
    delete_the_discipline(trial, label)
    trial.wait(0.5)
    _tc(trial, label, "add dev lo root handle 10: tbf rate 1250000bps burst 131072 latency 50ms")


def change_the_rate(trial: RealTrial, label: str) -> None:
    _tc(trial, label, "change dev lo root handle 10: tbf rate 2500000bps burst 131072 latency 50ms")


CASES = (
    Case(
        "network_shaping:rate=10Mbit",
        ("bytes", "packets", "drops", "overlimits", "bytes_per_s", "processes_outside"),
        {
            "the holder is killed": Sabotage(kill_the_program, "the holder of the namespace was killed by SIGKILL"),
            "the discipline is deleted": Sabotage(delete_the_discipline, "tbf is not on lo"),
            "the discipline is away for a moment": Sabotage(replace_the_discipline, "replaced|passed lo, and"),
            "the rate is changed": Sabotage(change_the_rate, "rate of tbf is 2.5e\\+06 bytes/s, and 1.25e\\+06"),
        },
    ),
    Case("network_shaping:delay=5ms,jitter=1ms,loss=1%", ("packets", "drops")),
)
