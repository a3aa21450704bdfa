"""Measures one librdkafka producer and one consumer, as in the paper's experiment.

The producer does not wait for answers (acks 0) and sends batches of 1 or 50. The consumer
prefetches about 1,000 messages (200 KB) at a time, as all systems in the paper do.
"""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition

from bench import librdkafka
from bench.machine import warm_memory
from bench.paper.series import Series, Stopwatch
from bench.produce import MESSAGE, arrived, settings

ASKED_EVERY_S = 0.1
PREFETCH_BYTES = 200_000
CHUNK = 1_000


def produce(address: str, topic: str, batch: int, count: int, seconds_max: float) -> Series:
    """Sends `count` messages of 200 bytes, but sends no more of them after `seconds_max` seconds.

    Raises:
        RuntimeError: Not all messages arrived.
    """
    with librdkafka.Producer(settings(address, batch, acks=0), topic) as producer:
        producer.send(MESSAGE, 1)
        producer.flush(30)
        warm_memory(2 * count * len(MESSAGE))
        watch, given = Stopwatch(seconds_max), 0
        while given < count and not watch.is_over:
            chunk = min(librdkafka.CHUNK, count - given)
            producer.send(MESSAGE, chunk)
            given += chunk
            watch.tell(given - producer.left)
        while left := producer.flush(ASKED_EVERY_S):
            watch.tell(given - left)
        series = watch.finish(given)
    arrived(address, topic, given + 1)
    return series


def consume(address: str, topic: str, count: int, seconds_max: float) -> Series:
    """Reads `count` messages from the beginning, but ends early after `seconds_max` seconds."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "paper",
            "enable.auto.commit": False,
            "max.partition.fetch.bytes": PREFETCH_BYTES,
            "queued.min.messages": 100_000,
            "fetch.queue.backoff.ms": 1,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    taken = len(consumer.consume(1, 30))
    watch = Stopwatch(seconds_max)
    while taken < count and not watch.is_over:
        taken += len(consumer.consume(CHUNK, 1))
        watch.tell(taken)
    series = watch.finish(taken)
    consumer.close()
    return series
