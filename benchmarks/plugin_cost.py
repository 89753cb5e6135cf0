"""The cost that the plug-ins of the DDS libraries add to a message, compared with bare programs, and their difference.

One thread writes and takes a message in turn; CPU time of that thread. The added cost must be equal for both libraries
within the limit: otherwise the comparison of the libraries is unfair.

    python benchmarks/plugin_cost.py [--repeats 15]
"""

from __future__ import annotations

import argparse
import json
import subprocess
from typing import Any

from lab import BINARIES, NATIVE, finish, load_note, median

from perflab.experiment.domain import hold

LIMIT_NS = 50.0
LIBRARIES = ("cyclonedds", "fastdds")


def cost(library: str) -> dict[str, Any]:
    with hold() as domain, hold() as other:
        command = [str(BINARIES / f"plugin_cost_{library}"), library, str(NATIVE / "middleware" / f"{library}.so"),
                   str(domain), str(other)]  # fmt: skip
        result: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    runs = [{library: cost(library) for library in LIBRARIES} for _ in range(options.repeats)]
    added = {library: [run[library]["added_ns"] for run in runs] for library in LIBRARIES}
    difference = median([run["fastdds"]["added_ns"] - run["cyclonedds"]["added_ns"] for run in runs])
    finish(
        {
            "benchmark": "plugin_cost",
            "n": options.repeats,
            "added_ns": {library: round(median(values), 1) for library, values in added.items()},
            "added_ns_all": added,
            "bare_ns": {library: round(median([run[library]["bare_ns"] for run in runs]), 1) for library in LIBRARIES},
            "difference_ns": round(difference, 1),
            "limit_ns": LIMIT_NS,
            "machine": load_note(),
        },
        abs(difference) <= LIMIT_NS,
    )


if __name__ == "__main__":
    main()
