"""Manages all connections of one client: decides when each connection is opened and closed. This
module uses no sockets.

A link is one address on one channel. It is idle, connecting, connected, or waiting after a failure.
Each call has a ticket and an inbox. The outcome of a call is put into its inbox exactly once,
unless the caller has called `forget` before. The outcome is a response, an error of the call
(`UnsupportedVersion`), or `Disconnected` if the connection ended before the response came. Nothing
is retried here, because only the caller knows whether a call may be repeated.

Channels separate calls that must not wait for each other. For example, a long-polling fetch delays
every later call on its connection.

A driver (`skidway.kafka.client.network`) does the I/O. It asks which links it has to connect
(`dials`) and to close (`hangups`), sends and receives bytes, and calls `expire` at `next_deadline`.
Times are parameters (monotonic seconds).

All responses that have begun to arrive need at most `response_bytes_max` of memory in sum, by the
lengths that the brokers have announced. A further response waits in the kernel until there is room
(`may_receive`). A broker that does not complete its response keeps its room until the call's
deadline.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from skidway.errors import SkidwayError
from skidway.kafka.client.authentication import LoginRefused
from skidway.kafka.client.backoff import Backoff
from skidway.kafka.client.calls import Call
from skidway.kafka.client.cluster import Address
from skidway.kafka.client.connection import Answer, Connection
from skidway.kafka.errors import BrokerUnreachable
from skidway.security.sasl import Login

Inbox = deque[Answer]

DIAL_TIMEOUT_S = 10.0
RESPONSE_BYTES_MAX = 256 * 1024 * 1024
CALLS_PER_LINK_MAX = 64
LINKS_MAX = 1000
"""Above this number, links that nobody uses are forgotten: a cluster may name other brokers in each
answer.
"""


class Channel(Enum):
    """The kind of requests that are sent on a connection."""

    MAIN = "main"
    """All but fetches: so an agent has one connection to a broker."""
    FETCH = "fetch"


class Disconnected(BrokerUnreachable):
    """The connection ended before the call was answered; the broker may have carried out the
    call."""


class LinkKey(NamedTuple):
    """Identifies a link (an address and a channel). There is at most one connection to an address
    on a channel."""

    address: Address
    channel: Channel


class Link:
    """One address on one channel (one kind of requests). The link is idle, connecting, connected,
    or waiting after a failure."""

    __slots__ = (
        "_held",
        "attempts",
        "backoff",
        "connection",
        "dial_deadline",
        "ended_count",
        "failure",
        "key",
        "retry_at",
    )

    def __init__(self, key: LinkKey, backoff: Backoff, ended_count: int) -> None:
        self.key = key
        self.attempts = 0  # to connect, since the last connection was opened
        self.backoff = backoff
        self.connection: Connection | None = None
        self.dial_deadline: float | None = None
        self.retry_at = 0.0
        self.failure = ""
        self.ended_count = ended_count
        self._held: deque[tuple[int, Call, float]] = deque()  # calls that wait for the connection

    @property
    def in_flight_count(self) -> int:
        """Number of calls that are not answered."""
        return len(self._held) + (self.connection.in_flight_count if self.connection else 0)

    @property
    def next_deadline(self) -> float | None:
        """The time (monotonic seconds) at which the attempt to connect, or the oldest call, times
        out; None if there is neither.
        """
        if self.connection is not None:
            return self.connection.next_deadline
        return self.dial_deadline

    def is_idle(self, now: float) -> bool:
        """Whether nothing is lost if the link is forgotten."""
        is_closed = self.connection is None and self.dial_deadline is None
        return is_closed and now >= self.retry_at

    def submit(self, ticket: int, call: Call, deadline: float) -> None:
        """Sends a call now, or as soon as the link is connected."""
        if self.connection is None:
            self._held.append((ticket, call, deadline))
        else:
            self.connection.submit(ticket, call, deadline)

    def opened(self, connection: Connection) -> None:
        """Sets the new connection after the socket has connected, and submits the waiting calls."""
        self.connection, self.dial_deadline = connection, None
        while self._held:
            connection.submit(*self._held.popleft())

    def closed(self) -> list[int]:
        """Drops the connection of a closed socket. Returns the tickets of all open calls."""
        tickets = [ticket for ticket, _, _ in self._held]
        self._held.clear()
        if self.connection is not None:
            tickets = self.connection.abandoned() + tickets
        self.connection = self.dial_deadline = None
        return tickets


class ClientSession:
    """The links of one client."""

    def __init__(
        self,
        *,
        client_id: str,
        request_timeout_s: float,
        random: Callable[[], float],
        response_bytes_max: int = RESPONSE_BYTES_MAX,
    ) -> None:
        self._client_id = client_id
        self._request_timeout_s = request_timeout_s
        self._random = random
        self._response_bytes_max = response_bytes_max
        self._links: dict[LinkKey, Link] = {}
        self._links_max = LINKS_MAX
        self._tickets = itertools.count()
        self._inboxes: dict[int, Inbox] = {}
        self._dials: list[Link] = []
        self._hangups: list[Link] = []
        self._arriving: dict[LinkKey, int] = {}  # the lengths of the responses that have begun
        self.last_failure = ""
        self.failure_count = 0
        self.delivered_count = 0  # number of answers put into the callers' inboxes so far

    # for callers

    def usable(self, address: Address, channel: Channel, now: float) -> bool:
        """Returns whether a call may be submitted now. Returns False during the wait after a
        failure of this link, and while the link has `CALLS_PER_LINK_MAX` open calls.
        """
        link = self._links.get(LinkKey(address, channel))
        if link is None:
            return True
        waiting = link.connection is None and link.dial_deadline is None and now < link.retry_at
        return not waiting and link.in_flight_count < CALLS_PER_LINK_MAX

    def is_ready(self, address: Address, channel: Channel) -> bool:
        """Returns whether there is a connection on which client and broker have agreed on
        API versions."""
        link = self._links.get(LinkKey(address, channel))
        return link is not None and link.connection is not None and link.connection.is_ready

    def submit(
        self, address: Address, channel: Channel, call: Call, inbox: Inbox, now: float
    ) -> int:
        """Sends a call, and connects first if needed. Returns the call's ticket (a number). Raises
        Disconnected if `usable` is False."""
        key = LinkKey(address, channel)
        link = self._links.get(key)
        if link is None:
            self._forget_idle(now)
            link = self._links[key] = Link(key, Backoff(self._random), self.failure_count)
        if not self.usable(address, channel, now):
            raise Disconnected(f"{address} cannot be used now: {link.failure}")
        if link.connection is None and link.dial_deadline is None:
            link.dial_deadline = now + min(DIAL_TIMEOUT_S, self._request_timeout_s)
            self._dials.append(link)
        ticket = next(self._tickets)
        self._inboxes[ticket] = inbox
        link.submit(ticket, call, now + self._request_timeout_s)
        self._collect(link)
        return ticket

    def forget(self, ticket: int) -> None:
        """Drops the answer to a call, because nobody waits for it any more."""
        self._inboxes.pop(ticket, None)

    def retry_at(self, address: Address, channel: Channel) -> float:
        """Returns the time (monotonic seconds) from which an address may be used again after a
        failure.
        """
        link = self._links.get(LinkKey(address, channel))
        return 0.0 if link is None else link.retry_at

    def failure(self, address: Address, channel: Channel) -> str:
        """Returns why the last connection to an address ended or was not made; empty if there was
        none, and as soon as there is one on which client and broker understand each other."""
        link = self._links.get(LinkKey(address, channel))
        return "" if link is None else link.failure

    def ended_count(self, address: Address, channel: Channel) -> int:
        """Returns a number that grows when a connection to this address on this channel ends or
        could not be opened. So the number identifies the present connection. If the number grows
        before a call is answered, the call's connection has ended, and the call is never answered.
        """
        link = self._links.get(LinkKey(address, channel))
        return self.failure_count if link is None else link.ended_count

    # methods that only the driver calls

    def dials(self) -> list[Link]:
        """Returns the links that need a socket now. The caller must call `opened` or `failed` for
        each of these links."""
        found, self._dials = self._dials, []
        return found

    def hangups(self) -> list[Link]:
        """Returns the links whose connection has ended since the last call. The caller must close
        their sockets."""
        found, self._hangups = self._hangups, []
        return found

    def writers(self) -> list[Link]:
        """Returns the links that have bytes to send."""
        return [
            link
            for link in self._links.values()
            if link.connection is not None and link.connection.wants_write
        ]

    def opened(self, link: Link, now: float, login: Login | None = None) -> None:
        """Notes that the link's socket is connected. login: None for a client that does not log
        in."""
        deadline = now + self._request_timeout_s
        link.opened(Connection(self._client_id, self._response_bytes_max, deadline, login))

    def sent(self, link: Link, count: int) -> None:
        """Notes that `count` of the link's outgoing bytes were sent."""
        if link.connection is not None:
            link.connection.sent(count)
            self._collect(link)

    def may_receive(self, link: Link) -> bool:
        """Returns whether there is room for the response that the link's broker has begun. From
        then on, the room is taken until the response is there, or the connection ends."""
        begun_bytes = 0 if link.connection is None else link.connection.begun_bytes
        others = sum(self._arriving.values()) - self._arriving.get(link.key, 0)
        if others and others + begun_bytes > self._response_bytes_max:
            return False
        if begun_bytes:
            self._arriving[link.key] = begun_bytes
        return True

    def received(self, link: Link, count: int, now: float) -> None:
        """Processes `count` bytes that were received into the memory of the link's connection
        (`Connection.space`). A `count` of 0 means the end of the stream."""
        if link.connection is None:
            return
        if count == 0:
            self.failed(link, "the broker closed the connection", now)
            return
        try:
            link.connection.received(count, now)
        except SkidwayError as error:
            if isinstance(error, LoginRefused):
                from skidway.kafka.client.refused_connections import count_refused

                count_refused(error.place)
            self._collect(link)
            self.failed(link, str(error), now)
            return
        if not link.connection.begun_bytes:
            self._arriving.pop(link.key, None)
        if link.connection.is_ready:
            link.backoff.reset()
            link.failure = ""
        self._collect(link)

    def failed(self, link: Link, why: str, now: float) -> None:
        """Notes that the link's connection ended or could not be opened. Ends all calls on the
        link."""
        link.failure = self.last_failure = f"{link.key.address}: {why}"
        self.failure_count += 1
        link.ended_count += 1
        link.retry_at = now + link.backoff.next_s()
        self._arriving.pop(link.key, None)
        self._hangups.append(link)
        for ticket in link.closed():
            self._deliver(Answer(ticket, None, Disconnected(link.failure)))

    def expire(self, now: float) -> None:
        """Ends each connection whose oldest call has passed its deadline, and each attempt to
        connect that takes too long. Renews logins that are due."""
        for link in list(self._links.values()):
            if link.connection is not None and link.connection.renewed_at <= now:
                link.connection.renew(now + self._request_timeout_s)
            deadline = link.next_deadline
            if deadline is not None and deadline <= now:
                why = "no answer in time" if link.connection else "no connection in time"
                self.failed(link, why, now)

    @property
    def next_deadline(self) -> float | None:
        """Returns the time (monotonic seconds) at which to call `expire`, or None if nothing has a
        deadline."""
        deadlines = [link.next_deadline for link in self._links.values()]
        deadlines += [
            link.connection.renewed_at
            for link in self._links.values()
            if link.connection is not None and link.connection.renewed_at < math.inf
        ]
        return min((each for each in deadlines if each is not None), default=None)

    def close(self) -> None:
        """Ends every link. Open calls get Disconnected."""
        for link in self._links.values():
            self._hangups.append(link)
            for ticket in link.closed():
                self._deliver(Answer(ticket, None, Disconnected("the client is closed")))
        self._dials.clear()
        self._arriving.clear()

    def _forget_idle(self, now: float) -> None:
        if len(self._links) >= self._links_max:
            self._links = {key: each for key, each in self._links.items() if not each.is_idle(now)}
            self._links_max = max(LINKS_MAX, 2 * len(self._links))

    def _collect(self, link: Link) -> None:
        if link.connection is not None:
            for answer in link.connection.answers():
                self._deliver(answer)

    def _deliver(self, answer: Answer) -> None:
        inbox = self._inboxes.pop(answer.ticket, None)
        if inbox is not None:
            inbox.append(answer)
            self.delivered_count += 1
