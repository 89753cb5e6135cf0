"""The disturbance layer over any plug-in, also in the virtual runtime: options with their own prefix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from perflab.errors import BadInput, instead
from perflab.middleware.kind import Option
from perflab.units import parse_duration

NAME = "disturb"
OPTIONS = (
    Option(f"{NAME}.delay", "constant delay of every message (0ns)"),
    Option(f"{NAME}.jitter", "additional uniform delay of 0..jitter, without overtaking (0ns)"),
    Option(f"{NAME}.loss", "probability that a message is lost (0)"),
    Option(f"{NAME}.loss_every", "every n-th message of a writer to a reader is lost"),
    Option(f"{NAME}.reorder_every", "every n-th message arrives right after its successor"),
    Option(f"{NAME}.duplicate_every", "every n-th message arrives twice"),
    Option(f"{NAME}.stall_every", "period of stalls; during a stall nothing arrives"),
    Option(f"{NAME}.stall", "length of a stall; then all messages that were held back arrive at once"),
    Option(f"{NAME}.topic", "disturb only this topic"),
    Option(f"{NAME}.seed", "seed of jitter and loss (default: the run's seed)"),
)
HOLDING_BACK = (f"{NAME}.delay", f"{NAME}.jitter", f"{NAME}.stall")  # so that the drain waits for them
REORDER_FLUSH_NS = 50_000_000  # how long a message waits for the one that should overtake it
SEED = f"{NAME}.seed"
TOPIC = f"{NAME}.topic"
WITHOUT_PREFIX = tuple(Option(o.key.removeprefix(f"{NAME}."), o.help) for o in OPTIONS)


def is_asked_for(options: Iterable[str]) -> bool:
    return any(key.startswith(f"{NAME}.") for key in options)


def check_topic(options: Mapping[str, str], topics: Iterable[str]) -> None:
    """Rejects a topic to disturb that is not in `topics`. Raises BadInput."""
    known = sorted({_plain(topic) for topic in topics})
    if TOPIC in options and (asked := _plain(options[TOPIC])) not in known:
        raise BadInput(f"{TOPIC} {options[TOPIC]!r} is not a topic of this workload; {instead(asked, known)}")


def _plain(topic: str) -> str:
    """Without the prefix of the name on the wire, in which form the layer compares them."""
    return topic.removeprefix("rt/").removeprefix("/")


def seeded(options: Mapping[str, str], seed: int, process: int) -> dict[str, str]:
    """The seed in a process: the requested one or else `seed`, plus the index of the process.

    With one seed for all, the readers of a topic in several processes would lose the same messages.
    """
    if not is_asked_for(options):
        return {}
    asked = options.get(SEED, str(seed))
    return {SEED: str(int(asked) + process) if asked.isdecimal() else asked}  # the layer rejects a malformed one


def programmed_delay_ns(options: Mapping[str, str]) -> int:
    """How long a message may be held back on purpose."""
    until_next_ns = REORDER_FLUSH_NS if f"{NAME}.reorder_every" in options else 0
    return until_next_ns + sum(_duration(options[key]) for key in HOLDING_BACK if key in options)


def _duration(text: str) -> int:
    """The layer itself rejects a malformed one, with a better message."""
    try:
        return parse_duration(text, "option", zero_allowed=True)
    except BadInput:
        return 0
