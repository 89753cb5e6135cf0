"""The web server of the live page: who is answered, what is answered, and what clients cannot do to it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import made_film
import pytest
from made_live import LiveRun, Recorder, trial
from support import SOURCE

from perflab.errors import BadInput, PerflabError
from perflab.report.serve import page, server, state
from perflab.report.serve.server import LiveServer
from perflab.report.serve.state import Watch

TIMEOUT_S = 60


@pytest.fixture
def run(tmp_path: Path) -> LiveRun:
    return LiveRun(tmp_path / "run", ["baseline"] * 3, [trial()])


class Served:
    """A server in this process."""

    def __init__(self, *words: str, report: Any = None) -> None:
        watches = [Watch(word) for word in words]
        self.reports: list[list[str]] = []
        self.server = LiveServer(watches, 0, page.assets([w.name for w in watches]), report or self._report)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def _report(self, runs: Any) -> str:
        self.reports.append(list(runs))
        return "<!doctype html><title>the report</title>"

    def close(self) -> None:
        self.server.shutdown()
        self.server.close()
        self.thread.join(TIMEOUT_S)

    def ask(
        self, path: str, method: str = "GET", headers: dict[str, str] | None = None, body: bytes | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def raw(self, data: bytes) -> bytes:
        """Everything that comes back until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), TIMEOUT_S) as connection:
            got = b""
            # A server that refuses a request before it has read all of it resets the connection: at any of these calls.
            with contextlib.suppress(OSError):
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while part := connection.recv(65536):
                    got += part
            return got


@pytest.fixture
def served(run: LiveRun, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(state, "LOOK_INTERVAL_S", 0.0)
    made = Served(str(run.path))
    yield made
    made.close()


# -- what is answered ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "kind", "within"),
    [
        ("/", "text/html; charset=utf-8", b"<h1"),
        ("/?run=1", "text/html; charset=utf-8", b"<h1"),
        ("/live.css", "text/css; charset=utf-8", b"--group0"),
        ("/live.js", "text/javascript; charset=utf-8", b"parts.html"),
        ("/state.json", "application/json", b'"state":"running"'),
    ],
)
def test_the_page_and_what_it_asks_for(served: Served, path: str, kind: str, within: bytes) -> None:
    status, headers, body = served.ask(path)
    assert (status, headers["content-type"]) == (200, kind)
    assert within in body
    assert headers["cache-control"] == "no-store"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert int(headers["content-length"]) == len(body)
    head = served.ask(path, "HEAD")
    assert (head[0], head[2]) == (200, b"")
    assert head[1]["content-type"] == kind


def test_the_page_names_nothing_from_elsewhere() -> None:
    assets = page.assets(["<b>&", "two"])
    text = assets["/"].body.decode()
    assert "&lt;b&gt;&amp;" in text and "<b>" not in text
    found = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert set(found) == {"data:,", "/live.css", "/live.js", "/?run=1", "/?run=2"}
    assert "style=" not in text and " on" not in re.sub(r">[^<]*<", "><", text)
    for asset in assets.values():
        assert not re.search(rb"https?://(?!www\.w3\.org/2000/svg)", asset.body)


def test_an_unchanged_state_costs_nothing(served: Served, run: LiveRun) -> None:
    _, headers, body = served.ask("/state.json")
    tag = headers["etag"]
    assert json.loads(body)["version"] == tag.strip('"')
    status, headers, body = served.ask("/state.json", headers={"If-None-Match": tag})
    assert (status, body, headers["etag"]) == (304, b"", tag)
    recorder = Recorder(run.begin(2))
    recorder.start()
    status, headers, body = served.ask("/state.json", headers={"If-None-Match": tag})
    assert status == 200 and headers["etag"] != tag
    version = json.loads(body)["run_version"]
    assert json.loads(served.ask(f"/state.json?known={version}")[2])["run"] is None


def test_a_film_is_answered_as_far_as_it_is(served: Served, run: LiveRun) -> None:
    assert json.loads(served.ask("/film.json")[2]) == {"trial": 1, "film": None}
    folder = run.begin(2)
    assert json.loads(served.ask("/film.json")[2]) == {"trial": 2, "film": None}
    made_film.write(folder)
    found = json.loads(served.ask("/film.json")[2])
    assert (found["trial"], found["film"]["s"]) == (2, 1.0)
    assert found["scene"]["tip"] == "tip"
    assert json.loads(served.ask("/film.json?trial=1")[2])["film"] is None
    assert json.loads(served.ask("/film.json?trial=7")[2]) == {"trial": None, "film": None}
    assert served.ask("/film.json?trial=../1")[0] == 404
    assert served.ask("/film.json?run=2")[0] == 404


def test_several_runs_have_a_state_each(tmp_path: Path) -> None:
    for name, done in (("one", 1), ("two", 2)):
        LiveRun(tmp_path / name, ["baseline"] * 3, [trial()] * done)
    served = Served(str(tmp_path / "one"), str(tmp_path / "two"), str(tmp_path / "three"))
    try:
        states = [json.loads(served.ask(f"/state.json?run={n}")[2]) for n in (1, 2, 3)]
        assert [s["now"]["done"] for s in states] == [1, 2, 0]
        assert [s["now"]["state"] for s in states] == ["running", "running", "waiting"]
        assert states[0]["server"]["runs"] == ["one", "two", "three"]
        for number in ("0", "4", "-1", "x", "1.0", "٣", "9" * 100):
            assert served.ask(f"/state.json?run={quote(number)}")[0] == 404
    finally:
        served.close()


def test_the_report_comes_when_the_run_has_ended_and_is_made_once(served: Served, run: LiveRun) -> None:
    status, _, body = served.ask("/report.html")
    assert status == 409 and b"has not ended" in body
    run.controlled_by(None)
    status, headers, body = served.ask("/report.html")
    assert (status, body) == (200, b"<!doctype html><title>the report</title>")
    assert "connect-src" not in headers["content-security-policy"]
    assert served.ask("/report.html")[0] == 200
    assert served.reports == [[str(run.path)]]


def test_a_report_that_cannot_be_made_is_one_line(run: LiveRun) -> None:
    def report(runs: Any) -> str:
        raise BadInput(f"nothing to draw of {len(runs)} run")

    run.controlled_by(None)
    served = Served(str(run.path), report=report)
    try:
        status, _, body = served.ask("/report.html")
        assert (status, body) == (500, b"no report: nothing to draw of 1 run\n")
        assert served.ask("/")[0] == 200
    finally:
        served.close()


# -- what is not -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/run/manifest.json",
        "/manifest.json",
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/live.css/",
        "/live.css%00",
        "/state.json/x",
        "/favicon.ico",
        "/STATE.JSON",
    ],
)
def test_no_path_leads_to_a_file(served: Served, path: str) -> None:
    status, headers, body = served.ask(path)
    assert status in (400, 404)
    assert len(body) < 100
    assert "default-src 'none'" in headers["content-security-policy"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil:80", "127.0.0.2", "[::2]:1"]
)
def test_a_name_that_is_not_of_the_loopback_is_not_answered(served: Served, host: str) -> None:
    assert served.ask("/state.json", headers={"Host": host})[0] == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:9999", "127.0.0.1:80", "[::1]:8000"])
def test_names_of_the_loopback_are_answered(served: Served, host: str) -> None:
    assert served.ask("/state.json", headers={"Host": host})[0] == 200


def test_a_request_without_a_host_or_with_two_is_not_answered(served: Served) -> None:
    assert served.raw(b"GET / HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 421 ")
    assert served.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n").startswith(b"HTTP/1.1 421 ")
    assert b"manifest" not in served.raw(b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "BREW"])
def test_only_get_and_head_are_answered(served: Served, method: str) -> None:
    status, headers, _ = served.ask("/", method, body=b"x=1" if method in ("POST", "PUT") else None)
    assert (status, headers["allow"], headers["connection"]) == (405, "GET, HEAD", "close")


def test_it_listens_on_the_loopback_alone(served: Served) -> None:
    assert served.server.socket.getsockname()[0] == "127.0.0.1"
    assert served.server.url == f"http://127.0.0.1:{served.port}/"


# -- clients that are slow or broken ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"", b""),
        (b"\r\n\r\n", b""),
        # Before a version is known the answer is a line, as HTTP/0.9 has it.
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"Bad request syntax "),
        (b"GET\r\n\r\n", b"Bad request syntax ('GET')\n"),
        (b"GET / HTTP/9.9\r\n\r\n", b"Invalid HTTP version (9.9)\n"),
        (b"GET / HTTP/x\r\n\r\n", b"Bad request version ('HTTP/x')\n"),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 414 "),
        (b"GET /" + b"a" * 1000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 414 "),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 1000 + b"\r\n", b"HTTP/1.1 431 "),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", b"HTTP/1.1 431 "),
        (
            b"GET /state.json?" + b"&".join(b"a=1" for _ in range(100)) + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"HTTP/1.1 400 ",
        ),
        (b"GET /state.json?run=%ff%fe HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 404 "),
        (b"GET http://[/ HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 400 "),
        (
            b"HEAD / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\nGET / HTTP/1.1\r\n",
            b"HTTP/1.1 200 ",
        ),
    ],
)
def test_what_is_no_request_is_refused_and_nothing_else_happens(
    served: Served, data: bytes, answer: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    given = served.raw(data)
    assert given.startswith(answer)
    assert given if answer else not given
    assert given.count(b"HTTP/1.1 ") <= 1, "what follows a request that is refused is not taken for one"
    assert b"<" not in given
    assert served.ask("/")[0] == 200
    assert capfd.readouterr() == ("", "")


def test_clients_that_say_nothing_keep_nobody_from_being_answered(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(server.MAX_CONNECTIONS + 10)]
    for connection in silent[::2]:
        connection.sendall(b"GET /state.json HT")
    try:
        for _ in range(3):
            assert served.ask("/state.json")[0] == 200
        assert len(served.server._connections) <= server.MAX_CONNECTIONS
    finally:
        for connection in silent:
            connection.close()


def test_a_client_that_does_not_read_is_given_up(run: LiveRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server._Handler, "timeout", 0.3)
    run.controlled_by(None)
    served = Served(str(run.path), report=lambda runs: "x" * (32 << 20))
    try:
        with socket.create_connection(("127.0.0.1", served.port)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(b"GET /report.html HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert served.ask("/state.json")[0] == 200
            deadline = time.monotonic() + TIMEOUT_S
            while served.server._connections:
                assert time.monotonic() < deadline
                time.sleep(0.02)
    finally:
        served.close()


def test_what_nobody_expected_is_one_line_and_serving_goes_on(
    served: Served, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(self: Watch) -> None:
        raise RuntimeError("a\nb")

    monkeypatch.setattr(Watch, "state", broken)
    assert served.raw(b"GET /state.json HTTP/1.1\r\nHost: localhost\r\n\r\n") == b""
    assert served.ask("/")[0] == 200
    assert capfd.readouterr().err == "perflab: a page was not answered: RuntimeError: a b\n"


def test_many_clients_at_once(served: Served) -> None:
    statuses: list[int] = []

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=TIMEOUT_S)
        for _ in range(20):
            connection.request("GET", "/state.json")
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
        connection.close()

    threads = [threading.Thread(target=client) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert statuses == [200] * 200


# -- beginning and ending --------------------------------------------------------------------------------------------


def test_a_port_in_use_is_one_clear_line(served: Served) -> None:
    with pytest.raises(PerflabError, match=rf"cannot serve at 127.0.0.1:{served.port}: .*; choose another --port") as e:
        LiveServer([], served.port, {}, lambda runs: "")
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_is_none_is_bad_input(port: int) -> None:
    with pytest.raises(BadInput, match=f"--port {port} is not within 0..65535"):
        LiveServer([], port, {}, lambda runs: "")


SERVE = """\
import sys
from perflab.report.serve import serve
serve(sys.argv[1:], announce=lambda text: print(text, flush=True))
print("in order", flush=True)
"""


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_in_order_while_a_client_is_connected(run: LiveRun, signum: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(run.path)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None and process.stderr is not None
            line = process.stdout.readline()
            found = re.fullmatch(r"Serving .*/run at http://127\.0\.0\.1:(\d+)/  \(Ctrl-C ends it\)\n", line)
            assert found is not None, line
            connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=TIMEOUT_S)
            connection.request("GET", "/state.json")
            answer = json.loads(connection.getresponse().read())
            assert answer["now"]["state"] == "running"
            assert answer["server"]["cpu_s"] > 0
            assert os.getpriority(os.PRIO_PROCESS, process.pid) == 19
            process.send_signal(signum)
            out, err = process.communicate(timeout=TIMEOUT_S)
            assert re.fullmatch(r"Served for \d+ s, using \d+\.\d\d s of CPU time\nin order\n", out), out
            assert (process.returncode, err) == (0, "")
            connection.close()
        finally:
            process.kill()
