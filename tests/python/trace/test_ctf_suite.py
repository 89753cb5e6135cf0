"""babeltrace's own test traces: what perflab reads of each, and what it says of the rest.

perflab reads what is readable. babeltrace2 ends at the first event that it cannot decode, or refuses the trace.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from both_readers import assert_same, babeltrace2, ours, run_ctf_dump
from reference_traces import reference_trace, trace_folders

pytestmark = pytest.mark.native


@dataclass(frozen=True)
class Readable:
    path: str
    events: int
    losses: tuple[tuple[str, int], ...] = ()  # kind and count, in any order
    # Why what babeltrace2 reads is not the same; then the two are not compared.
    differs: str = ""


READABLE = (
    Readable("succeed/2packets", 2),
    Readable("succeed/array-align-elem", 1),
    Readable("succeed/barectf-event-before-packet", 2),
    Readable("succeed/crlf-metadata", 5),
    Readable("succeed/debug-info", 4),
    Readable("succeed/env-warning", 7_809),
    # The packets say how many events were discarded, but not when.
    Readable("succeed/ev-disc-no-ts-begin-end", 3, (("discarded_events", 17),)),
    Readable("succeed/lf-metadata", 5),
    Readable("succeed/lttng-crash", 400),
    Readable("succeed/lttng-event-after-packet", 2),
    Readable("succeed/lttng-tracefile-rotation", 12_305),
    Readable(
        "succeed/meta-ctx-sequence", 0,
        differs="babeltrace2 2.0 aborts at a sequence in the context of an event class",
    ),
    Readable("succeed/meta-variant-no-underscore", 1),
    Readable("succeed/meta-variant-one-underscore", 1),
    Readable("succeed/meta-variant-reserved-keywords", 1),
    Readable("succeed/meta-variant-same-with-underscore", 1),
    Readable("succeed/meta-variant-two-underscores", 1),
    Readable("succeed/multi-domains", 4_272, (("discarded_events", 728),)),
    Readable("succeed/no-packet-context", 3),
    Readable("succeed/sequence", 10),
    Readable("succeed/session-rotation", 266),
    Readable("succeed/smalltrace", 2),
    Readable("succeed/struct-array-align-elem", 1),
    Readable("succeed/succeed1", 7_809),
    Readable("succeed/succeed2", 7_809),
    Readable("succeed/succeed3", 7_809),
    Readable("succeed/succeed4", 0),
    Readable("succeed/trace-with-index", 4_000),
    Readable("succeed/warnings", 7_809),
    Readable("succeed/wk-heartbeat-u", 20),
    Readable("intersection/3eventsintersect", 8),
    Readable("intersection/nointersect", 6),
    Readable("intersection/nostream", 0),
    Readable("packet-seq-num/no-lost", 3),
    Readable("packet-seq-num/no-lost-not-starting-at-0", 3),
    Readable("packet-seq-num/2-lost-before-last", 3, (("lost_packets", 2),)),
    Readable("packet-seq-num/7-lost-between-2-with-index", 2, (("lost_packets", 7),)),
    Readable("packet-seq-num/2-streams-lost-in-1", 8, (("lost_packets", 2),)),
    Readable("packet-seq-num/2-streams-lost-in-2", 8, (("lost_packets", 2), ("lost_packets", 3), ("lost_packets", 1))),
    Readable(
        "deterministic-ordering/b-not-corrupted", 3,
        differs="the metadata has no clock: babeltrace2 makes one up, and all events have its time 0",
    ),
    Readable("live/split-metadata", 3),
    # The files have the UUID of another trace than the metadata. babeltrace2 reads them, too.
    Readable("intersection/3eventsintersectreverse", 8, (("foreign_uuid", 3), ("foreign_uuid", 5))),
    Readable("intersection/onestream", 3, (("foreign_uuid", 3),)),
    # An id that the metadata does not have: the events before are read, the rest of the packet (`count` bytes) is not.
    Readable(
        "deterministic-ordering/a-corrupted", 2, (("undecodable_event", 1),), differs="babeltrace2 ends with an error"
    ),
    Readable(
        "deterministic-ordering/c-corrupted", 2, (("undecodable_event", 1),), differs="babeltrace2 ends with an error"
    ),
    Readable(
        "fail/valid-events-then-invalid-events", 2, (("undecodable_event", 1),),
        differs="babeltrace2 ends with an error",
    ),
    # The file ends 1,563 bytes before the packet does. babeltrace2 refuses the trace.
    Readable(
        "fail/invalid-packet-size", 10, (("truncated_packet", 1_563),), differs="babeltrace2 refuses the whole trace"
    ),
)  # fmt: skip

# What is said of traces of which nothing can be read, after the path of the folder.
UNREADABLE = (
    ("fail/fail1", "/metadata:15:10: this is CTF 0.1; only CTF 1.8 is read"),
    ("fail/fail2", "/metadata:9:16: unknown escape '\\o'; write \\\\ for a backslash"),
    ("fail/integer-range",
     "/metadata:7:10: integer '234523978563489756238975628937465892374652893746589237645982...' is out of range; the"
     " largest has 64 bits"),
    ("fail/invalid-sequence-length-field-class",
     "/metadata:23:13: the length of this sequence, 'len', is a structure; it must be an unsigned integer"),
    ("fail/invalid-variant-selector-field-class",
     "/metadata:23:11: the selector of this variant, 'selector', is a structure; it must be an enumeration"),
    # The header of metadata packets of those days had no version.
    ("fail/lttng-modules-2.0-pre1",
     "/metadata:1:1: the metadata packet at byte 0 is broken: it is of CTF 116.121; only CTF 1.8 is read"),
    ("fail/packet-based-metadata",
     "/metadata:1:1: the metadata packet at byte 0 is broken: it is of CTF 116.121; only CTF 1.8 is read"),
    ("fail/metadata-syntax-error", "/metadata:3:58: ']' where the name of an attribute would be right"),
    ("fail/smalltrace", "/metadata:6:10: this is CTF 0.1; only CTF 1.8 is read"),
    # Not traces on disk but what a relay daemon sends.
    ("live/new-streams", ': holds no trace: there is no file "metadata" in it or below'),
    ("live/stored-values.mctf", ": is no directory; give the directory of a trace"),
)  # fmt: skip


def suite() -> Path:
    return reference_trace("babeltrace_ctf_traces") / "babeltrace_ctf_traces"


def everything(path: Path) -> dict[str, Any]:
    """Number of events and ledger of the folder as a whole."""
    done = run_ctf_dump(path)
    assert done.returncode == 0, done.stderr
    end: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return end


@pytest.mark.parametrize("case", READABLE, ids=lambda c: c.path)
def test_what_is_readable_is_read_and_the_rest_is_in_the_ledger(case: Readable) -> None:
    end = everything(suite() / case.path)
    assert end["events"] == case.events
    assert sorted((e["kind"], e["count"]) for e in end["ledger"]) == sorted(case.losses)
    assert all(e["exact"] and "\n" not in e["message"] for e in end["ledger"])


@pytest.mark.parametrize(("path", "line"), UNREADABLE, ids=lambda v: v if "/" in v[1:9] else "")
def test_where_nothing_is_readable_one_line_says_why(path: str, line: str) -> None:
    folder = suite() / path
    done = run_ctf_dump(folder)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"{folder}{line}\n"


def test_no_trace_of_the_suite_is_left_out() -> None:
    """Every folder with a metadata file is in one of the tables."""
    root = suite()
    named = [root / c.path for c in READABLE] + [root / path for path, _ in UNREADABLE]
    missing = [f for f in trace_folders(root) if not any(f.is_relative_to(n) for n in named)]
    assert missing == []


def chunks(folder: Path) -> list[list[Path]]:
    """Folders with metadata, those of one trace together: chunks of a rotated session have the same name of process."""
    by_name: dict[str, list[Path]] = {}
    for one in trace_folders(folder):
        key = one.name if "session-rotation" in one.parts else str(one)
        by_name.setdefault(key, []).append(one)
    return list(by_name.values())


def test_good_traces_are_read_as_by_babeltrace2(tmp_path: Path) -> None:
    cases = [c for c in READABLE if not c.differs]
    jobs = [(case, job) for case in cases for job in chunks(suite() / case.path)]
    theirs = babeltrace2([job for _, job in jobs], tmp_path)
    counted = dict.fromkeys((c.path for c in cases), 0)
    for (case, job), read in zip(jobs, theirs, strict=True):
        counted[case.path] += assert_same(ours(*job).streams, read, str(job))
    assert counted == {c.path: c.events for c in cases}
