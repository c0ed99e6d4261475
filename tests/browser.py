"""Headless Chromium, driven by the DevTools protocol over a pipe."""

import base64
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

# No service of its own, so that any request is the page's.
COMMAND = (
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--no-first-run",
    "--remote-debugging-pipe",
)  # fmt: skip

AXE = resources.files("axe_playwright_python").joinpath("axe.min.js")
# What axe finds serious or critical, with the element and the remedy.
BARRIERS = """axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.html}: ${node.failureSummary}`)))"""


class Browser:
    """A browser with one page.

    - messages: what the console said of errors and warnings, and exceptions
    - requests: the addresses that pages asked for
    """

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back = to, back
        self._number, self._rest = 0, b""
        self._session: dict[str, str] = {}
        self._events: list[dict[str, Any]] = []
        self.messages: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        found = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": found["sessionId"]}
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Return the result of a command. Raises RuntimeError where it fails."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params, **self._session}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._event(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._back, 1 << 16)
            if not part:
                raise RuntimeError("chromium has ended")
            self._rest += part
        line, self._rest = self._rest.split(b"\0", 1)
        found: dict[str, Any] = json.loads(line)
        return found

    def _event(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.messages.append(json.dumps(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning"):
                self.messages.append(json.dumps(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.messages.append(params["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Page.loadEventFired":
                self._events.append(event)

    def open(self, path: Path, fragment: str = "") -> None:
        """Open a page and wait until it is loaded."""
        self._events.clear()
        self.call("Page.navigate", url="about:blank")
        self._loaded()
        self.messages.clear()
        self.requests.clear()
        self.call("Page.navigate", url=path.resolve().as_uri() + fragment)
        self._loaded()

    def _loaded(self) -> None:
        while not self._events:
            self._event(self._next())
        self._events.clear()

    def size(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Set the size of the window, px, and the theme."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page. Raises RuntimeError where it throws."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(json.dumps(found["exceptionDetails"]))
        return found["result"].get("value")

    def barriers(self) -> list[str]:
        """Return what axe finds in the page that bars people with a disability."""
        # The protocol runs a script whatever the page's policy is.
        self.run(f"{AXE.read_text()}; null")
        found: list[str] = self.run(BARRIERS)
        return found

    def point(self, x: float, y: float) -> None:
        """Move the pointer to a place of the window, px."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key: str) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write what the window shows, or the whole page, as a PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a browser, and end it."""
    # Chromium's helper processes may write into the profile a little longer than it runs.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        reads, to = os.pipe()
        back, writes = os.pipe()
        process = subprocess.Popen(
            # Chromium reads from descriptor 3 and writes to 4.
            ["bash", "-c", f'exec "$@" 3<&{reads} 4>&{writes}', "bash", *COMMAND,
             f"--user-data-dir={profile}"],
            pass_fds=(reads, writes),
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(reads)
        os.close(writes)
        try:
            yield Browser(to, back)
        finally:
            os.close(to)
            os.close(back)
            process.terminate()
            process.wait(30)
