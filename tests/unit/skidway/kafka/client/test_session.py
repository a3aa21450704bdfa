"""A session has a link (connection) for each broker address and channel. Each channel is for one
kind of request, for example for fetches. The session opens links, ends links that miss a deadline,
and waits after a failure before it connects again. The tests use no sockets."""

from __future__ import annotations

from collections import deque

import pytest

from skidway.kafka.client import session as session_module
from skidway.kafka.client.cluster import Address
from skidway.kafka.client.metadata import metadata_call
from skidway.kafka.client.session import (
    CALLS_PER_LINK_MAX,
    DIAL_TIMEOUT_S,
    Channel,
    ClientSession,
    Disconnected,
    Inbox,
)
from skidway.kafka.protocol import api_versions
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.frames import read_request_header, response_frame

A, B = Address("a", 1), Address("b", 1)
MAIN, FETCH = Channel.MAIN, Channel.FETCH


@pytest.fixture
def session() -> ClientSession:
    return ClientSession(client_id="me", request_timeout_s=30.0, random=lambda: 0.5)


def ask(session: ClientSession, inbox: Inbox, now: float = 0.0, address: Address = A) -> int:
    return session.submit(address, MAIN, metadata_call(None), inbox, now)


def test_the_first_call_dials(session: ClientSession) -> None:
    """A session has a link (a connection) for each address and channel. Each channel is for one
    kind of request, for example for fetches. The first call to an address on a channel opens the
    link. Later calls use the same link."""
    inbox: Inbox = deque()
    for _ in range(3):
        ask(session, inbox)
    session.submit(A, FETCH, metadata_call(None), inbox, 0.0)
    assert [link.key for link in session.dials()] == [(A, MAIN), (A, FETCH)]
    assert session.dials() == []
    assert session.next_deadline == DIAL_TIMEOUT_S


def test_a_failure_tells_every_call_once(session: ClientSession) -> None:
    """When a link (a connection) fails, each of its open calls ends exactly once, with the reason.
    The session waits before it connects again."""
    inbox: Inbox = deque()
    tickets = [ask(session, inbox) for _ in range(3)]
    [link] = session.dials()
    session.opened(link, 1.0)
    tickets.append(ask(session, inbox, 1.0))
    session.failed(link, "reset", 2.0)
    assert [answer.ticket for answer in inbox] == tickets
    assert all(isinstance(answer.error, Disconnected) for answer in inbox)
    assert "a:1: reset" in str(inbox[0].error)
    assert session.hangups() == [link]
    assert not session.usable(A, MAIN, 2.04)
    assert session.usable(A, MAIN, 2.06)
    assert session.usable(A, FETCH, 2.0)
    with pytest.raises(Disconnected, match="reset"):
        ask(session, inbox, 2.04)
    ask(session, inbox, 2.06)
    assert session.dials() == [link]


def test_waits_grow_until_it_works(session: ClientSession) -> None:
    """Each failure of a link (a connection) doubles the time for which the session waits before it
    connects again."""
    inbox: Inbox = deque()
    now, waits = 0.0, []
    for _ in range(4):
        ask(session, inbox, now)
        [link] = session.dials()
        session.failed(link, "refused", now)
        waits.append(session.retry_at(A, MAIN) - now)
        now = session.retry_at(A, MAIN)
    assert waits == pytest.approx([0.05, 0.1, 0.2, 0.4])


def test_why_there_is_no_connection(session: ClientSession) -> None:
    """The session says why there is no connection to an address, until there is one on which both
    sides understand each other: a broker with TLS 1.3 refuses a client after its handshake."""
    inbox: Inbox = deque()
    assert session.failure(A, MAIN) == ""
    ask(session, inbox)
    [link] = session.dials()
    session.failed(link, "refused", 0.0)
    assert session.failure(A, MAIN) == "a:1: refused"
    ask(session, inbox, 1.0)
    [link] = session.dials()
    session.opened(link, 1.0)
    assert session.failure(A, MAIN) == "a:1: refused"
    assert link.connection is not None
    sent = b"".join(link.connection.outgoing())
    session.sent(link, len(sent))
    header = read_request_header(memoryview(sent)[4:])[0]
    ranges = {key: key.broker for key in ApiKey}
    answer = response_frame(header, api_versions.answer(header.api_version, ranges))
    link.connection.space()[: len(answer)] = answer
    session.received(link, len(answer), 1.0)
    assert session.is_ready(A, MAIN)
    assert session.failure(A, MAIN) == ""


def test_deadlines_end_links(session: ClientSession) -> None:
    """A link (a connection) ends if it is not connected within the dial timeout, or if an answer
    does not come within the request timeout."""
    inbox: Inbox = deque()
    ask(session, inbox)
    session.expire(DIAL_TIMEOUT_S - 0.1)
    assert not inbox
    session.expire(DIAL_TIMEOUT_S)
    assert "no connection in time" in str(inbox.popleft().error)
    ask(session, inbox, 20.0)
    [link] = {link.key: link for link in session.dials()}.values()
    session.opened(link, 20.5)
    assert session.next_deadline == 50.0
    session.expire(50.0)
    assert "no answer in time" in str(inbox.popleft().error)


def test_the_end_of_the_stream_is_a_failure(session: ClientSession) -> None:
    """If the broker closes a connection, this counts as a failure of the connection."""
    inbox: Inbox = deque()
    ask(session, inbox)
    [link] = session.dials()
    session.opened(link, 0.0)
    session.received(link, 0, 1.0)
    assert "closed the connection" in str(inbox.popleft().error)


def test_garbage_is_a_failure(session: ClientSession) -> None:
    """If a link (a connection) receives bytes that do not follow Kafka's protocol, the link ends
    with a reason."""
    inbox: Inbox = deque()
    ask(session, inbox)
    [link] = session.dials()
    session.opened(link, 0.0)
    assert link.connection is not None
    link.connection.space()[:4] = b"HTTP"
    session.received(link, 4, 1.0)
    assert "HTTP" in str(inbox.popleft().error)
    session.received(link, 4, 1.0)  # bytes of the ended connection are dropped
    assert not inbox


def test_calls_per_link_are_bounded(session: ClientSession) -> None:
    """A link (a connection) has at most CALLS_PER_LINK_MAX open calls."""
    inbox: Inbox = deque()
    for _ in range(CALLS_PER_LINK_MAX):
        ask(session, inbox)
    assert not session.usable(A, MAIN, 0.0)
    assert session.usable(B, MAIN, 0.0)


def test_forgotten_answers_are_dropped(session: ClientSession) -> None:
    """If a caller no longer waits for an answer, the session drops the answer."""
    inbox: Inbox = deque()
    session.forget(ask(session, inbox))
    session.close()
    assert not inbox


def test_closing_tells_open_calls(session: ClientSession) -> None:
    """Closing a session ends its open calls with an error."""
    inbox: Inbox = deque()
    ask(session, inbox)
    session.close()
    assert isinstance(inbox.popleft().error, Disconnected)
    assert session.dials() == []


def test_links_that_nobody_uses_are_forgotten(
    session: ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster may name other brokers in each answer. However many the session has failed to
    reach, it remembers only some of them. A link that is in use, or that waits after a failure, is
    remembered. The number that identifies a connection is never used again for its address."""
    monkeypatch.setattr(session, "_links_max", 10)
    monkeypatch.setattr(session_module, "LINKS_MAX", 10)
    inbox: Inbox = deque()
    ask(session, inbox)
    [kept] = session.dials()
    session.opened(kept, 0.0)
    ask(session, inbox, address=B)
    session.failed(*session.dials(), "refused", 0.0)
    ended = session.ended_count(B, MAIN)
    for number in range(100):
        now = 100.0 + number
        ask(session, inbox, now, Address("a", 2 + number))
        session.failed(*session.dials(), "refused", now)
        assert not session.usable(Address("a", 2 + number), MAIN, now)
    assert len(session._links) <= 20
    assert kept.key in session._links
    before = session.ended_count(B, MAIN)
    assert before >= ended
    ask(session, inbox, 300.0, B)
    assert session.ended_count(B, MAIN) == before
