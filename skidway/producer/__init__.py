"""The producer for applications: takes messages, sends record batches, returns a future per send.
`from skidway.producer import Producer` is all that an application needs (docs/client.md).

Reading order:

    settings        the producer's settings, with Kafka's names
    sending         the result of a send: its future, completed batch by batch
    accumulator     gathers messages into batches, by size and by time: pure
    partitioner     chooses the partition: by key, by the caller's function, or sticky at random
    directory       topics as the producer knows them
    buffer          accepted messages that are not delivered yet: bounded, in batches
    sender          the thread that owns the connections
    producer        the public interface

The producer of the client package (`skidway.kafka.client`) sends whole batches and keeps their
order; this package gathers messages into batches for that producer. Any thread may send: one lock
guards the buffer, and one thread of the producer owns the sockets. Batches of a partition are sent
in the order in which they were begun.

These are bounded: the bytes of accepted messages that are not delivered, the batches in flight, and
the bytes of a batch. When the accepted messages have `buffer.memory` bytes, `send` waits, and
raises BufferFull after `max.block.ms`. A batch that the broker finds too large is halved, and the
halves are sent; if a single message is still too large, only its future gets the error. Retriable
errors are retried without limit, because a batch that expires could leave a hole before later
batches. `flush` and `close` raise an error if sends are not delivered within the timeout of the
call.
"""

from __future__ import annotations

from skidway.kafka.client.delivery import BufferFull
from skidway.producer.producer import Producer
from skidway.producer.sending import RecordMetadata
from skidway.producer.settings import ProducerSettings

__all__ = ["BufferFull", "Producer", "ProducerSettings", "RecordMetadata"]
