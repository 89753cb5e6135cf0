"""Topics with keys: as a key of the graph and as a factor, and which middlewares have none."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from perflab.design.document import Written, with_options
from perflab.errors import BadInput
from perflab.experiment.build import build
from perflab.native import Native

NATIVE = Native(Path(os.environ.get("PERFLAB_NATIVE") or Path(sys.prefix) / "lib" / "perflab"))
pytestmark = pytest.mark.skipif(
    not os.access(NATIVE.folder / "perflab-graph", os.X_OK), reason=f"perflab-graph is not in {NATIVE.folder}"
)

PAIR = """
name: pair
nodes:
  - {name: talker, publishers: [{topic: chatter, type: keyed_array1k, period: 10ms}]}
  - {name: listener, subscriptions: [{topic: chatter, type: keyed_array1k}]}
"""


def graphs(folder: Path, text: str, **keys: Any) -> list[Any]:
    """Whether each graph of the experiment is keyed."""
    path = folder / "graph.yaml"
    path.write_text(text)
    made = build(with_options(Written({}), {"workload": str(path), **keys}), NATIVE, output=None, command_line=())
    return [treatment.graph.document.get("keyed", False) for treatment in made.treatments]


def test_a_level_of_the_factor_is_on_or_off(tmp_path: Path) -> None:
    if not NATIVE.middleware_library("cyclonedds").is_file():
        pytest.skip("cyclonedds was not built")
    for levels in (["on", "off"], [True, False]):
        assert sorted(graphs(tmp_path, PAIR, factors={"workload.keyed": levels})) == [False, True]


@pytest.mark.parametrize("name", ["virtual", "shm"])
def test_a_middleware_without_instances_is_refused(name: str, tmp_path: Path) -> None:
    asked = {"middlewares": name}
    assert graphs(tmp_path, PAIR, **asked) == [False]
    for keyed in ({"factors": {"workload.keyed": ["off", "on"]}}, {}):
        with pytest.raises(BadInput, match=f"^keyed: {name} has no instances, so it cannot use keys"):
            graphs(tmp_path, PAIR if keyed else f"keyed: true{PAIR}", **asked, **keyed)
