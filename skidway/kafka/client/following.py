"""A client that runs inside the event loop of its caller. Mirrors use this client, because they run
in a broker's loop.

The client never waits if the resolver (`look_up`) finds brokers' addresses without waiting. The
loop supplies a `Watcher` on its own epoll, and passes that epoll's events to the client. The loop
calls `turn` after the events, and at `next_deadline`::

    source = LoopClient("dc1:9092", watcher, clock=clock)       # opens nothing yet
    ticket = source.ask(metadata_call(None))                    # any request, to any broker
    source.seek(TopicPartition("hdfs-logs", 0), log_end_offset) # continues at our log end

    for fd, readable, writable in epoll_events:
        if not source.ready(fd, readable, writable): ...        # the broker's own socket
    turn = source.turn()
    for fetched in turn.fetched:                                # whole batches, raw
        for view in fetched.batches:
            header = read_header(view); check(view, 0, header)  # CRC; then append as it is
    for tp, error in turn.stopped: ...                          # OffsetOutOfRange, CorruptBatch
    for answer in turn.answers: ...                             # .ticket, .response or .error
    wait_at_most_until(source.next_deadline)

Batches are views of one response's memory, so a mirror that keeps a batch keeps the whole response
in memory.

To check whether the source has diverged (docs/delivery.md), a mirror compares the last batch in its
own log with the source. The mirror first seeks to its log end offset - 1. The first batch that the
mirror then gets contains that offset.

This client uses the class `Connection`, which handles one connection without sockets. The caller of
a `Connection` passes received bytes in through `space` and `received`, gets the bytes to send from
`wants_write`, `outgoing` and `sent`, and reads the deadline from `next_deadline`.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from skidway.clock import Clock, SystemClock
from skidway.errors import SkidwayError
from skidway.kafka.client.calls import Call
from skidway.kafka.client.cluster import Address, Cluster, parse_bootstrap
from skidway.kafka.client.connection import Answer
from skidway.kafka.client.fetching import Fetched, Fetching
from skidway.kafka.client.metadata import Metadata
from skidway.kafka.client.network import Network, Resolve, Watcher, resolve
from skidway.kafka.client.pump import FetchPump
from skidway.kafka.client.session import Channel, ClientSession, Disconnected, Inbox
from skidway.kafka.security import NO_SECURITY, KafkaSecurity
from skidway.kafka.types import TopicPartition

STOOD_STILL_S = 5.0
"""If nothing has called the client for more than this many seconds, the client assumes that the
loop stood still, that is, did not run. While a fetch is open, a running loop calls the client at
shorter intervals, because the source answers within `max_wait_ms`. If the source does not answer,
the assumption may be wrong; a mirror then compares its log with the source once more.
"""


class Turn(NamedTuple):
    """What has happened since the previous turn of the loop."""

    fetched: list[Fetched]
    stopped: list[tuple[TopicPartition, SkidwayError]]
    answers: list[Answer]
    interrupted: dict[TopicPartition, str]
    """Partitions whose next batches may come from another log than their earlier batches, with the
    reason: a fetch was lost or refused, or the loop stood still. These partitions are still
    fetched.
    """


class LoopClient:
    """Fetches raw batches and sends requests. Waits for nothing but the resolver (`look_up`)."""

    # There are more than six arguments: Kafka's settings, and the parts that tests replace.
    def __init__(
        self,
        bootstrap: str,
        watcher: Watcher,
        *,
        client_id: str = "skidway",
        request_timeout_ms: int = 30_000,
        max_bytes: int = 8 * 1024 * 1024,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
        look_up: Resolve = resolve,
        security: KafkaSecurity = NO_SECURITY,
    ) -> None:
        """A resolver `look_up` that does not wait returns None while it looks up a name. When it
        has found an address, the loop must call `looked_up`. The default resolver waits.

        Raises UsageError when `bootstrap` is not a list of host:port, and ConfigurationRefused if
        the files of `security` cannot be used.
        """
        self._clock: Clock = SystemClock() if clock is None else clock
        self._session = ClientSession(
            client_id=client_id, request_timeout_s=request_timeout_ms / 1000, random=jitter
        )
        self._picture = Metadata(parse_bootstrap(bootstrap), jitter)
        self._network = Network(self._session, watcher, look_up, security)
        self._fetching = Fetching(
            max_bytes=max_bytes,
            max_wait_ms=min(max_wait_ms, request_timeout_ms // 2),
            min_bytes=min_bytes,
            random=jitter,
        )
        self._pump = FetchPump(self._fetching, self._session, self._picture)
        self._inbox: Inbox = deque()
        self._read: dict[str, set[int]] = {}  # maps each topic to its partitions that are read
        self._refused = -1
        self._called_at = self._clock.monotonic()
        # the number of answers that the session had delivered at the last turn; -1 makes a turn due
        self._seen_count = -1

    @property
    def cluster(self) -> Cluster:
        """The client's latest metadata of the cluster and of the topics that are read."""
        return self._picture.cluster

    @property
    def last_failure(self) -> str:
        """The reason, in words, of the latest connection failure. A connection has failed if it
        could not be opened, or has ended."""
        return self._session.last_failure

    @property
    def failure_count(self) -> int:
        """The number of connections that have ended or could not be opened. If the number has grown
        since a caller last read it, a connection has failed in the meantime.
        """
        return self._session.failure_count

    @property
    def high_watermarks(self) -> dict[TopicPartition, int]:
        """The high watermark of every partition, from the newest answer for that partition."""
        return self._fetching.high_watermarks

    def time_ms(self) -> int:
        """Wall clock, in ms."""
        return self._clock.time_ms()

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The next offset of every partition: after the last batch that a turn returned, or from
        `seek`."""
        return self._fetching.positions

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Reads a partition from an offset on, even if the partition was not read before."""
        self._picture.want(tp.topic)
        self._fetching.seek(tp, offset)
        self._read.setdefault(tp.topic, set()).add(tp.partition)
        self._seen_count = -1

    def remove(self, tp: TopicPartition) -> None:
        """Stops reading a partition."""
        self._fetching.remove(tp)
        read = self._read.get(tp.topic, set())
        read.discard(tp.partition)
        if not read and self._read.pop(tp.topic, None) is not None:
            self._picture.unwant(tp.topic)

    def ask(self, call: Call, address: Address | None = None) -> int:
        """Sends a request to a broker, by default to any broker that can be reached. Returns the
        request's ticket, a number that its answer also has.

        A later turn returns the answer: a response or an error. If the error is `Disconnected`, the
        caller should ask again.
        """
        now = self._clock.monotonic()
        if address is None:
            address = self._picture.next_address(self._session, Channel.MAIN, now)
        if address is None or not self._session.usable(address, Channel.MAIN, now):
            self._refused -= 1  # below 0, because the session's own tickets are 0 or more
            why = Disconnected(self._session.last_failure or "no broker can be asked now")
            self._inbox.append(Answer(self._refused, None, why))
            return self._refused
        self._seen_count = -1
        return self._session.submit(address, Channel.MAIN, call, self._inbox, now)

    def looked_up(self) -> None:
        """Notes that the resolver has found an address, so that the next turn connects."""
        self._seen_count = -1

    def ready(self, fd: int, readable: bool, writable: bool) -> bool:
        """Handles an event of a descriptor, as the watcher reports it. Returns False if the
        descriptor does not belong to this client."""
        return self._network.ready(fd, readable, writable, self._now())

    def turn(self) -> Turn:
        """Processes the bytes that have arrived, and sends the requests that are due. Returns what
        has happened since the previous turn."""
        now = self._now()
        self._seen_count = self._session.delivered_count
        self._pump.advance(now)
        fetched = self._fetching.take()
        if fetched:
            self._pump.advance(now)
        self._network.turn(now)
        stopped = []
        while (each := self._fetching.take_error()) is not None:
            stopped.append(each)
        answers = list(self._inbox)
        self._inbox.clear()
        return Turn(fetched, stopped, answers, self._fetching.take_interruptions())

    @property
    def has_news(self) -> bool:
        """Whether a turn has something to do now. The check is cheap, however many partitions are
        read."""
        return bool(
            self._session.delivered_count != self._seen_count
            or self._inbox
            or self._fetching.has_something
            or self._network.has_to_send
        )

    @property
    def next_deadline(self) -> float | None:
        """The time (monotonic seconds) at which the next turn is due even if nothing arrives, or
        None if there is no such time.
        """
        if self.has_news:
            return self._clock.monotonic()
        times = (self._session.next_deadline, self._pump.next_deadline(self._clock.monotonic()))
        return min((each for each in times if each is not None), default=None)

    def close(self) -> None:
        """Closes every connection."""
        self._network.close()

    def _now(self) -> float:
        """Returns the present time (monotonic seconds). If the client was not called for more than
        `STOOD_STILL_S`, interrupts the reading of every partition (`Fetching.interrupt`).

        After such a long time without a call, the loop or the whole machine must have stood still.
        Responses that wait in the sockets may then be old. Meanwhile a topic may have been deleted
        and created again, so the next fetch may read another log than the previous fetch.
        """
        now = self._clock.monotonic()
        if now - self._called_at > STOOD_STILL_S:
            self._fetching.interrupt(f"stood still for {now - self._called_at:.0f} s")
        self._called_at = now
        return now
