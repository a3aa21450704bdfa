"""What an API file registers: key and handler; the versions are those that `apis` lists."""

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
        """The versions that the handler takes: those for which there is a decoder and a test."""
        return self.key.broker
