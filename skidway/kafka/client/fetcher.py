"""The blocking fetcher: whole batches of many partitions, from positions that the owner sets."""

from __future__ import annotations

from collections import deque

from skidway.kafka.client.calls import FetchCall
from skidway.kafka.client.client import Client
from skidway.kafka.client.cluster import Address
from skidway.kafka.client.fetching import Fetched, Fetching
from skidway.kafka.client.session import Channel, Inbox
from skidway.kafka.types import TopicPartition

_LOOK_AGAIN_S = 0.05


class Fetcher:
    """Reads partitions from offsets on, up to their high watermarks, and waits there for more.

    While the owner works on what `poll` gave, the next response is on its way.
    """

    def __init__(
        self,
        client: Client,
        *,
        max_bytes: int = 8 * 1024 * 1024,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
    ) -> None:
        """`max_bytes` of one response, unless one batch alone is longer."""
        self._client = client
        self._fetching = Fetching(
            max_bytes=max_bytes,
            max_wait_ms=min(max_wait_ms, client.request_timeout_ms // 2),
            min_bytes=min_bytes,
            random=client.random,
        )
        self._inbox: Inbox = deque()
        self._requests: dict[int, int] = {}

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The offset behind the last batch that `poll` gave, for every partition."""
        return self._fetching.positions

    @property
    def high_watermarks(self) -> dict[TopicPartition, int]:
        """The high watermark of each partition in the last answer about it."""
        return self._fetching.high_watermarks

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Reads a partition from an offset on (anew, or as one more)."""
        self._fetching.seek(tp, offset)
        self._client.picture.want(tp.topic)

    def remove(self, tp: TopicPartition) -> None:
        """Ends the reading of a partition."""
        self._fetching.remove(tp)

    def poll(self, timeout_ms: int, *wake: int) -> list[Fetched]:
        """What has come; waits at most so long for something. Positions move behind it.

        Returns early when one of the descriptors `wake` is readable. Raises OffsetOutOfRange,
        CorruptBatch or KafkaError once for a partition that cannot go on; it stands still until it
        is sought or removed, the others go on.
        """
        clock = self._client.clock
        until = clock.monotonic() + timeout_ms / 1000
        woken = False
        while True:
            self._advance()
            left_s = until - clock.monotonic()
            if self._fetching.has_something or woken or left_s <= 0:
                break
            woken = self._client.wait(min(left_s, self._patience_s()), wake)
        if timeout_ms <= 0 and not self._fetching.has_something:
            self._client.wait(0)
            self._advance()
        found = self._fetching.take()
        if found:  # ask for what follows while the owner is busy with this
            self._advance()
            self._client.push()
        return found

    def _patience_s(self) -> float:
        now = self._client.clock.monotonic()
        due = self._fetching.next_deadline(now)
        return _LOOK_AGAIN_S if due is None else min(due - now, _LOOK_AGAIN_S)

    def _advance(self) -> None:
        """Takes answers, decides, and hands new requests to the session."""
        now = self._client.clock.monotonic()
        picture, session = self._client.picture, self._client.session
        while self._inbox:
            answer = self._inbox.popleft()
            request_id = self._requests.pop(answer.ticket)
            if answer.error is not None:
                self._fetching.lost(request_id, now)
            else:
                self._fetching.answered(request_id, answer.response, now)
        if self._fetching.has_stale_leaders:
            self._fetching.has_stale_leaders = False
            picture.is_stale()

        def usable(address: Address) -> bool:
            return session.usable(address, Channel.FETCH, now)

        for planned in self._fetching.plan(picture.leader, usable, now):
            call = FetchCall(planned.request)
            ticket = session.submit(planned.address, Channel.FETCH, call, self._inbox, now)
            self._requests[ticket] = planned.id
        picture.advance(session, now)
