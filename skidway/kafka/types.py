"""The type by which many modules name a partition, and the security protocols."""

from __future__ import annotations

from typing import Final, NamedTuple

PLAINTEXT: Final = "PLAINTEXT"
"""The security protocol of a listener without TLS and without SASL."""


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
