"""Tests what the demo learns from the /health of its programs."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from skidway.demo.supervisor import health_of, healthy

HELD_UP = '{"ok": false, "delivers": false, "unreadable": {"app": {"/log": "no right"}}}'
UNREAD = '{"ok": false, "delivers": true, "unreadable": {"app": {"/log": "no right"}}}'


@pytest.mark.parametrize(("said", "works"), [(HELD_UP, False), (UNREAD, True)])
def test_a_program_that_is_not_well_says_why(said: str, works: bool) -> None:
    """The demo also reads an answer of /health with the status 503. Only a path that the agent may
    not read is no reason to wait. If a program does not answer, the demo gets an empty answer."""

    class Unwell(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(503)
            self.end_headers()
            self.wfile.write(said.encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Unwell) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/health"
        assert health_of(url) == json.loads(said)
        assert healthy(url) is works
        server.shutdown()
        thread.join()
    assert health_of(url) == {}
    assert not healthy(url)
