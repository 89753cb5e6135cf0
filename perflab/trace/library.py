"""libperflab_trace.so: the native trace reader (native/programs/trace/perflab_trace.h), by ctypes.

Tables come as `Stream`s, which data frame libraries read without copying them (the Arrow PyCapsule interface).
"""

from __future__ import annotations

import ctypes
import functools
import os
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from perflab import native, waiting
from perflab.errors import BadInput, PerflabError, Unavailable, one_line

LIBRARY = "libperflab_trace.so"
_ERROR_SIZE = 4096
_CAPSULE_NAME = b"arrow_array_stream"  # the interface's; capsules keep a pointer to it


class _ArrowArrayStream(ctypes.Structure):
    """`ArrowArrayStream`; only what ends it is called from here."""

    _fields_ = (
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.c_void_p),
        ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("private_data", ctypes.c_void_p),
    )


def _release(stream: _ArrowArrayStream) -> None:
    """Lets go of a stream that nobody took over; whoever did has set `release` to null."""
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


class Stream:
    """A table on its way to a data frame: `polars.DataFrame(stream)`. It can be read once."""

    def __init__(self, stream: _ArrowArrayStream) -> None:
        self._stream: _ArrowArrayStream | None = stream
        self._release = weakref.finalize(self, _release, stream)
        self._release.atexit = False  # a process that ends frees everything

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The stream in a capsule that releases it unless the consumer takes it over. No other schema can be had."""
        if self._stream is None:
            raise ValueError("this stream was read already")
        stream, self._stream = self._stream, None
        self._release.detach()
        address = ctypes.addressof(stream)
        _in_capsules[address] = stream
        return _capsule_new(address, _CAPSULE_NAME, _end_capsule)


class Library:
    """The functions of the library at that path. Raises Unavailable where it cannot be used."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise Unavailable(f"{path.name} is not in {path.parent}; build it with `make` in the perflab source folder")
        pointer, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
        texts, out, said = ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(_ArrowArrayStream), (text, size)
        stretches = (pointer, pointer, pointer, pointer, size, out, *said)
        try:
            library = ctypes.CDLL(os.fspath(path))
            self._open = _declare(library.perflab_trace_open, pointer, texts, size, ctypes.c_uint, *said)
            self.close = _declare(library.perflab_trace_close, None, pointer)
            self.facts = _declare(library.perflab_trace_facts, text, pointer)  # of a handle, as JSON
            self._table = _declare(library.perflab_trace_table, ctypes.c_int, pointer, text, out, *said)
            self._split = _declare(library.perflab_trace_split, ctypes.c_int, *stretches)
            self._holds = _declare(library.perflab_trace_holds, ctypes.c_int, *stretches)
            self._export = _declare(library.perflab_trace_export, ctypes.c_int, pointer, text, text, text, *said, *said)
        except (OSError, AttributeError) as error:
            line = one_line(str(error)).removeprefix(f"{path}: ")
            raise Unavailable(
                f"{path} cannot be used: {line}; build it anew with `make` in the perflab source folder"
            ) from None

    def open(self, paths: Sequence[Path], threads: int) -> int:
        """Reads these traces; the handle is to be given to `close`. Raises BadInput with the reader's line."""
        encoded = (ctypes.c_char_p * len(paths))(*map(os.fsencode, paths))
        error = ctypes.create_string_buffer(_ERROR_SIZE)
        arguments = (encoded, len(paths), ctypes.c_uint(threads), error, _ERROR_SIZE)
        handle: int | None = waiting.work(
            lambda: self._open(*arguments), f"{', '.join(map(str, paths))} to be read", unwanted=self._discard
        )
        if not handle:
            raise BadInput(_line(error))
        return handle

    def table(self, handle: int, name: str) -> Stream:
        """The table of that name."""
        return self._stream(self._table, handle, name.encode())

    def split(self, handle: int, threads: int, begins_ns: int, ends_ns: int, count: int) -> Stream:
        """How stretches of time were spent; the first three are addresses of `count` int32, int64 and int64."""
        return self._stream(self._split, handle, threads, begins_ns, ends_ns, count)

    def holds(self, handle: int, threads: int, begins_ns: int, ends_ns: int, count: int) -> Stream:
        """Who held the CPUs that stretches of time waited for; addresses as of `split`."""
        return self._stream(self._holds, handle, threads, begins_ns, ends_ns, count)

    def export(self, handle: int, format_: str, path: Path, options: bytes) -> bytes:
        """Writes a trace to that file; options and what it returns, counts, are JSON (perflab_trace.h)."""
        error, counts = ctypes.create_string_buffer(_ERROR_SIZE), ctypes.create_string_buffer(_ERROR_SIZE)
        arguments = (handle, format_.encode(), os.fsencode(path), options, counts, _ERROR_SIZE, error, _ERROR_SIZE)
        if waiting.work(lambda: self._export(*arguments), f"{path} to be written") != 0:
            _fail(error)
        return counts.value

    def _discard(self, handle: int | None) -> None:
        if handle:
            self.close(handle)

    @staticmethod
    def _stream(function: Callable[..., Any], *arguments: object) -> Stream:
        stream = _ArrowArrayStream()
        error = ctypes.create_string_buffer(_ERROR_SIZE)
        status = waiting.work(
            lambda: function(*arguments, ctypes.byref(stream), error, _ERROR_SIZE), "the trace's reader"
        )
        if status != 0:
            _fail(error)
        return Stream(stream)


@functools.cache
def _library(path: Path) -> Library:
    return Library(path)


def load() -> Library:
    """The library of this environment, loaded once. Raises Unavailable."""
    return _library(native.find().folder / LIBRARY)


def _declare(function: Any, result: Any, *arguments: Any) -> Any:
    function.restype, function.argtypes = result, arguments
    return function


def _line(error: ctypes.Array[ctypes.c_char]) -> str:
    return one_line(error.value.decode("utf-8", errors="replace"))


def _fail(error: ctypes.Array[ctypes.c_char]) -> NoReturn:
    raise PerflabError(_line(error))
