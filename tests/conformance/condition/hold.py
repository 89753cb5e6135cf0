"""Applies a condition in a trial, says which processes it has, and waits to be killed.

hold.py CONDITION DIRECTORY
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from perflab import registry
from perflab.condition.kinds import REGISTRY
from perflab.host import Host
from tests.conformance.condition.real_trial import RealTrial, graph


def main() -> None:
    word, directory = sys.argv[1:]
    name, parameters = registry.split(word, "CONDITION")
    condition = REGISTRY[name].make(parameters, word)
    condition.check(Host(), graph(), "dds")
    with RealTrial(Path(directory)) as trial:
        applied = condition.begin(trial)
        trial.start_workload()
        applied.settle()
        tasks = [(t.pid, t.start_ticks) for label in trial.companions for t in trial.tasks(label)]
        print(json.dumps(tasks), flush=True)
        time.sleep(3600)


if __name__ == "__main__":
    main()
