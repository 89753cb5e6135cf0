"""Films of trials: what records say, where bodies are, which trials are shown, MuJoCo's pictures, and the page."""

from __future__ import annotations

import base64
import ctypes
import json
import math
import zlib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import made_film
import numpy as np
import pytest
from live_browser import browser, executable
from made_film import BEGIN_NS, HALF_PI, MS
from made_run import MadeTrial, Stream, arrivals, make_run
from made_tables import MadeSource

from perflab.report.film import choose, document, render
from perflab.report.film.rendered import SIZE, rendered
from perflab.report.run_page.page import report
from perflab.report.runs import ReportRun, open_all
from perflab.results.film import Body, Film, Joint, Pose, Scene
from perflab.runs.film import film
from perflab.trace.occupancy import occupancy, spent

GONE = "CONTROL_FAILED (-4): nobody knows the goal"


@pytest.fixture
def turning(tmp_path: Path) -> Film:
    found = film(made_film.write(tmp_path / "went_well"))
    assert found is not None
    return found


@pytest.fixture
def failed(tmp_path: Path) -> Film:
    found = film(made_film.write(tmp_path / "failed", failed=GONE, moves=False))
    assert found is not None
    return found


# ---- records ---------------------------------------------------------------------------------------------------------


def test_a_film_is_put_together_from_what_several_processes_say(turning: Film) -> None:
    assert [body.name for body in turning.scene.bodies] == ["base", "upper", "lower", "tip", "ball"]
    assert (turning.begin_ns, turning.end_ns, len(turning.joints.rows)) == (BEGIN_NS, BEGIN_NS + 1000 * MS, 51)
    (plan,) = turning.plans
    assert (plan.at_ns, plan.columns, plan.s) == (BEGIN_NS, ("shoulder", "elbow"), (0.0, 1.0))
    assert turning.scene.marks[0].position == pytest.approx((0, 1, 0.3))
    assert turning.lateness is not None
    assert turning.lateness.process == "world"


def test_a_process_that_runs_twice_is_seen_once(tmp_path: Path) -> None:
    path = made_film.write(tmp_path) / "processes" / "world.jsonl"
    path.with_name("world_2.jsonl").write_text(path.read_text())
    found = film(tmp_path)
    assert found is not None
    assert [body.name for body in found.scene.bodies] == ["base", "upper", "lower", "tip", "ball"]
    assert (found.end_ns, len(found.joints.rows)) == (BEGIN_NS + 1000 * MS, 51)


def test_an_outcome_is_the_moment_of_a_failure(failed: Film) -> None:
    assert failed.failure is not None
    assert (failed.failure.at_ns, failed.failure.words) == (BEGIN_NS + 500 * MS, f"goal_rejected: {GONE}")


def test_a_film_begins_shortly_before_its_first_moment(tmp_path: Path) -> None:
    path = made_film.write(tmp_path) / "processes" / "client.jsonl"
    path.write_text(path.read_text().replace(f'{{"at_ns": {BEGIN_NS}', f'{{"at_ns": {BEGIN_NS + 600 * MS}'))
    found = film(tmp_path)
    assert found is not None
    assert found.begin_ns == BEGIN_NS + 360 * MS  # the first row within a quarter of a second
    assert found.desired is not None
    assert found.desired.at_ns[0] == found.begin_ns


@pytest.mark.parametrize(
    "records",
    [
        [],
        [{"type": "program", "scene": made_film.SCENE}],
        [{"type": "program", "series": [made_film.series("joints", ["a"], [1, 2], [[0.0], [1.0]])]}],
        [{"type": "program", "scene": made_film.SCENE, "series": [{"name": "joints"}]}],
        [{"type": "program", "scene": {"bodies": [{}]},
          "series": [made_film.series("joints", ["a"], [1, 2], [[0.0], [1.0]])]}],
        [{"type": "program", "scene": made_film.SCENE,
          "series": [made_film.series("joints", ["a"], [1, 2], [[0.0], [1.0, 2.0]])]}],
        [{"type": "program", "scene": {"bodies": [{"name": "hand", "parent": "arm"}]},
          "series": [made_film.series("joints", ["a"], [1, 2], [[0.0], [1.0]])]}],
        [{"type": "program", "scene": {"bodies": [{"name": "hand"}], "tip": "finger"},
          "series": [made_film.series("joints", ["a"], [1, 2], [[0.0], [1.0]])]}],
    ],
    ids=["nothing", "no joints", "no scene", "a damaged series", "a damaged scene", "a row too long",
         "a parent that is not there", "a tip that is not there"],
)  # fmt: skip
def test_what_cannot_be_shown_has_no_film(tmp_path: Path, records: list[object]) -> None:
    (tmp_path / "processes").mkdir()
    (tmp_path / "processes" / "p.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    assert film(tmp_path) is None


def test_who_had_the_cpus_of_a_loop_in_bins() -> None:
    """It runs half of the first bin, waits a quarter of it, and is on CPU 1 in the second one. Beside it kworker runs
    on CPU 0, and on CPU 2, where it never is."""
    source = MadeSource({
        "hosts": [{"name": "robot"}],
        "processes": [{"host": 0, "pid": 10, "name": "driver"}],
        "threads": [
            {"host": 0, "process": 0, "tid": 10, "name": "control", "first_ns": 0, "last_ns": 200},
            {"host": 0, "process": None, "tid": 7, "name": "kworker", "first_ns": 0, "last_ns": 200},
        ],
        "thread_states": [
            {"thread": thread, "state": state, "start_ns": start, "end_ns": end, "cpu": cpu, "priority": 120}
            for thread, state, start, end, cpu in (
                (0, "running", 0, 50, 0), (0, "preempted", 50, 75, 0), (0, "running", 100, 200, 1),
                (1, "running", 50, 60, 0), (1, "running", 60, 90, 2),
            )
        ],
    })  # fmt: skip
    found = occupancy(source, 0, 200, 100, [10])
    assert found["cpus"] == [0, 1]
    assert [(lane["kind"], lane["thread"], lane["shares"]) for lane in found["lanes"]] == [
        ("runs", "control", [50, 100]),
        ("waits", "control", [25, 0]),
        ("neighbour", "kworker", [10, 0]),
        ("others", None, [0, 0]),
    ]


# ---- where bodies are ------------------------------------------------------------------------------------------------


def test_a_chain_of_joints_ends_where_it_must(turning: Film) -> None:
    poses = turning.scene.poses({"shoulder": HALF_PI, "elbow": -HALF_PI})
    assert poses["lower"].position == pytest.approx((0, 0.5, 0.3))
    assert poses["tip"].position == pytest.approx((0.5, 0.5, 0.3))
    assert poses["ball"].position == (0, 0, 0)  # nobody says where it is


def test_a_free_body_is_where_it_is_said_and_a_sliding_one_along_its_axis() -> None:
    half = math.sqrt(0.5)
    base = Pose((1, 0, 0), (0, 0, half, half))  # turned by a right angle about z
    scene = Scene((
        Body("rail", pose=base),
        Body("slide", "rail", joint=Joint("x", "slide", (1, 0, 0))),
        Body("door", "rail", joint=Joint("hinge", "turn", (0, 0, 1), (0.5, 0, 0))),
        Body("ball", joint=Joint("ball", "free")),
    ))  # fmt: skip
    ball = {
        f"ball.{axis}": float(value)
        for axis, value in zip(("x", "y", "z", "qx", "qy", "qz", "qw"), range(7), strict=True)
    }
    poses = scene.poses({"x": 0.2, "hinge": math.pi, **ball})
    assert poses["slide"].position == pytest.approx((1, 0.2, 0))
    assert poses["door"].position == pytest.approx((1, 1, 0))  # half around a hinge half a metre away
    assert poses["ball"] == Pose((0, 1, 2), (3, 4, 5, 6))


def test_the_ways_of_the_tip_are_those_of_the_plan_and_of_what_was_done(turning: Film, failed: Film) -> None:
    assert document.tips(turning)[-1] == pytest.approx((0, 1, 0.3))
    assert document.tips(failed)[-1] == pytest.approx((1, 0, 0.3))
    assert document.planned_tips(failed)[0][-1] == pytest.approx((0, 1, 0.3))
    middle = document.planned_at(turning, BEGIN_NS + 500 * MS)
    assert middle == pytest.approx({"shoulder": HALF_PI / 2, "elbow": 0.0})


def test_what_a_page_gets_is_what_was_recorded(turning: Film) -> None:
    found = document.document(turning)
    angles = np.cumsum(found["joints"]["values"][0]) / document.POSITIONS
    times = np.cumsum(found["joints"]["times"]) / document.MILLISECONDS
    assert angles == pytest.approx([HALF_PI * n / 50 for n in range(51)], abs=1e-4)
    assert times == pytest.approx([0.02 * n for n in range(51)])
    assert np.cumsum(found["lateness"]["values"][0])[[0, 25, 26]].tolist() == [2, 100, 2]  # microseconds
    assert found["moments"] == [[0.0, "goal: asked for", False]]


def test_time_is_shared_out_over_bins() -> None:
    starts, ends = np.array([5, 12, 18]), np.array([12, 13, 35])
    assert spent(starts, ends, np.array([0, 10, 20, 30, 40])).tolist() == [5, 5, 10, 5]


def test_the_plan_that_was_only_considered_is_seen_where_no_other_goes_anywhere(tmp_path: Path) -> None:
    columns = ["s", "shoulder", "elbow"]
    considered = made_film.series("considered", columns, [BEGIN_NS] * 2, [[0.0, 0.0, 0.0], [1.0, HALF_PI, 0.0]])
    at_home = made_film.series("planned", columns, [BEGIN_NS + MS], [[0.0, 0.0, 0.0]])
    path = made_film.write(tmp_path, moves=False) / "processes" / "client.jsonl"
    went = film(tmp_path)
    client = [json.loads(line) for line in path.read_text().splitlines()]
    client[1]["series"] = [considered, at_home]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in client))
    stayed = film(tmp_path)
    assert went is not None
    assert stayed is not None
    assert document.considered_tips(went) == []
    assert document.considered_tips(stayed)[-1] == pytest.approx((0, 1, 0.3))
    assert document.begins_to_go(stayed) == BEGIN_NS + MS


# ---- MuJoCo's pictures -----------------------------------------------------------------------------------------------


def _installed(word: str) -> bool:
    for file in render.LIBRARIES[word]:
        try:
            ctypes.CDLL(file)
        except OSError:
            continue
        return True
    return False


@pytest.mark.parametrize("library", ["egl", pytest.param("osmesa", marks=pytest.mark.long)])
def test_mujoco_draws_the_robot_where_it_is(library: str, turning: Film, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco", reason="no MuJoCo; `make manipulation` installs it")
    if not _installed(library):
        pytest.skip(f"none of {render.LIBRARIES[library]}; scripts/install-dependencies --test installs it")
    monkeypatch.setenv(render.VARIABLE, library)
    found = rendered(turning, [turning.begin_ns, turning.end_ns], quality=None)
    assert found.missing is None
    assert found.library == library
    begin, end = map(_pixels, found.pictures)
    # The arm lies along x at first and along y at last: where it is in one picture the other shows something else.
    camera = document.camera(turning)
    for angle in (0.0, HALF_PI):
        x, y = _place(camera, (0.75 * math.cos(angle), 0.75 * math.sin(angle), 0.34))
        assert np.abs(begin[y, x].astype(int) - end[y, x].astype(int)).max() > 15, (angle, begin[y, x], end[y, x])
    assert (begin[3, 3] == end[3, 3]).all()  # nothing is there


def _pixels(picture: str) -> Any:
    """Of a PNG as the renderer writes it: rows of pixels, each row with a filter that does nothing before it."""
    data = base64.b64decode(picture)
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    assert (width, height) == SIZE
    length = int.from_bytes(data[33:37], "big")
    rows = np.frombuffer(zlib.decompress(data[41 : 41 + length]), np.uint8).reshape(height, 1 + 3 * width)
    return rows[:, 1:].reshape(height, width, 3)


def _place(camera: dict[str, object], point: tuple[float, float, float]) -> tuple[int, int]:
    """Of a point in the picture, in pixels from its left upper corner."""
    az, el = (math.radians(float(str(camera[key]))) for key in ("azimuth", "elevation"))
    forward = np.array([math.cos(el) * math.cos(az), math.cos(el) * math.sin(az), math.sin(el)])
    right = np.cross(forward, [0, 0, 1])
    right /= np.linalg.norm(right)
    up = np.cross(right, forward)
    eye = np.array(camera["at"], float) - float(str(camera["distance"])) * forward
    away = np.array(point) - eye
    focal = SIZE[1] / 2 / math.tan(math.radians(float(str(camera["fov"]))) / 2)
    far = away @ forward
    return round(SIZE[0] / 2 + focal * (away @ right) / far), round(SIZE[1] / 2 - focal * (away @ up) / far)


def test_without_a_library_the_page_draws_all_and_says_why(failed: Film, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(render.VARIABLE, "disable")
    found = rendered(failed, [failed.begin_ns])
    assert found.pictures == ()
    assert found.missing == "MUJOCO_GL=disable is none of egl and osmesa"


# ---- the page --------------------------------------------------------------------------------------------------------


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., ReportRun]:
    """A run of such trials, one of which fails."""

    def make(outcomes: tuple[str, ...], programs: bool = True) -> ReportRun:
        stream = Stream("a", "t", "b", 10, 20, arrivals([100.0] * 20))
        path = make_run(
            tmp_path / "r", {"p": ["a", "b"]}, [MadeTrial([stream], outcome=outcome) for outcome in outcomes]
        )
        manifest = json.loads((path / "manifest.json").read_text())
        if programs:
            manifest["workload"]["graph"]["processes"][0]["program"] = "arm"
        (path / "manifest.json").write_text(json.dumps(manifest))
        for outcome, folder in zip(outcomes, sorted((path / "trials").iterdir()), strict=True):
            made_film.write(folder, failed=GONE if outcome == "failed" else None, moves=outcome != "failed")
        (run,) = open_all([str(path)])
        return run

    return make


def test_one_that_went_well_and_one_of_each_failure_are_shown(made: Callable[..., ReportRun]) -> None:
    shown = choose.chosen(made(("success", "success", "failed", "failed")))
    assert [one.trial.trial for one in shown] == [1, 3]
    assert shown[0].why == "the first successful one; the successful one with the latest loop"
    assert shown[1].why == "ended in “failed”"


def test_trials_without_programs_are_not_looked_at(made: Callable[..., ReportRun]) -> None:
    assert choose.chosen(made(("success",), programs=False)) == []


@pytest.mark.skipif(executable() is None, reason="no Chromium; install chromium")
def test_the_page_shows_the_film_and_what_went_wrong(
    made: Callable[..., ReportRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(render.VARIABLE, "disable")
    page = tmp_path / "report.html"
    page.write_text(report([made(("success", "failed"))]).page)
    assert "MuJoCo has no pictures of it: MUJOCO_GL=disable is none of egl and osmesa." in page.read_text()
    with browser(tmp_path / "browser") as opened:
        opened.open(page.as_uri(), 1400, 900)
        opened.wait_for("document.documentElement?.dataset.ready === 'true'")
        opened.ask("document.querySelectorAll('figure.film').forEach((f) => f.dispatchEvent(new Event('film')))")
        # At its end the arm of the first film lies along y, where it was not at its beginning.
        first = "document.querySelectorAll('figure.film')[0].perflabFilm"
        drawn = (
            "(() => { const from = document.querySelector('figure.film canvas'), { width, height } = from;"
            " const to = Object.assign(document.createElement('canvas'), { width, height }).getContext('2d');"
            " to.drawImage(from, 0, 0); return [...to.getImageData(0, 0, width, height).data]; })()"
        )
        opened.ask(f"{first}.show({first}.end())")
        end = np.array(opened.ask(drawn))
        opened.ask(f"{first}.show(0)")
        begin = np.array(opened.ask(drawn))
        assert np.count_nonzero(begin[3::4] == 255) > 3000
        assert np.count_nonzero(np.abs(begin - end) > 40) > 3000
        wrong = "document.querySelectorAll('figure.film')[1]"
        assert opened.ask(f"{wrong}.querySelector('.film-banner').textContent") == f"✖ goal_rejected: {GONE}"
        assert opened.ask(f"{wrong}.querySelectorAll('.film-joint').length") == 2
        assert opened.ask(f"{wrong}.querySelector('.film-joint path.planned') !== null")
        opened.resize(420, 900)
        opened.dark(True)
        script = resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
        opened.ask(f"{script}; 0")
        found = opened.ask("axe.run('#films', {resultTypes: ['violations']}).then((f) => JSON.stringify(f.violations"
                           ".map((one) => [one.id, one.nodes.map((node) => node.html.slice(0, 200))])))")  # fmt: skip
        assert json.loads(found) == []
        assert opened.ask("document.documentElement.scrollWidth") <= 420
        assert opened.complaints == []
