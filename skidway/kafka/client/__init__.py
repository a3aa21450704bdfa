"""The client: producer, fetcher, metadata and administration. It handles records only as whole
batches.

    values      cluster, delivery                 the values that callers see
    decisions   outbox, dispatch, fetching        order, retries, positions
                connection, session, metadata     requests of a connection, all connections, leaders
                calls, requests, alterations, group_offsets    requests as values
                backoff                           waits between attempts
    I/O         network                           non-blocking sockets for any loop
    drivers     waiting, client, producer, fetcher    blocking, on the caller's thread
                topic_creation                creates missing topics; waits until they are usable
                pump                              the fetcher's requests and answers
                following                             inside another loop, such as the broker's loop

The modules that make decisions use no socket and no clock. Bytes and times are passed in as values,
and requests, deliveries and deadlines are returned as values. There are no threads, no asyncio and
no callbacks. The answers to a caller's requests are put into the caller's inbox, and the caller
takes them out. Neither NumPy nor Arrow is imported; `skidway.kafka.columns` makes and reads
records.

The producer in this package sends finished batches, for Skidway's own programs. Applications use
`skidway.producer`, which makes batches from single messages.

There are upper limits for the bytes that a producer buffers, the open requests to a leader, the
bytes of a response, the calls on a connection, the known topics, and the wait between two attempts.
Retriable errors are retried, after waits of 50 ms to 1 s. A producer retries a batch without limit.
Every other call gives up after the request timeout.
"""

from skidway.kafka.client.client import Client
from skidway.kafka.client.cluster import (
    EARLIEST,
    LATEST,
    Address,
    Broker,
    Cluster,
    ConfigChanges,
    ConfigEntry,
    ListedOffset,
    LogDir,
    NewTopic,
    Partition,
    TopicMetadata,
)
from skidway.kafka.client.delivery import BufferFull, Delivery, Drained
from skidway.kafka.client.fetcher import Fetcher
from skidway.kafka.client.fetching import Fetched
from skidway.kafka.client.producer import Producer
from skidway.kafka.client.topic_creation import ensure_topics

__all__ = [
    "EARLIEST",
    "LATEST",
    "Address",
    "Broker",
    "BufferFull",
    "Client",
    "Cluster",
    "ConfigChanges",
    "ConfigEntry",
    "Delivery",
    "Drained",
    "Fetched",
    "Fetcher",
    "ListedOffset",
    "LogDir",
    "NewTopic",
    "Partition",
    "Producer",
    "TopicMetadata",
    "ensure_topics",
]
