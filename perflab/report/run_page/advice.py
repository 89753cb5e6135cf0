"""What a run says about priorities: which assignment of threads prevents failed trials, and how to apply it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perflab.report.advice import notes, sentences, snippets
from perflab.report.run_page.blocks import Block, Fold, Items, Sheet, Source, Text, each, paragraphs
from perflab.report.runs import ReportRun
from perflab.report.tables.advice import table
from perflab.statistics.advice import advise, can_advise


def section(runs: Sequence[ReportRun]) -> Iterator[Block]:
    """For runs with assignments as a factor under a program that takes the CPU."""
    for run, heading in each(runs):
        if not can_advise(run.summary):
            continue
        yield from heading
        advice = advise(run.summary, run.manifest)
        for situation in advice.situations:
            made = table(situation)
            yield Sheet(made, called=made.title, sorts=False)
            yield from paragraphs(sentences(situation))
            copied = [
                block
                for snippet in snippets(situation)
                for block in (Text(snippet.title), Source(snippet.text, snippet.title), Items(snippet.notes))
            ]
            yield Fold("How to apply it", copied, on_paper=False)
        yield from paragraphs(notes(advice), "faint")
