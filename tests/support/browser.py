"""Controls Debian's Chromium through the WebDriver protocol of the W3C. It can open pages, press
keys, run scripts in a page, set the window's size and the colour scheme, and take screenshots.

`chromedriver` (Debian: chromium-driver) speaks this protocol over HTTP, so no package from PyPI is
needed.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import urllib3

from skidway.errors import SkidwayError
from support.peers import provide
from support.processes import Program, free_port, running

PACKAGES = ["chromium", "chromium-driver", "fonts-dejavu-core"]
WHY = "Chromium shows the dashboard's pages in the tests and takes the pictures of the documents"
KEYS = {"Tab": "\ue004", "Enter": "\ue007"}


class BrowserFailed(SkidwayError):
    """Raised if the browser refused a command."""


class Browser:
    """One window of the browser."""

    def __init__(self, address: str) -> None:
        self._http = urllib3.PoolManager(retries=False, timeout=60)
        self._address = address
        arguments = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--hide-scrollbars", "--force-device-scale-factor=1", "--font-render-hinting=none",
            "--disable-background-networking", "--no-first-run",
        ]  # fmt: skip
        wanted = {"browserName": "chrome", "goog:chromeOptions": {"args": arguments}}
        made = self._send("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._address = f"{address}/session/{made['sessionId']}"

    def open(self, url: str) -> None:
        """Opens a page and waits until it is loaded."""
        self._send("POST", "/url", {"url": url})

    def url(self) -> str:
        """The address of the page."""
        return str(self._send("GET", "/url"))

    def run(self, script: str, *arguments: Any) -> Any:
        """Runs `script`, the body of a JavaScript function, in the page. Returns the function's
        value.
        """
        return self._send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def press(self, *keys: str) -> None:
        """Presses keys, one after the other. Each key is a name in KEYS or a character."""
        actions = [
            {"type": kind, "value": KEYS.get(key, key)}
            for key in keys
            for kind in ("keyDown", "keyUp")
        ]
        self._send(
            "POST", "/actions", {"actions": [{"type": "key", "id": "k", "actions": actions}]}
        )

    def resize(self, width: int, height: int = 900) -> None:
        """Gives the page a window of this size, in CSS pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._command("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, scheme: str) -> None:
        """Sets the colour scheme: light or dark."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self._command("Emulation.setEmulatedMedia", {"features": [feature]})

    def allow_scripts(self, allowed: bool) -> None:
        """Sets whether pages that are opened from now on run scripts."""
        self._command("Emulation.setScriptExecutionDisabled", {"value": not allowed})

    def picture(self) -> bytes:
        """The window as PNG."""
        return base64.b64decode(self._send("GET", "/screenshot"))

    def close(self) -> None:
        """Closes the window and ends the WebDriver session."""
        self._send("DELETE", "")

    def _command(self, name: str, parameters: dict[str, Any]) -> None:
        self._send("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        answer = self._http.request(
            method, self._address + path, body=data, headers={"Content-Type": "application/json"}
        )
        value = json.loads(answer.data)["value"]
        if answer.status != 200:
            raise BrowserFailed(f"{value['error']}: {value['message']}")
        return value


@contextmanager
def browser() -> Iterator[Browser]:
    """Starts a browser, and yields its window. If Chromium is missing and the tests run as root,
    installs it with apt-get. Raises SkidwayError if Chromium is still missing afterwards."""
    driver = provide("chromedriver", PACKAGES, WHY)
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    program = Program([driver, f"--port={port}"], Path(os.devnull))
    with running(program, lambda: _is_ready(address)):
        window = Browser(address)
        try:
            yield window
        finally:
            window.close()


def _is_ready(address: str) -> bool:
    try:
        answer = urllib3.request("GET", f"{address}/status", retries=False, timeout=5)
    except urllib3.exceptions.HTTPError:
        return False
    return answer.status == 200
