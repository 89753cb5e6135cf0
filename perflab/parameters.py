"""Types of the parameters that a user writes, as text on the command line, or as text or number in YAML."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from perflab.errors import BadInput
from perflab.option import Form, one_of
from perflab.units import SIZE_UNITS, duration_text, parse_duration
from perflab.validation import DURATION

MAX_CPUS = 8192  # the range of Linux


class Parameters(BaseModel):
    """For a condition or an observer."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, defer_build=True)


def _duration(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("a duration is a number of seconds or text like 10ms")
    try:
        return parse_duration(str(value), "the value", zero_allowed=True)
    except BadInput as error:
        raise ValueError(str(error)) from error


_SIZE = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(B|kB|MB|GB|KiB|MiB|GiB)?")


def _size(value: Any) -> Any:
    written = isinstance(value, str | int) and not isinstance(value, bool)
    match = _SIZE.fullmatch(str(value).strip()) if written else None
    if match is None:
        raise ValueError(f"{value!r} is not a size; use bytes (1024) or a unit (64kB, 1MiB)")
    return round(float(match.group(1)) * SIZE_UNITS[match.group(2)])


def parse_size(text: str, where: str) -> int:
    """Bytes of "64kB" or "1MiB". Raises BadInput."""
    try:
        return int(_size(text))
    except ValueError as error:
        raise BadInput(f"{where}: {error}") from error


def _percent(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return float(value.strip().removesuffix("%"))
    except ValueError:
        raise ValueError(f"{value!r} is not a percentage like 5%") from None


def cpus_of(text: str) -> tuple[int, ...] | None:
    """CPUs of "0-2,5", ascending, without duplicates; None if the text is not such a list."""
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part)
        if match is None or not int(match[1]) <= (last := int(match[2] or match[1])) < MAX_CPUS:
            return None
        found.update(range(int(match[1]), last + 1))
    return tuple(sorted(found))


def _cpus(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | list | tuple):
        raise ValueError("CPUs are a list like 0,2-3")
    if isinstance(value, list | tuple):
        value = ",".join(str(cpu) for cpu in value)
    if (cpus := cpus_of(str(value).strip())) is None:
        raise ValueError(f"{str(value).strip()!r} is not a list of CPUs like 0,2-3")
    return cpus


def _names(value: Any) -> Any:
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(",") if word.strip())
    return value


def _switch(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if value in ("on", "off"):
        return value == "on"
    raise ValueError(f"{value!r} is not on or off")


# For editors: the permitted syntax. Plain numbers for a duration are seconds (docs/schema).
_DURATION_SCHEMA = {"type": ["number", "string"], "format": DURATION}
_SIZE_SCHEMA = {"type": ["integer", "string"]}
_PERCENT_SCHEMA = {"type": ["number", "string"]}
_CPUS_SCHEMA = {"type": ["integer", "string", "array"], "items": {"type": "integer"}}
_NAMES_SCHEMA = {"type": ["string", "array"], "items": {"type": "string"}}
_SWITCH_SCHEMA = {"enum": ["on", "off", True, False]}

# "10ms", 0.5 (seconds); ns
DurationNs = Annotated[int, BeforeValidator(_duration), WithJsonSchema(_DURATION_SCHEMA), Form("TIME", duration_text)]
# 1024, "64kB", "1MiB"
Bytes = Annotated[int, BeforeValidator(_size), WithJsonSchema(_SIZE_SCHEMA), Form("SIZE")]
# 80, "80%"
IN_PERCENT = Form("P%", lambda percent: f"{percent:g}%")
Percent = Annotated[float, BeforeValidator(_percent), WithJsonSchema(_PERCENT_SCHEMA), IN_PERCENT]
# "0,2-3", [0, 2]; ascending, at least one
Cpus = Annotated[tuple[int, ...], BeforeValidator(_cpus), WithJsonSchema(_CPUS_SCHEMA), Form("CPUS")]
# "a,b", [a, b]
Names = Annotated[tuple[str, ...], BeforeValidator(_names), WithJsonSchema(_NAMES_SCHEMA), Form("NAME,...")]
# on, off, true, false
Switch = Annotated[
    bool,
    BeforeValidator(_switch),
    WithJsonSchema(_SWITCH_SCHEMA),
    Form("on|off", lambda on: "on" if on else "off", one_of(("on", "off"))),
]
