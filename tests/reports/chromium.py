"""Chromium without a window, driven through a pipe: what it draws, asks for and complains of."""

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = "chromium"
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--remote-debugging-pipe",
)  # fmt: skip
KEYS = {"Tab": 9, "ArrowRight": 39, "Enter": 13}


class Tab:
    """One tab; `requests` are the addresses that it asked for, `complaints` what its console says.

    The protocol is Chromium's own (DevTools), one JSON object and a zero byte per message.
    """

    def __init__(self, out: int, into: int) -> None:
        self._out, self._in, self._rest, self._last = out, into, b"", 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **fields: Any) -> dict[str, Any]:
        """Send a command; return its result."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": fields}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                assert "error" not in answer, (method, answer["error"])
                return dict(answer["result"])

    def open(self, page: Path, width: int = 1280) -> None:
        """Show a page in a window of that width."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900,
                  deviceScaleFactor=1, mobile=False)  # fmt: skip
        self.call("Page.navigate", url="about:blank")
        self.requests.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        while self.value("document.readyState + location.protocol") != "completefile:":
            pass

    def value(self, expression: str) -> Any:
        """Return what an expression is in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key."""
        code = KEYS[key]
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode=code)  # fmt: skip

    def medium(self, name: str = "", scheme: str = "light") -> None:
        """Show the page as on paper (`print`), or to a reader who likes it dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=name, features=features)

    def paper(self) -> bytes:
        """Return the page as PDF, as its own style wants the paper."""
        answer = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        return base64.b64decode(answer["data"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._in, 1 << 20)
            assert more, "the browser has gone"
            self._rest += more
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        fields = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(fields["request"]["url"])
        if message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(fields["exceptionDetails"]))
        if message.get("method") == "Runtime.consoleAPICalled":
            self.complaints.append(str(fields["args"]))
        if message.get("method") == "Log.entryAdded":
            self.complaints.append(str(fields["entry"]))
        return message


@contextmanager
def browser(profile: Path) -> Iterator[Tab]:
    """Start the browser with an empty profile; end it afterwards."""
    to_child, out = os.pipe()
    into, from_child = os.pipe()
    # The protocol's pipe is on descriptors 3 and 4.
    shell = f'exec "$0" "$@" 3<&{to_child} 4>&{from_child}'
    running = subprocess.Popen(
        ["bash", "-c", shell, PROGRAM, *OPTIONS, f"--user-data-dir={profile}"],
        pass_fds=(to_child, from_child),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_child)
    os.close(from_child)
    try:
        tab = Tab(out, into)
        yield tab
        tab._session = None
        tab.call("Browser.close")
    finally:
        running.terminate()
        running.wait(timeout=240)
        os.close(out)
        os.close(into)
