"""Tests that the agent's /health says which files the agent does not read at present, and why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.running_agent import Sending, Site, running

LINES = b"".join(b"%0100d\n" % number for number in range(300))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with running(tmp_path, monkeypatch, buffer_memory=1 << 20, compression_type="none") as made:
        producer = made.agent._producer
        assert isinstance(producer, Sending)
        producer.away = "logs"
        yield made
        producer.away = ""


def grow(site: Site, turns: int) -> None:
    for _ in range(turns):
        with (site.folder / "a.log").open("ab") as out:
            out.write(LINES)
        site.turns(1)


def test_a_topic_that_is_held_back_is_named(site: Site) -> None:
    """While no broker acknowledges a topic's batches, /health names the topic as one whose files
    the agent does not read."""
    grow(site, 40)
    health = site.agent._status.health
    assert not health.ok
    assert health.detail["status"] == "running"
    assert list(health.detail["held_back"]) == ["logs"]
    assert "bytes of its batches are not acknowledged" in health.detail["held_back"]["logs"]


def test_why_brokers_are_silent_is_named(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """If the brokers acknowledge nothing because there is no connection to them, /health and the
    log say why, for example that they refuse the agent's certificate."""
    producer = site.agent._producer
    assert isinstance(producer, Sending)
    producer.refusal = "b1:9093: TLS: the other side says that this side's certificate is revoked"
    grow(site, 40)
    (said,) = set(site.agent._status.health.detail["troubles"].values())
    assert said.startswith("no broker has acknowledged anything for ")
    assert said.endswith(f" s: {producer.refusal}")
    (line,) = (vars(x)["skidway_fields"] for x in caplog.records if x.message == "brokers_silent")
    assert line["reasons"] == [producer.refusal]


def test_a_full_buffer_is_named(site: Site) -> None:
    """While `buffer.memory` is full, /health says that the agent reads nothing."""
    assert isinstance(site.agent._producer, Sending)
    site.agent._producer.room = 1
    grow(site, 40)
    health = site.agent._status.health
    assert not health.ok
    assert health.detail["status"] == "buffer.memory is full, nothing is read"


def test_a_topic_that_is_acknowledged_again_is_read(site: Site) -> None:
    """When the brokers acknowledge the topic's batches again, the agent reads the topic's files,
    and /health reports no problem."""
    grow(site, 40)
    producer = site.agent._producer
    assert isinstance(producer, Sending)
    producer.away = ""
    site.turns(40)
    health = site.agent._status.health
    assert (health.ok, health.detail["status"]) == (True, "running")
    assert "held_back" not in health.detail
    assert site.lines("logs") == 40 * 300
