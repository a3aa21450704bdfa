"""Settings of a producer, with Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict

from skidway.errors import UsageError
from skidway.kafka import codecs
from skidway.kafka.codecs import Codec

Acks = Literal["all", "1", "0", -1, 1, 0]
_ACKS = {"all": -1, "-1": -1, "1": 1, "0": 0}


class ProducerOptions(TypedDict, total=False):
    """The keyword arguments of a `Producer`: see `ProducerSettings`."""

    client_id: str
    acks: Acks
    enable_idempotence: bool
    compression_type: str
    batch_size: int
    linger_ms: int
    buffer_memory: int
    max_block_ms: int
    max_in_flight_requests_per_connection: int
    request_timeout_ms: int
    metadata_max_age_ms: int
    delivery_timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """The settings of a `Producer`, in addition to the brokers' addresses. Times are in ms, sizes
    in bytes.

    - `acks`: when a message counts as delivered. With "all", a message is delivered when it will
      survive any crash; with 1, when the leader has written it (a crash may still lose it); and
      with 0, when it was sent. With 0, neither order nor arrival is guaranteed, and
      `enable_idempotence` must be False.
    - `batch_size`: the largest size of a batch before compression. If a topic's max.message.bytes
      is smaller, that is the largest size. Only a batch of a single message may be larger.
    - `linger_ms`: how long a message waits for other messages that could fill its batch.
    - `buffer_memory`: how many bytes of undelivered messages the producer keeps. While there is no
      room for a further message, `send` waits, but at most `max_block_ms`.
    - `delivery_timeout_ms`: how long `flush` and `close` wait. Batches themselves never expire.
    """

    client_id: str = "skidway"
    acks: Acks = "all"
    enable_idempotence: bool = True
    compression_type: str = "zstd"
    batch_size: int = 900_000
    linger_ms: int = 5
    buffer_memory: int = 32 * 1024 * 1024
    max_block_ms: int = 60_000
    max_in_flight_requests_per_connection: int = 5
    request_timeout_ms: int = 30_000
    metadata_max_age_ms: int = 300_000
    delivery_timeout_ms: int = 120_000

    def __post_init__(self) -> None:
        """Raises UsageError if a setting is invalid, or contradicts another setting."""
        if str(self.acks) not in _ACKS:
            raise UsageError("acks must be 'all', 1 or 0")
        if self.compression_type not in codecs.BY_NAME:
            raise UsageError(f"compression_type must be one of {', '.join(codecs.BY_NAME)}")
        if self.enable_idempotence and self.acks_number == 0:
            raise UsageError("acks=0 needs enable_idempotence=False")
        if not 1 <= self.max_in_flight_requests_per_connection <= 5:
            raise UsageError("max_in_flight_requests_per_connection must be 1 to 5")
        least = {"batch_size": 1, "linger_ms": 0, "buffer_memory": 1, "max_block_ms": 0}
        for name, at_least in least.items():
            if getattr(self, name) < at_least:
                raise UsageError(f"{name} must be at least {at_least}")

    @property
    def acks_number(self) -> int:
        """`acks` as Kafka's number: -1, 1 or 0."""
        return _ACKS[str(self.acks)]

    @property
    def codec(self) -> Codec:
        """The codec of `compression_type`."""
        return codecs.BY_NAME[self.compression_type]
