"""A request, and the methods with which a handler answers it: now, later, or never."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, TypeVar

from skidway import log
from skidway.broker.network.connection import Connection, Slot
from skidway.broker.network.loop import Loop
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.frames import response_head
from skidway.kafka.protocol.messages import Request, Response, decode, encode
from skidway.kafka.protocol.pieces import Piece

SHARED_BYTES_MIN: Final = 4096
"""A body of at least this many bytes is not copied into one buffer with the answer's header: it is
sent from a buffer of its own.
"""

_NOTHING: Final = memoryview(b"")
R = TypeVar("R", bound=Request)
_log = log.get(__name__)


class Exchange:
    """One request, and the methods to answer it. `body` and `frame` (header and body, for handlers
    that need both) are valid only until the handler returns. The other attributes stay valid."""

    __slots__ = (
        "_loop",
        "_slot",
        "body",
        "connection",
        "correlation_id",
        "frame",
        "key",
        "version",
    )

    def __init__(
        self,
        loop: Loop,
        connection: Connection,
        key: ApiKey,
        version: int,
        correlation_id: int,
        body: memoryview,
        frame: memoryview | None = None,
    ) -> None:
        # The fields of the request's header are separate parameters, and not one object, because
        # creating a further object for each request would cost time.
        self._loop = loop
        self.connection = connection
        self.key = key
        self.version = version
        self.correlation_id = correlation_id
        self.body = body
        self.frame = frame
        self._slot: Slot | None = connection.reserve()

    def forget_request(self) -> None:
        """Drops the references to the request's bytes, so that their memory can be freed. A request
        may have 100 MB, and may wait for its answer for minutes.
        """
        self.body = _NOTHING
        self.frame = None

    def decode(self, kind: type[R]) -> R:
        """Decodes the request as a message of type `kind`. Raises ProtocolError."""
        return decode(kind, self.body, self.version, may_have_more=True)

    def reply(self, response: Response) -> bytes | None:
        """Answers with a message in the request's version. Returns the message's encoded body.

        If the message cannot be encoded in that version, closes the connection and returns None.
        The error is not raised as an exception, because timers also send answers, and an exception
        in a timer would not close the connection.
        """
        try:
            body = encode(response, self.version)
        except (ValueError, TypeError, struct.error) as error:
            address, api = self.connection.address, self.key.name
            _log.error("answer_failed", exc=error, address=address, api=api)
            self.close("failed")
            return None
        self.reply_body(body)
        return body

    def reply_body(self, body: bytes) -> None:
        """Answers with an encoded body. Does not copy a long body, so all clients that get the same
        body share its memory.
        """
        head = response_head(self.key, self.version, self.correlation_id, len(body))
        self.send([head + body] if len(body) < SHARED_BYTES_MIN else [head, body])

    def send(self, pieces: Sequence[Piece]) -> None:
        """Answers with a whole frame (length, header and body), which is given in pieces. If the
        client has disconnected, nothing happens."""
        slot, self._slot = self._slot, None
        assert slot is not None, "a request is answered once"
        self._loop.fill(self.connection, slot, pieces)

    def stay_silent(self) -> None:
        """Sends no answer. Called if the client wants none (Produce with acks=0)."""
        self.send(())

    def close(self, reason: str) -> None:
        """Closes the connection instead of answering."""
        self._loop.drop(self.connection, reason)
