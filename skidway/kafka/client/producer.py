"""The blocking producer: sends whole batches, reports acknowledgements, and keeps the order of
batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from skidway.clock import Clock
from skidway.kafka.batch import EncodedBatch
from skidway.kafka.client.backoff import Backoff
from skidway.kafka.client.calls import ProduceCall
from skidway.kafka.client.client import Client
from skidway.kafka.client.cluster import Address
from skidway.kafka.client.delivery import Delivery
from skidway.kafka.client.dispatch import Dispatch
from skidway.kafka.client.pump import LOOK_AGAIN_S
from skidway.kafka.client.requests import init_producer_id_call
from skidway.kafka.client.session import Channel, Inbox
from skidway.kafka.errors import KafkaError
from skidway.kafka.types import TopicPartition


class Producer:
    """Sends batches to their partitions' leaders, in order, until they are acknowledged.

    The module `skidway.kafka.client.outbox` has the rules for order and retries. All work is done
    in calls of `send`, `poll` and `flush`; `send` waits for nothing but the name lookup of a new
    connection. If a broker refuses a batch with an error that may go away, the producer retries the
    batch without limit. `troubles` then has the partition and the error.
    """

    def __init__(
        self,
        client: Client,
        *,
        acks: int = -1,
        idempotent: bool = True,
        max_in_flight: int = 5,
        max_buffered_bytes: int = 64 * 1024 * 1024,
        clock: Clock | None = None,
    ) -> None:
        """`acks` says when the broker answers: with -1 after a batch is durable, with 1 after the
        batch is written, and with 0 never. The value 0 is allowed only without idempotence. With 0,
        batches may be stored in another order than they were sent."""
        if acks not in (-1, 0, 1):
            raise ValueError("acks must be -1, 0 or 1")
        if idempotent and (acks == 0 or not 1 <= max_in_flight <= 5):
            raise ValueError("an idempotent producer needs acks, and at most five in flight")
        self._client = client
        self._acks = acks
        self._clock = client.clock if clock is None else clock
        self._dispatch = Dispatch(
            idempotent=idempotent,
            max_in_flight=max_in_flight,
            max_buffered_bytes=max_buffered_bytes,
            random=client.random,
        )
        self._inbox: Inbox = deque()
        self._requests: dict[int, int] = {}  # ticket -> request id
        self._identity_inbox: Inbox = deque()
        self._identity_asked = False
        self._identity_backoff = Backoff(client.random)
        self._identity_retry_at = 0.0
        self._deliveries: deque[Delivery] = deque()
        self._closed = False
        self._topic_ids: dict[str, str] = {}

    def bind(self, topic_ids: Mapping[str, str]) -> None:
        """Binds topics to their ids. The id "" means that the id is unknown.

        If a topic is deleted and created again, it has another id. When the client learns the other
        id, the topic's batches wait, and `made_again` contains the topic.

        The client learns a topic's id only when it asks for metadata. So after a topic was deleted
        and created again, the new topic may still get batches until the client asks again.
        """
        self._topic_ids = {topic: topic_id for topic, topic_id in topic_ids.items() if topic_id}

    @property
    def made_again(self) -> frozenset[str]:
        """Topics that were deleted and created again: their id in the cluster is not the id that
        `bind` has given them."""
        return frozenset(topic for topic in self._topic_ids if self._is_another(topic))

    @property
    def has_room(self) -> bool:
        """Whether another batch may be sent."""
        return self._dispatch.has_room

    @property
    def pending_count(self) -> int:
        """Number of batches that are not delivered yet."""
        return self._dispatch.pending_count + len(self._deliveries)

    @property
    def buffered_bytes(self) -> int:
        """The total size of the batches whose outcome is not known yet."""
        return self._dispatch.buffered_bytes

    @property
    def waiting(self) -> frozenset[TopicPartition]:
        """The partitions with batches that are not acknowledged yet."""
        return self._dispatch.waiting

    @property
    def troubles(self) -> dict[TopicPartition, KafkaError]:
        """The partitions whose batches are being retried, each with the last error."""
        return self._dispatch.troubles

    def leader(self, tp: TopicPartition) -> Address | None:
        """The address of the partition's leader; None if it is not known."""
        return self._client.picture.cluster.leader(tp)

    def failure(self, tp: TopicPartition) -> str:
        """Why there is no connection to the partition's leader; empty if there is one, or if the
        leader is not known. (A batch is sent again after a lost connection, without an error.)"""
        address = self.leader(tp)
        return "" if address is None else self._client.session.failure(address, Channel.MAIN)

    def send(self, tp: TopicPartition, encoded: EncodedBatch, token: object) -> None:
        """Queues a batch, and sends the bytes that can be sent now. Raises BufferFull if `has_room`
        is False."""
        self._dispatch.add(tp, encoded, token)
        self._client.picture.want(tp.topic)
        self._advance()
        self._client.push()

    def poll(self, timeout_ms: int, *wake: int) -> list[Delivery]:
        """Returns the deliveries since the last call. Waits at most `timeout_ms` for the first
        delivery.

        Returns early when one of the descriptors `wake` is readable. Deliveries of a partition come
        in the order of `send`, and none is left out.
        """
        until = self._clock.monotonic() + timeout_ms / 1000
        last_look = False
        while True:
            self._advance()
            if self._deliveries or last_look:
                break
            woken = self._client.wait(self._patience_s(until), wake)
            last_look = woken or self._clock.monotonic() >= until
        found = list(self._deliveries)
        self._deliveries.clear()
        return found

    def flush(self, timeout_ms: int) -> bool:
        """Waits at most `timeout_ms` for all deliveries. Returns whether every batch is delivered.

        The next `poll` returns the deliveries.
        """
        until = self._clock.monotonic() + timeout_ms / 1000
        last_look = False
        while True:
            self._advance()
            if self._dispatch.pending_count == 0 or last_look:
                return self._dispatch.pending_count == 0
            self._client.wait(self._patience_s(until))
            last_look = self._clock.monotonic() >= until

    def close(self) -> None:
        """Drops undelivered batches. To deliver them, call `flush` first. The client stays open."""
        self._closed = True
        for ticket in self._requests:
            self._client.session.forget(ticket)
        self._requests.clear()

    def _patience_s(self, until: float) -> float:
        now = self._clock.monotonic()
        times = [self._dispatch.next_deadline(now), self._client.picture.next_deadline]
        if self._dispatch.is_stalled:
            times.append(now + LOOK_AGAIN_S)
        if not self._identity_asked and self._dispatch.identity_wanted:
            times.append(max(self._identity_retry_at, now + LOOK_AGAIN_S))
        return min([until, *(each for each in times if each is not None)]) - now

    def _advance(self) -> None:
        """Processes answers, decides what to send, and submits new requests to the session."""
        if self._closed:
            raise ValueError("the producer is closed")
        now, wall_ms = self._clock.monotonic(), self._clock.time_ms()
        self._take_answers(now, wall_ms)
        self._deliveries += self._dispatch.deliveries()
        picture, session = self._client.picture, self._client.session
        if self._dispatch.has_stale_leaders:
            self._dispatch.has_stale_leaders = False
            picture.mark_stale()
        picture.advance(session, now)  # first, so that the plan uses new metadata

        def usable(address: Address) -> bool:
            return session.usable(address, Channel.MAIN, now)

        def leader(tp: TopicPartition) -> Address | None:
            return None if self._is_another(tp.topic) else picture.leader(tp)

        for planned in self._dispatch.plan(leader, usable, now, wall_ms):
            call = ProduceCall(self._acks, self._client.request_timeout_ms // 2, planned.data)
            to = planned.address
            ticket = session.submit(to, Channel.MAIN, call, self._inbox, now)
            self._requests[ticket] = planned.id
        picture.advance(session, now)
        self._take_identity(now)

    def _is_another(self, topic: str) -> bool:
        bound, found = self._topic_ids.get(topic), self._client.picture.topic_id(topic)
        return bound is not None and found not in ("", bound)

    def _take_answers(self, now: float, wall_ms: int) -> None:
        while self._inbox:
            answer = self._inbox.popleft()
            request_id = self._requests.pop(answer.ticket)
            if answer.error is not None:
                self._dispatch.lost(request_id)
            elif answer.response is None:
                self._dispatch.written(request_id, now, wall_ms)
            else:
                self._dispatch.answered(request_id, answer.response.results, now, wall_ms)

    def _take_identity(self, now: float) -> None:
        """Takes the answer to a request for a producer id. If a partition still needs a new id,
        asks a broker for one; after a failure, waits before it asks again."""
        while self._identity_inbox:
            answer = self._identity_inbox.popleft()
            self._identity_asked = False
            if answer.error is None and answer.response.error_code == 0:
                response = answer.response
                self._identity_backoff.reset()
                self._dispatch.identified(response.producer_id, response.producer_epoch)
                self._advance()
                return
            self._identity_retry_at = now + self._identity_backoff.next_s()
        if self._identity_asked or now < self._identity_retry_at:
            return
        if not self._dispatch.identity_wanted:
            return
        session, picture = self._client.session, self._client.picture
        address = picture.next_address(session, Channel.MAIN, now)
        if address is not None:
            inbox = self._identity_inbox
            session.submit(address, Channel.MAIN, init_producer_id_call(), inbox, now)
            self._identity_asked = True
