"""Fixtures of the audit's unit tests."""

from __future__ import annotations

import pytest

from skidway.audit.commands import options
from skidway.audit.evidence import admission
from support.signed_records import OWNERS


@pytest.fixture(autouse=True)
def _collector_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands read stores that the tests wrote. They take it that a collector writes these."""
    monkeypatch.setattr(options, "listens", lambda _host, _port: True)


@pytest.fixture
def ids_of_senders(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ids of the agents in `audit_senders` do not say whose they are."""
    monkeypatch.setattr(admission, "is_id_of", lambda agent, who: (agent, str(who)) in OWNERS)
