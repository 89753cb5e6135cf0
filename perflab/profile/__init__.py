"""CPU profiles: where CPU time is spent, from samples.

    counter     which event can be sampled here, and what the rights allow
    record      perf, started on a command or attached to processes, so that it ends with perflab
    perf_data   what perf recorded: stacks, losses, throttling, processes
    families    to which part of a system a function belongs, and their shares with intervals
    flamegraph  stacks as a page to look at; of anything that has stacks with weights
    result      the folder of a profile: written, read back, printed

docs/profiling.md explains what the figures mean and how wrong they can be.
"""

from typing import Final, Literal

FILE: Final = "profile.json"  # of the folder of a profile
MOST_FUNCTIONS: Final = 100  # number of a process's hottest functions that a profile keeps
TOP: Final = 10  # default number of these to show

# perf's options: defined here, so that they can be listed without importing the code that runs perf.
CallGraph = Literal["dwarf", "fp", "lbr"]
DEFAULT_CALL_GRAPH: CallGraph = "dwarf"
DEFAULT_FREQUENCY_HZ = 999  # not 1000, to avoid running in step with timers
HIGHEST_FREQUENCY_HZ = 50_000
DEFAULT_STACK_BYTES = 8192
LARGEST_STACK_BYTES = 65_528  # limit of perf, a multiple of 8
