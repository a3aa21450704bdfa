"""The settings with which a program reaches a Kafka cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skidway.errors import ConfigurationRefused, UsageError
from skidway.kafka.connection import KafkaConnection
from skidway.settings import setting


@dataclass(frozen=True, kw_only=True)
class KafkaSettings:
    """The settings of every program that is a client of a cluster. (Without slots, so that a class
    of settings can also inherit from another one.)"""

    CLIENT_ID: ClassVar[str] = "skidway"

    bootstrap_servers: str = setting(
        "bootstrap.servers",
        help="Brokers to begin with: host:port, comma-separated.",
        example="127.0.0.1:9092",
    )

    @property
    def kafka(self) -> KafkaConnection:
        """The connection to these brokers. Raises ConfigurationRefused if an address is
        malformed."""
        connection = KafkaConnection(self.bootstrap_servers, self.CLIENT_ID)
        try:
            _ = connection.addresses
        except UsageError as error:
            raise ConfigurationRefused(str(error)) from error
        return connection
