"""The waiting times of people with one revision of perflab compared with another: the same commands, pair by pair.

Each revision is a checkout with its own native build. It makes its own run of the same experiment on the virtual
middleware, which is fast and gives the same figures with the same seed; both read the same trace. The two take turns in
a random order; wall time and CPU time are those of whole processes. A command whose ratio is significantly above LIMIT
(the lower end of its 95 % interval) misses the limit.

    python benchmarks/revisions.py BEFORE AFTER [--pairs 12] [--trace FOLDER]
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lab import finish, load_note, median, paired_ratio

LIMIT = 1.05
RUN = "sierra_nevada --middleware virtual --factor virtual.jitter=1ms,2ms --time 10s --trials 8"

# {run}, {out} and {trace} are replaced for each revision.
COMMANDS = {
    "version": "--version",
    "help of run": "run --help",
    "list": "list",
    "run, virtual": "run {arguments} --quiet --output {out}/again",
    "show": "show {run}",
    "compare": "compare {run} {other}",
    "report": "report {run} --output {out}/report.html",
    "export csv": "export {run} --format csv --output {out}/csv",
    "trace summary": "trace summary {trace}",
    "trace executor": "trace executor {trace}",
    "trace messages": "trace messages {trace}",
    "trace why": "trace why {trace}",
}


class Revision:
    """A checkout, the command that starts its perflab, and its run."""

    def __init__(self, root: Path, folder: Path, trace: Path | None) -> None:
        self.root = root
        self.folder = folder
        native = root / "build" / "lib" / "perflab"
        self.environment = {**os.environ, "PERFLAB_NATIVE": str(native), "PYTHONPATH": str(root)}
        self.words = {"run": folder / "run", "other": folder / "other", "trace": trace, "out": folder, "arguments": RUN}
        for seed, name in enumerate(("run", "other"), 1):
            self.call(f"run {{arguments}} --seed {seed} --quiet --output {{{name}}}")

    def call(self, command: str) -> tuple[float, float]:
        """Wall and CPU time of the command and all its descendants, in s."""
        subprocess.run(["rm", "-rf", *(str(self.folder / name) for name in ("again", "csv"))], check=True)
        words = [sys.executable, "-m", "perflab", *command.format(**self.words).split()]
        began, spent = time.monotonic(), sum(os.times()[2:4])
        done = subprocess.run(words, env=self.environment, cwd=self.root, capture_output=True, text=True, check=False)
        took = time.monotonic() - began, sum(os.times()[2:4]) - spent
        if done.returncode:
            raise SystemExit(f"{' '.join(words)}: exit {done.returncode}: {done.stderr.strip()}")
        return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--trace", type=Path, help="A recording made by `perflab trace record`.")
    arguments = parser.parse_args()
    noise, generator, report, slower = load_note(), random.Random(1), {}, []
    with tempfile.TemporaryDirectory() as temporary:
        sides = []
        for name in ("before", "after"):
            folder = Path(temporary) / name
            folder.mkdir()
            sides.append(Revision(getattr(arguments, name).resolve(), folder, arguments.trace))
        for label, command in COMMANDS.items():
            if "{trace}" in command and arguments.trace is None:
                continue
            times: list[list[tuple[float, float]]] = [[], []]
            for pair in range(arguments.pairs + 1):
                order = [0, 1]
                generator.shuffle(order)
                for side in order:
                    took = sides[side].call(command)
                    if pair:  # the first compiles modules and fills caches
                        times[side].append(took)
            entry: dict[str, object] = {}
            for index, figure in enumerate(("wall_s", "cpu_s")):
                before, after = ([took[index] for took in side] for side in times)
                entry[figure] = {"before": round(median(before), 3), "after": round(median(after), 3)}
                entry[figure] |= (found := paired_ratio(before, after))  # type: ignore[operator]
                if isinstance(found["interval"], list) and found["interval"][0] > LIMIT:
                    slower.append(f"{label}: {figure}")
            report[label] = entry
            print(label, entry, file=sys.stderr, flush=True)
    whole = {"benchmark": "revisions", "pairs": arguments.pairs, "limit": LIMIT, "commands": report, "slower": slower}
    finish(whole | {"noise": {"before": noise, "after": load_note()}}, ok=not slower)


if __name__ == "__main__":
    main()
