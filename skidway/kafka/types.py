"""The type by which many modules name a partition, and the security protocols."""

from __future__ import annotations

from typing import Final, NamedTuple

PLAINTEXT: Final = "PLAINTEXT"
SSL: Final = "SSL"
SASL_PLAINTEXT: Final = "SASL_PLAINTEXT"
SASL_SSL: Final = "SASL_SSL"
"""Kafka's security protocols: with TLS (SSL) or without, with a login (SASL) or without."""


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
