"""Mitigations for real: what they say that they set is what the kernel says of the processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.host import Host

from .conftest import Run
from .traces import trials


@pytest.mark.skipif(not Host().may_be_real_time(80), reason="needs root, or `rtprio 80`")
@pytest.mark.long
def test_buffers_and_priorities_are_read_back(run: Run, pingpong: Path, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    done = run(
        "run", pingpong, "--time", "1", "--trials", "1", "--cool-down", "0", "--observer-control", "off",
        "--middleware-option", "cyclonedds.socket_receive_buffer=208KiB",
        "--mitigation", "dds_tuning:depth=50,receive_buffer=1MiB+chain_priorities:highest=30", "--output", folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (mitigated,) = (trial for trial in trials(folder) if trial["conditions"])
    assert mitigated["mitigations"] == mitigated["conditions"] == ["dds_tuning", "chain_priorities"]
    tuned, chains = (mitigated["evidence"][name] for name in mitigated["conditions"])
    assert tuned["in_effect"] and chains["in_effect"], (tuned, chains)
    assert tuned["achieved"]["receive_buffer_bytes"] == 1 << 20
    assert (tuned["achieved"]["depth"], tuned["achieved"]["endpoints"]) == (50, 4)
    # ping sends to pong and back: pong ends the chain.
    assert chains["promised"]["priorities"]["pong executor 0"] == 30
    assert chains["promised"]["priorities"]["ping executor 0"] == 29
    assert set(chains["achieved"]["real_time_threads"]["pong"]) == {"30"}
    assert set(chains["achieved"]["real_time_threads"]["ping"]) == {"29"}


def test_what_a_middleware_has_not_is_one_line_and_nothing_is_written(run: Run, pingpong: Path, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    asked = ("--middleware", "fastdds", "--mitigation", "dds_tuning:high_water=1MiB")
    done = run("run", pingpong, *asked, "--output", folder)
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "perflab: dds_tuning: high_water: middleware fastdds has no such setting; it has depth, receive_buffer, "
        "send_buffer, shared_memory"
    )
    assert not folder.exists()
