"""Domains: two runs never hold the same one, whatever becomes of either."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import SOURCE

from perflab.errors import Unavailable
from perflab.experiment import domain

HOLDER = "from perflab.experiment import domain\nwith domain.hold() as d:\n    print(d, flush=True)\n    input()\n"


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lock files of the test's own; the abstract addresses are those of the machine."""
    monkeypatch.setattr(domain, "lock_directory", lambda: tmp_path / "locks")


@contextlib.contextmanager
def another_process(temporary: Path) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TMPDIR": str(temporary)}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline()), process
        finally:
            process.kill()


def test_domains_held_at_the_same_time_differ() -> None:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(domain.hold()) for _ in range(5)]
        assert len(set(held)) == 5
        assert set(held) <= set(range(1, 101))


def test_the_next_trial_takes_the_next_domain() -> None:
    with domain.hold() as first:
        pass
    with domain.hold(after=first) as second:
        assert second != first


def test_another_process_with_another_temporary_directory_never_meets_ours(tmp_path: Path) -> None:
    with another_process(tmp_path) as (theirs, _), domain.hold() as ours:
        assert ours != theirs


def test_a_killed_holder_gives_its_domain_back(tmp_path: Path) -> None:
    with another_process(tmp_path) as (theirs, process):
        process.kill()
        process.wait(timeout=30)
        with contextlib.ExitStack() as stack:
            held = []
            while theirs not in held:
                held.append(stack.enter_context(domain.hold()))  # raises when all are taken


def test_when_all_are_held_it_says_so() -> None:
    with contextlib.ExitStack() as stack, pytest.raises(Unavailable, match=r"all DDS domains 1\.\.100 are held"):
        while True:
            stack.enter_context(domain.hold())


def test_the_directory_is_for_all_users(tmp_path: Path) -> None:
    with domain.hold() as held:
        assert (tmp_path / "locks").stat().st_mode & 0o7777 == 0o1777
        assert (tmp_path / "locks" / f"{held}.lock").is_file()


def test_a_link_in_place_of_a_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks/1.lock").symlink_to(tmp_path / "victim")
    with domain.hold() as held:
        assert held != 1
    assert not (tmp_path / "victim").exists()


def test_a_file_in_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "locks").touch()
    with pytest.raises(Unavailable, match="locks"), domain.hold():
        pass


def test_a_domain_that_was_chosen_is_held_and_refused_to_others(tmp_path: Path) -> None:
    refused = pytest.raises(Unavailable, match=r"--domain \d+: another run holds it")
    with another_process(tmp_path) as (theirs, _), refused, domain.hold_this(theirs):
        pass
    with domain.hold_this(0) as everybodys, domain.hold_this(232) as last:
        assert (everybodys, last) == (0, 232)
        with pytest.raises(Unavailable), domain.hold_this(232):
            pass
    with domain.hold_this(232):
        pass


def test_a_domain_that_was_chosen_is_not_given_to_others() -> None:
    with domain.hold(after=90) as chosen:  # one that nothing on this machine has: tests run beside this one
        pass
    with domain.hold_this(chosen), domain.hold(after=chosen - 1) as held:
        assert held != chosen
