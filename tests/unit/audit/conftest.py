"""Fixtures of the audit's unit tests."""

from __future__ import annotations

import pytest

from skidway.audit.commands import options


@pytest.fixture(autouse=True)
def _collector_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands read stores that the tests wrote. They take it that a collector writes these."""
    monkeypatch.setattr(options, "listens", lambda _host, _port: True)
