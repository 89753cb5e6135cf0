"""Films of some trials, drawn by the page, and MuJoCo's pictures if this machine can render them."""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from perflab.report.draw_html import packed
from perflab.report.film import choose, document
from perflab.report.film.rendered import Rendered, rendered
from perflab.report.run_page.blocks import Block, Movie, Scenes, Still, Text, each
from perflab.report.runs import ReportRun
from perflab.results.film import Film, Scene
from perflab.results.outcome import SUCCESS
from perflab.units import NS_PER_S, listed

MANY, FEW = 24, 4  # pictures of a film
MOST_BYTES = 600_000  # limit for all pictures of a page; further films have few
A_PICTURE = 12_000  # bytes, about
FAILED_AFTER_NS = NS_PER_S // 20  # when a failure is shown


@dataclass(frozen=True)
class _Instant:
    at_ns: int
    words: str


def section(runs: Sequence[ReportRun]) -> Iterator[Block]:
    scenes: list[Scene] = []
    room = MOST_BYTES
    told = False
    for run, heading in each(runs):
        films = choose.chosen(run)
        if not films:
            continue
        if not told:
            yield Text(
                "For each film below, the page draws the robot from the records of its programs: joint positions "
                "50 times a second, plans, moments. Dashed lines are planned, solid ones actual."
            )
            told = True
        yield from heading
        missing: str | None = None
        for number, one in enumerate(films):
            if one.film.scene not in scenes:
                scenes.append(one.film.scene)
            left = len(films) - number - 1
            many = room - left * FEW * A_PICTURE > MANY * A_PICTURE
            drawn = Rendered(missing=missing)
            keys, instants = _instants(one.film, MANY if many else 0)
            if missing is None:
                drawn = rendered(one.film, instants)
                missing = drawn.missing
            room -= sum(map(len, drawn.pictures))
            by_instant = dict(zip(instants, drawn.pictures, strict=False))
            yield _movie(run, one, scenes.index(one.film.scene), keys, by_instant, drawn, len(runs) > 1)
    if scenes:
        yield Scenes(packed(_json([document.scene_document(scene) for scene in scenes])))


def _movie(
    run: ReportRun,
    one: choose.Chosen,
    scene: int,
    keys: Sequence[_Instant],
    pictures: dict[int, str],
    drawn: Rendered,
    several: bool,
) -> Movie:
    film, trial = one.film, one.trial
    frames = [[document.seconds(film, at_ns), picture] for at_ns, picture in sorted(pictures.items())]
    if len(frames) <= len(keys):
        frames = []  # they are below it
    data = {
        "scene": scene,
        "film": document.document(film, one.occupancy),
        "about": document.about(film) | {"frames": frames},
    }
    stills = [
        Still(
            f"data:image/jpeg;base64,{pictures[key.at_ns]}", f"{document.seconds(film, key.at_ns):.2f} s: {key.words}"
        )
        for key in keys
        if key.at_ns in pictures
    ]
    left_out = [name for name, of in _series(film) if of.left_out]
    notes = [f"Rows of {listed(left_out)} were left out: there was no room for them."] if left_out else []
    if drawn.library is not None:
        made = f"The pictures above are MuJoCo's, by {_LIBRARIES[drawn.library]}; this page draws the film."
        notes.append(f"{made} It can show MuJoCo's {len(frames)} pictures instead." if frames else made)
    else:
        notes.append(
            f"This page draws the film from the robot's meshes; MuJoCo has no pictures of it: {drawn.missing}."
        )
    name = f"{run.name}: {one.label}" if several else one.label
    good = trial.outcome == SUCCESS
    return Movie(
        key=f"film-{run.name}-{trial.trial}" if several else f"film-{trial.trial}",
        title=f"{name}, trial {trial.order}",
        why=f"{one.why[0].upper()}{one.why[1:]}.",
        sign=trial.outcome.sign,
        tone=trial.outcome.tone,
        ended=trial.ended
        if good or not trial.reason
        else f"{trial.ended}: {trial.reason.removeprefix(f'{trial.ended}: ')}",
        stills=stills,
        notes=notes,
        data=packed(_json(data)),
    )


_LIBRARIES = {"egl": "EGL", "osmesa": "OSMesa"}


def _series(film: Film) -> Iterator[tuple[str, Any]]:
    for name in ("joints", "desired", "tip", "lateness"):
        if (of := getattr(film, name)) is not None:
            yield name, of


def _instants(film: Film, many: int) -> tuple[list[_Instant], list[int]]:
    """The pictures below a film, and all pictures: with equal amounts of motion between any two."""
    way, at_ns = document.moved(film), film.joints.at_ns
    plan_ns = document.begins_to_go(film)
    first = min(len(at_ns) - 1, bisect.bisect_left(at_ns, plan_ns))
    half = bisect.bisect_left(way, (way[first] + way[-1]) / 2)
    failure = film.failure
    keys = [_Instant(at_ns[first], "the plan is ready" if film.plans else "the beginning")]
    if way[-1] - way[first] > document.APART:
        keys.append(_Instant(at_ns[min(half, len(at_ns) - 1)], "half of the path"))
    if failure is not None:
        then = min(film.end_ns, failure.at_ns + FAILED_AFTER_NS)
        keys.append(_Instant(then, failure.words))
    failed = None if failure is None else min(len(way) - 1, bisect.bisect_left(at_ns, failure.at_ns))
    if failed is None or way[-1] - way[failed] > document.APART:
        keys.append(_Instant(film.end_ns, "the end"))
    keys = sorted({key.at_ns: key for key in keys}.values(), key=lambda key: key.at_ns)
    chosen = {key.at_ns for key in keys}
    for n in range(many):
        place = bisect.bisect_left(way, way[-1] * n / max(1, many - 1))
        chosen.add(at_ns[min(place, len(at_ns) - 1)])
    return keys, sorted(chosen)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
