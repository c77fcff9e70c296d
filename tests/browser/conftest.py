"""A real browser for tests: headless Chromium, controlled through its debugging pipe.

The pipe (file descriptors 3 and 4, JSON messages ended by a zero byte) needs no port, server or
driver; the page receives mouse and keyboard events as from a user.
"""

from __future__ import annotations

import base64
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, Final

import pytest

from fairlead.cli.output.report_file import write_report

SAMPLES: Final = Path(__file__).parent.parent / "unit" / "whatif" / "report"
FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Page:
    """One tab. `problems` collects the errors of the page, `requests` its requests."""

    def __init__(self, to_browser: BinaryIO, from_browser: BufferedReader) -> None:
        self._write = to_browser
        self._read = from_browser
        self._number = 0
        self._unread = b""
        self._session: str | None = None
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.loaded = False
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._write.write(json.dumps(message).encode() + b"\0")
        self._write.flush()
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            chunk = self._read.read1(1 << 16)
            assert chunk, "the browser has ended"
            self._unread += chunk
        line, self._unread = self._unread.split(b"\0", 1)
        message = json.loads(line)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, params: dict[str, Any]) -> None:
        match method:
            case "Runtime.exceptionThrown":
                self.problems.append(json.dumps(params["exceptionDetails"]))
            case "Log.entryAdded" | "Runtime.consoleAPICalled":
                self.problems.append(json.dumps(params))
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Page.loadEventFired":
                self.loaded = True

    def open(self, path: Path, width: int = 1366, height: int = 768, theme: str = "light") -> None:
        """Load a file in a window of this size and colour scheme, and wait until it is painted."""
        self.problems.clear()
        self.requests.clear()
        self.resize(width, height)
        scheme = [{"name": "prefers-color-scheme", "value": theme}]
        self.send("Emulation.setEmulatedMedia", features=scheme)
        self.loaded = False
        self.send("Page.navigate", url=path.as_uri())
        while not self.loaded:
            self._receive()
        self.settle()

    def resize(self, width: int, height: int) -> None:
        """Change the size of the window."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def settle(self) -> None:
        """Wait until the page has been laid out and painted twice."""
        frame = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        self.js(f"{frame}.then(() => {frame}).then(() => null)")

    def js(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; a promise is awaited."""
        answer = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def text(self, selector: str) -> str:
        """Return the visible text of the first element that matches `selector`."""
        return self.js(f"document.querySelector({json.dumps(selector)}).innerText")

    def texts(self, selector: str) -> list[str]:
        """Return the visible text of each element that matches `selector`."""
        return self.js(
            f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.innerText)"
        )

    def lines(self, selector: str) -> list[str]:
        """Return the same as `texts`, each on one line."""
        return [" ".join(text.split()) for text in self.texts(selector)]

    def click(self, selector: str, number: int = 0, dx: float = 0.5, dy: float = 0.5) -> None:
        """Click at a point in an element, given as fractions of its width and height."""
        self.mouse_over(selector, number, dx, dy)
        for kind in ("mousePressed", "mouseReleased"):
            self._mouse(kind, *self._at, button="left", clickCount=1)
        self.settle()

    def follow(self, selector: str, number: int = 0) -> None:
        """Click on a link, and wait until the page that it opens is painted."""
        self.mouse_over(selector, number, dx=0.1)
        self.loaded = False
        for kind in ("mousePressed", "mouseReleased"):
            self._mouse(kind, *self._at, button="left", clickCount=1)
        while not self.loaded:
            self._receive()
        self.settle()

    def mouse_over(self, selector: str, number: int = 0, dx: float = 0.5, dy: float = 0.5) -> None:
        """Move the mouse to a point in an element, given as fractions of its width and height."""
        found = f"document.querySelectorAll({json.dumps(selector)})[{number}]"
        x, y = self.js(
            f"(e => {{ e.scrollIntoView({{block: 'center', behavior: 'instant'}});"
            "const b = e.getBoundingClientRect();"
            f"return [b.left + b.width * {dx}, b.top + b.height * {dy}]; }})({found})"
        )
        self._at = (x, y)
        self._mouse("mouseMoved", x, y)
        self.settle()

    def _mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def drag(self, selector: str, start: float, end: float) -> None:
        """Drag from one fraction of an element's width to another."""
        self.mouse_over(selector, dx=start)
        self._mouse("mousePressed", *self._at, button="left", clickCount=1)
        self.mouse_over(selector, dx=end)
        self._mouse("mouseReleased", *self._at, button="left", clickCount=1)
        self.settle()

    def type(self, selector: str, text: str) -> None:
        """Type `text` into a field."""
        self.js(f"document.querySelector({json.dumps(selector)}).focus()")
        self.send("Input.insertText", text=text)
        self.settle()

    def press(self, key: str) -> None:
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key)
        self.settle()

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Save the visible part as a PNG; `whole` includes what is below the window."""
        answer = self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))


# Chromium uses descriptors 3 and 4; the parent's descriptors have higher numbers.
LAUNCH: Final = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


@contextmanager
def browsing(program: Path, profile: Path) -> Iterator[Page]:
    """Yield the only tab of a running browser."""
    browser_reads, we_write = os.pipe()
    we_read, browser_writes = os.pipe()
    ends = (browser_reads, browser_writes)
    command = [sys.executable, "-c", LAUNCH, *map(str, ends), str(program), *FLAGS]
    process = subprocess.Popen(
        [*command, f"--user-data-dir={profile}"], pass_fds=ends, stderr=subprocess.DEVNULL
    )
    for end in ends:
        os.close(end)
    with os.fdopen(we_write, "wb") as to_browser, os.fdopen(we_read, "rb") as from_browser, process:
        try:
            yield Page(to_browser, from_browser)
        finally:
            # The browser ends when the pipe closes; this ends a browser that hangs.
            to_browser.close()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.fixture(scope="session")
def page(chromium: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One browser for all tests; each test opens its own file."""
    with browsing(chromium, tmp_path_factory.mktemp("profile")) as tab:
        yield tab


def one_taint(report: Any) -> Any:
    """Return `report` of an outage in which a single node is tainted."""
    rate = {"zone": "a", "t_s": [50.0], "tainted": [1], "allowed": [1]}
    return {**report, "outage": {**report["outage"], "rates": [rate]}}


def late_pods(report: Any) -> Any:
    """Return `report` without the samples before minute 5, as if there had been no pods."""
    timeline = report["timeline"]
    first = next(at for at, t_s in enumerate(timeline["t_s"]) if t_s >= 300)
    series = [
        {name: value if name == "priority" else value[first:] for name, value in one.items()}
        for one in timeline["series"]
    ]
    return {**report, "timeline": {"t_s": timeline["t_s"][first:], "series": series}}


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of written reports: small, large, wide (5,000 nodes), outage, queues, autoscaler…"""
    folder = tmp_path_factory.mktemp("reports")
    sample = runpy.run_path(str(SAMPLES / "sample_report.py"))
    hostile = runpy.run_path(str(SAMPLES / "hostile_report.py"))
    outage = runpy.run_path(str(SAMPLES / "outage_report.py"))
    queues = runpy.run_path(str(SAMPLES / "queues_report.py"))
    autoscaling = runpy.run_path(str(SAMPLES / "autoscaling_report.py"))
    write_report(folder / "autoscaling.html", autoscaling["autoscaling_report"]())
    write_report(folder / "queues.html", queues["queues_report"]())
    write_report(folder / "small.html", sample["small_report"]())
    write_report(folder / "late.html", late_pods(sample["small_report"]()))
    write_report(folder / "large.html", sample["large_report"]())
    write_report(folder / "wide.html", sample["wide_report"](5000))
    write_report(folder / "outage.html", outage["outage_report"]())
    write_report(folder / "one-taint.html", one_taint(outage["outage_report"]()))
    write_report(folder / "hostile.html", hostile["hostile_report"]())
    write_report(folder / "empty.html", {"kind": "simulate", "title": "Nothing"})
    return folder
