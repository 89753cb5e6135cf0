"""`--until-decided` for real, on the virtual middleware: from the start, added later, killed, and twice in a row."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.schemas import published

from .conftest import TIMEOUT_S, Json, Run, started

SLOWER = """\
workload: {graph}
middlewares: virtual
factors: {{virtual.service: [1ms, 2ms]}}
time: 1s
baseline_again: off
trials: {trials}
statistics: {{metrics: [latency.p90]}}
"""
GRAPH = """\
name: pair
nodes:
  - name: source
    publishers: [{topic: t, type: stamped_int64, period: 10ms}]
  - name: sink
    subscriptions: [{topic: t, type: stamped_int64}]
"""


@pytest.fixture
def slower(tmp_path: Path) -> Path:
    """Two levels, one of each in a block: after n blocks the smallest p is 2 / 2^n."""
    (tmp_path / "pair.yaml").write_text(GRAPH)
    path = tmp_path / "slower.yaml"
    path.write_text(SLOWER.format(graph=tmp_path / "pair.yaml", trials=3))
    return path


def read(run: Path) -> tuple[Json, Json]:
    """The rule of the manifest, and the only comparison; both files are as published."""
    manifest, summary = (json.loads((run / f"{name}.json").read_text()) for name in ("manifest", "summary"))
    published("manifest").validate(manifest)
    published("summary").validate(summary)
    orders = sorted(t["order"] for r in summary["results"] for t in r["trials_detail"] if not t["interrupted"])
    assert orders == [t["order"] for t in manifest["trials"]] == list(range(1, len(orders) + 1))
    (comparison,) = summary["findings"]["comparisons"]
    return manifest["rule"], comparison


def test_from_the_start_blocks_are_added_until_the_difference_is_shown(run: Run, slower: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = run("run", slower, "--until-decided", "--at-most", "2min", "--progress", "lines", "-o", out)
    assert done.returncode == 0, done.stderr
    rule, comparison = read(out)
    # Half of alpha: 2 / 2^7 is the first that is less than 0.025.
    assert rule == {"from_start": True, "at_most_s": 120, "looks": [14], "ended": "decided"}
    assert (comparison["verdict"], comparison["treatment"]["n"]) == ("higher", 7)
    said = " ".join(done.stdout.split())
    assert "this rule was set from the start. It ended because all were decided." in said
    assert "Then repetitions are added until every comparison is decided, for at most 2 min." in done.stderr
    assert "look 1, after 14 trials: every comparison is decided" in done.stderr
    assert "this rule was set from the start" in run("report", out, "--markdown").stdout
    again = run("run", "--resume", out, "-q")
    assert again.returncode == 0, again.stderr
    assert read(out) == (rule, comparison)


@pytest.mark.long
def test_added_to_a_complete_run_that_could_show_nothing(run: Run, slower: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = run("run", slower, "--progress", "lines", "-o", out)
    assert "with 3 repetitions nothing can be shown, with 6 it can: --trials 6, or --until-decided" in done.stderr
    assert read(out)[1]["verdict"] == "too_few_trials"
    refused = run("run", "--resume", out, "--at-most", "1min")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    done = run("run", "--resume", out, "--until-decided")
    assert done.returncode == 0, done.stderr
    rule, comparison = read(out)
    assert (rule["from_start"], rule["looks"], rule["ended"]) == (False, [12], "decided")
    assert comparison["verdict"] == "higher"
    assert "this rule was added after trials had been seen" in " ".join(run("show", out).stdout.split())


def test_killed_in_an_added_block_it_goes_on(run: Run, slower: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with started("run", slower, "--until-decided", "-q", "-o", out) as process:
        deadline = time.monotonic() + TIMEOUT_S
        while len(list(out.glob("trials/*/trial.json"))) < 8:  # the plan has six
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        process.kill()
        process.wait()
    assert not (out / "summary.json").exists()
    shown = run("show", out)
    assert "It has not ended." in " ".join(shown.stdout.split()), shown.stderr
    done = run("run", "--resume", out, "-q")
    assert done.returncode == 0, done.stderr
    rule, comparison = read(out)
    assert (rule["ended"], rule["from_start"], comparison["verdict"]) == ("decided", True, "higher")


@pytest.mark.parametrize("bound", ["0", "-3min", "soon"])
def test_a_bad_bound_is_one_line(run: Run, slower: Path, tmp_path: Path, bound: str) -> None:
    refused = run("run", slower, "--until-decided", "--at-most", bound, "-o", tmp_path / "run")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert refused.stderr.startswith("perflab: --at-most")
    assert not (tmp_path / "run").exists()


def test_what_compares_nothing_is_refused(run: Run, slower: Path, tmp_path: Path) -> None:
    refused = run(
        "run", slower.parent / "pair.yaml", "--middleware", "virtual", "--until-decided", "-o", tmp_path / "x"
    )
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "nothing is compared here" in refused.stderr
