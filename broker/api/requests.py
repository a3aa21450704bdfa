"""Passes each request of every connection to the handler of the request's API."""

from __future__ import annotations

from typing import Final, Protocol

from skidway.broker.api import registry
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.produce_run import handle_alike
from skidway.broker.broker import Broker
from skidway.broker.log.files import DamagedLog, StorageFailed
from skidway.broker.network.connection import Connection
from skidway.clock import Clock
from skidway.kafka.errors import NotAuthenticated, NotOffered, ProtocolError
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.frames import read_request_header

REQUEST_COST: Final = 20
"""The least cost of a request, in microseconds. It is roughly the time that a request takes outside
of its handler: for receiving the request, writing its batches, and sending the answer."""
ALIKE_COST: Final = REQUEST_COST + 5
"""The time, in microseconds, that a Produce request costs if it differs from an earlier request
only in its correlation id and records, so that `handle_alike` handles it on a shorter path. This
value is an estimate, and not measured for each request, because all such requests cost about the
same and reading the clock takes time.
"""


class Copying(Protocol):
    """The part of `broker.mirror.mirrors.Mirrors` that takes part in the end of a turn."""

    def turn(self) -> None:
        """Appends the batches that have arrived from other clusters. Called before the write."""
        ...

    def written(self) -> None:
        """Checks whether these batches were written. Called after the write."""
        ...


class Requests:
    """Handles the requests that the loop receives; implements the protocol class `Service` of
    network/loop."""

    def __init__(self, broker: Broker, clock: Clock, mirrors: Copying | None = None) -> None:
        self._broker = broker
        self._clock = clock
        self._mirrors = mirrors
        broker.api_ranges = registry.ranges()

    def handle(self, connection: Connection, frame: memoryview) -> int:
        """Handles one request. Returns its cost (see `Service`). If the broker does not offer the
        request's API or version, closes the connection. Raises ProtocolError if the request is not
        valid; the caller then closes the connection."""
        self._broker.read_clock()
        if handle_alike(self._broker, connection, frame):
            return ALIKE_COST
        began = self._clock.monotonic()
        try:
            self._handle(connection, frame)
        except NotOffered as error:
            self._broker.refusals.note(connection.peer, error.client_id, error.api, error.version)
            self._broker.loop.drop(connection, type(error).__name__)
        return max(round((self._clock.monotonic() - began) * 1_000_000), REQUEST_COST)

    def end_turn(self) -> None:
        """Writes the batches that were appended in this turn, then answers their requests."""
        if self._mirrors is not None:
            self._mirrors.turn()
        self._broker.partitions.write()
        if self._mirrors is not None:
            self._mirrors.written()
        self._broker.answer_appended()

    def unreadable(self, error: StorageFailed | DamagedLog) -> None:
        """Called when a log's file cannot be read."""
        self._broker.unreadable(error)

    def _handle(self, connection: Connection, frame: memoryview) -> None:
        header, body = read_request_header(frame)
        api = registry.SERVED[header.api_key]
        if header.api_version not in api.versions and header.api_key is not ApiKey.API_VERSIONS:
            raise NotOffered(header.api_key.name, header.api_version, header.client_id)
        login, now = connection.login, self._broker.loop.now
        if login is not None and not login.admits(header.api_key, now):
            raise NotAuthenticated(f"{header.api_key.name} without a login that is complete")
        exchange = Exchange(
            self._broker.loop,
            self._broker.access.authorizer,
            connection,
            header.api_key,
            header.api_version,
            header.correlation_id,
            body,
            frame,
        )
        try:
            api.handle(self._broker, exchange)
        except ProtocolError as error:
            what = f"{header.api_key.name} version {header.api_version}"
            raise type(error)(f"{what}: {error}, from {header.client_id!r}") from error
        exchange.forget_request()
