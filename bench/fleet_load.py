"""The load of a fleet: one process with thousands of connections, each of which sends few records.

    python -m bench.fleet_load load ADDRESS TOPIC CONNECTIONS REQUESTS_PER_S SECONDS
    python -m bench.fleet_load storm ADDRESS TOPIC CONNECTIONS

`load` is an open loop: each request is sent at a planned time, even if earlier requests were not
answered yet. A request's latency counts from its planned time. So even a broker that stalls gets
all requests, and the waiting time counts (this avoids "coordinated omission"). In `storm` all
clients connect at once. Each client tries to connect until the broker listens, then asks for
versions and metadata, and produces one record. Each command prints one JSON object.
"""

from __future__ import annotations

import json
import random
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from skidway.kafka.batch import seal
from skidway.kafka.columns import encode as encode_records
from skidway.kafka.protocol.api_versions import ApiVersionsRequest
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.frames import request_frame
from skidway.kafka.protocol.messages import Request, encode
from skidway.kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic
from skidway.kafka.protocol.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

PARTITIONS = 200
RECORDS_MAX = 20
RECORD_BYTES = 200
PRODUCE_VERSION = 7
ATTEMPT_S = 0.1
PATIENCE_S = 120.0


@dataclass(slots=True)
class Link:
    """One client's connection, and the times at which its unanswered requests were due."""

    socket: socket.socket
    due: deque[float] = field(default_factory=deque)
    unsent: bytearray = field(default_factory=bytearray)
    received: bytearray = field(default_factory=bytearray)
    steps: int = 0


def framed(key: ApiKey, version: int, request: Request) -> bytes:
    return request_frame(key, version, 1, "fleet", encode(request, version))


def produce_frame(topic: str, partition: int, records: int) -> bytes:
    """A Produce request with acks 1 and `records` records of 200 bytes."""
    now = np.full(records, int(time.time() * 1000), np.int64)
    values = pa.array([b"x" * RECORD_BYTES] * records, pa.binary())
    batch = bytes(seal(encode_records(values, now)))
    data = PartitionProduceData(index=partition, records=batch)
    topics = (TopicProduceData(name=topic, partition_data=(data,)),)
    request = ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics)
    return framed(ApiKey.PRODUCE, PRODUCE_VERSION, request)


def error_position(topic: str) -> int:
    """The position of the error code in the answer to a request of `produce_frame`, counted from
    the start of the answer's length field. The request has only one partition."""
    return 4 + 4 + 4 + 2 + len(topic) + 4 + 4


def send(link: Link, data: bytes) -> None:
    """Sends as much of the data as the socket accepts now. The link keeps the rest until the socket
    is writable again."""
    if link.unsent:
        link.unsent += data
        return
    try:
        sent = link.socket.send(data)
    except BlockingIOError:
        sent = 0
    if sent < len(data):
        link.unsent += data[sent:]


def answers(link: Link) -> list[bytes]:
    """Reads from the connection, and returns the answers that have arrived completely."""
    data = link.socket.recv(1 << 16)
    if not data:
        raise ConnectionResetError("the broker closed the connection")
    link.received += data
    found, at = [], 0
    while len(link.received) >= at + 4:
        end = at + 4 + int.from_bytes(link.received[at : at + 4], "big")
        if len(link.received) < end:
            break
        found.append(bytes(link.received[at:end]))
        at = end
    del link.received[:at]
    return found


class OpenLoop:
    """Sends requests at their planned times over all connections. It does not wait for the broker's
    answers."""

    def __init__(self, address: tuple[str, int], topic: str, connections: int) -> None:
        dice = random.Random(1)
        self._frames = [
            produce_frame(topic, partition, dice.randint(1, RECORDS_MAX))
            for partition in range(PARTITIONS)
            for _ in range(5)
        ]
        self._error_at = error_position(topic)
        self._poll = select.epoll()
        self._links: dict[int, Link] = {}
        for _ in range(connections):
            made = socket.create_connection(address, 30)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.setblocking(False)
            self._links[made.fileno()] = Link(made)
            self._poll.register(made, select.EPOLLIN)
        self._order = list(self._links.values())
        dice.shuffle(self._order)
        self._latencies: list[float] = []
        self._sent = self._failed = 0
        self._begin = 0.0

    def run(self, rate: float, seconds: float) -> dict[str, float]:
        """The quantiles of the latencies in milliseconds, and the number of answered requests per
        second."""
        total = int(rate * seconds)
        self._begin = time.perf_counter()
        while len(self._latencies) < total:
            now = self._now()
            if now > seconds + PATIENCE_S:
                missing = total - len(self._latencies)
                raise RuntimeError(f"{missing} of {total} requests have no answer")
            while self._sent < total and self._sent / rate <= now:
                self._send(self._sent / rate)
            self._serve(max(self._sent / rate - now, 0) if self._sent < total else 0.1)
        took = self._now()
        if self._failed:
            raise RuntimeError(f"{self._failed} requests were refused")
        return {"requests_per_s": total / took, **quantiles(self._latencies)}

    def _now(self) -> float:
        return time.perf_counter() - self._begin

    def _send(self, due: float) -> None:
        link = self._order[self._sent % len(self._order)]
        link.due.append(due)
        send(link, self._frames[self._sent % len(self._frames)])
        self._sent += 1
        if link.unsent:
            self._poll.modify(link.socket, select.EPOLLIN | select.EPOLLOUT)

    def _serve(self, wait_s: float) -> None:
        for fd, event in self._poll.poll(wait_s, 1000):
            link = self._links[fd]
            if event & select.EPOLLOUT:
                del link.unsent[: link.socket.send(link.unsent)]
                if not link.unsent:
                    self._poll.modify(link.socket, select.EPOLLIN)
            if event & ~select.EPOLLOUT:
                for answer in answers(link):
                    self._failed += answer[self._error_at : self._error_at + 2] != b"\0\0"
                    self._latencies.append(self._now() - link.due.popleft())


class Storm:
    """Clients that all connect at once. Each of them sends one record, and ends when the record is
    acknowledged."""

    def __init__(self, address: tuple[str, int], topic: str, connections: int) -> None:
        self._address = address
        self._count = connections
        metadata = MetadataRequest(topics=(MetadataRequestTopic(name=topic),))
        self._script: list[Callable[[int], bytes]] = [
            lambda _: framed(ApiKey.API_VERSIONS, 2, ApiVersionsRequest()),
            lambda _: framed(ApiKey.METADATA, 5, metadata),
            lambda number: produce_frame(topic, number % PARTITIONS, 1),
        ]
        self._poll = select.epoll()
        self._links: dict[int, Link] = {}
        self._numbers: dict[int, int] = {}
        self._waiting = deque((0.0, number) for number in range(connections))
        self._served: list[float] = []
        self._first: float | None = None
        self._dice = random.Random(2)
        self._begin = time.perf_counter()

    def run(self) -> dict[str, float]:
        """Returns quantiles, in ms, of the times after which the clients' records were
        acknowledged. All times count from the moment at which the first client was connected. If a
        client's record is not acknowledged within PATIENCE_S, its time counts as PATIENCE_S;
        `missing` is the number of such clients."""
        while len(self._served) < self._count and self._now() < PATIENCE_S:
            self._dial()
            for fd, event in self._poll.poll(0.02, 1000):
                try:
                    self._serve(fd, event)
                except OSError:
                    self._lost(fd)
        if self._first is None:
            raise RuntimeError("nobody got a connection")
        missing = self._count - len(self._served)
        waited = [at - self._first for at in self._served] + [PATIENCE_S] * missing
        return {"missing": missing, **quantiles(waited)}

    def _now(self) -> float:
        return time.perf_counter() - self._begin

    def _dial(self) -> None:
        now = self._now()
        for _ in range(len(self._waiting)):
            at, number = self._waiting.popleft()
            if at > now:
                self._waiting.append((at, number))
                continue
            made = socket.socket()
            made.setblocking(False)
            made.connect_ex(self._address)
            self._links[made.fileno()], self._numbers[made.fileno()] = Link(made), number
            self._poll.register(made, select.EPOLLOUT | select.EPOLLIN)

    def _serve(self, fd: int, event: int) -> None:
        link = self._links[fd]
        if event & (select.EPOLLERR | select.EPOLLHUP):
            raise ConnectionResetError("refused")
        if event & select.EPOLLOUT and link.steps == 0:
            self._first = self._now() if self._first is None else self._first
            self._next(fd, link)
            self._poll.modify(fd, select.EPOLLIN)
        elif event & select.EPOLLIN and answers(link):
            if link.steps < len(self._script):
                self._next(fd, link)
            else:
                self._served.append(self._now())
                self._poll.unregister(fd)

    def _next(self, fd: int, link: Link) -> None:
        send(link, self._script[link.steps](self._numbers[fd]))
        link.steps += 1

    def _lost(self, fd: int) -> None:
        self._poll.unregister(fd)
        self._links.pop(fd).socket.close()
        again = self._now() + ATTEMPT_S * (0.5 + self._dice.random())
        self._waiting.append((again, self._numbers.pop(fd)))


def quantiles(seconds: list[float]) -> dict[str, float]:
    """The quantiles of these times. The times are in seconds, and the quantiles in milliseconds."""
    found = np.quantile(np.array(seconds) * 1000, [0.5, 0.99, 0.999, 1.0])
    return dict(zip(("p50", "p99", "p99.9", "max"), map(float, found), strict=True))


def main(arguments: list[str]) -> int:
    kind, where, topic, connections, *rest = arguments
    host, _, port = where.rpartition(":")
    address = (host, int(port))
    if kind == "load":
        rate, seconds = map(float, rest)
        print(json.dumps(OpenLoop(address, topic, int(connections)).run(rate, seconds)))
    else:
        print(json.dumps(Storm(address, topic, int(connections)).run()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
