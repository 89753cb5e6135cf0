"""The report of runs that have ended, made in this process when somebody asks for it."""

from __future__ import annotations

from collections.abc import Sequence


def report(runs: Sequence[str]) -> str:
    """The page that `perflab report` writes. Raises PerflabError where there is nothing to report."""
    from perflab.report.run_page.page import report as made  # pictures and more, which nothing else here needs
    from perflab.report.run_page.runs import open_all

    return made(open_all(runs)).page
