"""The machine and its software as a table for papers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perflab.report.inventory import Row, rows
from perflab.report.latex.table import FLOAT
from perflab.report.latex.text import breakable, escape

Json = Mapping[str, Any]

VALUE_PT = 320

# Too long for a table in a paper, and of no meaning to its readers; `perflab inventory` and the manifest have them.
_LEFT_OUT = ("kernel build", "kernel command line", "Python packages")


def inventory_of(manifest: Json) -> Json | None:
    """Of a run; of an older one what it knows of its host."""
    found = manifest.get("inventory") or manifest.get("host")
    return found if isinstance(found, Mapping) and found else None


def machine(inventory: Json, label: str, before: str = "", *, whole: bool = False) -> str:
    """The float, without what nobody could find out. `before` begins its caption."""
    shown = [r for r in rows(inventory) if r.value is not None and (whole or r.label not in _LEFT_OUT)]
    return _float(shown, label, before)


def _float(shown: Sequence[Row], label: str, before: str) -> str:
    lines: list[str] = []
    for section in dict.fromkeys(row.section for row in shown):
        lines += [
            *(["\\addlinespace"] if lines else []),
            rf"\multicolumn{{2}}{{@{{}}l@{{}}}}{{\emph{{{escape(section)}}}}} \\",
            *(
                rf"{escape(r.label)} & \raggedright\hspace{{0pt}}{breakable(r.text)} \tabularnewline"
                for r in shown
                if r.section == section
            ),
        ]
    body = "\n".join(lines)
    return (
        f"\\begin{{\\{FLOAT}}}[htbp]\n\\centering\n"
        f"\\caption{{{before}Machine and software.}}\n\\label{{{label}}}\n\\small\n"
        f"\\begin{{tabular}}{{@{{}}lp{{{VALUE_PT}pt}}@{{}}}}\n\\toprule\n{body}\n\\bottomrule\n\\end{{tabular}}\n"
        f"\\end{{\\{FLOAT}}}\n"
    )
