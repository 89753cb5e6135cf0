"""What can be completed: the words of every option by its type, and the parameters of what has some."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from completion import completed
from made_experiment import Effect, Made, write_run
from support import SOURCE

from perflab.cli import completion
from tests.said import finished


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--executor", "events,mul"), ["events,multi_threaded"]),
        (("--ipc", "off,"), ["off,off", "off,on"]),
        (("--pass-by", "un"), ["unique"]),
        (("--middleware", "sim,cyclonedds+vir"), ["sim,cyclonedds+virtual"]),
        (("--service-framing", "rmw_f"), ["rmw_fastrtps"]),
        (("--order", "r"), ["randomised"]),
        (("--lock-memory", "o"), ["on", "off"]),
        (("--thread", "ping.mid"), ["ping.middleware="]),
        (("--thread", "executors=F"), ["executors=FIFO:"]),
        (("--network", "l"), ["lo"]),
        (("--measure", "dispatch,w"), ["dispatch,work"]),
        (("--ends", "s"), ["stopped"]),
        (("--node-type", "l"), ["lifecycle"]),
        (("--progress", "l"), ["lines"]),
        (("--metric", "latency.p99"), ["latency.p99", "latency.p99_9", "latency.p99_99"]),
        (("--condition", "cpu_l"), ["cpu_load"]),
        (("--condition", "cpu_load:"), [f"cpu_load:{key}=" for key in ("workers", "load", "method", "cpus")]),
        (("--condition", "cpu_load:load=80,w"), ["cpu_load:load=80,workers="]),
        (("--condition", "cpu_load:load=80,l"), []),
        (("--condition", "memory_pressure:access=h"), ["memory_pressure:access=hold"]),
        (("--condition", "cpu_load:load=5+io"), ["cpu_load:load=5+io_load"]),
        (("--condition", "cpu_load:load=5+io_load:b"), ["cpu_load:load=5+io_load:bytes="]),
        (("--condition", "no_such:"), []),
        (("--observer", "monitor:i"), ["monitor:interval="]),
        (("--observer", "tracing:trials=a"), ["tracing:trials=all"]),
        (("--factor", "cpu_load.l"), ["cpu_load.load="]),
        (("--factor", "workload.ti"), ["workload.timer_speed=", "workload.time_based_filter=", "workload.timers="]),
        (("--factor", "workload.reliability=reliable,b"), ["workload.reliability=reliable,best_effort"]),
        (("--factor", "memory_pressure.access=h"), ["memory_pressure.access=hold"]),
        (("--factor", "fastdds.transport=s"), ["fastdds.transport=shm"]),
        (("--factor", "sim.de"), ["sim.delay="]),
        (("--middleware-option", "fastdds.tr"), ["fastdds.transport="]),
        (("--middleware-option", "fastdds.transport=ud"), ["fastdds.transport=udp", "fastdds.transport=udp+shm"]),
        (("--bas",), ["--baseline", "--baseline-again"]),
    ],
)
def test_what_an_option_of_run_can_become(words: tuple[str, ...], expected: list[str]) -> None:
    found = [line.partition("\t")[0] for line in completed("run", *words)]
    assert found == expected


def test_the_verbs_complete_what_is_theirs() -> None:
    assert completed("breaking-point", "--factor", "workload.timer_s") == ["workload.timer_speed"]
    assert completed("breaking-point", "--scale", "l") == ["linear", "log"]
    assert completed("sweep", "--factor", "workload.timer_s") == ["workload.timer_speed="]
    assert [line.partition("\t")[0] for line in completed("sw")] == ["sweep"]
    assert completed("run", "--low", "x") == [], "a run searches nothing"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("list", "ob"), ["observers"]),
        (("report", "--theme", "d"), ["dark"]),
        (("plot", "--theme", "l"), ["light"]),
        (("plot", "--format", "svg,p"), ["svg,png", "svg,pdf"]),
        (("inventory", "--format", "m"), ["markdown"]),
        (("smoke-test", "--middleware", "cyclonedds,f"), ["cyclonedds,fastdds"]),
        (("trace", "paths", "--format", "d"), ["dot"]),
        (("trace", "export", "--format", "f"), ["folded", "flamegraph"]),
        (("export", "--accounting", "o"), ["original"]),
        (("export", "--format", "irobot"), ["irobot", "irobot-legacy"]),
    ],
)
def test_what_options_of_other_verbs_can_become(words: tuple[str, ...], expected: list[str]) -> None:
    assert completed(*words) == expected


def test_words_that_bash_takes_apart_are_put_together() -> None:
    assert completion.joined(["perflab", "run", "a"], 2) == (["perflab", "run", "a"], 2)
    assert completion.joined(["perflab", "run", "--condition", "cpu_load", ":"], 4)[0][-1] == "cpu_load:"
    assert completion.joined(["perflab", "run", "--condition", "cpu_load", ":", "a", "=", "1,b"], 7) == (
        ["perflab", "run", "--condition", "cpu_load:a=1,b"],
        3,
    )
    assert completion.joined(["perflab", "run", "x", ""], 3) == (["perflab", "run", "x", ""], 3)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """perflab as a program, beside it the script that `perflab --install-completion` installs."""
    made = tmp_path_factory.mktemp("bin") / "perflab"
    made.write_text(f'#!/bin/sh\nexec {sys.executable} -m perflab "$@"\n')
    made.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "_PERFLAB_COMPLETE": "source_bash"}
    done = subprocess.run([made], env=environment, capture_output=True, text=True, check=True)
    made.with_suffix(".bash").write_text(done.stdout)
    return made


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--condition", "cpu_load", ":"), ["workers=", "load=", "method=", "cpus="]),
        (("--condition", "cpu_load", ":", "lo"), ["load="]),
        (("--condition", "=", "cpu_load", ":", "lo"), ["load="]),
        (("--condition", "memory_pressure", ":", "access", "="), ["rewrite", "hold"]),
        (("--factor", "workload.reliability", "="), ["reliable", "best_effort"]),
        (("--order", ""), ["randomised", "as_written"]),
    ],
)
def test_bash_is_given_the_part_that_it_asks_for(words: tuple[str, ...], expected: list[str], program: Path) -> None:
    """By the script that is installed, called as readline calls it."""
    typed = " ".join(f"'{word}'" for word in ("perflab", "run", *words))
    asked = f"""source {program}.bash
COMP_WORDS=({typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_perflab_completion {program}; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(["bash", "-c", asked], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == expected, done.stderr


# Commands one after the other in one process; after each, which of the unwanted modules are there.
ONE_BY_ONE = """
import sys
from perflab.cli import main
unwanted, *commands = sys.argv[1:]
for command in commands:
    main(command.split())
    found = sorted({*unwanted.split()} & sys.modules.keys())
    sys.stderr.write(f"{command} imports {', '.join(found)}\\n" if found else "")
"""


def imported(unwanted: str, *commands: str) -> subprocess.CompletedProcess[str]:
    done = finished([sys.executable, "-c", ONE_BY_ONE, unwanted, *commands], cwd=SOURCE)
    done.check_returncode()
    return done


def test_help_imports_nothing_that_calculates_or_draws() -> None:
    """What completes a word is as quick as its help."""
    verbs = ("", "trace", "trace callbacks", "profile", "run", "check", "compare", "statistics")
    done = imported("numpy polars scipy statsmodels matplotlib plotly", *(f"{verb} --help" for verb in verbs))
    assert (done.stdout.count("Usage: perflab"), done.stderr) == (len(verbs), "")


def test_the_list_of_all_there_is_imports_nothing_that_calculates() -> None:
    done = imported("numpy polars scipy perflab.results.trial perflab.profile.record", "list")
    assert ("pingpong" in done.stdout, done.stderr) == (True, "")


def test_lists_without_parameters_are_made_without_what_reads_these() -> None:
    """So the program that describes topologies already runs while the others are being imported."""
    done = imported("pydantic.main importlib.metadata", "list topologies", "list experiments", "list targets")
    assert all(name in done.stdout for name in ("sierra_nevada", "demo", "mont_blanc_rpi3"))
    assert done.stderr == ""


def test_what_a_run_showed_is_shown_without_what_calculates(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Made({"cpu_load": Effect(2.0)}, blocks=2).summary())
    done = imported("scipy statsmodels", f"show {run}")
    assert ("cpu_load" in done.stdout, done.stderr) == (True, "")


def test_a_report_of_what_was_found_imports_nothing_that_finds_it(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Made({"cpu_load": Effect(2.0)}, blocks=2).summary())
    page = tmp_path / "report.html"
    done = imported("scipy.stats statsmodels pandas perflab.design.document", f"report {run} --output {page}")
    assert ("cpu_load" in page.read_text(), done.stderr) == (True, "")
