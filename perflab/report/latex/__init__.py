r"""A run for a paper: tables and numbers as LaTeX, figures as PDF, and a document that shows everything.

Every file of tables needs only `booktabs`. All content comes from summary.json and manifest.json, as everywhere.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perflab.errors import BadInput, PerflabError, damage_of
from perflab.report import whole_file
from perflab.report.draw import draw
from perflab.report.figures import Figure
from perflab.report.inventory import inventory_of
from perflab.report.latex.tables import machine, tables
from perflab.report.latex.text import breakable, escape
from perflab.report.latex.values import COMMANDS, values
from perflab.report.pictures import of_report
from perflab.results.files import Manifest
from perflab.results.outcome import SUCCESS, Outcomes
from perflab.results.run import RunData
from perflab.results.summary import Summary
from perflab.units import format_duration

Json = Mapping[str, Any]

DOCUMENT, VALUES, FIGURES = "report.tex", "values.tex", "figures.tex"

_HEAD = r"""% Written by perflab; it will be overwritten. Needs \usepackage{booktabs}.
% For two columns: \newcommand{\perflabfloat}{table*} before it is read.
\providecommand{\perflabfloat}{table}
"""
_HEAD_OF_FIGURES = r"""% Written by perflab; it will be overwritten. Needs \usepackage{graphicx}.
\providecommand{\perflabfigure}{figure}
"""
_HEAD_OF_VALUES = r"""% Written by perflab; it will be overwritten. Needs no package.
"""


@dataclass(frozen=True)
class _Part:
    """The parts of one run: sentences, the names of its table files, and their content."""

    run: RunData
    prefix: str  # prefix of files and labels; empty for one run
    tables: dict[str, str]


def write(runs: Sequence[RunData], folder: Path) -> list[Path]:
    """Writes everything into `folder`, which is created; returns the files in reading order.

    Files of an earlier call are replaced, others are left alone. Raises BadInput if there are no results or a run is
    damaged, and PerflabError if the folder cannot be written.
    """
    if not any(run.summary.results for run in runs):
        names = ", ".join(run.name for run in runs)
        raise BadInput(f"nothing to write: {names} recorded no trial")
    with damage_of(*(run.path for run in runs)):
        drawn = pictures(runs)
        parts = [_part(run, f"{_letter(i)}_" if len(runs) > 1 else "") for i, run in enumerate(runs)]
        files: dict[str, bytes] = {DOCUMENT: _document(parts, bool(drawn)).encode()}
        listed = "".join(values(p.run.summary, p.run.manifest, p.prefix.replace("_", "/")) for p in parts)
    for part in parts:
        files |= {f"{name}.tex": text.encode() for name, text in part.tables.items()}
    files[VALUES] = (_HEAD_OF_VALUES + COMMANDS + listed).encode()
    if drawn:
        files[FIGURES] = (_HEAD_OF_FIGURES + "\n".join(_figure(*named) for named in drawn.items())).encode()
    files |= {f"{name}.pdf": draw(figure, "pdf", "light") for name, figure in drawn.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PerflabError(f"cannot create {folder}: {error.strerror}; choose another place with --latex") from error
    for name, content in files.items():
        whole_file.write(folder / name, content, "--latex")
    return [folder / name for name in files]


def machine_file(inventory: Json) -> str:
    """Everything known about a machine."""
    return _HEAD + machine(inventory, whole=True).floats(_label("tab", "machine"))


def _letter(i: int) -> str:
    return chr(ord("a") + i) if i < 26 else f"z{i}"


def _part(run: RunData, prefix: str) -> _Part:
    found = tables(run.summary)
    if (inventory := inventory_of(run.manifest)) is not None:
        found.append(machine(inventory))
    if prefix:
        found = [replace(t, said=f"{_title(prefix)}: {t.said}") for t in found]
    return _Part(
        run, prefix, {f"{prefix}{t.name}": _HEAD + t.floats(_label("tab", f"{prefix}{t.name}")) for t in found}
    )


def _title(prefix: str) -> str:
    return prefix.removesuffix("_").upper()


def _label(kind: str, name: str) -> str:
    return f"{kind}:perflab-{name.replace('_', '-')}"


# -- the document ----------------------------------------------------------------------------------------------------

_PREAMBLE = r"""% Written by perflab; it is written anew with the run. pdflatex report.tex, twice for the references.
\documentclass[a4paper,10pt]{article}
\usepackage[margin=2.2cm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
\setlength{\emergencystretch}{3em}
\setlength{\belowcaptionskip}{6pt}
\setlength{\parindent}{0pt}
\renewcommand{\topfraction}{0.9}
\renewcommand{\floatpagefraction}{0.7}
\input{values}
"""


def _document(parts: Sequence[_Part], has_figures: bool) -> str:
    names = " and ".join(breakable(name) for name in dict.fromkeys(p.run.name for p in parts))
    lines = [
        _PREAMBLE,
        r"\begin{document}",
        rf"\begin{{center}}{{\Large\bfseries {names}\par}}\medskip {_date(parts)}\end{{center}}",
    ]
    for part in parts:
        if part.prefix:
            lines.append(rf"\section{{{_title(part.prefix)}: {breakable(part.run.name)}}}")
        lines += [_introduction(part.run), _findings(part.run)]
    several = len(parts) > 1
    lines.append(r"\section{Tables}" if not several else r"\section{All tables}")
    lines += [rf"\input{{{name}}}" for part in parts for name in part.tables]
    if has_figures:
        lines += [r"\clearpage", r"\section{Figures}", r"\input{figures}"]
    return "\n".join([*lines, r"\end{document}", ""])


def _date(parts: Sequence[_Part]) -> str:
    """The date of the runs, not of writing: the same run gives the same document."""
    days = {(p.run.manifest.created_utc or "")[:10] for p in parts} - {""}
    return escape(", ".join(sorted(days)))


def _introduction(run: RunData) -> str:
    """What was run, beginning with what is wrong with it."""
    summary, manifest = run.summary, run.manifest
    sentences = []
    if wrong := _wrong(summary, manifest):
        sentences.append(rf"\textbf{{{escape(wrong)}}}")
    found = summary.results
    workloads = ", ".join(dict.fromkeys(r.workload for r in found))
    seconds = sorted({r.duration_s for r in found if r.duration_s})
    trials = sum(r.trials for r in found)
    of = f" of {' and '.join(format_duration(s) for s in seconds)}" if seconds else ""
    # Without duplicates: with other options it is listed again.
    middlewares = dict.fromkeys(f"{m.name} {m.version}" if m.version else m.name for m in manifest.middlewares)
    on = f" on {', '.join(middlewares)}" if middlewares else ""
    sentences.append(escape(f"{workloads}{on}: {'1 trial' if trials == 1 else f'{trials} trials'}{of}."))
    sentences += [escape(_sentence(note)) for note in run.notes]
    command = manifest.command_line
    if command:
        words = breakable(shlex.join(command))
        sentences.append(f"\n\n\\begin{{flushleft}}\\ttfamily\\footnotesize\n{words}\n\\end{{flushleft}}")
    return "\n".join(sentences) + "\n"


def _wrong(summary: Summary, manifest: Manifest) -> str:
    outcomes = Outcomes.together([r.outcomes for r in summary.results])
    parts = [f"{n} {words}" for outcome, n, _, words in outcomes.counts if outcome != SUCCESS]
    sentences = [f"Not every trial was a success: {', '.join(parts)}."] if parts else []
    planned, ran = len(manifest.trials), sum(r.trials for r in summary.results)
    if planned > ran:
        sentences.insert(0, f"The run was not finished: {ran} of {planned} planned trials are in it.")
    return " ".join(sentences)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _findings(run: RunData) -> str:
    remarks = () if run.summary.findings is None else run.summary.findings.remarks
    sentences = [r.words for r in remarks]
    for c in run.summary.curves:
        sentences += [f"{c.variant}, {c.factor}: {words}" for of in c.metrics.values() for words in of.words]
    sentences += [words for p in run.summary.breaking_points for words in p.words]
    if not sentences:
        return ""
    items = "\n".join(rf"\item {breakable(_sentence(s))}" for s in sentences)
    return (
        f"\\subsection*{{Findings}}\n\\begin{{itemize}}\n\\setlength{{\\itemsep}}{{0pt}}\n{items}\n\\end{{itemize}}\n"
    )


def pictures(runs: Sequence[RunData]) -> dict[str, Figure]:
    """Every available picture of runs, in the order of a report, by file name."""
    found: dict[str, Figure] = {}
    for figure in of_report(runs).figures:
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", figure.name)
        names = (stem, *(f"{stem}_{number}" for number in range(2, len(found) + 2)))
        found[next(name for name in names if name not in found)] = figure
    return found


def _figure(name: str, figure: Figure) -> str:
    caption = escape(_sentence(f"{figure.title}: {figure.subtitle}" if figure.subtitle else figure.title))
    return (
        "\\begin{\\perflabfigure}[htbp]\n\\centering\n"
        f"\\includegraphics[width=0.85\\linewidth,height=0.85\\textheight,keepaspectratio]{{{name}}}\n"
        f"\\caption{{{caption}}}\n\\label{{{_label('fig', name)}}}\n\\end{{\\perflabfigure}}\n"
    )
