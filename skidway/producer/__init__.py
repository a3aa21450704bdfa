"""The producer for applications. It accepts messages, sends them in record batches, and returns a
future for each send. `from skidway.producer import Producer` is all that an application needs
(docs/client.md).

Reading order:

    settings        the producer's settings, with Kafka's names
    sending         the result of a send: its future, which is done when all its batches are
                    delivered or refused
    accumulator     gathers messages into batches, by size and by time; does no I/O
    partitioner     chooses the partition: by key, by the caller's function, or at random, with the
                    same partition until a new batch begins ("sticky")
    directory       what the producer knows of topics
    buffer          accepted messages that are not delivered yet, in batches; limited in size
    sender          the thread that owns the connections
    producer        the public interface

The producer of the client package (`skidway.kafka.client`) sends whole batches and keeps their
order. This package gathers messages into batches, and sends them with that producer. Any thread may
call `send`, because a lock protects the buffer. A separate thread, the sender, owns the sockets.
Batches of a partition are sent in the order in which they got their first messages.

There are limits for the bytes of accepted messages that are not delivered, for the batches in
flight, and for the bytes of a batch. When the accepted messages have `buffer.memory` bytes, `send`
waits, and raises BufferFull after `max.block.ms`. All partitions share this limit, as in Kafka's
producer: a partition that cannot be delivered can fill the buffer for all others. If the broker
finds a batch too large, the batch is halved, and the halves are sent. If even a batch of a single
message is too large, only the future of this message's send gets the error. A batch with a
retriable error is sent again, without limit: if a batch were given up, later batches of its
partition could be stored without it. `flush` and `close` raise an error if messages are not
delivered within the timeout of the call.
"""

from __future__ import annotations

from skidway.kafka.client.delivery import BufferFull
from skidway.producer.producer import Producer
from skidway.producer.sending import RecordMetadata
from skidway.producer.settings import ProducerSettings

__all__ = ["BufferFull", "Producer", "ProducerSettings", "RecordMetadata"]
