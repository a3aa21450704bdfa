"""Calls librdkafka's producer from Python, with many messages in one call.

The package confluent-kafka needs one call from Python for each message. If messages are sent in
batches of 50, this call costs more CPU than the broker's work for the message, so a benchmark would
measure Python, and not the broker. librdkafka's own function `rd_kafka_produce_batch` takes an
array of messages. Apart from this call, this producer is the same as a producer of confluent-kafka:
it has the same library, protocol, batches and threads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import confluent_kafka

_TYPE_PRODUCER: Final = 0
_PARTITION: Final = 0
CHUNK: Final = 10_000
"""One call passes at most this many messages to librdkafka."""


class _Message(ctypes.Structure):
    """The C struct `rd_kafka_message_t`."""

    _fields_ = (
        ("err", ctypes.c_int),
        ("topic", ctypes.c_void_p),
        ("partition", ctypes.c_int32),
        ("payload", ctypes.c_void_p),
        ("len", ctypes.c_size_t),
        ("key", ctypes.c_void_p),
        ("key_len", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("private", ctypes.c_void_p),
    )


def _library() -> ctypes.CDLL:
    """The shared library that the package confluent-kafka contains."""
    folder = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    library = ctypes.CDLL(str(next(folder.glob("librdkafka-*.so*"))))
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    for name, result, arguments in (
        ("conf_new", pointer, ()),
        ("conf_set", ctypes.c_int, (pointer, text, text, text, size)),
        ("new", pointer, (ctypes.c_int, pointer, text, size)),
        ("topic_new", pointer, (pointer, text, pointer)),
        ("topic_destroy", None, (pointer,)),
        (
            "produce_batch",
            ctypes.c_int,
            (pointer, ctypes.c_int32, ctypes.c_int, ctypes.POINTER(_Message), ctypes.c_int),
        ),
        ("poll", ctypes.c_int, (pointer, ctypes.c_int)),
        ("flush", ctypes.c_int, (pointer, ctypes.c_int)),
        ("outq_len", ctypes.c_int, (pointer,)),
        ("destroy", None, (pointer,)),
    ):
        function = getattr(library, f"rd_kafka_{name}")
        function.restype, function.argtypes = result, arguments
    return library


class Producer:
    """One librdkafka producer for partition 0 of one topic.

    The producer requests no delivery reports, so the caller must check the topic's end offset
    afterwards.

    Raises:
        ValueError: librdkafka refuses a setting.
    """

    def __init__(self, settings: Mapping[str, str | int], topic: str) -> None:
        self._library = _library()
        why = ctypes.create_string_buffer(512)
        conf = self._library.rd_kafka_conf_new()
        for key, value in settings.items():
            if self._library.rd_kafka_conf_set(
                conf, key.encode(), str(value).encode(), why, len(why)
            ):
                raise ValueError(why.value.decode())
        self._producer = self._library.rd_kafka_new(_TYPE_PRODUCER, conf, why, len(why))
        if not self._producer:
            raise ValueError(why.value.decode())
        self._topic = self._library.rd_kafka_topic_new(self._producer, topic.encode(), None)
        self._chunks: dict[bytes, tuple[ctypes.Array[_Message], ctypes.Array[ctypes.c_char]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._library.rd_kafka_topic_destroy(self._topic)
        self._library.rd_kafka_destroy(self._producer)

    def send(self, payload: bytes, count: int) -> None:
        """Sends `count` messages with the same content. Waits while librdkafka's queue is full."""
        chunk = self._chunk(payload)
        while count:
            taken = self._library.rd_kafka_produce_batch(
                self._topic, _PARTITION, 0, chunk, min(count, CHUNK)
            )
            count -= taken
            if taken < CHUNK:
                self._library.rd_kafka_poll(self._producer, 1)

    def flush(self, within_s: float) -> int:
        """Waits until all messages are sent and (unless acks is 0) acknowledged, or until
        `within_s` seconds have passed. Returns the number of messages that are left."""
        self._library.rd_kafka_flush(self._producer, int(within_s * 1000))
        return self.left

    @property
    def left(self) -> int:
        """The number of messages that librdkafka has accepted, but not sent yet. Unless acks is 0,
        messages that are not acknowledged yet count, too."""
        return int(self._library.rd_kafka_outq_len(self._producer))

    def _chunk(self, payload: bytes) -> ctypes.Array[_Message]:
        """An array of CHUNK messages with this content. librdkafka reads the array until the
        messages are sent, so `_chunks` keeps a reference to the array."""
        if payload not in self._chunks:
            kept = ctypes.create_string_buffer(payload, len(payload))
            chunk = (_Message * CHUNK)()
            for message in chunk:
                message.payload, message.len = ctypes.addressof(kept), len(payload)
            self._chunks[payload] = (chunk, kept)
        return self._chunks[payload][0]
