"""How a program reaches a Kafka cluster. All clients of the product are made here, so whatever a
connection needs is added in this module and in `skidway.kafka.settings`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

from skidway.dataclass import dataclass
from skidway.kafka.client.client import Client
from skidway.kafka.client.cluster import Address, parse_bootstrap
from skidway.kafka.client.following import LoopClient
from skidway.kafka.protocol.fetch import READ_COMMITTED
from skidway.kafka.security import NO_SECURITY, KafkaSecurity

if TYPE_CHECKING:
    from skidway.clock import Clock
    from skidway.kafka.client.network import Resolve, Watcher


@dataclass(frozen=True, slots=True)
class KafkaConnection:
    """How a program reaches the brokers of one cluster.

    bootstrap_servers: host:port[,host:port...]. client_id: the name by which brokers know the
    program. request_timeout_ms, refused_timeout_ms: see `Client`.
    """

    bootstrap_servers: str
    client_id: str = "skidway"
    request_timeout_ms: int = 30_000
    refused_timeout_ms: int | None = None
    security: KafkaSecurity = NO_SECURITY

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The addresses of `bootstrap_servers`. Raises UsageError for a malformed text."""
        return parse_bootstrap(self.bootstrap_servers)

    def within(self, request_timeout_ms: int) -> Self:
        """Returns the same connection with another request timeout."""
        return replace(self, request_timeout_ms=request_timeout_ms)

    def named(self, client_id: str) -> Self:
        """Returns the same connection with another client id."""
        return replace(self, client_id=client_id)

    def client(
        self, *, isolation_level: int = READ_COMMITTED, clock: Clock | None = None
    ) -> Client:
        """Returns a client that waits on its caller's thread. Raises UsageError for a malformed
        address, and ConfigurationRefused if the files of `security` cannot be used."""
        return Client(
            self.bootstrap_servers,
            client_id=self.client_id,
            request_timeout_ms=self.request_timeout_ms,
            refused_timeout_ms=self.refused_timeout_ms,
            isolation_level=isolation_level,
            clock=clock,
            security=self.security,
        )

    def loop_client(self, watcher: Watcher, *, clock: Clock, look_up: Resolve) -> LoopClient:
        """Returns a client that runs in its caller's loop. Raises the errors of `client`."""
        return LoopClient(
            self.bootstrap_servers,
            watcher,
            client_id=self.client_id,
            request_timeout_ms=self.request_timeout_ms,
            clock=clock,
            look_up=look_up,
            security=self.security,
        )
