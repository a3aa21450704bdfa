"""Defines what the file of an API registers: the API's key and a handler. The module
`skidway.kafka.protocol.apis` lists the versions of the APIs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from skidway.broker.api.exchange import Exchange
from skidway.broker.broker import Broker
from skidway.kafka.protocol.apis import ApiKey, VersionRange

Handler = Callable[[Broker, Exchange], None]


@dataclass(frozen=True, slots=True)
class Api:
    """One Kafka API that this broker serves."""

    key: ApiKey
    handle: Handler

    @property
    def versions(self) -> VersionRange:
        """The versions that the handler accepts."""
        return self.key.broker
