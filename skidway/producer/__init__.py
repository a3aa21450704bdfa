"""The producer for applications: messages in, record batches out, a future for each send.
`from skidway.producer import Producer` is all they need (docs/client.md).

Reading order:

    settings        Kafka's names
    sending         the result of a send: its future, filled batch by batch
    accumulator     messages into batches, by size and by time: pure
    partitioner     which partition: by key, by an own function, or sticky at random
    directory       topics as the producer knows them
    buffer          messages accepted and not yet delivered: bounded, in batches
    sender          the thread that owns the connections
    producer        the public face

The core producer (`skidway.kafka.client`) sends whole batches and keeps their order; this one
gathers messages into batches for it. Any thread may send: one lock orders them, and one thread of
our own has the sockets. Batches of a partition go out in the order in which they were begun.

Bounds: bytes of messages accepted and not yet delivered (`buffer.memory`; above it `send` waits,
and raises BufferFull after `max.block.ms`), batches in flight, bytes of a batch. A batch that the
broker finds too large is halved and sent again, down to a single message; only that message's
future has the error. Retriable errors are retried for ever, because a batch that expired could
leave a hole behind it; `flush` and `close` report what is not delivered within their timeout.
"""

from __future__ import annotations

from skidway.kafka.client.delivery import BufferFull
from skidway.producer.producer import Producer
from skidway.producer.sending import RecordMetadata
from skidway.producer.settings import ProducerSettings

__all__ = ["BufferFull", "Producer", "ProducerSettings", "RecordMetadata"]
