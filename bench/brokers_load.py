"""Sends prepared Produce requests to the leaders of a topic in a closed loop: each connection sends
further requests when earlier ones are answered.

    python -m bench.brokers_load ADDRESS TOPIC RECORDS_A_BATCH SECONDS

Each connection always has BLOCKS blocks of requests in flight. When the answers to one or more
whole blocks have arrived, the program sends as many new blocks with one call. So a request costs
this program far less CPU than it costs the broker, and the broker is never idle. The program prints
one JSON object with the number of leaders, the number of answered requests, the seconds, and the
CPU seconds of this program.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time

from bench.fleet_load import Link, answers, error_position, produce_frame, send
from skidway.kafka.client import Client

PARTITIONS = 4
CONNECTIONS_A_PARTITION = 2
BLOCK = 16
"""The number of requests in a block. One call of `send` sends one or more whole blocks."""
BLOCKS = 4
"""The number of blocks in flight on each connection."""
PATIENCE_S = 30.0


class ClosedLoop:
    """All connections of one run."""

    def __init__(self, address: str, topic: str, records: int) -> None:
        self._error_at = error_position(topic)
        self._poll = select.epoll()
        self._links: dict[int, tuple[Link, bytes]] = {}
        self._answered: dict[int, int] = {}
        self._requests = 0
        led = leaders(address, topic)
        self._leaders = len(set(led))
        for partition, leader in enumerate(led):
            block = produce_frame(topic, partition, records) * BLOCK
            for _ in range(CONNECTIONS_A_PARTITION):
                made = socket.create_connection(leader, 30)
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                made.setblocking(False)
                self._links[made.fileno()] = Link(made), block
                self._answered[made.fileno()] = 0
                self._poll.register(made, select.EPOLLIN)

    def run(self, seconds: float) -> dict[str, float]:
        """Sends requests for `seconds` seconds. Then waits for the remaining answers. Returns the
        figures that the program prints."""
        begin, cpu = time.perf_counter(), time.process_time()
        for fd in self._links:
            self._send(fd, BLOCKS)
        sent = len(self._links) * BLOCKS * BLOCK
        while self._requests < sent:
            now = time.perf_counter() - begin
            if now > seconds + PATIENCE_S:
                raise RuntimeError(f"{sent - self._requests} requests have no answer")
            for fd, event in self._poll.poll(1.0):
                blocks = self._serve(fd, event)
                if blocks and now < seconds:
                    self._send(fd, blocks)
                    sent += blocks * BLOCK
        return {
            "leaders": self._leaders,
            "requests": self._requests,
            "seconds": time.perf_counter() - begin,
            "cpu_s": time.process_time() - cpu,
        }

    def _send(self, fd: int, blocks: int) -> None:
        link, block = self._links[fd]
        send(link, block * blocks)
        self._watch(fd, link)

    def _serve(self, fd: int, event: int) -> int:
        """Reads answers from one connection. Returns how many blocks of requests they complete."""
        link, _ = self._links[fd]
        if event & select.EPOLLOUT and link.unsent:
            del link.unsent[: link.socket.send(link.unsent)]
            self._watch(fd, link)
        if not event & ~select.EPOLLOUT:
            return 0
        found = answers(link)
        for answer in found:
            if answer[self._error_at : self._error_at + 2] != b"\0\0":
                raise RuntimeError(f"a request was refused: {answer!r}")
        self._requests += len(found)
        blocks, self._answered[fd] = divmod(self._answered[fd] + len(found), BLOCK)
        return blocks

    def _watch(self, fd: int, link: Link) -> None:
        self._poll.modify(fd, select.EPOLLIN | (select.EPOLLOUT if link.unsent else 0))


def leaders(address: str, topic: str) -> list[tuple[str, int]]:
    """Returns the leaders' addresses, one for each partition of the topic, in the order of the
    partitions."""
    with Client(address) as client:
        cluster = client.metadata([topic])
        return [cluster.brokers[each.leader].address for each in cluster.topics[topic].partitions]


def main(arguments: list[str]) -> int:
    address, topic, records, seconds = arguments
    print(json.dumps(ClosedLoop(address, topic, int(records)).run(float(seconds))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
