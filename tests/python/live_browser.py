"""A headless Chromium that a test drives over its debugging pipe: what it shows and fetches, what it complains of."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ANSWER_TIMEOUT_S = 60.0

Json = dict[str, Any]


def executable() -> str | None:
    """The browser of this machine, or None."""
    return next((path for name in BROWSERS if (path := shutil.which(name)) is not None), None)


class Page:
    """One page of a browser. `requests` are the URLs that it asked for, `complaints` what its console warns of."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._to, self._from = to_browser, from_browser
        self._numbers = itertools.count(1)
        self._rest = b""
        self._session: str | None = None
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    def open(self, url: str, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        """Loads a page as a screen of that size shows it."""
        self.resize(width, height)
        self.dark(dark)
        self._call("Page.navigate", url=url)

    def resize(self, width: int, height: int) -> None:
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def dark(self, on: bool) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def ask(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        found = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait_for(self, expression: str, timeout_s: float = ANSWER_TIMEOUT_S) -> Any:
        """The value of an expression as soon as it is true."""
        deadline = time.monotonic() + timeout_s
        while True:
            value = self.ask(expression)
            if value:
                return value
            assert time.monotonic() < deadline, f"{expression} did not come true; {self.complaints}"
            time.sleep(0.1)

    def press(self, key: str) -> None:
        """Enter, Tab or a letter, where the focus is."""
        code = {"Enter": 13, "Tab": 9}.get(key, ord(key[0]))
        text = {"Enter": "\r", "Tab": ""}.get(key, key)
        down = {"text": text} if text else {}
        for kind, more in (("keyDown", down), ("keyUp", {})):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **more)

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """The page as a PNG, or what is seen of it."""
        shown = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shown["data"]))

    def _call(self, method: str, **parameters: Any) -> Json:
        number = next(self._numbers)
        message: Json = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == number:
                assert "error" not in answer, answer
                result: Json = answer["result"]
                return result
            self._note(answer.get("method", ""), answer.get("params", {}))

    def _receive(self, deadline: float) -> Json:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            got = os.read(self._from, 1 << 20)
            assert got, "the browser has ended"
            self._rest += got
        line, _, self._rest = self._rest.partition(b"\0")
        found: Json = json.loads(line)
        return found

    def _note(self, method: str, parameters: Json) -> None:
        match method:
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(parameters["exceptionDetails"])[:500])
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning", "assert"):
                self.complaints.append(json.dumps(parameters["args"])[:500])
            case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                self.complaints.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
            case _:
                pass


@contextlib.contextmanager
def browser(folder: Path, more: Sequence[str] = ()) -> Iterator[Page]:
    """A page of a browser of its own, whose profile is in `folder`; ended afterwards."""
    program = executable()
    assert program is not None, "no Chromium is installed"
    child_reads, to_browser = os.pipe()
    from_browser, child_writes = os.pipe()

    # The browser reads from descriptor 3 and writes to 4.
    wrapper = f'exec 3<&{child_reads} 4>&{child_writes}; exec "$@"'
    command = [
        program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--disable-sync",
        f"--user-data-dir={folder}", "--remote-debugging-pipe", *more,
    ]  # fmt: skip
    with (folder.parent / f"{folder.name}.log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", wrapper, "bash", *command],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(child_reads, child_writes),
            start_new_session=True,
        )  # fmt: skip
    os.close(child_reads)
    os.close(child_writes)
    try:
        yield Page(to_browser, from_browser)
    finally:
        os.close(to_browser)
        os.close(from_browser)
        try:
            process.wait(20)  # it ends with its pipe
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
