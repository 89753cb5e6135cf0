"""What a program that can be watched records: an arm of two links that turns by a right angle in a second."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

Json = dict[str, Any]

BEGIN_NS = 5_000_000_000_000
MS = 1_000_000
ROWS = 51  # each 20 ms
HALF_PI = math.pi / 2

PILLAR = {"position": [0, 0, -0.15], "orientation": [0, 0, 0, 1], "cylinder": {"radius": 0.1, "height": 0.3}}
BOX = {"position": [0.25, 0, 0], "orientation": [0, 0, 0, 1], "box": [0.5, 0.08, 0.08]}
SCENE: Json = {
    "bodies": [
        {"name": "base", "kind": "robot", "position": [0, 0, 0.3], "orientation": [0, 0, 0, 1],
         "shapes": [PILLAR]},
        {"name": "upper", "kind": "robot", "parent": "base", "position": [0, 0, 0], "orientation": [0, 0, 0, 1],
         "joint": {"name": "shoulder", "kind": "turn", "axis": [0, 0, 1], "position": [0, 0, 0]}, "shapes": [BOX]},
        {"name": "lower", "kind": "robot", "parent": "upper", "position": [0.5, 0, 0], "orientation": [0, 0, 0, 1],
         "joint": {"name": "elbow", "kind": "turn", "axis": [0, 0, 1], "position": [0, 0, 0]}, "shapes": [BOX]},
        {"name": "tip", "kind": "robot", "parent": "lower", "position": [0.5, 0, 0], "orientation": [0, 0, 0, 1]},
        {"name": "ball", "position": [0, 0, 0], "orientation": [0, 0, 0, 1],
         "joint": {"name": "ball", "kind": "free"},
         "shapes": [{"position": [0, 0, 0], "orientation": [0, 0, 0, 1], "sphere": 0.05}]},
    ],
    "tip": "tip",
}  # fmt: skip
MARKS = {"marks": [{"name": "goal", "position": [0, 1, 0.3], "radius": 0.02}]}
COLUMNS = ["shoulder", "elbow", *(f"ball.{axis}" for axis in ("x", "y", "z", "qx", "qy", "qz", "qw"))]


def series(name: str, columns: list[str], at_ns: list[int], rows: list[list[float]]) -> Json:
    return {"name": name, "columns": columns, "at_ns": at_ns, "rows": rows, "left_out": 0}


def records(failed: str | None = None, moves: bool = True) -> dict[str, list[Json]]:
    """By process. The arm follows its plan, or stays where it is; `failed` is why the trial did."""
    at_ns = [BEGIN_NS + 20 * MS * n for n in range(ROWS)]
    angles = [HALF_PI * n / (ROWS - 1) for n in range(ROWS)]
    ball = [0.3, -0.3, 0.05, 0, 0, 0, 1]
    done = [[angle if moves else 0.0, 0.0, *ball] for angle in angles]
    world = [
        {"type": "program", "at_ns": BEGIN_NS, "scene": SCENE},
        # As they come: in several records.
        *(
            {"type": "program", "at_ns": at_ns[n], "series": [series("joints", COLUMNS, at_ns[part], done[part])]}
            for n, part in ((n, slice(n, n + 20)) for n in range(0, ROWS, 20))
        ),
        {"type": "program", "at_ns": at_ns[-1], "series": [
            series("desired", ["shoulder", "elbow"], at_ns, [[angle, 0.0] for angle in angles]),
            series("lateness", ["loop"], at_ns, [[100_000.0 if n == 25 else 2_000.0] for n in range(ROWS)]),
        ]},
    ]  # fmt: skip
    plan = [[0.0, 0.0, 0.0], [1.0, HALF_PI, 0.0]]
    client: list[Json] = [
        {"type": "program", "at_ns": BEGIN_NS, "scene": MARKS},
        {"type": "program", "at_ns": BEGIN_NS, "moments": [{"at_ns": BEGIN_NS, "words": "goal: asked for"}],
         "series": [series("planned", ["s", "shoulder", "elbow"], [BEGIN_NS] * 2, plan)]},
    ]  # fmt: skip
    if failed is not None:
        outcome = {"name": "goal_rejected", "reason": failed, "at_ns": BEGIN_NS + 500 * MS}
        client.append({"type": "program", "at_ns": BEGIN_NS + 500 * MS, "outcome": outcome})
    return {"world": world, "client": client}


def write(directory: Path, **how: Any) -> Path:
    """The records of a trial in its folder, which is returned."""
    folder = directory / "processes"
    folder.mkdir(parents=True, exist_ok=True)
    for process, said in records(**how).items():
        with (folder / f"{process}.jsonl").open("a") as file:
            file.writelines(f"{json.dumps(record)}\n" for record in said)
    return directory
