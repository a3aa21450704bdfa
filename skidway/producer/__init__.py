"""The producer for applications: messages in, record batches out, a future for each send.
`from skidway.producer import Producer` is all they need (docs/client.md).

Reading order:

    settings        Kafka's names
    sending         what became of a send: its future, filled batch by batch
    accumulator     messages into batches, by size and by time: pure
    partitioner     which partition: by key, by an own function, or sticky at random
    directory       topics as the producer knows them
    buffer          what was taken and is not delivered: bounded, in batches
    sender          the thread that owns the connections
    producer        the public face

The core producer (`skidway.kafka.client`) sends whole batches and keeps their order; here messages
are gathered for it. Any thread may send: one lock orders them, and one thread of our own has the
sockets. Batches of a partition go out in the order in which they were begun.

Bounds: bytes of messages that were taken and not delivered (`buffer.memory`; above it `send` waits,
and raises BufferFull after `max.block.ms`), batches in flight, bytes of a batch. A batch that the
broker finds too large is halved and sent again, down to a single message; only that one's future
has the error. What is retriable is tried again for ever (a batch that expired could leave a hole
behind it); `flush` and `close` say what is not delivered after their time.
"""

from __future__ import annotations

from skidway.kafka.client.delivery import BufferFull
from skidway.producer.producer import Producer
from skidway.producer.sending import RecordMetadata
from skidway.producer.settings import ProducerSettings

__all__ = ["BufferFull", "Producer", "ProducerSettings", "RecordMetadata"]
