"""What is served: the live page, its current parts, and the report of ended runs."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

from perflab import page
from perflab.columns import Cell, Column
from perflab.quantity import COUNT, DURATION, SHARE, TIME
from perflab.report import draw_html
from perflab.report.axes import linear_ticks
from perflab.report.figures import Axis, Figure, Key, Place, Plot, Side, Sign, fixed, from_zero, seconds, times
from perflab.report.run_page.blocks import Block, Group, Heading, Items, Picture, Sheet, Text
from perflab.report.serve.finished import needed
from perflab.report.serve.present import COMMAND
from perflab.report.serve.state import ALPHA, CRASHED, DAMAGED, ENDED_EARLY, FINISHED, WAITING, SoFar, State
from perflab.report.tables.results import SUCCESS as SUCCESSES
from perflab.report.tables.results import Beside, results
from perflab.report.tables.trials import TrialOf, trials
from perflab.results.outcome import SUCCESS as SUCCESSFUL
from perflab.results.outcome import Outcome
from perflab.runs.controller import ELSEWHERE, RUNNING
from perflab.statistics.metrics import METRICS
from perflab.statistics.proportion import wilson
from perflab.units import format_confidence, format_duration

if TYPE_CHECKING:
    from markupsafe import Markup

HEIGHT_PX = 220  # px of a picture: several of them are visible at once
MAX_ROWS = 100  # rows of the table of trials
MOST_FILMS = 24  # trials that can be selected for their film
MOST_SIGNED = 40  # points of a line, each with a sign

Json = dict[str, Any]


@dataclass(frozen=True)
class Asset:
    """Answers from memory."""

    kind: str
    body: bytes


@dataclass(frozen=True)
class Look:
    """How a state of a run is shown, and how long a page waits before its next request."""

    sign: str
    wait_ms: int
    tone: str = ""
    advice: str = ""


LOOKS: Mapping[str, Look] = {
    RUNNING: Look("▶", 1000),
    ELSEWHERE: Look("▷", 2000),
    WAITING: Look("‖", 1000, advice="This page starts automatically when the run begins."),
    FINISHED: Look("✔", 10_000),  # it may be resumed
    ENDED_EARLY: Look("!", 10_000, "warn", "The run was interrupted, or could not continue. To run what is missing:"),
    CRASHED: Look(
        "✖", 5000, "bad",
        "perflab was killed, or the machine went down: the running trial is lost, finished ones are complete. To "
        "continue:",
    ),
    DAMAGED: Look("✖", 3000, "bad"),
}  # fmt: skip


def assets(names: Sequence[str]) -> Mapping[str, Asset]:
    """By path. `names` are those of the runs, in the order of `run` in a query."""
    text = page.render("live.html", title=", ".join(names), runs=names)
    style = "".join([draw_html.page_style(), *map(page.asset, ("report.css", "film.css", "live.css"))])
    script = "\n".join(map(page.asset, ("pictures.js", "film.js", "live.js")))
    return {
        "/": Asset("text/html; charset=utf-8", text.encode(errors="replace")),
        "/live.css": Asset("text/css; charset=utf-8", style.encode()),
        "/live.js": Asset("text/javascript; charset=utf-8", script.encode()),
    }


@cache
def library() -> Asset:
    """The drawing library, by far the largest part."""
    return Asset("text/javascript; charset=utf-8", draw_html.library().encode())


def report(runs: Sequence[str]) -> str:
    """The page that `perflab report` writes. Raises PerflabError if there is nothing to report."""
    from perflab.report.run_page.page import report as made  # pictures and more, which nothing else here needs
    from perflab.report.runs import open_all

    return made(open_all(runs)).page


# -- the parts -------------------------------------------------------------------------------------------------------


def answer(state: State, server: Mapping[str, Any], known: str | None = None) -> bytes:
    """The parts as HTML, each in its element; without those that have not changed since the version `known`."""
    run, now = state.run, state.now
    name, planned, look = run.document["name"], run.document["planned"], LOOKS[state.kind]
    parts = [*(() if known == state.run_version else _slow(run)), *_quick(run, now)]
    about = {
        "state": state.kind,
        "version": state.version,
        "run": state.run_version,
        "wait": LOOKS[RUNNING].wait_ms if now["unread"] else look.wait_ms,
    }
    done = f"{now['done']}/{planned} " if planned else ""
    title = f"{done}{state.kind.replace('_', ' ')} · {name}"
    written = [_written("state", name, look, now), *(part.written for part in parts), _cost(server)]
    drawn = draw_html.document([figure for part in parts for figure in part.figures], HEIGHT_PX)
    return _written("answer", title, about, written, drawn).encode(errors="replace")


@dataclass(frozen=True)
class _Part:
    """An element, and its pictures."""

    written: Markup
    figures: Sequence[Figure] = ()


def _written(macro: str, *values: Any) -> Markup:
    return page.part("live_parts.html", macro, *values)


def _section(
    name: str, blocks: Sequence[Block] = (), figures: Sequence[Figure] = (), below: Sequence[Block] = ()
) -> _Part:
    """Blocks, the pictures, and blocks below these; hidden if empty."""
    pictures = [Picture(markup) for markup in draw_html.sections(figures, level=3).values()]
    return _Part(_written("section", name, [*blocks, *pictures, *below]), figures)


@lru_cache(maxsize=16)
def _slow(run: SoFar) -> list[_Part]:
    """The parts that change when a trial begins or ends."""
    document = run.document
    looks = [_look(row) for row in document["trials"]]
    names = _names(run)
    strip = [
        (sign, tone, f"trial {row['order']}, {names.get(row['result'], '')}: {words}")
        for row, (sign, tone, words) in zip(document["trials"], looks, strict=True)
    ]
    counts = [(sign, tone, f"{words} {COUNT.text(n)}") for (sign, tone, words), n in Counter(looks).items()]
    search, duration_s = document.get("search"), document.get("duration_s")
    facts = [
        document.get("workload"),
        search
        and f"search for the breaking point of {search['factor']}, at most {search['max_trials']} trials for each",
        duration_s and f"{format_duration(duration_s)} measured in each trial",
        document.get("command_line"),
    ]
    plan = _written("plan", facts, strip, counts, document["planned"], sum(not t.trial.interrupted for t in run.trials))
    notes = [Items(document["notes"])] if document["notes"] else []
    return [_Part(plan), _films(run), _results(run), _trials(run), _section("notes", notes)]


def _films(run: SoFar) -> _Part:
    """The trials with a film: the newest one, and earlier ones, the last one first."""
    if not run.document.get("films"):
        return _section("films")
    begun = [(row, *_look(row)) for row in run.document["trials"] if row["number"] is not None]
    newest = sorted(begun, key=lambda one: -one[0]["number"])[:MOST_FILMS]
    return _Part(_written("films", [(row["number"], sign, words) for row, sign, _, words in newest]))


def _confidence(run: SoFar) -> float:
    return float(run.document.get("confidence", 1 - ALPHA))


def _names(run: SoFar) -> dict[int | None, str]:
    """The labels of results, by index."""
    return {place: result["label"] for place, result in enumerate(run.document["results"])}


def _look(row: Json) -> tuple[str, str, str]:
    """For a trial of the plan: its sign, its tone, and its outcome."""
    if row["interrupted"]:
        return "–", "faint", "interrupted"
    if row["outcome"] in (None, "running"):
        return ("·", "faint", "to come") if row["outcome"] is None else ("▶", "", "running")
    outcome = Outcome(row["outcome"])
    return outcome.sign, outcome.tone, row["ended"]


def _results(run: SoFar) -> _Part:
    """As in a report, with the interval of the success rate; without levels that a search never tried."""
    level = _confidence(run)

    def success(row: Beside) -> Cell:
        outcomes = row.record.outcomes
        low, high = wilson(outcomes.success, outcomes.judged, level) or (None, None)
        return replace(SUCCESSES.cell(row), low=low, high=high, quantity=SHARE)

    rows = [Beside(r, name, {}) for r, name in zip(run.results, _names(run).values(), strict=True) if r.trials]
    if not rows:
        return _section("results")
    table = results(rows)
    columns = [replace(c, read=success) if c is SUCCESSES else c for c in table.columns]
    note = (
        f"Medians have {format_confidence(level)} intervals, which need {needed(1 - level)} trials; the success "
        "rate of the judged trials has Wilson's."
    )
    left = [f"{level['factor']}={level['level']}: {level['reason']}" for level in run.document["unavailable_levels"]]
    left += [f"{one['treatment']}: {one['reason']}" for one in run.document["left_out"]]
    made = replace(table, title="Medians over trials", columns=columns, notes=[note])
    blocks: list[Block] = [Heading("Results so far", 2), Sheet(made, sorts=False)]
    if left:
        blocks += [Text("Left out, because this machine cannot run them:"), Items(left)]
    return _section("results", blocks, _over_levels(run))


def _trials(run: SoFar) -> _Part:
    """As in a report, the last one first, with the total time of each."""
    if not run.trials:
        return _section("trials")
    names = _names(run)
    places = {row["number"]: row["result"] for row in run.document["trials"]}
    took = {t.trial.trial: t.took_s for t in run.trials}
    rows = [
        TrialOf(t.trial, run.results[place], names[place], t.file)
        for t in sorted(run.trials, key=lambda t: -t.trial.order)[:MAX_ROWS]
        if (place := places[t.trial.trial]) is not None
    ]
    table = trials(rows).without("trial", "run", "block", "after", "received", "began")
    columns = [*table.columns, *map(_of_replies, ("round_trip.p50", "round_trip.p99"))]
    columns.append(Column("took", "took", lambda row: took[row.record.trial], DURATION))
    more = f"The last {len(rows)} of {len(run.trials)}; the others are in /state.json."
    notes = [more] if len(rows) < len(run.trials) else []
    sheet = Sheet(replace(table, title="Trials", columns=columns, notes=notes), sorts=False)
    course = _course(run)
    figures = [course] if course else []
    return _section("trials", [Heading("Finished trials", 2)], figures, [Group("", [sheet], key="trials-table")])


def _of_replies(name: str) -> Column[TrialOf]:
    return Column(name, METRICS[name].words, lambda row: METRICS[name].read(row.record).value, TIME)


def _quick(run: SoFar, now: Json) -> Iterator[_Part]:
    """The parts that change every second: the present trial, or the last one."""
    trial = now["trial"]
    if trial is None:
        yield from map(_section, ("present", "courses"))
        return
    row: Json = next((row for row in run.document["trials"] if row["number"] == trial["number"]), {})
    name = _names(run).get(trial["result"]) or trial["treatment"]
    running, whole = trial["running"], row if row.get("received") is not None else trial
    facts = [
        trial["variant"] if trial["variant"] != name else None,
        None if running else row.get("ended") or "unfinished",
        None if running else trial["reason"],
        "a command: its figures are known after the trial" if running and trial["phase"] == COMMAND else None,
        f"{format_duration(trial['warmup_s'])} of warm-up" if trial["warmup_s"] else None,
        f"{COUNT.text(n)} lines of its records cannot be read" if (n := trial["unreadable_lines"]) else None,
    ]
    figures = [(words, TIME.text(whole[f"{words}_ns"])) for words in ("p50", "p99")]
    for key, of in (("lost", whole), ("late", trial), ("too_late", trial), ("received", whole)):
        figures.append((key.replace("_", " "), COUNT.text(of[key])))
    if running:
        figures.insert(0, ("measured", _measured(trial)))
    title = f"{'Trial' if running else 'Last trial,'} {trial['order']}: {name}"
    yield _Part(_written("present", trial, title, facts, figures))
    drawn = [figure for figure in (_latency(trial, name), _cpu(trial)) if running or figure.series]
    yield _section("courses", [] if drawn else [Text("Nothing was recorded second by second.", "faint")], drawn)


def _measured(trial: Json) -> str:
    """The share of the trial that was measured; before and after that, its phase."""
    since, spent_s = trial["measured_since"], trial["elapsed_s"]
    if since is not None:
        spent_s = max(0.0, time.time() - since)
    if trial["phase"] != "measuring" or spent_s is None:
        return str(trial["phase"])
    if not trial["duration_s"]:  # until it is stopped
        return f"{spent_s:.0f} s"
    return f"{min(spent_s, trial['duration_s']):.0f} of {trial['duration_s']:g} s"


def _cost(server: Mapping[str, Any]) -> Markup:
    share = server["cpu_percent"]
    spent = f"{server['cpu_s']:.2f} s of CPU time in {format_duration(server['seconds'])}"
    return _written("cost", spent if share is None else f"{spent}, {share} % of one CPU")


# -- pictures --------------------------------------------------------------------------------------------------------

_LINES = (
    Key("p50", "solid", "thick", "full"),
    Key("p99", "dashed", "normal", "hollow"),
    Key("maximum", "dotted", "normal", "bar"),
)


def _latency(trial: Json, name: str) -> Figure:
    """For each second of the present trial."""
    points, group = trial["latency"], trial["result"] or 0
    plot = Plot(_since_start(trial), _steady(times("latency"), 1e3))
    for place, key in enumerate(_LINES if points else (), start=1):
        said = [f"{key.label} {TIME.text(point[place])} at {point[0]} s" for point in points]
        signed = None if len(points) <= MOST_SIGNED else (len(points) - 1,)
        plot.line(
            name, group, [point[0] for point in points], [point[place] for point in points], hover=said,
            stroke=key.stroke or "solid", weight=key.weight, sign=key.sign, signed=signed,
        )  # fmt: skip
    wide = trial["seconds_per_point"]
    each = "each second" if wide == 1 else f"each {wide} seconds"
    return plot.figure("latency", "Latency", f"of {each}, over all edges", [(group, name)], _LINES)


def _cpu(trial: Json) -> Figure:
    plot = Plot(_since_start(trial), _steady(from_zero("CPU (%)"), 100.0))
    for group, process in enumerate(trial["cpu"]):
        if points := process["points"]:
            name, last = process["process"], (len(points) - 1,)
            said = [f"{name}: {share} % at {at} s" for at, share in points]
            plot.line(name, group, *zip(*points, strict=True), hover=said, sign="full", signed=last)
    if more := trial["processes_not_shown"]:
        plot.notes.append(f"{more} processes that use less are not shown.")
    names = [process["process"] for process in trial["cpu"]]
    return plot.figure("cpu", "CPU", "of each process; 100 % is one CPU", enumerate(names))


def _over_levels(run: SoFar) -> list[Figure]:
    """As in a report: curves, and the breaking point of a search."""
    if not run.curves and not run.breaking_points:
        return []
    from perflab.report import levels  # polars takes a while to import

    curves = levels.curves([("", curve) for curve in run.curves])
    return [*curves, *levels.breaking_points([("", point) for point in run.breaking_points])]


def _course(run: SoFar) -> Figure | None:
    """p50 and p99 of each finished trial."""
    rows = [row for row in run.document["trials"] if row["ended"]]
    last = max(run.document["planned"] or 0, len(run.document["trials"])) + 0.5
    ticks = tuple(tick for tick in linear_ticks(0.5, last, 10) if tick[0] == int(tick[0]))
    plot = Plot(fixed(Axis("trial", "linear", 0.5, last, ticks)), times("p50 and p99"))
    signs: tuple[tuple[str, Sign], ...] = (("p50", "full"), ("p99", "hollow"))
    for (group, name), (word, sign), good in product(_names(run).items(), signs, (True, False)):
        marks = [
            (row["order"], value, f"{name}<br>trial {row['order']}: {word} {TIME.text(value)}, {row['ended']}")
            for row in rows
            if row["result"] == group and (row["outcome"] == SUCCESSFUL) is good and (value := row[f"{word}_ns"])
        ]
        plot.points(name, group or 0, marks, sign=sign if good else "cross")
    if not plot.series:
        return None
    keys = [Key("p50", sign="full"), Key("p99", sign="hollow"), Key("no success", sign="cross")]
    groups = [(place or 0, name) for place, name in _names(run).items()]
    return plot.figure("course", "Trial by trial", "p50 and p99 of each finished trial", groups, keys)


def _since_start(trial: Json) -> Side:
    return lambda values: seconds([*values, trial["duration_s"]])


def _steady(side: Side, usual: float) -> Side:
    """Between round numbers, so that an axis seldom moves while a trial runs; `usual` applies without values."""

    def rounded(value: float, *, up: bool) -> float:
        size = 10.0 ** math.floor(math.log10(max(value, 1.0)))
        steps = [step * size for step in (1, 2, 5, 10)]
        return min(s for s in steps if s >= value) if up else max([s for s in steps if s <= value], default=size)

    def between(values: Sequence[float]) -> tuple[Axis, Place]:
        return side([rounded(min(values, default=usual), up=False), rounded(max(values, default=usual), up=True)])

    return between
