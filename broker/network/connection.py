"""One client's connection: receives requests, and sends answers in the order of the requests.

Each request, or run of requests that are answered together, has a `Slot` in the queue. Some answers
must wait: a fetch waits for data, and a produce request with acks=all waits for a flush. While an
answer waits, all later answers of the connection wait too, because the protocol requires the order
of the requests. When slots at the front of the queue are filled, their answers can be sent. An
answer consists of bytes and of parts of files (see `transport`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from skidway.broker.access.identity import NOBODY, Identity
from skidway.broker.access.logins import Login
from skidway.broker.log.files import DamagedLog
from skidway.broker.network.inbound import Inbound
from skidway.broker.network.transport import Transport
from skidway.kafka.acls.rules import View
from skidway.kafka.protocol.pieces import FileSlice, Piece

OUTBOX_BYTES_MAX = 1 << 20
"""While a connection has more than this many bytes of answers in memory, the loop reads nothing
from it. Parts of files are not included.
"""

_JOIN_MAX = 64


class Slot:
    """An entry in the connection's queue, for the answer to one request, or to several requests
    that are answered together.

    `pieces` is the answer: bytes, and parts of files; None until the answer is known.
    """

    __slots__ = ("pieces", "requests")

    def __init__(self) -> None:
        self.pieces: Sequence[Piece] | None = None
        self.requests = 1


class Connection:
    """One connection. Only the loop uses it, and calls its methods when its socket is ready."""

    __slots__ = (
        "_outbox",
        "_outbox_bytes",
        "_slots",
        "_unanswered",
        "_unanswered_max",
        "access",
        "address",
        "closed",
        "descriptor",
        "ends_with",
        "has_more",
        "identity",
        "inbound",
        "interest",
        "is_held_back",
        "last_active",
        "listener",
        "login",
        "memo",
        "peer",
        "readable",
        "sent_bytes",
        "transport",
    )

    def __init__(
        self,
        transport: Transport,
        peer: str,
        listener: str,
        identity: Identity = NOBODY,
        login: Login | None = None,
        *,
        request_bytes_max: int,
        requests_max: int,
    ) -> None:
        self.transport = transport
        self.identity = identity
        self.login = login
        """The logins on this connection; None on a listener without SASL."""
        self.access: View | None = None
        """What the client may do; None if that has to be looked up anew."""
        self.listener = listener
        """The name of the listener to which the client has connected."""
        self.descriptor = transport.fileno()
        self.peer = peer
        self.address = peer.rpartition(":")[0]
        self.inbound = Inbound(request_bytes_max)
        self.closed = False
        self.ends_with = ""
        """If it is not empty, the connection takes no more requests, and is closed with this reason
        as soon as the answers are sent."""
        self.has_more = False
        """Whether whole requests wait to be handled, because the connection was full (see
        `is_full`) or had used up its share of the turn."""
        self.readable = False
        """Whether the kernel may have bytes of this connection that the broker has not received
        yet."""
        self.is_held_back = False
        """Whether the connection waits until there is memory for its next request."""
        self.sent_bytes = 0
        self.interest = 0
        self.last_active = 0.0
        self.memo: object = None
        """Data that a handler keeps between two requests of this connection."""
        self._slots: deque[Slot] = deque()
        self._unanswered = 0
        self._unanswered_max = requests_max
        self._outbox: deque[Piece] = deque()
        self._outbox_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether the connection has reached its limit of unanswered requests or of answers in
        memory, so that no further request may be handled before answers are sent; or ends."""
        return (
            self._unanswered >= self._unanswered_max
            or self._outbox_bytes > OUTBOX_BYTES_MAX
            or self.ends_with != ""
        )

    @property
    def unsent_bytes(self) -> int:
        """The bytes of answers in memory."""
        return self._outbox_bytes + self.transport.sealed_bytes

    @property
    def has_output(self) -> bool:
        """Whether answers, or parts of answers, are ready to be sent."""
        return bool(self._outbox) or self.transport.has_sealed

    @property
    def is_busy(self) -> bool:
        """Whether the client waits for an answer, or an answer is being sent."""
        return bool(self._slots or self._outbox)

    def authenticated(self, identity: Identity) -> None:
        """Notes who the client is, by its login."""
        self.identity = identity
        self.forget_access()

    def forget_access(self) -> None:
        """Called when the client may do other things than before. Whatever handlers keep between
        requests may rest on what it could do before."""
        self.access = self.memo = None

    def reserve(self) -> Slot:
        """Adds to the queue a slot for the answer to the current request."""
        slot = Slot()
        self._slots.append(slot)
        self._unanswered += 1
        return slot

    def reserve_in(self, slot: Slot) -> None:
        """Adds the current request to an existing slot, which must still be the last slot in the
        queue."""
        slot.requests += 1
        self._unanswered += 1

    def fill(self, slot: Slot, pieces: Sequence[Piece]) -> bool:
        """Fills a slot with an answer. Returns whether answers can be sent now, that is, whether
        the first slot in the queue is filled. Does nothing after `close`.
        """
        if self.closed:
            return False
        slot.pieces = pieces
        for piece in pieces:
            if not isinstance(piece, FileSlice):
                self._outbox_bytes += len(piece)
        slots = self._slots
        if slots[0] is not slot:
            return False
        while slots and (ready := slots[0].pieces) is not None:
            self._unanswered -= slots.popleft().requests
            self._outbox.extend(ready)
        return True

    def send(self) -> bool:
        """Sends answers. Returns True if everything is sent, and False if the socket is full or if
        this call has sent more than the transport's `send_bytes_max`.

        Raises OSError if the client has disconnected, and StorageFailed or DamagedLog if a file
        cannot be read.
        """
        sent_bytes, transport = 0, self.transport
        while self._outbox:
            if sent_bytes > transport.send_bytes_max:
                return False
            try:
                piece = self._outbox[0]
                if isinstance(piece, FileSlice):
                    sent = self._send_file(piece)
                else:
                    sent = self._send_bytes()
            except BlockingIOError:
                return False
            sent_bytes += sent
            self.sent_bytes += sent
        return not transport.has_sealed or transport.flush()

    def close(self) -> None:
        """Closes the socket and drops all requests and answers. A second call does nothing."""
        if not self.closed:
            self.closed = True
            self._slots.clear()
            self._outbox.clear()
            self.inbound.forget()  # others may refer to this object for some more turns
            self.transport.close()

    def _send_file(self, piece: FileSlice) -> int:
        sent = self.transport.send_file(piece)
        if sent == piece.length:
            self._outbox.popleft()
        elif sent:
            self._outbox[0] = piece.behind(sent)
        else:
            words = "the file ends here, but was longer before"
            raise DamagedLog(piece.file.path, piece.position, words)
        return sent

    def _send_bytes(self) -> int:
        outbox = self._outbox
        buffers: list[bytes | bytearray | memoryview] = []
        more = False
        for piece in outbox:
            if isinstance(piece, FileSlice):
                more = True
                break
            if len(buffers) == _JOIN_MAX:
                break
            buffers.append(piece)
        sent = self.transport.send(buffers, more)
        self._outbox_bytes -= sent
        left = sent
        while left:
            first = buffers.pop(0)
            if left < len(first):
                outbox[0] = memoryview(first)[left:]
                break
            outbox.popleft()
            left -= len(first)
        return sent
