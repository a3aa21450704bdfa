"""File systems have times beyond the 64 bits of the agent's state, and every user may give such a
time to a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.running_agent import running

YEAR_S = 365 * 86_400


@pytest.mark.parametrize("seconds", [293 * YEAR_S, 330 * YEAR_S, -80 * YEAR_S])
def test_a_time_in_another_age_stops_no_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """Files that were changed long before 1970 or after 2262, whether they can be read, are empty
    or cannot be opened, do not stop the agent."""
    for name, data in (("a.log", b"1\n"), ("empty.log", b""), ("b.log.gz", b"\x1f\x8bdamaged")):
        (tmp_path / name).write_bytes(data)
        os.utime(tmp_path / name, (0, seconds))
    with running(tmp_path, monkeypatch) as site:
        site.write(sources=[site.source("logs", "*.log*")])
        site.reload()
        assert site.lines("logs") == 1
        with (tmp_path / "a.log").open("a") as log:
            log.write("2\n")
        os.utime(tmp_path / "a.log", (0, seconds + 1))
        site.turns()
        assert site.lines("logs") == 2
