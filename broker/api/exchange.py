"""A request, and the methods with which a handler answers it: now, later, or never."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, TypeVar

from skidway import log
from skidway.broker.access.authorizer import Authorizer
from skidway.broker.api.required import ALWAYS_ENFORCED, REQUIRED
from skidway.broker.network.connection import Connection, Slot
from skidway.broker.network.loop import Loop
from skidway.kafka.acls.acl import CLUSTER_NAME, Operation, ResourceType
from skidway.kafka.acls.rules import View
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
        "_authorizer",
        "_loop",
        "_slot",
        "body",
        "connection",
        "correlation_id",
        "frame",
        "is_denied",
        "key",
        "version",
    )

    def __init__(
        self,
        loop: Loop,
        authorizer: Authorizer,
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
        self._authorizer = authorizer
        self.connection = connection
        self.key = key
        self.version = version
        self.correlation_id = correlation_id
        self.body = body
        self.frame = frame
        self.is_denied = False
        """Whether the rules do not allow something that the request wants, enforced or not."""
        self._slot: Slot | None = connection.reserve()

    @property
    def access(self) -> View:
        """What the client may do now."""
        connection = self.connection
        view = connection.access
        if view is None:
            view = self._authorizer.view(connection.identity.principal, connection.address)
            connection.access = view
        return view

    def may(self, kind: ResourceType, name: str, operation: Operation | None = None) -> bool:
        """Returns whether the client may do what it asks for with a resource. operation: if it is
        not the one that the API needs (see `required`). The security log notes a denial."""
        wanted = operation or REQUIRED[self.key, kind]
        if self.access.may(wanted, kind, name):
            return True
        self.is_denied = True
        client, is_enforced = self.connection, self._enforces
        self._authorizer.log.denied(
            client.identity.principal, client.address, wanted, kind, name, is_enforced=is_enforced
        )
        return not is_enforced

    def may_topic(self, name: str, operation: Operation | None = None) -> bool:
        """`may`, with a topic."""
        return self.may(ResourceType.TOPIC, name, operation)

    def may_group(self, name: str) -> bool:
        """`may`, with a group."""
        return self.may(ResourceType.GROUP, name)

    def may_cluster(self) -> bool:
        """`may`, with the cluster."""
        return self.may(ResourceType.CLUSTER, CLUSTER_NAME)

    @property
    def cluster_operations(self) -> int:
        """What the client may do with the cluster, for answers (KIP-430): nothing, if it may not
        describe it."""
        kind, access = ResourceType.CLUSTER, self.access
        if access.may(Operation.DESCRIBE, kind, CLUSTER_NAME):
            return access.operations(kind, CLUSTER_NAME)
        return 0

    @property
    def is_without_authorizer(self) -> bool:
        """Whether everybody may do everything, and nobody can change that by a request."""
        return self._authorizer.mode == "off"

    def shows(self, kind: ResourceType, name: str, operation: Operation | None = None) -> bool:
        """Returns whether an answer has this for the client, who has not asked for it by its name:
        like `may`, but to leave something out is no denial."""
        wanted = operation or REQUIRED[self.key, kind]
        return self.access.may(wanted, kind, name) or not self._enforces

    @property
    def _enforces(self) -> bool:
        return self._authorizer.mode == "enforce" or self.key in ALWAYS_ENFORCED

    def changed(self, names: Sequence[str], *, is_sure: bool = True) -> None:
        """Notes in the security log that the client has changed something, perhaps if not sure."""
        principal, address = self.connection.identity.principal, self.connection.address
        self._authorizer.log.changed(principal, address, self.key.name, names, is_sure=is_sure)

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

    def end(self, reason: str) -> None:
        """Takes no more requests of the connection, and closes it when its answers are sent."""
        self._loop.end(self.connection, reason)

    def close(self, reason: str) -> None:
        """Closes the connection instead of answering."""
        self._loop.drop(self.connection, reason)
