"""The client: producer, fetcher, metadata and administration. It handles records only as whole
batches.

Values that callers get:

    cluster, delivery           what is known about a cluster; the outcome of a sent batch

Decisions:

    outbox, dispatch            which batches a producer sends (or sends again) to which leader
    fetching                    which partitions a fetcher reads, and from which offsets
    transactions                which records readers of committed records do not get
    metadata                    which broker leads which partition
    illegal_names               drops topics and brokers with illegal names from answers
    connection, session         one connection; all connections of a client
    authentication              the login on a connection
    calls, requests, alterations, group_offsets    build requests, and read the responses
    backoff                     the waits between two attempts

I/O, and what drives it:

    network                     non-blocking sockets for any loop
    refused_connections         counts the connections that a broker has not let in
    waiting, client, producer, fetcher    wait on the caller's thread
    topic_creation              creates missing topics, and waits until brokers know new topics
    acls, scram_credentials     ask for, add and delete rules of access control, and passwords
    log_ends                    asks where logs end, above the high watermarks too
    following                   a client inside its caller's loop, such as the broker's loop
    pump                        passes fetches to the session, for `fetcher` and `following`

The modules that make decisions use no socket and no clock. Bytes and times are passed in as values,
and requests, deliveries and deadlines are returned as values. There are no threads, no asyncio and
no callbacks. The answers to a caller's requests are put into the caller's inbox, and the caller
takes them out. Neither NumPy nor Arrow is imported; `skidway.kafka.columns` makes and reads
records.

The producer in this package sends finished batches, for Skidway's own programs. Applications use
`skidway.producer`, which makes batches from single messages.

There are upper limits for the bytes that a producer buffers, the open requests to a leader, the
bytes of a response, the open calls on a connection, the known topics, and the wait between two
attempts. Producers and fetchers retry without limit after an error that may go away, with waits of
about 50 ms to 1 s. A method of `Client` gives up if a request has no answer within the request
timeout.
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
from skidway.kafka.client.topic_creation import ensure_topics, wait_until_known
from skidway.kafka.protocol.fetch import READ_UNCOMMITTED

__all__ = [
    "EARLIEST",
    "LATEST",
    "READ_UNCOMMITTED",
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
    "wait_until_known",
]
