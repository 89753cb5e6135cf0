"""Pages: the templates of perflab/pages, filled in. Python passes records; all values are escaped here."""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import math
import os
import re
import sys
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflab.columns import DEEPER, Cell, Column

if TYPE_CHECKING:
    from jinja2 import BytecodeCache, Environment
    from jinja2.bccache import Bucket
    from markupsafe import Markup

# They also reverse the direction of what follows: a name with one would affect the words of the page.
_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_UNITS = "ns|µs|ms|s|min|h|B|KiB|MiB|GiB|MB|Hz|MHz|GHz|CPUs?"
_WITHIN_NUMBER = re.compile(rf"(?<=\d) (?=\d|%|(?:{_UNITS})\b)")
LONG_TEXT, SENTENCE = 18, 60  # letters of a cell from which the style applies
_CODE = re.compile(r"`([^`]+)`")


def render(template: str, **values: Any) -> str:
    """The whole page of a template; a name that the template uses and `values` lacks is an error."""
    return _engine().get_template(template).render(values)


def part(template: str, macro: str, *values: Any) -> Markup:
    """The output of one macro of a template for `values`, to be put into a page."""
    made: Markup = getattr(_engine().get_template(template).module, macro)(*values)
    return made


def asset(name: str) -> Markup:
    """A style or a script of perflab/pages unchanged, for the inside of its element."""
    from markupsafe import Markup

    return Markup(resources.files("perflab").joinpath("pages", name).read_text(encoding="utf-8"))


@cache
def _engine() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("perflab", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_straight,
        bytecode_cache=_compiled(),
    )
    made.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    made.filters |= {"unbroken": unbroken, "inline": inline, "as_written": as_written, "sort_key": sort_key}
    made.filters |= {"below": below, "classes": classes}
    made.globals |= {"asset": asset, "DEEPER": DEEPER}
    return made


def _compiled() -> BytecodeCache:
    """Compiled templates, whose compilation takes a twentieth of a report's time: the user's cache stores them under a
    key of everything they depend on."""
    import jinja2

    made_by = f"{jinja2.__version__} {sys.version} {Path(__file__).read_text(encoding='utf-8')}"

    class Kept(jinja2.BytecodeCache):
        def place(self, bucket: Bucket) -> Path:
            key = hashlib.sha256(f"{bucket.key} {bucket.checksum} {made_by}".encode()).hexdigest()
            return user_cache() / f"template-{key[:32]}"

        def load_bytecode(self, bucket: Bucket) -> None:
            with contextlib.suppress(OSError, EOFError, ValueError, TypeError):
                place = self.place(bucket)
                if place.stat().st_uid == os.geteuid():  # in a shared folder, another user's code must not run
                    bucket.code = marshal.loads(place.read_bytes())

        def dump_bytecode(self, bucket: Bucket) -> None:
            place = self.place(bucket)
            temporary = place.with_name(f"{place.name}.{os.getpid()}")
            with contextlib.suppress(OSError):
                place.parent.mkdir(parents=True, exist_ok=True)
                temporary.write_bytes(marshal.dumps(bucket.code))
                temporary.replace(place)

    return Kept()


def user_cache() -> Path:
    """The cache for slow results, for this user's next time."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():  # others must be ignored (XDG Base Directory Specification)
        return named / "perflab"
    try:
        return Path.home() / ".cache/perflab"
    except RuntimeError:  # a user without a home, as in containers: nothing can be read or written below this
        return Path(os.devnull) / "perflab"


def _straight(value: Any) -> Any:
    """Text without bidirectional controls; markup is left unchanged."""
    if not isinstance(value, str) or value.isascii() or hasattr(value, "__html__"):
        return value
    return _TURNS.sub("\ufffd", value)


def unbroken(value: object) -> str:
    """With numbers and their units kept on one line: "1 054", "45.2 µs"."""
    return _WITHIN_NUMBER.sub("\u00a0", str(value))


def inline(value: object) -> Markup:
    """Like `unbroken`, with text between back quotes as code."""
    return _inline(str(value))


@lru_cache(maxsize=1 << 12)  # of ten thousand cells, many are equal
def _inline(text: str) -> Markup:
    from markupsafe import Markup, escape

    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(_straight(unbroken(text))))))


def as_written(text: str) -> Markup:
    """Complete and unchanged: a copied source must stay the same."""
    from markupsafe import escape

    return escape(text)


def below(column: Column[Any], cell: Cell) -> list[str]:
    """The lines of a cell below its text."""
    return [line for line in (column.interval(cell), *cell.below) if line]


def classes(column: Column[Any], cell: Cell) -> str:
    """The style of a cell: one with long words gets room for some of them in a line."""
    if column.quantity.numeric:
        return f"r {cell.tone}".rstrip()
    longest = max(map(len, (cell.text, *below(column, cell))))
    found = (cell.tone, "long-text" if longest > LONG_TEXT else "", "sentence" if longest > SENTENCE else "")
    return " ".join(filter(None, found))


def sort_key(value: float | str | None) -> str | None:
    """The sort key of a cell: a number or a text; None for an unknown value, which is always last."""
    if not isinstance(value, float):
        return None if value is None else str(value)
    return f"{value:.12g}" if math.isfinite(value) else None
