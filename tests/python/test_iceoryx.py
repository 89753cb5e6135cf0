"""The daemon of iceoryx: its configuration for a graph, when it is unavailable, and what it leaves behind."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

import pytest

from perflab.errors import Unavailable
from perflab.middleware import iceoryx

ROUDI = iceoryx.ROUDI


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(iceoryx, "MADE", tmp_path)
    monkeypatch.setattr(iceoryx, "SHARED", tmp_path)
    return tmp_path


def graph(size: int | None, depths: list[int | None], publishers: int = 1) -> dict[str, Any]:
    writes = {"publishers": [{"topic": "/t", "size_bytes": size}] * publishers, "subscriptions": []}
    reads = {"publishers": [], "subscriptions": [{"topic": "/t", "qos": {"depth": depth}} for depth in depths]}
    return {"processes": [{"nodes": [writes]}, {"nodes": [reads]}]}


def test_it_is_wanted_where_the_option_asks_for_it() -> None:
    assert ROUDI.wanted({"shared_memory": "on"})
    assert not ROUDI.wanted({"shared_memory": "off"})
    assert not ROUDI.wanted({})


def test_there_is_a_chunk_for_each_message_that_can_be_held() -> None:
    (least, at_least), (size, count) = iceoryx.pools_of(graph(1_000_000, [10, 10])).items()
    assert (least, at_least) == (1024, 256)
    assert size >= 1_000_000 + 512
    assert size % 64 == 0
    assert count == 2 * (10 + 10 + 4) + 8 + 4  # queues, histories, and what the publisher has
    assert iceoryx.pools_of(graph(1_000_000, [10, 10], publishers=2))[size] == count + 12


def test_deep_histories_are_copied_and_those_without_end_not_shared() -> None:
    size = max(iceoryx.pools_of(graph(5000, [])))
    assert iceoryx.pools_of(graph(5000, [1000]))[size] == 256 + 4 + 12
    assert iceoryx.pools_of(graph(5000, [None]))[size] == 12


def test_messages_of_which_nobody_knows_the_size_are_not_shared() -> None:
    assert iceoryx.pools_of(graph(None, [10])) == {1024: 256}


def test_more_than_there_is_room_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="MiB left"):
        ROUDI.command(graph(2**40, [100]), tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="apt install iceoryx"):
        ROUDI.require()


def test_another_one_is_refused_and_what_it_has_left_alone(made: Path) -> None:
    lock, of_process = made / iceoryx.LOCK, made / "iceoryx_rt_17_1"
    ROUDI.require_none()
    of_process.touch()
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Unavailable, match="another iox-roudi is running"):
            ROUDI.require_none()
        assert ROUDI.left_over([17]) == [of_process]
        of_process.unlink()
        assert [path.name for path in made.iterdir()] == [iceoryx.LOCK]
    ROUDI.require_none()
    (made / "iceoryx_rt_18_1").touch()
    (made / iceoryx.MANAGEMENT).touch()
    assert {path.name for path in ROUDI.left_over([17])} == {iceoryx.LOCK, iceoryx.MANAGEMENT}
