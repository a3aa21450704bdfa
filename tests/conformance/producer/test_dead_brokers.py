"""If a producer's broker is dead, calls end all the same."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from skidway.errors import SkidwayError, Unreachable
from skidway.producer import Producer
from skidway.producer.directory import KnownTopic
from support.processes import WITHIN_S

NOBODY = "127.0.0.1:1"
SENDERS = 60
MAX_BLOCK_MS = 8_000


@pytest.fixture(params=["nobody listens", "nobody answers"])
def dead_broker(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a dead broker. Each test runs twice: with a port that refuses connections, and
    with a port that accepts connections but never sends an answer."""
    if request.param == "nobody listens":
        yield NOBODY
        return
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_dead_brokers_hold_senders_for_max_block_ms(dead_broker: str) -> None:
    """If several threads send to a dead broker at once, each thread gets its error after
    max_block_ms and does not wait for the other threads."""
    # One after the other, the senders would wait longer than the test waits for them.
    assert SENDERS * MAX_BLOCK_MS > WITHIN_S * 1000
    ended: list[BaseException] = []
    with Producer(dead_broker, max_block_ms=MAX_BLOCK_MS) as producer:

        def send() -> None:
            with pytest.raises(Unreachable) as caught:
                producer.send("t", b"x")
            ended.append(caught.value)

        threads = [threading.Thread(target=send) for _ in range(SENDERS)]
        for each in threads:
            each.start()
        deadline = time.monotonic() + WITHIN_S
        for each in threads:
            each.join(deadline - time.monotonic())
        assert len(ended) == SENDERS


def test_close_is_bounded_whoever_waits_for_a_dead_broker(dead_broker: str) -> None:
    """`close` does not wait for another thread that is inside `send` and requests the metadata of a
    topic. That thread gets its error later."""
    producer = Producer(dead_broker, max_block_ms=30_000)
    failed: list[SkidwayError] = []

    def send() -> None:
        try:
            producer.send("t", b"x")
        except SkidwayError as error:
            failed.append(error)

    sending = threading.Thread(target=send)
    sending.start()
    lock = producer._directory._lock
    while sending.is_alive() and not lock.locked():
        os.sched_yield()
    producer.close(100)
    assert sending.is_alive()
    sending.join(WITHIN_S)
    assert len(failed) == 1
    assert producer._directory._client._closed


def test_close_gives_up_what_a_dead_broker_does_not_take(
    dead_broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the broker died after the producer had received the topic's metadata, `close` returns
    within its time limit, and sets an error in the future of every unacknowledged message."""
    topic = KnownTopic(3, (0, 1, 2), 1_000, 0.0)
    monkeypatch.setattr("skidway.producer.directory.Directory.topic", lambda *_, **__: topic)
    producer = Producer(dead_broker)
    sent = [producer.send("t", bytes(10)) for _ in range(100)]
    with pytest.raises(Unreachable, match="100 sends not acknowledged after 300 ms"):
        producer.close(300)
    assert all(isinstance(each.exception(0), SkidwayError) for each in sent)
