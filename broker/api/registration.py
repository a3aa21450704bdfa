"""What an API file registers: a key and a handler. The module `apis` of kafka/protocol lists the
versions.
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
    """One API that this broker serves."""

    key: ApiKey
    handle: Handler

    @property
    def versions(self) -> VersionRange:
        """The versions that the handler takes; each has a decoder and a test."""
        return self.key.broker
