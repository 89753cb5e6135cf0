"""An open trace as data frames: what answers are computed from. Read by libperflab_trace.so, by ctypes
(native/programs/trace/perflab_trace.h).

Tables and their columns are those of native/traceview/tables.h, which docs/tracing.md explains:

    hosts processes threads                                                  where it ran
    nodes publishers subscriptions services clients timers callbacks links   ROS objects
    callback_instances publications takes intra_deliveries service_calls     what they did
    phases                                                                   what executors did
    functions function_calls                                                 instrumented functions
    thread_states wake_ups migrations holds futex_waits                      the scheduler

    *_ns             Int64, on the trace's time line (`facts["epoch_offset_ns"]` later it is ns since the epoch)
    references       Int32, row numbers of the table that they name: `callback`, `thread`, `publication`, ...
    numbers          Int32, Int64, UInt32, UInt64
    flags            Boolean
    enumerations     Enum, with the names and in the order of tables.h: `callbacks.kind`, `links.kind`, `takes.match`,
                     `phases.phase`, `thread_states.state`, `thread_states.end_state`, `holds.state`,
                     `futex_waits.operation`
    texts            String

What is not known is null.

Tables of HAPPENED are long: the caller that opens a trace says what it will read of them (`Reads`), which takes less
time and memory than all of them do. `Source.rows` and `Source.count` need no data frames, whose import takes as long as
a million events.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from perflab import native, waiting
from perflab.errors import BadInput, PerflabError, Unavailable, one_line

if TYPE_CHECKING:
    import polars as pl

TABLES = (
    *("hosts", "processes", "threads"),
    *("nodes", "publishers", "subscriptions", "services", "clients", "timers", "callbacks", "links"),
    *("callback_instances", "publications", "takes", "intra_deliveries", "service_calls"),
    *("phases", "functions", "function_calls"),
    *("thread_states", "wake_ups", "migrations", "holds", "futex_waits"),
)

# The tables that may be kept in part, and what of them is read: the names of columns by that of the table; "end_ns?"
# where nothing but which rows are null is counted.
HAPPENED = ("callback_instances", "publications", "takes", "intra_deliveries", "phases")
Reads = Mapping[str, Sequence[str]]

LIBRARY = "libperflab_trace.so"
_ERROR_SIZE = 4096
_CAPSULE_NAME = b"arrow_array_stream"  # the interface's; capsules keep a pointer to it


class _ArrowArray(ctypes.Structure):
    """`ArrowArray`: of numbers the second buffer holds the values."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("private_data", ctypes.c_void_p),
    )


class _ArrowArrayStream(ctypes.Structure):
    """`ArrowArrayStream`."""

    _fields_ = (
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_ArrowArray))),
        ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("private_data", ctypes.c_void_p),
    )


def _release(stream: _ArrowArrayStream) -> None:
    """Releases a stream that was not taken over; taking it over sets `release` to null."""
    if stream.release:
        stream.release(ctypes.addressof(stream))


# Capsules as addresses: at the end of its life a capsule must not become a Python object again.
_capsule_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_in_capsules: dict[int, _ArrowArrayStream] = {}


def _end(capsule: int) -> None:
    _release(_in_capsules.pop(_capsule_pointer(capsule, _CAPSULE_NAME)))


_end_capsule = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_end)


@contextlib.contextmanager
def _values(series: pl.Series, number_bytes: int) -> Iterator[int]:
    """Where the numbers of a series without nulls are. Not by numpy: an answer that needs nothing else of it takes a
    quarter longer with it."""
    capsule: Any = series.rechunk().__arrow_c_stream__()
    stream = _ArrowArrayStream.from_address(_capsule_pointer(id(capsule), _CAPSULE_NAME))
    array = _ArrowArray()  # released where there is none
    if stream.get_next(ctypes.addressof(stream), array) != 0:
        raise PerflabError("polars does not say where the numbers of a series are")
    try:
        yield (array.buffers[1] or 0) + array.offset * number_bytes if array.release else 0
    finally:
        if array.release:
            array.release(ctypes.addressof(array))


class Stream:
    """A table on its way to a data frame: `polars.DataFrame(stream)`. It can be read once."""

    def __init__(self, stream: _ArrowArrayStream) -> None:
        self._stream: _ArrowArrayStream | None = stream
        self._release = weakref.finalize(self, _release, stream)
        self._release.atexit = False  # a process that ends frees everything

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The stream in a capsule that releases it unless the consumer takes it over. No other schema is available."""
        if self._stream is None:
            raise ValueError("this stream was read already")
        stream, self._stream = self._stream, None
        self._release.detach()
        address = ctypes.addressof(stream)
        _in_capsules[address] = stream
        return _capsule_new(address, _CAPSULE_NAME, _end_capsule)


class Handle:
    """A trace that the library has open, as an argument of its functions; the last reference to it closes it."""

    def __init__(self, address: int, close: Callable[[int], None]) -> None:
        self._as_parameter_ = address
        self.end = weakref.finalize(self, close, address)
        self.end.atexit = False  # a process that ends frees everything, and faster


class Library:
    """The functions of the library at that path. Raises Unavailable where it cannot be used."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise Unavailable(f"{path.name} is not in {path.parent}; build it with `make` in the perflab source folder")
        pointer, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
        texts, out, said = ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(_ArrowArrayStream), (text, size)
        # Of `count` stretches the addresses of int32 threads, int64 begins and int64 ends, and the count.
        stretches = (pointer, pointer, pointer, pointer, size, out, *said)

        def declared(name: str, result: Any, *arguments: Any) -> Any:
            function = getattr(library, f"perflab_trace_{name}")
            function.restype, function.argtypes = result, arguments
            return function

        try:
            library = ctypes.CDLL(os.fspath(path))
            self._open = declared("open", pointer, texts, size, ctypes.c_uint, texts, size, *said)
            self._close = declared("close", None, pointer)
            self.facts = declared("facts", text, pointer)  # of a handle, as JSON
            self.table = partial(_stream, declared("table", ctypes.c_int, pointer, text, out, *said))
            # Of a handle and a table, or a question: JSON.
            self.rows = partial(_text, declared("rows", text, pointer, text, *said))
            self.count = partial(_text, declared("count", text, pointer, text, *said))
            self.split = partial(_stream, declared("split", ctypes.c_int, *stretches))
            self.holds = partial(_stream, declared("holds", ctypes.c_int, *stretches))
            self._export = declared("export", ctypes.c_int, pointer, text, text, text, *said, *said)
        except (OSError, AttributeError) as error:
            line = one_line(str(error)).removeprefix(f"{path}: ")
            raise Unavailable(
                f"{path} cannot be used: {line}; build it anew with `make` in the perflab source folder"
            ) from None

    def open(self, paths: Sequence[Path], threads: int, columns: Sequence[str] | None = None) -> Handle:
        """Reads these traces, and of them these columns ("takes.match"). Raises BadInput with the reader's line."""
        encoded = _texts(map(os.fsencode, paths))
        wanted = None if columns is None else _texts(map(str.encode, columns))
        error = ctypes.create_string_buffer(_ERROR_SIZE)
        arguments = (
            encoded, len(paths), ctypes.c_uint(threads), wanted, len(columns or ()), error, _ERROR_SIZE,
        )  # fmt: skip
        address: int | None = waiting.work(
            lambda: self._open(*arguments), f"{', '.join(map(str, paths))} to be read", unwanted=self._close
        )
        if not address:
            raise BadInput(_line(error))
        return Handle(address, self._close)

    def export(self, handle: Handle, format_: str, path: Path, options: bytes) -> bytes:
        """Writes a trace to that file; options and what it returns, counts, are JSON (perflab_trace.h)."""
        error, counts = ctypes.create_string_buffer(_ERROR_SIZE), ctypes.create_string_buffer(_ERROR_SIZE)
        arguments = (handle, format_.encode(), os.fsencode(path), options, counts, _ERROR_SIZE, error, _ERROR_SIZE)
        if waiting.work(lambda: self._export(*arguments), f"{path} to be written") != 0:
            raise PerflabError(_line(error))
        return counts.value


def _stream(function: Callable[..., Any], *arguments: object) -> Stream:
    stream = _ArrowArrayStream()
    error = ctypes.create_string_buffer(_ERROR_SIZE)
    status = waiting.work(lambda: function(*arguments, ctypes.byref(stream), error, _ERROR_SIZE), "the trace's reader")
    if status != 0:
        raise PerflabError(_line(error))
    return Stream(stream)


def _text(function: Callable[..., bytes | None], handle: Handle, asked: bytes) -> bytes:
    error = ctypes.create_string_buffer(_ERROR_SIZE)
    found = waiting.work(lambda: function(handle, asked, error, _ERROR_SIZE), "the trace's reader")
    if found is None:
        raise PerflabError(_line(error))
    return found


def _texts(texts: Iterable[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    found = list(texts)
    return (ctypes.c_char_p * len(found))(*found)


def _line(error: ctypes.Array[ctypes.c_char]) -> str:
    return one_line(error.value.decode("utf-8", errors="replace"))


@cache
def _library(path: Path) -> Library:
    return Library(path)


def load() -> Library:
    """The library of this environment, loaded once. Raises Unavailable."""
    return _library(native.find().folder / LIBRARY)


@dataclass(frozen=True)
class Count:
    """How many rows of a table are alike: in columns with rows of other tables or names."""

    table: str
    by: tuple[str, ...] = ()
    counted: tuple[tuple[str, ...], ...] = ()  # each: in how many rows none of these columns is null
    least: tuple[str, ...] = ()  # columns of instants; the result has the earliest
    # Only rows of which the earliest of these instants lies in [begin_ns, end_ns); None: there is no such bound.
    instants: tuple[str, ...] = ()
    begin_ns: int | None = None
    end_ns: int | None = None


class Source(Protocol):
    """An open trace; tests use doubles made of frames."""

    @property
    def facts(self) -> dict[str, Any]:
        """Properties of the trace: its parts, event counts, losses (docs/tracing.md)."""

    def table(self, name: str) -> pl.DataFrame:
        """One of TABLES."""

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of one of TABLES, a short one."""

    def count(self, question: Count) -> list[tuple[Any, ...]]:
        """The groups that have rows, by their values, null first: the values of `by`, how many rows, and what was asked
        of each of `counted` and of `least` (None where there is no instant).
        """

    def split(self, thread: pl.Series, start_ns: pl.Series, end_ns: pl.Series) -> pl.DataFrame:
        """How stretches of threads' time were spent, row by row: on_cpu_ns, preempted_ns, blocked_ns, wake_up_ns
        (Int64; for the rest of the stretch the thread was stopped), migrations (UInt32). All null where the scheduler
        does not say so for all of the stretch, or where one of the three is null.
        """

    def holds(self, thread: pl.Series, start_ns: pl.Series, end_ns: pl.Series) -> pl.DataFrame:
        """Who held the CPUs that stretches of threads' time waited for: interval (UInt32, row of the stretch),
        state (Enum: preempted or woken), cpu, holder (row of threads, null if the CPU was idle or unknown),
        held_ns, summed for each (interval, state, cpu, holder).
        """


class NativeTrace:
    """A trace read by libperflab_trace.so. Frames stay valid after `close`; reading the same table again is free.

    `reads`: what will be read of the tables of HAPPENED; None: all of it.
    """

    facts: dict[str, Any]

    def __init__(self, paths: Sequence[Path], threads: int = 0, reads: Reads | None = None) -> None:
        self._library = load()
        self._reads = reads
        columns = None if reads is None else [f"{table}.{column}" for table in reads for column in reads[table]]
        self._open: Handle | None = self._library.open(paths, threads, columns)
        self.facts = json.loads(self._library.facts(self._open))
        self._tables: dict[str, pl.DataFrame] = {}
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._counts: dict[Count, list[tuple[Any, ...]]] = {}

    def close(self) -> None:
        """Frees what no frame holds. Tables that were read can still be asked for, new ones and `split` cannot. Where
        other threads still wait for an answer, they get it, and the last of them frees.
        """
        self._open = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def table(self, name: str) -> pl.DataFrame:
        """One of TABLES, not copied. Raises ValueError for one that was not to be read."""
        if name not in self._tables:
            import polars as pl

            self._check(name, values=True)
            self._tables[name] = pl.DataFrame(self._library.table(self._handle, name.encode()))
        return self._tables[name]

    def rows(self, name: str) -> list[dict[str, Any]]:
        """See Source. Raises ValueError as `table` does."""
        if name not in self._rows:
            self._check(name, values=True)
            columns: dict[str, list[Any]] = json.loads(self._library.rows(self._handle, name.encode()))
            self._rows[name] = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return self._rows[name]

    def count(self, question: Count) -> list[tuple[Any, ...]]:
        """See Source. Raises ValueError for a table that was not to be read, PerflabError for a column that was not."""
        if question not in self._counts:
            self._check(question.table, values=False)
            found = self._library.count(self._handle, json.dumps(asdict(question)).encode())
            self._counts[question] = list(map(tuple, json.loads(found)))
        return self._counts[question]

    def _check(self, name: str, *, values: bool) -> None:
        if self._reads is None or name not in HAPPENED:
            return
        if not any(not (values and column.endswith("?")) for column in self._reads.get(name, ())):
            raise ValueError(f"this trace was not opened to read {name}")

    def split(self, thread: pl.Series, start_ns: pl.Series, end_ns: pl.Series) -> pl.DataFrame:
        """See Source."""
        found = self._ask(self._library.split, thread, start_ns, end_ns)
        return found if self.facts["scheduler"] else found.clear(len(thread))

    def holds(self, thread: pl.Series, start_ns: pl.Series, end_ns: pl.Series) -> pl.DataFrame:
        """See Source."""
        return self._ask(self._library.holds, thread, start_ns, end_ns)

    def export(self, format_: str, path: Path, options: dict[str, Any]) -> dict[str, int]:
        """Writes a file in a format of its own (perflab_trace.h), which it replaces; returns what was written."""
        text = json.dumps(options, ensure_ascii=False, allow_nan=False).encode(errors="replace")
        counts: dict[str, int] = json.loads(self._library.export(self._handle, format_, path, text))
        return counts

    def _ask(
        self,
        question: Callable[..., Stream],
        thread: pl.Series,
        start_ns: pl.Series,
        end_ns: pl.Series,
    ) -> pl.DataFrame:
        import polars as pl

        if not len(thread) == len(start_ns) == len(end_ns):
            raise ValueError(f"{len(thread)} threads, {len(start_ns)} starts and {len(end_ns)} ends are not rows")
        if not self.facts["scheduler"]:
            return pl.DataFrame(question(self._handle, None, None, None, 0))
        unknown = start_ns.is_null() | end_ns.is_null()
        if unknown.any():
            thread = pl.select(pl.when(~unknown).then(thread)).to_series()
        # The memory of the series themselves where they have no nulls, and one chunk. No thread has the row -1.
        with (
            _values(thread.cast(pl.Int32).fill_null(-1), 4) as threads,
            _values(start_ns.cast(pl.Int64).fill_null(-1), 8) as begins,
            _values(end_ns.cast(pl.Int64).fill_null(-1), 8) as ends,
        ):
            return pl.DataFrame(question(self._handle, threads, begins, ends, len(thread)))

    @property
    def _handle(self) -> Handle:
        """Nobody closes it while it is an argument."""
        if self._open is None:
            raise ValueError("this trace is closed")
        return self._open
