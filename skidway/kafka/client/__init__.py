"""The client: producer, fetcher, metadata and administration, in whole batches.

    values      cluster, delivery                 what callers see
    decisions   outbox, dispatch, fetching        order, retries, positions: pure
                connection, session, metadata     conversations, links, leaders: pure
                calls, requests, group_offsets, backoff    requests as values
    I/O         network                           non-blocking sockets for any loop
    drivers     waiting, client, producer, fetcher    blocking, on the caller's thread
                pump                              the fetcher's requests and answers
                following                             inside another loop, such as a broker's

The decisions know no socket and no clock: bytes and times come in as values, requests, deliveries
and deadlines go out as values. There are no threads, no asyncio, no callbacks: answers are put into
inboxes, and the owner of the state takes them out. Neither NumPy nor Arrow is imported; records are
made and read by `skidway.kafka.columns`.

Its producer takes finished batches, for our own programs. Applications use `skidway.producer`,
which takes messages.

Bounds: bytes buffered by a producer, requests open per leader, bytes of a response, calls per
connection, topics known, waits between attempts. Retriable errors are retried, with waits from 50
ms to 1 s; producers never give up a batch, everything else gives up after the request timeout.
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
]
