"""Tests what the demo learns from the /health of its programs, and what it keeps of a load."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from skidway.demo import programs
from skidway.demo.programs import ProgramFailed, Programs, healthy
from skidway.demo.site import Site


@pytest.mark.parametrize(("status", "works"), [(200, True), (503, False)])
def test_only_a_program_that_is_well_works(status: int, works: bool) -> None:
    """The demo waits until a program answers on /health with the status 200. A program that does
    not answer does not work yet."""

    class Asked(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Asked) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/health"
        assert healthy(url) is works
        server.shutdown()
        thread.join()
    assert not healthy(url)


def test_the_log_of_a_load_has_only_this_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demo kills a load as soon as the load's own log says that Spark runs. A log that an
    earlier load has left does not hide this."""
    demo = Programs(Site(tmp_path, {}, ""), print)
    demo.errors("loader").write_text("of an earlier load")
    monkeypatch.setattr(programs, "_start", lambda *_: None)
    demo.begin_load()
    assert demo.errors("loader").read_text() == ""


def test_a_long_wait_says_what_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait that takes long says from time to time what it waits for, and an error ends a wait in
    vain with the same words."""
    said: list[str] = []
    monkeypatch.setattr(programs, "SAY_AGAIN_S", 0.0)
    demo = Programs(Site(tmp_path, {}, ""), said.append)
    demo.until(lambda: bool(said), "every byte", lambda: ": 3 bytes of /w/a.log")
    assert said == ["still waiting for every byte: 3 bytes of /w/a.log"]
    monkeypatch.setattr(programs, "WITHIN_S", 0.0)
    with pytest.raises(ProgramFailed, match=r"in vain for every byte: 3 bytes of /w/a\.log; logs"):
        demo.until(lambda: False, "every byte", lambda: ": 3 bytes of /w/a.log")
