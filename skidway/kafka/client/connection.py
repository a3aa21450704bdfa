"""One connection to a broker, without the socket: takes received bytes, returns the bytes to send.

    opened -> ApiVersions is sent -> the answer arrives -> the client logs in, if it has a login
    -> calls are sent, each in the highest version that client and broker have in common
    -> shortly before the login ends, calls wait, and the client logs in again

Responses come in the order of the requests. If a response does not belong to the oldest open
request, the connection ends. Every request has a deadline. If a deadline passes before the response
has come, the connection also ends, because the broker answers no later request before the overdue
one. A request without a response (acks 0) must be sent by its deadline. The session ends a
connection by dropping this object with all its contents, so a caller never gets an answer from an
old connection.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from skidway.kafka.client.authentication import Authentication
from skidway.kafka.client.calls import Buffer, Call, MessageCall
from skidway.kafka.errors import ErrorCode, ProtocolError, UnsupportedVersion, error_for
from skidway.kafka.protocol.api_versions import ApiVersionsRequest, ApiVersionsResponse
from skidway.kafka.protocol.apis import ApiKey, VersionRange, choose
from skidway.kafka.protocol.frames import FrameReader, peek_correlation_id, response_body
from skidway.security.sasl import Login

SOFTWARE = "skidway"
SOFTWARE_VERSION = "1"  # sent in ApiVersions; this is not the version of Skidway

# The memory for a response up to this length is allocated at once. The memory for a longer response
# grows as bytes arrive.
EAGER_BYTES = 16 * 1024 * 1024
_API_VERSIONS = 3
_CORRELATION_END = 1 << 31
_SEND_PIECES_MAX = 64


class Answer(NamedTuple):
    """The outcome of a call: a response or an error. When a request without a response (acks 0) was
    sent, its outcome has neither. `ticket` is the number that identifies the call.
    """

    ticket: int
    response: Any
    error: Exception | None


class _Pending(NamedTuple):
    ticket: int
    call: Call
    deadline: float


class _Sent(NamedTuple):
    correlation_id: int
    ticket: int
    call: Call
    version: int
    deadline: float


class _Silent(NamedTuple):
    """A request without a response. When `_written_bytes` has reached `end`, the request was
    sent."""

    end: int
    ticket: int
    deadline: float


class Connection:
    """Encodes the requests that are sent on one connection, and decodes the responses."""

    __slots__ = (
        "_answers",
        "_authentication",
        "_client_id",
        "_correlation_id",
        "_deadline",
        "_is_ready",
        "_negotiation",
        "_out",
        "_out_bytes",
        "_ranges",
        "_reader",
        "_renewed_at",
        "_sent",
        "_silent",
        "_waiting",
        "_written_bytes",
    )

    def __init__(
        self, client_id: str, response_bytes_max: int, deadline: float, login: Login | None = None
    ) -> None:
        """Client and broker must have agreed on API versions by `deadline` (monotonic seconds).
        login: None for a client that does not log in."""
        self._client_id = client_id
        self._authentication = None if login is None else Authentication(login)
        self._is_ready = False
        self._renewed_at = math.inf  # when the client logs in again
        self._reader = FrameReader(
            response_bytes_max, eager_bytes=min(EAGER_BYTES, response_bytes_max)
        )
        self._ranges: Mapping[int, VersionRange] | None = None
        self._sent: deque[_Sent] = deque()
        self._waiting: deque[_Pending] = deque()
        self._out: deque[memoryview] = deque()
        self._out_bytes = self._written_bytes = 0
        self._silent: deque[_Silent] = deque()
        self._answers: list[Answer] = []
        self._deadline = deadline  # of the calls with which the client logs in
        self._correlation_id = 0
        self._negotiation = -1  # the ticket of our own calls; no caller's ticket is negative
        self._ask_versions(_API_VERSIONS, deadline)

    @property
    def is_ready(self) -> bool:
        """Whether client and broker have agreed on API versions, and the client is logged in."""
        return self._is_ready

    @property
    def renewed_at(self) -> float:
        """When to call `renew` (monotonic seconds); infinite if the login has no end."""
        return self._renewed_at

    def renew(self, deadline: float) -> None:
        """Lets further calls wait, and logs in again as soon as all open calls are answered. The
        client must be logged in again by `deadline`."""
        self._is_ready, self._renewed_at, self._deadline = False, math.inf, deadline
        self._begin_login()

    @property
    def in_flight_count(self) -> int:
        """The number of calls that are neither answered nor failed, including the connection's own
        ones."""
        return len(self._sent) + len(self._waiting) + len(self._silent)

    @property
    def next_deadline(self) -> float | None:
        """The earliest deadline of a call that is not sent or waits for a response (monotonic
        seconds), or None."""
        deadlines = [each.deadline for each in self._sent]
        deadlines += [each.deadline for each in self._waiting]
        deadlines += [each.deadline for each in self._silent]
        return min(deadlines, default=None)

    def submit(self, ticket: int, call: Call, deadline: float) -> None:
        """Accepts a call, and sends it as soon as the connection is ready."""
        if self._is_ready:
            self._write(_Pending(ticket, call, deadline))
        else:
            self._waiting.append(_Pending(ticket, call, deadline))

    # the writing side

    @property
    def wants_write(self) -> bool:
        """Whether there are bytes to send."""
        return bool(self._out)

    def outgoing(self) -> list[memoryview]:
        """Returns the next buffers to send: at most 64, for one call of sendmsg."""
        if len(self._out) <= _SEND_PIECES_MAX:
            return list(self._out)
        return [self._out[i] for i in range(_SEND_PIECES_MAX)]

    def sent(self, count: int) -> None:
        """Notes that `count` bytes of `outgoing` were sent."""
        self._written_bytes += count
        while count:
            piece = self._out[0]
            if count < len(piece):
                self._out[0] = piece[count:]
                break
            count -= len(piece)
            self._out.popleft()
        while self._silent and self._silent[0].end <= self._written_bytes:
            self._answers.append(Answer(self._silent.popleft().ticket, None, None))
            self._begin_login()

    # the reading side

    @property
    def begun_bytes(self) -> int:
        """The length of the response of which a part has arrived; 0 if there is none."""
        return self._reader.begun_bytes

    def space(self) -> memoryview:
        """Returns the memory for the bytes that are received next."""
        return self._reader.space()

    def received(self, count: int, now: float) -> None:
        """Processes the `count` bytes that were received into `space`. Raises SkidwayError if the
        connection cannot be used any further; the caller must then end it."""
        for frame in self._reader.received(count):
            self._take(frame, now)

    def answers(self) -> list[Answer]:
        """Returns the answers that have come since the last call."""
        found, self._answers = self._answers, []
        return found

    def abandoned(self) -> list[int]:
        """Returns the tickets (numbers) of all calls without an answer. The session asks for these
        tickets when the connection has ended, because no answer to these calls will come.
        """
        tickets = [each.ticket for each in self._sent if each.ticket != self._negotiation]
        tickets += [each.ticket for each in self._silent]
        return tickets + [each.ticket for each in self._waiting]

    def _take(self, frame: memoryview, now: float) -> None:
        if not self._sent:
            raise ProtocolError("a response that nobody asked for")
        sent = self._sent[0]  # the call stays in `_sent` until its response is read
        if peek_correlation_id(frame) != sent.correlation_id:
            raise ProtocolError("a response to another request than the oldest")
        body = response_body(frame, sent.call.api, sent.version)
        if sent.call.api is ApiKey.API_VERSIONS and sent.ticket == self._negotiation:
            self._agree(body, sent)
            self._sent.popleft()
            return
        response = sent.call.read(body, sent.version)
        self._sent.popleft()
        if sent.ticket == self._negotiation:
            self._log_in(response, now)
        else:
            self._answers.append(Answer(sent.ticket, response, None))
            self._begin_login()

    def _write(self, pending: _Pending) -> None:
        assert self._ranges is not None
        try:
            self._put(pending, choose(pending.call.api, self._ranges))
        except UnsupportedVersion as error:
            if pending.ticket == self._negotiation:
                raise
            self._answers.append(Answer(pending.ticket, None, error))

    def _put(self, pending: _Pending, version: int) -> None:
        correlation_id = self._correlation_id
        pieces = pending.call.frame(version, correlation_id, self._client_id)
        self._correlation_id = (correlation_id + 1) % _CORRELATION_END
        for piece in pieces:
            if len(piece):
                self._out.append(_bytes_of(piece))
                self._out_bytes += len(piece)
        ticket, call, deadline = pending
        if call.is_answered:
            self._sent.append(_Sent(correlation_id, ticket, call, version, deadline))
        else:
            self._silent.append(_Silent(self._out_bytes, ticket, deadline))

    def _ask_versions(self, version: int, deadline: float) -> None:
        request = ApiVersionsRequest(
            client_software_name=SOFTWARE, client_software_version=SOFTWARE_VERSION
        )
        call = MessageCall(ApiKey.API_VERSIONS, lambda _: request, ApiVersionsResponse)
        self._put(_Pending(self._negotiation, call, deadline), version)

    def _agree(self, body: memoryview, sent: _Sent) -> None:
        """Processes the answer that lists the broker's versions. A broker that does not know the
        version of our ApiVersions request answers in version 0, with error 35 (KIP-511). In that
        case, this method sends the request again in version 0."""
        refused = len(body) >= 2 and int.from_bytes(body[:2], "big") == 35
        if refused and sent.version > 0:
            self._ask_versions(0, sent.deadline)
            return
        response = sent.call.read(body, sent.version)
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code)
        self._ranges = response.ranges()
        if self._authentication is None:
            self._open()
        else:
            self._write(_Pending(self._negotiation, self._authentication.begin(), sent.deadline))

    def _begin_login(self) -> None:
        """Logs in again, if that is due and no call is open."""
        is_due = self._ranges is not None and not self._is_ready
        if is_due and self._authentication is not None and not (self._sent or self._silent):
            self._write(_Pending(self._negotiation, self._authentication.begin(), self._deadline))

    def _log_in(self, response: Any, now: float) -> None:
        assert self._authentication is not None
        found = self._authentication.answered(response)
        if isinstance(found, float):
            self._renewed_at = now + found if found else math.inf
            self._open()
        else:
            self._write(_Pending(self._negotiation, found, self._deadline))

    def _open(self) -> None:
        self._is_ready = True
        while self._waiting:
            self._write(self._waiting.popleft())


def _bytes_of(piece: Buffer) -> memoryview:
    return memoryview(piece)
