"""A headless Chromium driven over its debugging pipe: no driver program, no Python package.

The browser speaks the DevTools protocol on file descriptors 3 and 4: JSON messages, each ended by
a zero byte.
"""

import base64
import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
# A loaded machine with two cores may take this long to start a browser or to draw a page.
PATIENCE = 120.0

# Python's subprocess cannot choose the numbers of a child's descriptors; this does, then becomes
# the browser.
_LAUNCHER = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(n), fcntl.F_DUPFD, 16) for n in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def find_chromium() -> str | None:
    """The browser's program, if there is one on the path."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One tab: navigate, evaluate, type, take pictures; collects what went wrong in the page."""

    def __init__(self, receive: int, send: int):
        self._receive, self._send = receive, send
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._session: str | None = None
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def open(self, path: Path) -> None:
        """Load a file and wait for it."""
        self._loaded = False
        self.errors.clear()
        self.requests.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        deadline = time.monotonic() + PATIENCE
        while not self._loaded:
            self._take_message(deadline)

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Until a JavaScript expression holds."""
        deadline = time.monotonic() + PATIENCE
        while not self.evaluate(condition):
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {PATIENCE:g} s for {condition}; errors {self.errors}")
            time.sleep(0.05)

    def press(self, key: str, text: str = "") -> None:
        """A key, down and up, to whatever has the focus."""
        code = {"ArrowRight": 39, "ArrowLeft": 37, " ": 32, "Tab": 9}.get(key, 0)
        common = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def hover(self, selector: str, across: float = 0.5) -> None:
        """Move the pointer over an element, at a share of its width."""
        x, y = self.evaluate(
            f"(() => {{ const e = document.querySelector({selector!r}); e.scrollIntoView("
            "{block: 'center', behavior: 'instant'}); const b = e.getBoundingClientRect(); "
            f"return [b.left + {across} * b.width, b.top + b.height / 2]; }})()"
        )
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self, path: Path, *, whole: bool = False) -> Path:
        """A PNG of the window, or of the whole page."""
        image = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(image["data"]))
        return path

    def print_pdf(self, path: Path) -> Path:
        sheet = self.call("Page.printToPDF", printBackground=True)
        path.write_bytes(base64.b64decode(sheet["data"]))
        return path

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._take_message(deadline)
            if answer.get("id") == number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def _take_message(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._receive], [], [], deadline - time.monotonic())
            if not ready:
                raise AssertionError(f"the browser did not answer within {PATIENCE:g} s")
            piece = os.read(self._receive, 1 << 16)
            if not piece:
                raise AssertionError("the browser ended")
            self._buffer += piece
        raw, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(raw)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, event: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            self.errors.append(str(event["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning"):
            self.errors.append(str(event["args"]))
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.errors.append(str(event["entry"]))
        elif method == "Page.javascriptDialogOpening":
            self.errors.append(f"a dialog opened: {event['message']}")
            os.write(self._send, b"")
        elif method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])


@contextlib.contextmanager
def browsing(program: str) -> Iterator[Page]:
    """A browser with a new, empty profile, ended with the block."""
    with contextlib.ExitStack() as cleanup:
        profile = cleanup.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        to_browser, from_browser = os.pipe(), os.pipe()
        command = [
            sys.executable,
            "-c",
            _LAUNCHER,
            str(to_browser[0]),
            str(from_browser[1]),
            program,
            *FLAGS,
            f"--user-data-dir={profile}",
            "about:blank",
        ]
        process = subprocess.Popen(
            command,
            pass_fds=(to_browser[0], from_browser[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        cleanup.callback(_end, process)
        os.close(to_browser[0])
        os.close(from_browser[1])
        cleanup.callback(os.close, to_browser[1])
        cleanup.callback(os.close, from_browser[0])
        yield Page(from_browser[0], to_browser[1])


def _end(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
