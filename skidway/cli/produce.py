"""`skidway produce --topic T`: sends each line of standard input as one record.

Exit status 0 means that the broker has acknowledged every line that was read. If the broker refuses
a line because it is too large, the command counts this line, still sends the other lines, and ends
with exit status 1.
"""

from __future__ import annotations

import argparse
import os
import select
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from skidway.cli.options import add_bootstrap_option, add_timeout_option
from skidway.cli.topics import connect, existing
from skidway.errors import SkidwayError, Unreachable, UsageError
from skidway.kafka.batch import EncodedBatch
from skidway.kafka.client import Client, Delivery, Drained, Producer
from skidway.kafka.columns import cuts, encode
from skidway.kafka.partitioning import of_keys
from skidway.kafka.types import TopicPartition

BATCH_BYTES = 900_000
READ_BYTES = 1 << 20
LINE_BYTES_MAX = 64 << 20
LOOK_EVERY_MS = 1000


def register(subparsers: Any) -> None:
    """Adds the command `skidway produce`."""
    parser = subparsers.add_parser("produce", help="send lines from standard input to a topic")
    add_bootstrap_option(parser)
    parser.add_argument("--topic", required=True)
    parser.add_argument(
        "--partition", type=int, metavar="N", help="else by key as Kafka does, or in turn"
    )
    parser.add_argument(
        "--key-separator", metavar="TEXT", help="the key is what precedes its first occurrence"
    )
    words = "give up after N seconds without an acknowledgement (60)"
    add_timeout_option(parser, words, 60.0)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    if sys.stdin is None:
        raise UsageError("Standard input is closed; the lines are read from there.")
    with connect(args) as client:
        sender = _sender(client, args)
        source = Input(sys.stdin.fileno())
        try:
            while not source.ended:
                sender.turn(source)
            sender.finish()
        except KeyboardInterrupt:
            sender.finish()
            return 130
        finally:
            sys.stderr.write(sender.summary() + "\n")
    return 1 if sender.refused else 0


def _sender(client: Client, args: argparse.Namespace) -> Sender:
    (topic,) = existing(client, [args.topic])
    count = len(topic.partitions)
    if args.partition is not None and not 0 <= args.partition < count:
        raise UsageError(f"topic {args.topic} has the partitions 0 to {count - 1} only")
    configs, _ = client.topic_configs_now([args.topic])  # perhaps this client may not see them
    limit = int(configs.get(args.topic, {}).get("max.message.bytes", "1000000"))
    separator = None if args.key_separator is None else args.key_separator.encode()
    if separator == b"":
        raise UsageError("--key-separator must not be empty")
    return Sender(
        Producer(client),
        args.topic,
        range(count) if args.partition is None else [args.partition],
        batch_bytes=min(BATCH_BYTES, limit),
        separator=separator,
        timeout_s=args.timeout_s,
    )


class Input:
    """Reads lines from a file descriptor. A line ends at LF, at CRLF, or at the end of the
    input."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.ended = False
        # epoll cannot wait for regular files or for devices such as /dev/null. No wait is needed
        # for them, because reading such a file or device never blocks.
        kind = os.fstat(descriptor).st_mode
        is_awaited = stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or os.isatty(descriptor)
        self.wake = (descriptor,) if is_awaited else ()
        self._rest = bytearray()

    def read(self) -> list[bytes]:
        """Reads the next bytes of the input, and returns the lines that end in them. Waits if there
        is no input yet."""
        chunk = os.read(self.descriptor, READ_BYTES)
        if not chunk:
            self.ended = True
            last = bytes(self._rest).removesuffix(b"\r")
            return [last] if self._rest else []
        self._rest += chunk
        whole, newline, self._rest = self._rest.rpartition(b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            raise SkidwayError(f"a line is longer than {LINE_BYTES_MAX >> 20} MiB")
        return [bytes(line.removesuffix(b"\r")) for line in whole.split(b"\n")] if newline else []


@dataclass(frozen=True, slots=True)
class _Sent:
    tp: TopicPartition
    encoded: EncodedBatch


class Sender:
    """Makes batches of lines, sends them, and counts acknowledged and refused lines."""

    def __init__(
        self,
        producer: Producer,
        topic: str,
        partitions: range | list[int],
        *,
        batch_bytes: int,
        separator: bytes | None,
        timeout_s: float,
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._partitions = partitions
        self._batch_bytes = batch_bytes
        self._separator = separator
        self._timeout_s = timeout_s
        self._turn = 0
        self._lines = 0
        self._heard_at = time.monotonic()
        self.acknowledged = 0
        self.refused = 0
        self.first_refusal = ""

    def turn(self, source: Input) -> None:
        """Waits until there is input or an answer of a broker, and processes it."""
        if not self._producer.has_room:
            self._hear(self._producer.poll(LOOK_EVERY_MS))
            return
        if source.wake:
            self._hear(self._producer.poll(LOOK_EVERY_MS, *source.wake))
            if not _readable(source.descriptor):
                return
        for batch in self._batches(source.read()):
            while not self._producer.has_room:
                self._hear(self._producer.poll(LOOK_EVERY_MS))
            self._producer.send(batch.tp, batch.encoded, batch)
        self._hear(self._producer.poll(0))

    def finish(self) -> None:
        """Waits until every line is acknowledged or refused. Raises Unreachable if no answer comes
        for `timeout_s` seconds."""
        while self._producer.pending_count:
            self._hear(self._producer.poll(LOOK_EVERY_MS))

    def summary(self) -> str:
        """Returns a sentence that says how many lines were acknowledged, how many were refused, and
        how many were neither."""
        words = f"{self.acknowledged:,} lines acknowledged in {self._topic}"
        if self.refused:
            words += f", {self.refused:,} refused: {self.first_refusal}"
        missing = self._lines - self.acknowledged - self.refused
        return words + (f", {missing:,} not acknowledged" if missing else "")

    def _batches(self, lines: list[bytes]) -> Iterator[_Sent]:
        now_ms = time.time_ns() // 1_000_000
        for partition, (keys, values) in self._by_partition(lines).items():
            sizes = np.array([len(value) for value in values], np.int64)
            if keys:
                sizes += np.array([len(key) for key in keys], np.int64)
            start = 0
            for end in cuts(sizes, self._batch_bytes):
                encoded = encode(
                    pa.array(values[start:end], pa.binary()),
                    np.full(end - start, now_ms, np.int64),
                    keys=pa.array(keys[start:end], pa.binary()) if keys else None,
                )
                yield _Sent(TopicPartition(self._topic, partition), encoded)
                start = end

    def _by_partition(self, lines: list[bytes]) -> dict[int, tuple[list[bytes], list[bytes]]]:
        """Chooses a partition for each line. Returns the keys and the values of the lines by
        partition, in the order of the lines. If lines have no keys, the list of keys is empty."""
        if not lines:
            return {}
        self._turn += 1
        if self._separator is None:
            self._lines += len(lines)
            return {self._partitions[self._turn % len(self._partitions)]: ([], lines)}
        pairs = [self._split(line, self._separator) for line in lines]
        column = pa.array([key for key, _ in pairs], pa.binary())
        groups: dict[int, tuple[list[bytes], list[bytes]]] = {}
        chosen = of_keys(column, len(self._partitions)).tolist()
        for number, (key, value) in zip(chosen, pairs, strict=True):
            keys, values = groups.setdefault(self._partitions[number], ([], []))
            keys.append(key)
            values.append(value)
        return groups

    def _split(self, line: bytes, separator: bytes) -> tuple[bytes, bytes]:
        key, found, value = line.partition(separator)
        if not found:
            raise UsageError(f"line {self._lines + 1} has no {separator.decode()!r}")
        self._lines += 1
        return key, value

    def _hear(self, deliveries: list[Delivery]) -> None:
        now = time.monotonic()
        if deliveries or not self._producer.pending_count:
            self._heard_at = now
        for delivery in deliveries:
            sent = delivery.token
            assert isinstance(sent, _Sent)
            if delivery.error is None:
                self.acknowledged += sent.encoded.count
            elif isinstance(delivery.error, Drained):
                self._producer.send(sent.tp, sent.encoded, sent)
            else:
                self.refused += sent.encoded.count
                self.first_refusal = self.first_refusal or str(delivery.error)
        if now - self._heard_at > self._timeout_s:
            trouble = next(iter(self._producer.troubles.values()), "no broker answers")
            raise Unreachable(f"nothing was acknowledged for {self._timeout_s:g} s: {trouble}")


def _readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
