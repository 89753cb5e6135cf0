"""Text and numbers for LaTeX: printable by any LaTeX with the usual fonts, whatever characters a name has."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence

# Also in OT1, LaTeX's default encoding: there < > | and " are other glyphs, and -- is a dash.
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{''}",
    "`": r"\textquoteleft{}",
    "-": "-",
}  # fmt: skip
_SYMBOLS = {
    "µ": r"\ensuremath{\mu}",
    "×": r"\ensuremath{\times}",
    "·": r"\ensuremath{\cdot}",
    "−": r"\ensuremath{-}",
    "±": r"\ensuremath{\pm}",
    "≤": r"\ensuremath{\leq}",
    "≥": r"\ensuremath{\geq}",
    "≠": r"\ensuremath{\neq}",
    "≈": r"\ensuremath{\approx}",
    "→": r"\ensuremath{\rightarrow}",
    "←": r"\ensuremath{\leftarrow}",
    "↔": r"\ensuremath{\leftrightarrow}",
    "∞": r"\ensuremath{\infty}",
    "°": r"\ensuremath{^\circ}",
    "²": r"\ensuremath{^2}",
    "³": r"\ensuremath{^3}",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "§": r"\S{}",
    "©": r"\copyright{}",
    "®": r"\textregistered{}",
    "™": r"\texttrademark{}",
    "ß": r"\ss{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "ı": r"\i{}",
    "\u00a0": "~",
    "\u2009": r"\,",
    "\u202f": r"\,",
    "\u2011": r"\mbox{-}",
}  # fmt: skip
_ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u", "\u0307": ".",
    "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0323": "d", "\u0327": "c",
}  # fmt: skip
_GREEK = (
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
    "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
)  # fmt: skip
# A long name may be broken after these.
_BREAKS = "_=+,/:.;"
LONG_WORD = 14


def escape(text: object) -> str:
    """Any text as LaTeX prints it. A character that LaTeX's own fonts lack is written as its number, "[U+4E2D]".

    >>> escape("cpu_load: 80 % & 45 µs")
    'cpu\\\\_load: 80\\\\,\\\\% \\\\& 45 \\\\ensuremath{\\\\mu}s'
    """
    out: list[str] = []
    before = ""
    for letter in unicodedata.normalize("NFC", str(text)):
        # -- and the like would be dashes, '' a closing quote, ?` and !` Spanish.
        if letter == before and letter in "-',":
            out.append("{}")
        out.append(_letter(letter))
        before = letter
    return _percent("".join(out))


def breakable(text: object) -> str:
    """The same, with places where long names may be broken."""
    words = str(text).split(" ")
    return _percent(" ".join(_with_breaks(word) if len(word) > LONG_WORD else escape(word) for word in words))


def _percent(latex: str) -> str:
    """A thin space before the sign, without a line break."""
    return re.sub(r"(?<=[0-9\])]) (?=\\%)", r"\\,", latex)


def _with_breaks(word: str) -> str:
    parts, start = [], 0
    for i, letter in enumerate(word):
        # Not within a number, nor before another such letter.
        if letter in _BREAKS and i + 1 < len(word) and word[i + 1] not in _BREAKS and not _in_number(word, i):
            parts.append(escape(word[start : i + 1]))
            start = i + 1
    return r"\allowbreak{}".join([*parts, escape(word[start:])])


def _in_number(word: str, i: int) -> bool:
    return word[i] in ".,:" and i > 0 and word[i - 1].isdigit() and word[i + 1].isdigit()


def _letter(letter: str) -> str:
    if letter in _SPECIAL:
        return _SPECIAL[letter]
    if letter in _SYMBOLS:
        return _SYMBOLS[letter]
    if letter.isascii():
        return letter if letter.isprintable() else " "
    base, *marks = list(unicodedata.normalize("NFD", letter))
    if len(marks) == 1 and marks[0] in _ACCENTS and base.isascii() and base.isalpha():
        base = {"i": r"\i", "j": r"\j"}.get(base, base) if _ACCENTS[marks[0]] not in "cd" else base
        return f"\\{_ACCENTS[marks[0]]}{{{base}}}"
    name = unicodedata.name(letter, "")
    if name.startswith("GREEK SMALL LETTER "):
        greek = name.removeprefix("GREEK SMALL LETTER ").lower().replace("lamda", "lambda")
        if greek in _GREEK:
            return f"\\ensuremath{{\\{greek}}}"
    category = unicodedata.category(letter)
    if category == "Zs":
        return " "
    if category in ("Cf", "Cc", "Mn", "Me"):
        return ""
    return f"[U+{ord(letter):04X}]"


# -- numbers ---------------------------------------------------------------------------------------------------------


def decimals(value: float, low: float | None = None, high: float | None = None) -> int:
    """How many decimals are worth printing: two digits of the interval's width, or three of the value without one.

    >>> decimals(45.1234, 44.9, 46.2), decimals(45.1234), decimals(27231.0, 16000.0, 32000.0)
    (1, 1, 0)
    """
    if low is not None and high is not None and math.isfinite(high - low) and high > low:
        return decimals_of(high - low, 2)
    return decimals_of(value, 3)


def decimals_of(size: float, digits: int) -> int:
    """How many decimals show this many digits of a number."""
    if not size or not math.isfinite(size):
        return 0
    first = math.floor(math.log10(abs(size)))
    # 0.0996 with two digits is 0.10: one decimal fewer.
    rounded_up = round(abs(size), digits - 1 - first) >= 10 ** (first + 1)
    return int(min(9, max(0, digits - 1 - first - rounded_up)))


def number(value: float, places: int) -> str:
    """With this many decimals, thousands separated by a thin space, and a true minus.

    >>> number(12345.678, 1)
    '12\\\\,345.7'
    """
    if not math.isfinite(value):
        return r"\ensuremath{\infty}" if value > 0 else r"\ensuremath{-\infty}" if value < 0 else "--"
    text = f"{abs(value):,.{places}f}"
    whole, dot, rest = text.partition(".")
    # Four digits stay together.
    whole = whole.replace(",", r"\,") if len(whole) > 5 else whole.replace(",", "")
    sign = r"\ensuremath{-}" if value < 0 and float(text.replace(",", "")) else ""
    return f"{sign}{whole}{dot}{rest}"


def aligned(texts: Sequence[tuple[str, int]]) -> list[str]:
    """Numbers with their decimals, padded on the right to align their points."""
    most = max((places for _, places in texts), default=0)
    return [text + _filled(most, places) if text else "" for text, places in texts]


def _filled(most: int, places: int) -> str:
    if most == places:
        return ""
    return f"\\phantom{{{'.' if not places else ''}{'0' * (most - places)}}}"


def listed(words: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
