"""A kind of workload that is a command, with figures and outcomes of its own."""

from __future__ import annotations

import sys
from typing import Literal

from pydantic import Field

from perflab.parameters import Parameters
from perflab.results.figure import OwnFigure
from perflab.results.outcome import OwnOutcome
from perflab.workload import Ended, Judgement, WorkloadKind
from perflab.workload.command import Command, CommandParameters, load

STACK = """
import sys
floor, goals = sys.argv[1], int(sys.argv[2])
if floor == "blocked":
    sys.exit("there is no path to goal 1")
for goal in range(goals):
    print("slipped" if floor == "wet" else "reached", goal + 1)
"""


class RobotParameters(Parameters):
    floor: Literal["dry", "wet", "blocked"] = Field("dry", description="what it drives on")
    goals: int = Field(3, ge=1, le=1000, description="places that it drives to")


def make(asked: RobotParameters) -> Command:
    words = [sys.executable, "-c", STACK, asked.floor, str(asked.goals)]
    told = {"command": words, "name": "robot", "ends": "itself", "tracing": False}
    return load(CommandParameters.model_validate(told))


def judge(ended: Ended) -> Judgement:
    log = (ended.directory / "processes" / "robot.log").read_text(encoding="utf-8")
    reached = log.count("reached ")
    if "there is no path" in log:
        return Judgement({"goals": reached}, "planning_failed")
    if reached < ended.parameters.goals:
        missed = ended.parameters.goals - reached
        return Judgement({"goals": reached}, "control_failed", f"{missed} of {ended.parameters.goals} goals missed")
    return Judgement({"goals": reached})


KIND = WorkloadKind(
    "robot",
    "a robot drives to its goals",
    RobotParameters,
    make,
    figures={"goals": OwnFigure(words="goals reached", better="higher", scale="difference")},
    outcomes=(
        OwnOutcome(name="planning_failed", words="planning failed"),
        OwnOutcome(name="control_failed", words="control failed"),
    ),
    judge=judge,
)
