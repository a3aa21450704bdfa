"""The load of bench/neighbours: one client with few requests, and clients that send without pause.

    python -m bench.neighbours_load ask ADDRESS TOPIC REQUESTS_PER_S SECONDS
    python -m bench.neighbours_load metadata ADDRESS CONNECTIONS
    python -m bench.neighbours_load produce ADDRESS TOPIC PRODUCERS

`ask` sends one record with acks=all at each planned time, on one connection. A latency counts from
the planned time, so the time for which a broker stalls counts (this avoids "coordinated omission").
`metadata` floods the broker: each connection has as many Metadata requests in flight as its socket
accepts. `produce` runs stock librdkafka producers with `batch.num.messages=1`, one producer per
thread. `metadata` prints "busy" when it gets the first answer, and `produce` when all producers are
sending. Both continue until their standard input ends. All three commands print one JSON object
when they end.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import threading
import time
from collections import deque

from bench.fleet_load import (
    Link,
    answers,
    error_position,
    framed,
    produce_frame,
    quantiles,
    send,
)
from bench.librdkafka import Producer
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.metadata import MetadataRequest

PATIENCE_S = 60.0
BLOCK = 500
"""The number of Metadata requests that one call sends."""
ACKS_AT = 2
"""The position of the acks field in the body of a Produce request. It follows the transactional id,
which is null."""
RECORD = b"x" * 200
SETTINGS: dict[str, str | int] = {
    "acks": 1,
    "linger.ms": 0,
    "batch.num.messages": 1,
    "queue.buffering.max.messages": 20_000,
}
CHUNK = 1_000


def acks_all(frame: bytes) -> bytes:
    """Changes acks to all in a Produce request that `produce_frame` made, so that the answer means
    that the record is durable.
    """
    header = 4 + 8 + 2 + len("fleet")
    at = header + ACKS_AT
    if frame[at : at + 2] != b"\0\1":
        raise RuntimeError("the acks are not where they were")
    return frame[:at] + b"\xff\xff" + frame[at + 2 :]


def ask(address: tuple[str, int], topic: str, rate: float, seconds: float) -> dict[str, float]:
    """Sends requests at their planned times. Returns the quantiles of the latencies in ms."""
    frame, error_at = acks_all(produce_frame(topic, 0, 1)), error_position(topic)
    link = Link(socket.create_connection(address, 30))
    link.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    due: deque[float] = deque()
    latencies: list[float] = []
    total, sent = int(rate * seconds), 0
    begin = time.perf_counter()
    while len(latencies) < total:
        now = time.perf_counter() - begin
        if now > seconds + PATIENCE_S:
            raise RuntimeError(f"{total - len(latencies)} of {total} requests have no answer")
        while sent < total and sent / rate <= now:
            due.append(sent / rate)
            link.socket.sendall(frame)
            sent += 1
        wait_s = max(sent / rate - now, 0) if sent < total else 0.1
        if not select.select([link.socket], [], [], wait_s)[0]:
            continue
        for answer in answers(link):
            if answer[error_at : error_at + 2] != b"\0\0":
                raise RuntimeError(f"a request was refused: {answer!r}")
            latencies.append(time.perf_counter() - begin - due.popleft())
    return quantiles(latencies)


def metadata(address: tuple[str, int], connections: int) -> dict[str, float]:
    """Floods the broker with Metadata requests until the standard input ends. Returns the answered
    requests per second."""
    block = framed(ApiKey.METADATA, 5, MetadataRequest(topics=())) * BLOCK
    poll, links = select.epoll(), {}
    for _ in range(connections):
        made = socket.create_connection(address, 30)
        made.setblocking(False)
        links[made.fileno()] = Link(made)
        poll.register(made, select.EPOLLIN | select.EPOLLOUT)
    poll.register(sys.stdin, select.EPOLLIN)
    answered, begin = 0, 0.0
    while True:
        for fd, event in poll.poll():
            if fd == sys.stdin.fileno():
                return {"requests_per_s": answered / (time.perf_counter() - begin)}
            link = links[fd]
            if event & select.EPOLLOUT:
                if link.unsent:
                    del link.unsent[: link.socket.send(link.unsent)]
                else:
                    send(link, block)
            if event & ~select.EPOLLOUT:
                answered += len(answers(link))
                if not begin:
                    begin = busy()


def produce(address: str, topic: str, producers: int) -> dict[str, float]:
    """Sends each message in a separate request, until the standard input ends. Returns the messages
    per second."""
    stop, sent, left = threading.Event(), [0] * producers, [0] * producers

    def run(number: int) -> None:
        with Producer({"bootstrap.servers": address} | SETTINGS, topic) as producer:
            while not stop.is_set():
                producer.send(RECORD, CHUNK)
                sent[number] += CHUNK
            left[number] = producer.flush(PATIENCE_S)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(producers)]
    for thread in threads:
        thread.start()
    while not all(sent):
        time.sleep(0.01)
    begin, before = busy(), sum(sent)
    sys.stdin.read()
    stop.set()
    for thread in threads:
        thread.join()
    if any(left):
        raise RuntimeError(f"{sum(left)} of {sum(sent)} messages were not delivered")
    return {"requests_per_s": (sum(sent) - before) / (time.perf_counter() - begin)}


def busy() -> float:
    """Prints "busy", and returns the present time, at which the measurement begins."""
    print("busy", flush=True)
    return time.perf_counter()


def main(arguments: list[str]) -> int:
    kind, where, *rest = arguments
    host, _, port = where.rpartition(":")
    address = (host, int(port))
    if kind == "ask":
        topic, rate, seconds = rest
        print(json.dumps(ask(address, topic, float(rate), float(seconds))))
    elif kind == "metadata":
        print(json.dumps(metadata(address, int(rest[0]))))
    else:
        print(json.dumps(produce(where, rest[0], int(rest[1]))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
