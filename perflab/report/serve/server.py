"""The web server of a live page: it answers only this machine, and only a handful of fixed paths.

It listens on 127.0.0.1 only and requires a loopback name in Host, so that no foreign page can reach it by a name that
resolves to this machine. No path maps to a file. Each connection has its own thread and time limits for everything; if
there are too many, the one that was idle longest is closed.
"""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from perflab.errors import BadInput, PerflabError, one_line
from perflab.report.serve import page
from perflab.report.serve.page import Asset
from perflab.report.serve.state import ENDED, State, Watch

Json = dict[str, Any]

HOST = "127.0.0.1"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MAX_CONNECTIONS = 32
QUIET_LIMIT_S = 20.0  # seconds for a connection without traffic
MAX_TARGET = 512  # characters of a path with its query

# For the live page: its parts come from this server, and nothing from elsewhere.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# For the report, which is one self-contained file.
REPORT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

# A state, for programs and as the parts of the page.
_STATES: Mapping[str, tuple[str, Callable[[State, Json, str | None], bytes]]] = {
    "/state.json": ("application/json", State.body),
    "/parts.html": ("text/html; charset=utf-8", page.answer),
}

Report = Callable[[Sequence[str]], str]


class LiveServer(ThreadingHTTPServer):
    """Serves `watches` until `shutdown`, at `url`."""

    daemon_threads = True
    allow_reuse_address = True  # a port that was in use a moment ago
    request_queue_size = MAX_CONNECTIONS

    def __init__(self, watches: Sequence[Watch], port: int, assets: Mapping[str, Asset], report: Report) -> None:
        """Binds the port; 0 is any free one. Raises PerflabError if the port is unavailable, BadInput if it is
        invalid."""
        if not 0 <= port <= 65535:
            raise BadInput(f"--port {port} is not within 0..65535; 0 is any free one")
        self.watches = tuple(watches)
        self.assets = dict(assets)
        self.report = report
        self.reporting = threading.Lock()
        self.reported: tuple[str, Asset] | None = None
        self._began_s, self._cpu_s = time.monotonic(), time.process_time()
        self._connections: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise PerflabError(
                f"cannot serve at {HOST}:{port}: {error.strerror}; choose another --port, or 0 for any free one"
            ) from error

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}/"

    def cost(self) -> Json:
        """The cost of serving so far: CPU time of this process, and its share of one CPU."""
        seconds, cpu_s = time.monotonic() - self._began_s, time.process_time() - self._cpu_s
        share = 100 * cpu_s / seconds if seconds >= 1 else None
        return {
            "seconds": round(seconds, 1),
            "cpu_s": round(cpu_s, 3),
            "cpu_percent": None if share is None else round(share, 2),
        }

    def close(self) -> None:
        """Closes the port and every connection."""
        self.server_close()
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    # -- connections ---------------------------------------------------------------------------------------------------

    def server_bind(self) -> None:
        """Avoids the DNS query for the machine's name that http.server would make."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = HOST, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._connections) >= MAX_CONNECTIONS:
                quietest = min(self._connections, key=lambda c: self._connections[c])
                del self._connections[quietest]
                with contextlib.suppress(OSError):
                    quietest.shutdown(socket.SHUT_RDWR)
            self._connections[request] = time.monotonic()
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread is available
            self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def answered(self, request: socket.socket) -> None:
        """A connection has made progress."""
        with self._lock:
            if request in self._connections:
                self._connections[request] = time.monotonic()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A disconnected client is ignored; any other error is reported in one line, and serving continues."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):
            sys.stderr.write(f"perflab: a page was not answered: {type(error).__name__}: {one_line(str(error))}\n")


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: LiveServer
    protocol_version = "HTTP/1.1"  # one connection for all the states that a page requests
    server_version = "perflab"
    sys_version = ""
    timeout = QUIET_LIMIT_S
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Also called by http.server, for requests that are not HTTP or have an unknown method."""
        del explain
        if code == HTTPStatus.NOT_IMPLEMENTED:
            code, message = HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are answered"
        self.close_connection = True
        text = message or HTTPStatus(code).phrase
        headers = {"Allow": "GET, HEAD"} if code == HTTPStatus.METHOD_NOT_ALLOWED else {}
        self._send(code, Asset("text/plain; charset=utf-8", f"{text}\n".encode()), headers)

    def log_message(self, format: str, *args: Any) -> None:
        """A server that is polled every second does not log requests."""

    def _answer(self, *, with_body: bool) -> None:
        self._with_body = with_body
        if self.headers.get("Content-Length", "0") != "0" or self.headers.get("Transfer-Encoding"):
            self.close_connection = True  # what follows is not a request
        if not _of_loopback(self.headers.get_all("Host")):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "this page is served only to this machine")
            return
        if len(self.path) > MAX_TARGET:
            self.send_error(HTTPStatus.REQUEST_URI_TOO_LONG)
            return
        try:
            path, query = _parsed(self.path)
        except ValueError:
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        if path in _STATES:
            self._state(path, query)
        elif path == "/vega.js":
            self._send(HTTPStatus.OK, page.library())
        elif path == "/film.json":
            self._film(query)
        elif path == "/report.html":
            self._report()
        elif (asset := self.server.assets.get(path)) is not None:
            self._send(HTTPStatus.OK, asset)
        else:
            self.send_error(HTTPStatus.NOT_FOUND, "no such page")
        self.server.answered(self.connection)

    def _watch(self, query: Mapping[str, str]) -> Watch | None:
        """The requested run; answers without one."""
        watches = self.server.watches
        number = query.get("run", "1")
        if not number.isascii() or not number.isdigit() or not 1 <= int(number) <= len(watches):
            self.send_error(HTTPStatus.NOT_FOUND, f"run is within 1..{len(watches)}")
            return None
        return watches[int(number) - 1]

    def _film(self, query: Mapping[str, str]) -> None:
        """The trial with a number, or the newest one."""
        if (watch := self._watch(query)) is None:
            return
        number = query.get("trial", "")
        if number and not (number.isascii() and number.isdigit()):
            self.send_error(HTTPStatus.NOT_FOUND, "trial must be a trial's number")
            return
        watch.state()
        told = json.dumps(watch.film(int(number) if number else None), allow_nan=False, separators=(",", ":"))
        self._send(HTTPStatus.OK, Asset("application/json", told.encode()))

    def _state(self, path: str, query: Mapping[str, str]) -> None:
        if (watch := self._watch(query)) is None:
            return
        state = watch.state()
        tag = f'"{state.version}"'
        if self.headers.get("If-None-Match") == tag:
            self._send(HTTPStatus.NOT_MODIFIED, None, {"ETag": tag})
            return
        cost = {**self.server.cost(), "runs": [each.name for each in self.server.watches]}
        kind, written = _STATES[path]
        self._send(HTTPStatus.OK, Asset(kind, written(state, cost, query.get("known"))), {"ETag": tag})

    def _report(self) -> None:
        """The report of all runs, as soon as all have ended. It is made once; meanwhile, states are answered."""
        states = [watch.state() for watch in self.server.watches]
        if any(state.kind not in ENDED for state in states):
            self.send_error(HTTPStatus.CONFLICT, "the run has not ended; its report will be here when it has")
            return
        version = " ".join(state.version for state in states)
        with self.server.reporting:
            if self.server.reported is None or self.server.reported[0] != version:
                try:
                    text = self.server.report([str(watch.path or watch.word) for watch in self.server.watches])
                except PerflabError as error:
                    self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, f"no report: {error}")
                    return
                self.server.reported = (version, Asset("text/html; charset=utf-8", text.encode()))
            asset = self.server.reported[1]
        self._send(HTTPStatus.OK, asset, {"Content-Security-Policy": REPORT_POLICY})

    def _send(self, code: int, asset: Asset | None, more: Mapping[str, str] | None = None) -> None:
        headers = {
            "Content-Security-Policy": POLICY,
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
        }
        if asset is not None:
            headers |= {"Content-Type": asset.kind, "Content-Length": str(len(asset.body))}
        headers |= more or {}
        if self.close_connection:
            headers["Connection"] = "close"
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if asset is not None and getattr(self, "_with_body", True):
            self.wfile.write(asset.body)


def _of_loopback(hosts: Sequence[str] | None) -> bool:
    """Whether the one Host header names the loopback; with any port, since a tunnel may use another one."""
    if hosts is None or len(hosts) != 1:
        return False
    name, colon, port = hosts[0].strip().lower().rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()):
        name = hosts[0].strip().lower()
    return name in LOOPBACK


def _parsed(target: str) -> tuple[str, dict[str, str]]:
    """The path and the query of a request's target. Raises ValueError if it is invalid."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc or not target.startswith("/"):
        raise ValueError("not a path")
    return parts.path, {name: values[-1] for name, values in parse_qs(parts.query, max_num_fields=8).items()}
