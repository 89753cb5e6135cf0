"""Where memory is allocated: from the records of processes to the rows of the table."""

from __future__ import annotations

from typing import Any

from perflab.results.trial import AllocationSite
from perflab.statistics import allocation_sites


def frame(function: str | None, offset: int = 0x1234) -> dict[str, Any]:
    return {"object": "libddsc.so.0", "offset": offset, "function": function}


def site(tid: int, count: int, *functions: str | None, role: str = "middleware") -> dict[str, Any]:
    frames = [frame(function) for function in functions]
    return {"tid": tid, "thread": "recv", "role": role, "count": count, "bytes": 10 * count, "frames": frames}


def made(*sites: dict[str, Any]) -> list[AllocationSite]:
    return allocation_sites.of_process("talker", {"sites": list(sites), "left_out": 0})


def test_threads_of_the_instrument_are_left_out() -> None:
    found = made(site(1, 5, "ddsi_receive"), site(2, 500, "write_record", role="perflab"))
    assert [s.frames for s in found] == [("ddsi_receive",)]


def test_a_function_without_a_name_is_where_it_is_in_its_object() -> None:
    assert made(site(1, 5, None))[0].frames == ("libddsc.so.0+0x1234",)


def test_threads_of_one_name_are_one_and_what_allocates_most_stands_first() -> None:
    found = allocation_sites.most(made(site(1, 5, "a"), site(2, 7, "a"), site(3, 11, "b")))
    assert [(s.frames, s.count, s.bytes) for s in found] == [(("a",), 12, 120), (("b",), 11, 110)]


def test_no_more_than_some_are_kept() -> None:
    many = made(*(site(n, n, f"f{n}") for n in range(1, 60)))
    kept = allocation_sites.most(many)
    assert len(kept) == allocation_sites.MOST
    assert kept[0].frames == ("f59",)


def test_the_caller_is_the_first_that_is_no_part_of_the_allocator() -> None:
    (found,) = made(site(1, 1, "operator new(unsigned long)", "std::vector<int>::reserve", "grow", "main"))
    assert allocation_sites.callers(found) == ("grow", "main")
    (library,) = made(site(1, 1, "operator new(unsigned long)", "std::thread::thread"))
    assert allocation_sites.callers(library) == library.frames
