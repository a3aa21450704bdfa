"""Tests what the demo learns from the /health of its programs."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from skidway.demo.supervisor import health_of


class Unwell(BaseHTTPRequestHandler):
    """A program that cannot do its work now."""

    def do_GET(self) -> None:
        self.send_response(503)
        self.end_headers()
        self.wfile.write(b'{"ok": false, "unreadable": {}}')

    def log_message(self, *_: object) -> None:
        pass


def test_a_program_that_is_not_well_says_why() -> None:
    """The demo also reads an answer of /health with the status 503. If a program does not answer,
    the demo gets an empty answer."""
    with HTTPServer(("127.0.0.1", 0), Unwell) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/health"
        assert health_of(url) == {"ok": False, "unreadable": {}}
        server.shutdown()
        thread.join()
    assert health_of(url) == {}
