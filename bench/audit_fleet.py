"""Simulates the senders of audit messages for the benchmark `audit`: agents, the counters of broker
and mirror, and a loader. Each sends its messages at the default rate.

    python -m bench.audit_fleet HOSTS TOPICS FAULTY

The program writes the messages to its standard output, each as a record batch: first those that the
agents sent long before the simulation begins, then those of each simulated second, until the reader
(`seconds_of`) closes the pipe. It runs in another process than the collector, so the
collector's figures do not include the simulation's time and memory.

In each second, every host writes lines of every topic. Of each 10,000 hosts, FAULTY hosts fall
silent, FAULTY hosts begin late, and FAULTY hosts have records that the broker's counter does not
count. One host in twenty also writes lines whose event time is OLD_MINUTES old, so that the bucket
of these lines already has a verdict.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skidway.agent.settings import AgentSettings
from skidway.audit.counts.checksum import mixed
from skidway.audit.settings import CounterSettings
from skidway.audit.signing.agent_ids import agent_id
from skidway.audit.signing.identity import Identity, Role
from skidway.audit.signing.keys import MasterKey
from skidway.audit.signing.signature import HEADER, sign
from skidway.audit.topic.count_columns import COLUMNS, CountColumns
from skidway.audit.topic.messages import (
    Announcement,
    Delta,
    Message,
    Range,
    Seal,
    Sender,
    Tier,
    encode,
)
from skidway.audit.topic.seal_columns import SealColumns
from skidway.audit.topic.source_names import names_of
from skidway.kafka.batch import EncodedBatch, seal
from skidway.kafka.codecs import NONE, ZSTD
from skidway.kafka.source import Source
from skidway.settings.document import documented

Int64s = npt.NDArray[np.int64]

MASTER = MasterKey(1, b"the master key of the simulation")
"""From this key, all senders have theirs."""

SECOND_MS, MINUTE_MS, HOUR_MS = 1_000, 60_000, 3_600_000
START_MS = 1_767_225_600_000
"""2026-01-01T00:00Z."""

LINES, LENGTH = 10, 200
"""The approximate number of lines of a topic that a host writes in a second, and of bytes in a
line. Both numbers are different for each host, topic and minute."""

COUNTS_MAX = 5_000
"""A delta of a counter or a loader has at most this many counts."""

FAULTY, OF = 100, 10_000
"""By default, FAULTY hosts in OF fall silent, FAULTY begin late, and FAULTY have records that the
broker's counter does not count."""

CHANGE_MINUTE = 2
"""When this many minutes have passed, some hosts fall silent, and others begin to send."""

OLD_LINES_ONE_IN, OLD_MINUTES = 20, 4

NUMBERS_BEFORE = 1_000_000
"""Each agent has sent up to this many messages before the simulation begins. An agent that runs for
three months sends a million."""

FIRST_MS = START_MS - 2 * HOUR_MS
"""The time at which the collector received the first message of each agent. Buckets in the hour
after this time are not complete, because messages from before this time may be missing."""

_HEAD = np.dtype([("count", "<i8"), ("counts", "<i8")])
_LENGTH = np.dtype("<i4")


class Second(NamedTuple):
    """The record batches that all senders send in one second, and the number of counts in them."""

    batches: Iterator[bytes]
    counts: int


def seconds_of(pipe: IO[bytes]) -> Iterator[Second]:
    """Reads the messages that this program writes into the pipe, and yields them second by second.
    This function reads each batch only when the caller asks for it, so a batch stays in memory
    only if the caller keeps it. The caller must read all batches of a second before it asks for
    the next second."""
    while head := pipe.read(_HEAD.itemsize):
        count, counts = np.frombuffer(head, _HEAD)[0].tolist()
        lengths = np.frombuffer(pipe.read(count * _LENGTH.itemsize), _LENGTH)
        yield Second(map(pipe.read, lengths.tolist()), counts)


@dataclass(slots=True)
class _Teller:
    """The state of one sender. last: the number of its last delta. previous: for each bucket and
    each group of hosts (one delta counts the lines of one group), the number of the sender's last
    delta for this bucket and group.
    """

    sender: Sender
    last: int = 0
    previous: dict[tuple[int, int], int] = field(default_factory=dict)

    def next(self) -> int:
        self.last += 1
        return self.last


class Fleet:
    """Simulated hosts with their agents, two counters and a loader. `second` is the number of
    seconds that have passed."""

    def __init__(self, hosts: int, topics: int, faulty: int = FAULTY) -> None:
        self.second = 0
        self.sources = [
            Source("dc1", "c" * 22, f"service-{number}", f"{number:032x}")
            for number in range(topics)
        ]
        drawn = mixed(np.arange(hosts, dtype=np.uint64)) >> np.uint64(34)
        own = (Identity(Role.AGENT, ("dc1", _host(x))) for x in range(hosts))
        self.agents = [agent_id(x, int(n) | 1) for x, n in zip(own, drawn, strict=True)]
        self._ids = np.array(self.agents, np.int64)
        kinds = np.array([_kind(host, faulty) for host in range(hosts)])
        self._silent, self._late, self._short = (kinds == x for x in (_SILENT, _LATE, _SHORT))
        self._tellers = [
            _Teller(
                Sender(Tier.AGENT, "dc1", str(agent), _host(host), 1),
                last=agent % NUMBERS_BEFORE,
            )
            for host, agent in enumerate(self.agents)
        ]
        self._counters = [
            _Teller(Sender(Tier.BROKER, "dc1", "count-dc1", "audit-1", 1)),
            _Teller(Sender(Tier.MIRROR, "offline", "count-offline", "audit-2", 1)),
        ]
        self._loads = [
            _Teller(Sender(Tier.HDFS, "offline", f"/logs/dc1.{x.topic}", "loader-1", 1))
            for x in self.sources
        ]
        self._names = names_of(self.sources)
        partitions = np.repeat(np.arange(topics), 2)
        self._offsets = np.array([partitions, np.arange(2 * topics) % 2, 0 * partitions])
        self._delta_s = default_s(AgentSettings, "audit.interval.ms")
        self._seal_s = default_s(AgentSettings, "seal.interval.ms")
        self._counter_s = default_s(CounterSettings, "commit.interval.ms")

    @property
    def time_ms(self) -> int:
        """The simulated time, which is the same on all hosts."""
        return START_MS + self.second * SECOND_MS

    def begin(self) -> Iterator[Message]:
        """Yields the first message of each agent. These messages have no counts. The agents send
        them at FIRST_MS."""
        for teller in self._tellers:
            yield Delta(teller.sender, teller.next(), FIRST_MS)

    def pass_second(self) -> Iterator[Message]:
        """Lets a second pass. Yields the messages that all senders send in this second. Different
        agents send in different seconds of their interval, so that all seconds have about the same
        number of messages."""
        self.second += 1
        running, before = self._running(self.second), self._running(self.second - 1)
        begins = running if self.second == 1 else running & ~before
        for host in np.flatnonzero(begins).tolist():
            yield from self._announced(host)
        numbers = np.arange(len(self.agents)) + self.second
        for host in np.flatnonzero(running & (numbers % self._delta_s == 0)).tolist():
            teller = self._tellers[host]
            counts = self._counts(teller, np.array([host]), self._delta_s, 0)
            yield Delta(teller.sender, teller.next(), self.time_ms, counts=counts)
        for host in np.flatnonzero(running & (numbers % self._seal_s == 0)).tolist():
            yield self._seal(self._tellers[host])
        if self.second % self._counter_s == 0:
            for teller in self._counters:
                yield from self._counted(teller, range(len(self.sources)), self._counter_s)
        if self.second % 60 == 0:
            for topic, teller in enumerate(self._loads):
                yield from self._counted(teller, [topic], 60)

    def _running(self, second: int) -> npt.NDArray[np.bool_]:
        gone = self._silent if second > 60 * CHANGE_MINUTE else self._late
        running: npt.NDArray[np.bool_] = np.logical_not(gone)
        return running

    def _announced(self, host: int) -> Iterator[Announcement]:
        for number, source in enumerate(self.sources):
            yield Announcement(
                self.time_ms, self.agents[host], host * 1000 + number + 1, _host(host),
                f"/var/log/{source.topic}.log", 1, number + 1, b"f" * 32, 1024, source,
                born_ns=START_MS * 1_000_000 + number,
            )  # fmt: skip

    def _seal(self, teller: _Teller) -> Seal:
        self._offsets[2] = self.second
        table = np.zeros((3, len(self.sources)), np.int64)
        table[0], table[1] = self.time_ms, teller.last
        topics = SealColumns(self._names, table, self._offsets)
        return Seal(teller.sender, teller.next(), self.time_ms, topics)

    def _counted(self, teller: _Teller, topics: Sequence[int], seconds: int) -> Iterator[Delta]:
        """The deltas in which a counter or a loader counts the records of the last `seconds`
        seconds."""
        first, end = self.second - seconds, self.second
        ranges = tuple(Range(self.sources[x], 0, first * 100, end * 100) for x in topics)
        running = np.flatnonzero(self._running(self.second))
        size = max(COUNTS_MAX // (2 * len(topics)), 1)
        for part, begin in enumerate(range(0, len(running), size)):
            hosts = running[begin : begin + size]
            counts = self._counts(teller, hosts, seconds, part, topics)
            yield Delta(teller.sender, teller.next(), self.time_ms, ranges, counts)

    def _counts(
        self,
        teller: _Teller,
        hosts: Int64s,
        seconds: int,
        part: int,
        topics: Sequence[int] | None = None,
    ) -> CountColumns:
        """The counts of what these hosts wrote in the last `seconds`. In a delta, all new lines of
        a host are in one bucket; some hosts also have old lines, which are in the bucket
        OLD_MINUTES earlier. topics: the indexes of the topics; None for all topics."""
        number = teller.last + 1
        now = (self.time_ms - 1) // MINUTE_MS * MINUTE_MS
        count = len(self.sources) if topics is None else len(topics)
        names = self._names
        if topics is not None and count < len(self.sources):
            names = names_of(self.sources[x] for x in topics)
        tables = []
        for each, bucket, rate in (
            (hosts, now, LINES),
            (hosts[hosts % OLD_LINES_ONE_IN == 0], now - OLD_MINUTES * MINUTE_MS, 1),
        ):
            if not len(each):
                continue
            table = np.zeros((len(COLUMNS), len(each) * count), np.int64)
            source, agent, start, size, lines, length, checksum, _, _, previous = table
            source[:] = np.tile(np.arange(count), len(each))
            agent[:], start[:], size[:] = np.repeat(self._ids[each], count), bucket, MINUTE_MS
            topic = source if topics is None else np.array(topics)[source]
            drawn = _drawn(agent, topic, bucket)
            lines[:] = seconds * (1 + (drawn & 0xFFFF) % (2 * rate))
            length[:] = lines * (LENGTH // 2 + (drawn >> 16 & 0xFFFF) % LENGTH)
            checksum[:] = lines * drawn
            if teller.sender.tier is Tier.BROKER:
                lines -= np.repeat(self._short[each], count)
            previous[:] = teller.previous.get((bucket, part), 0)
            tables.append(table)
            teller.previous[bucket, part] = number
        return CountColumns(names, np.concatenate(tables, axis=1))


def _drawn(agents: Int64s, topics: Int64s, bucket: int) -> Int64s:
    """Numbers that look random, one for each agent and topic. They depend only on the arguments, so
    all tiers get the same numbers."""
    places = agents + topics * 0x5851F42D4C957F2D + bucket
    return mixed(places.view(np.uint64)).view(np.int64)


_GOOD, _SILENT, _LATE, _SHORT = range(4)


def _kind(host: int, faulty: int) -> int:
    """The kind of fault that a host has. Spreads `faulty` hosts of each kind evenly over OF
    hosts."""
    if not faulty:
        return _GOOD
    every = OF // faulty
    return {0: _SILENT, 1: _LATE, 2: _SHORT}.get(host % every, _GOOD)


def default_s(settings: type[Any], key: str) -> int:
    """The default value of the setting `key`, which is an interval: in whole seconds, and at least
    one second."""
    (found,) = (x.default for x in documented(settings) if x.key == key)
    return max(int(found) // SECOND_MS, 1)


def _host(number: int) -> str:
    return f"host-{number}.example"


def identity_of(message: Message) -> Identity:
    """The identity of the message's sender."""
    if isinstance(message, Announcement):
        return Identity(Role.AGENT, (message.source.cluster, message.host))
    assert isinstance(message, Delta | Seal)
    sender = message.sender
    if sender.tier is Tier.AGENT:
        return Identity(Role.AGENT, (sender.cluster, sender.host))
    if sender.tier is Tier.HDFS:
        return Identity(Role.LOADER, (sender.cluster, sender.producer.rpartition("/")[0]))
    parts = sender.tier.value.lower(), sender.cluster, sender.producer
    return Identity(Role.COUNTER, parts)


def batch_of(value: bytes, time_ms: int, signature: bytes) -> bytes:
    """A record batch with one record, like the batches of a program that sends each message alone.
    This function is much faster than the general encoder (columns.encode)."""
    header = b"\2" + _varint(len(HEADER)) + HEADER + _varint(len(signature)) + signature
    record = b"\0\0\0\1" + _varint(len(value)) + value + header
    records = _varint(len(record)) + record
    packed = ZSTD.compress(records)
    codec, body = (ZSTD, packed) if len(packed) < len(records) else (NONE, records)
    return seal(EncodedBatch(body, codec.number, 1, time_ms, time_ms, len(records)))


def _varint(number: int) -> bytes:
    """Encodes a number as a zigzag varint, as in Kafka's records. The number must not be
    negative."""
    left, found = number << 1, bytearray()
    while left >= 0x80:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((*found, left))


def main(arguments: Sequence[str]) -> None:
    """Writes the messages to the standard output, second by second."""
    hosts, topics, faulty = map(int, arguments)
    fleet = Fleet(hosts, topics, faulty)
    try:
        messages = fleet.begin()
        while True:
            values, counts = [], 0
            for message in messages:
                value = encode(message)
                key = MASTER.sender_key(identity_of(message))
                values.append(batch_of(value, message.time_ms, sign(key, value)))
                counts += len(message.counts) if isinstance(message, Delta) else 0
            lengths = np.array([len(value) for value in values], _LENGTH)
            head = np.array([(len(values), counts)], _HEAD)
            sys.stdout.buffer.write(b"".join((head.tobytes(), lengths.tobytes(), *values)))
            messages = fleet.pass_second()
    except BrokenPipeError:
        sys.stderr.close()  # the reader has closed the pipe


if __name__ == "__main__":
    main(sys.argv[1:])
