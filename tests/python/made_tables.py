"""An open trace made of rows that a test writes by hand, with the columns and types of native/traceview/tables.h."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from perflab.trace.source import Count

Row = Mapping[str, Any]

_I32, _I64, _U32, _U64, _TEXT, _FLAG = pl.Int32, pl.Int64, pl.UInt32, pl.UInt64, pl.String, pl.Boolean
_CALLBACK = pl.Enum(["subscription", "timer", "service", "client", "unknown"])
_MATCH = pl.Enum(["matched", "not_taken", "no_timestamp", "unknown_subscription", "no_publication", "ambiguous"])
_LINK = pl.Enum(["periodic_async", "partial_sync"])
_PHASE = pl.Enum(["get_next_ready", "wait_for_work", "execute", "dispatch"])
_STATE = pl.Enum(["running", "preempted", "blocked", "woken", "stopped", "traced"])
_END = pl.Enum(["preempted", "sleeping", "uninterruptible", "stopped", "traced", "ended", "other"])
_FUTEX = pl.Enum(["wait", "wait_bitset", "wait_requeue_pi", "lock_pi", "lock_pi2", "other"])

_VALID = {"valid_from_ns": _I64, "valid_to_ns": _I64}
_ENDPOINT = {"process": _I32, "node": _I32, "handle": _U64, "rmw_handle": _U64, "topic": _TEXT, "gid": _TEXT}
_SERVICE = {"process": _I32, "node": _I32, "handle": _U64, "rmw_handle": _U64, "name": _TEXT, "gid": _TEXT}

SCHEMAS: dict[str, dict[str, Any]] = {
    "hosts": {"name": _TEXT},
    "processes": {
        "host": _I32, "pid": _I32, "name": _TEXT, "tracetools_version": _TEXT, "first_ns": _I64, "last_ns": _I64,
        "events": _U64,
    },
    "threads": {
        "host": _I32, "process": _I32, "tid": _I32, "name": _TEXT, "first_ns": _I64, "last_ns": _I64, "events": _U64,
    },
    "nodes": {"process": _I32, "handle": _U64, "name": _TEXT, **_VALID},
    "publishers": {**_ENDPOINT, "queue_depth": _I64, **_VALID},
    "subscriptions": {**_ENDPOINT, "queue_depth": _I64, **_VALID},
    "services": {**_SERVICE, **_VALID},
    "clients": {**_SERVICE, **_VALID},
    "timers": {"process": _I32, "node": _I32, "handle": _U64, "period_ns": _I64, **_VALID},
    "callbacks": {
        "process": _I32, "handle": _U64, "kind": _CALLBACK, "owner": _I32, "node": _I32, "name": _TEXT, "symbol": _TEXT,
        **_VALID,
    },
    "links": {"process": _I32, "kind": _LINK, "subscription": _I32, "publisher": _I32, "time_ns": _I64},
    "callback_instances": {
        "callback": _I32, "thread": _I32, "start_ns": _I64, "end_ns": _I64, "intra_process": _FLAG, "take": _I32,
        "delivery": _I32, "parent": _I32, "due_ns": _I64,
    },
    "publications": {
        "publisher": _I32, "thread": _I32, "callback_instance": _I32, "rclcpp_ns": _I64, "intra_ns": _I64,
        "rcl_ns": _I64, "rmw_ns": _I64, "dds_ns": _I64, "source_timestamp": _I64, "message": _U64,
    },
    "takes": {
        "subscription": _I32, "thread": _I32, "rmw_ns": _I64, "rcl_ns": _I64, "rclcpp_ns": _I64,
        "source_timestamp": _I64, "match": _MATCH, "publication": _I32, "callback_instance": _I32,
    },
    "intra_deliveries": {
        "subscription": _I32, "publication": _I32, "buffer": _U64, "index": _U64, "enqueue_ns": _I64,
        "dequeue_ns": _I64, "lost": _FLAG, "enqueue_thread": _I32, "dequeue_thread": _I32, "callback_instance": _I32,
    },
    "service_calls": {
        "client": _I32, "service": _I32, "sequence_number": _I64, "send_request_ns": _I64, "take_request_ns": _I64,
        "send_response_ns": _I64, "take_response_ns": _I64, "callback_instance": _I32,
        "request_in": _I32,
    },
    "phases": {"thread": _I32, "phase": _PHASE, "start_ns": _I64, "end_ns": _I64, "callback": _I32},
    "functions": {"process": _I32, "address": _U64, "symbol": _TEXT, "file": _TEXT},
    "function_calls": {"thread": _I32, "function": _I32, "start_ns": _I64, "end_ns": _I64, "parent": _I32},
    "thread_states": {
        "thread": _I32, "state": _STATE, "start_ns": _I64, "end_ns": _I64, "cpu": _I32, "priority": _I32,
        "end_state": _END, "inferred": pl.Boolean,
    },
    "wake_ups": {
        "thread": _I32, "by_thread": _I32, "waking_ns": _I64, "wakeup_ns": _I64, "switch_ns": _I64, "cpu": _I32,
        "priority": _I32, "already_running": _FLAG,
    },
    "migrations": {"thread": _I32, "time_ns": _I64, "from_cpu": _I32, "to_cpu": _I32},
    "holds": {
        "thread": _I32, "state": _STATE, "start_ns": _I64, "end_ns": _I64, "cpu": _I32, "holder": _I32,
        "idle": _FLAG,
    },
    "futex_waits": {
        "thread": _I32, "start_ns": _I64, "end_ns": _I64, "address": _U64, "operation": _FUTEX, "shared": _FLAG,
        "priority": _I32, "owner": _I32, "result": _I32,
    },
}  # fmt: skip

SPLIT: dict[str, Any] = {
    "on_cpu_ns": _I64,
    "preempted_ns": _I64,
    "blocked_ns": _I64,
    "wake_up_ns": _I64,
    "migrations": _U32,
}
HOLDS: dict[str, Any] = {"interval": _U32, "state": _STATE, "cpu": _I32, "holder": _I32, "held_ns": _I64}


def facts(**changed: Any) -> dict[str, Any]:
    """Those of a trace of user space without any loss."""
    return {
        "paths": ["/traces/made"],
        "begin_ns": 0,
        "end_ns": 1_000_000_000,
        "epoch_offset_ns": None,
        "traces": [],
        "events": [],
        "ledger": [],
        "counters": {},
        "scheduler": None,
        "tracetools_versions": [],
        "warnings": [],
    } | changed


class MadeSource:
    """A trace of these rows; a column that a row does not name is null. Tables that are not named are empty.

    `split` and `holds` are worked out from the tables thread_states, migrations and holds, as the library does.
    """

    def __init__(self, tables: Mapping[str, Sequence[Row]], **changed_facts: Any) -> None:
        self.facts = facts(**changed_facts)
        self._frames = {
            name: pl.DataFrame(
                [{column: row.get(column) for column in schema} for row in tables.get(name, ())],
                schema=schema,
                orient="row",
            )
            for name, schema in SCHEMAS.items()
        }
        for name, rows in tables.items():
            for row in rows:
                if wrong := set(row) - set(SCHEMAS[name]):
                    raise ValueError(f"table {name} has no column {wrong}")

    def table(self, name: str) -> pl.DataFrame:
        return self._frames[name]

    def rows(self, name: str) -> list[dict[str, Any]]:
        return self._frames[name].to_dicts()

    def count(self, question: Count) -> list[tuple[Any, ...]]:
        frame = self._frames[question.table]
        if question.begin_ns is not None or question.end_ns is not None:
            at = pl.min_horizontal(*question.instants)
            low, high = question.begin_ns, question.end_ns
            frame = frame.filter(
                at.is_not_null(), pl.lit(low is None) | (at >= (low or 0)), pl.lit(high is None) | (at < (high or 0))
            )
        made = [
            pl.len().alias("rows"),
            *(
                pl.all_horizontal(pl.col(*columns).is_not_null()).sum().alias(f"counted {i}")
                for i, columns in enumerate(question.counted)
            ),
            *(pl.col(column).min().alias(f"least {column}") for column in question.least),
        ]
        if question.by:
            return frame.group_by(question.by).agg(made).sort(question.by, nulls_last=False).rows()
        return frame.select(made).filter(pl.col("rows") > 0).rows()

    def _of_threads(self, name: str) -> dict[int, list[dict[str, Any]]]:
        """The rows of a table by their thread."""
        found: dict[int, list[dict[str, Any]]] = {}
        for row in self.table(name).iter_rows(named=True):
            found.setdefault(row["thread"], []).append(row)
        return found

    def split(self, thread: pl.Series, start_ns: pl.Series, end_ns: pl.Series) -> pl.DataFrame:
        states, migrations = self._of_threads("thread_states"), self._of_threads("migrations")
        rows = []
        for t, start, end in zip(thread, start_ns, end_ns, strict=True):
            if t is None or start is None or end is None:
                rows.append(dict.fromkeys(SPLIT))
                continue
            spent = dict.fromkeys(("running", "preempted", "blocked", "woken", "stopped", "traced"), 0)
            for s in states.get(t, ()):
                spent[s["state"]] += max(0, min(end, s["end_ns"]) - max(start, s["start_ns"]))
            known = sum(spent.values()) == end - start
            moved = sum(start <= m["time_ns"] <= end for m in migrations.get(t, ()))
            values = (spent["running"], spent["preempted"], spent["blocked"], spent["woken"], moved)
            rows.append(dict(zip(SPLIT, values, strict=True)) if known else dict.fromkeys(SPLIT))
        return pl.DataFrame(rows, schema=SPLIT, orient="row")

    def holds(self, thread: pl.Series, start_ns: pl.Series, end_ns: pl.Series) -> pl.DataFrame:
        holds = self._of_threads("holds")
        held: dict[tuple[int, str, int | None, int | None], int] = {}
        for i, (t, start, end) in enumerate(zip(thread, start_ns, end_ns, strict=True)):
            if t is None or start is None or end is None:
                continue
            for h in holds.get(t, ()):
                part = min(end, h["end_ns"]) - max(start, h["start_ns"])
                if part > 0:
                    key = (i, h["state"], h["cpu"], h["holder"])
                    held[key] = held.get(key, 0) + part
        rows = [dict(zip(HOLDS, (*key, ns), strict=True)) for key, ns in held.items()]
        return pl.DataFrame(rows, schema=HOLDS, orient="row")
