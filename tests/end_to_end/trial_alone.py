"""Runs the trial whose plan is in one folder into another one, and prints how it went: trial_alone.py FROM INTO."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from perflab.experiment.trial import run_trial
from perflab.experiment.trial_plan import TrialPlan
from perflab.runs.rundir import TrialDirectory
from perflab.signals import Signals


def main() -> None:
    given, into = (TrialDirectory(Path(word)) for word in sys.argv[1:])
    into.processes.mkdir(parents=True)
    with Signals() as signals:
        outcome = run_trial(TrialPlan.read(given), into, signals, lambda progress: None)
    print(
        json.dumps({"outcome": outcome.file.outcome, "reason": outcome.file.reason, "evidence": outcome.file.evidence})
    )


if __name__ == "__main__":
    main()
