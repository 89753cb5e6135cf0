"""A test double of perflab-graph: takes files that are resolved graphs already, and joins their processes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

STAMPED_INT64 = {
    "name": "stamped_int64",
    "ros_type": "perflab_msgs/msg/StampedInt64",
    "family": "Stamped",
    "payload_bytes": 8,
    "variable": False,
    "plain": True,
    "struct_bytes": 40,
    "keys": [],
    "stamp": "header",
}


def described(graph: dict[str, Any]) -> dict[str, Any]:
    nodes = [n for p in graph["processes"] for n in p["nodes"]]
    return {
        "schema": 1,
        "processes": len(graph["processes"]),
        "nodes": len(nodes),
        "publishers": sum(len(n["publishers"]) for n in nodes),
        "subscriptions": sum(len(n["subscriptions"]) for n in nodes),
        "delivered_per_s": 100.0,
    }


def main(arguments: list[str]) -> int:
    command, *paths = [a for a in arguments if a != "--"]
    if command == "types":
        print(json.dumps([STAMPED_INT64]))
        return 0
    if command == "describe" and paths[0] == "--each":
        print(json.dumps([described(json.loads(Path(path).read_text())) for path in paths[1:]]))
        return 0
    graphs = []
    for path in paths:
        try:
            graphs.append(json.loads(Path(path).read_text()))
        except ValueError as error:
            sys.stderr.write(f"{path}:1: {error}\n")
            return 2
    joined = {**graphs[0], "processes": [p for g in graphs for p in g["processes"]]}
    if command == "describe":
        joined = described(joined)
    print(json.dumps(joined))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
