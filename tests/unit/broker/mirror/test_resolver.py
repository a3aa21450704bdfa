"""Tests the resolver of host names: if a name server does not answer, a separate thread waits, and
not the broker's event loop."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import pytest

from skidway.broker.mirror import resolver
from skidway.broker.mirror.resolver import THREADS_MAX, Resolver
from skidway.kafka.client.network import AddressInfo
from support.processes import eventually

FOUND: list[AddressInfo] = [(2, 1, 6, "", ("192.0.2.1", 9092))]


class NameServer:
    """A fake name server, which answers when the test says so."""

    def __init__(self) -> None:
        self.answers: queue.SimpleQueue[list[AddressInfo] | Exception] = queue.SimpleQueue()
        self.asked: list[tuple[str, int]] = []

    def resolve(self, host: str, port: int) -> list[AddressInfo]:
        self.asked.append((host, port))
        answer = self.answers.get(timeout=60)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> NameServer:
    made = NameServer()
    monkeypatch.setattr(resolver, "resolve", made.resolve)
    return made


class Loop:
    """A fake event loop, which runs posted calls when the test says so."""

    def __init__(self) -> None:
        self.posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.told = 0
        self.resolver = Resolver(self.posted.put, self.tell)

    def tell(self) -> None:
        self.told += 1

    def turn(self) -> None:
        self.posted.get(timeout=60)()


def test_numbers_are_not_looked_up(server: NameServer) -> None:
    """If the address of a source broker is an IP address (IPv4 or IPv6), the resolver returns it
    without a look-up."""
    loop = Loop()
    for host in ("127.0.0.1", "::1"):
        found = loop.resolver.look_up(host, 9092)
        assert found is not None
        assert found[0][4][:2] == (host, 9092)
    assert server.asked == []


def test_a_name_is_looked_up_once_and_used_once(server: NameServer) -> None:
    """While a look-up of a name runs, further requests for the name start no second look-up. The
    result of a look-up is used for one connection. For the next connection the name is looked up
    again."""
    loop = Loop()
    for _ in range(3):
        assert loop.resolver.look_up("dc1", 9092) is None
    server.answers.put(FOUND)
    loop.turn()
    assert loop.told == 1
    assert loop.resolver.look_up("dc1", 9092) == FOUND
    assert loop.resolver.look_up("dc1", 9092) is None
    server.answers.put(FOUND)
    loop.turn()
    assert server.asked == [("dc1", 9092)] * 2


def test_a_name_that_is_none_is_an_error_of_the_dial(server: NameServer) -> None:
    """If a name cannot be resolved, `look_up` raises OSError, as getaddrinfo does."""
    loop = Loop()
    assert loop.resolver.look_up("dc1", 9092) is None
    server.answers.put(OSError("no such host"))
    loop.turn()
    with pytest.raises(OSError, match="no such host"):
        loop.resolver.look_up("dc1", 9092)


def test_after_the_end_nobody_is_told(server: NameServer) -> None:
    """If the name server answers after the broker has stopped, the answer is dropped."""
    loop = Loop()
    loop.resolver.look_up("dc1", 9092)
    [thread] = [each for each in threading.enumerate() if each.name == "resolver"]
    loop.resolver.close()
    server.answers.put(FOUND)
    thread.join(60)
    assert loop.posted.empty()


def test_the_thread_ends_with_its_answer(server: NameServer) -> None:
    """The thread that waits for the name server ends when the name server has answered."""
    loop = Loop()
    loop.resolver.look_up("dc1", 9092)
    [thread] = [each for each in threading.enumerate() if each.name == "resolver"]
    server.answers.put(FOUND)
    loop.turn()
    thread.join(60)
    assert not thread.is_alive()


def test_a_source_with_many_names_starts_few_threads(server: NameServer) -> None:
    """However many names a source has, only so many are looked up at a time. The others are looked
    up when there is room, and the results that nobody takes are dropped."""
    loop = Loop()
    names = [f"dc{number}" for number in range(3 * THREADS_MAX)]
    for name in names:
        assert loop.resolver.look_up(name, 9092) is None
    eventually(lambda: len(server.asked) == THREADS_MAX, what="asked")
    for _ in range(THREADS_MAX):
        server.answers.put(FOUND)
        loop.turn()
    for name in names[THREADS_MAX:]:
        assert loop.resolver.look_up(name, 9092) is None
    eventually(lambda: len(server.asked) == 2 * THREADS_MAX, what="asked again")
    assert loop.resolver.look_up(names[0], 9092) == FOUND
    for _ in range(THREADS_MAX):
        server.answers.put(FOUND)
        loop.turn()


def test_results_that_nobody_takes_are_dropped(
    server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source may name other brokers each time. The results for names to which nobody connects any
    more need no more and more memory."""
    monkeypatch.setattr(resolver, "KNOWN_MAX", 2)
    loop = Loop()
    for number in range(4):
        loop.resolver.look_up(f"dc{number}", 9092)
        server.answers.put(FOUND)
        loop.turn()
    assert [*loop.resolver._known] == [("dc2", 9092), ("dc3", 9092)]
