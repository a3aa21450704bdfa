from __future__ import annotations

from skidway.kafka.client.cluster import Address
from skidway.kafka.client.fetching import Fetching
from skidway.kafka.client.metadata import Metadata
from skidway.kafka.client.pump import FetchPump
from skidway.kafka.client.session import ClientSession
from skidway.kafka.protocol import api_versions
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.frames import RequestHeader, read_request_header, response_frame
from skidway.kafka.types import TopicPartition

A = Address("a", 1)
TP = TopicPartition("logs", 0)


class Picture(Metadata):
    """A fake picture of the cluster, in which A leads every partition."""

    def __init__(self) -> None:
        super().__init__((A,), lambda: 0.5)

    def leader(self, tp: TopicPartition) -> Address | None:
        return A

    def advance(self, session: ClientSession, now: float) -> None:
        pass


def fetch(session: ClientSession) -> FetchPump:
    """Makes a pump that sends a fetch of one partition through the session, and returns the
    pump."""
    fetching = Fetching(max_bytes=100, max_wait_ms=0, min_bytes=1, random=lambda: 0.5)
    fetching.seek(TP, 0)
    pump = FetchPump(fetching, session, Picture())
    pump.advance(1.0)
    return pump


def reason(pump: FetchPump) -> str:
    """Returns the reason that the pump gives why nothing of its partition arrives."""
    pump.advance(2.0)
    return pump._fetching.refusals[TP][1]


def test_a_fetch_that_the_broker_does_not_offer_has_its_own_reason() -> None:
    """For a partition of which nothing arrives, the pump gives a reason. If the broker knows no
    version of Fetch that the client can use, the reason says so. The reason does not say that the
    connection ended, because the connection is still open."""
    session = ClientSession(client_id="me", request_timeout_s=30.0, random=lambda: 0.5)
    pump = fetch(session)
    [link] = session.dials()
    session.opened(link, 1.0)
    connection = link.connection
    assert connection is not None
    sent = b"".join(connection.outgoing())
    session.sent(link, len(sent))
    header: RequestHeader = read_request_header(memoryview(sent)[4:])[0]
    ranges = {key: key.broker for key in ApiKey if key is not ApiKey.FETCH}
    answer = response_frame(header, api_versions.answer(header.api_version, ranges))
    while answer:
        space = connection.space()
        part, answer = answer[: len(space)], answer[len(space) :]
        space[: len(part)] = part
        session.received(link, len(part), 1.0)
    assert reason(pump) == "UNSUPPORTED_VERSION (35): the broker does not offer FETCH (1)"


def test_a_fetch_on_a_connection_that_failed_has_the_failure_as_reason() -> None:
    """For a partition of which nothing arrives, the pump gives a reason. If the connection ends
    before the broker answers a Fetch, the reason says why the connection ended."""
    session = ClientSession(client_id="me", request_timeout_s=30.0, random=lambda: 0.5)
    pump = fetch(session)
    [link] = session.dials()
    session.failed(link, "Connection refused", 1.0)
    assert reason(pump).endswith("Connection refused")
