"""Simulates hosts for the benchmarks in the module `year`: the log files of the hosts, and the
audit messages of the hosts' agents.

A host writes one log file after the other, and rotates twenty times a day. Its agent sends all
lines of a file to one partition, announces each file, and says when the file is closed. The agent
also counts the lines, and sends seals (messages which say up to when the counts are complete). The
lines themselves do not exist. For each file, a load gets what a task of the load would report: the
positions of the first and the last line, and the sums of the counts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from skidway.audit.counts.counts import BucketKey, Sums
from skidway.audit.counts.marks import FileKey
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import Announcement, Delta, Message, Seal, Sender, Tier, encode
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.kafka.source import Source

MINUTE_MS = 60_000
START_MS = 1_767_225_600_000
"""2026-01-01T00:00Z."""

SHIFT_MS = 20_000
"""Every load begins 20 s after the beginning of a minute. So the lines of one minute are divided
between two loads, as with real loads, which may begin at any moment."""

FILE_MINUTES = 72
"""A host writes one file for this many minutes, so it writes twenty files a day."""

LINES, LENGTH = 60, 100
"""The number of lines that a host writes in a minute, and the number of bytes in a line."""

SOURCE = Source("dc1", "cluster-id", "logs", "0" * 32)


@dataclass(slots=True)
class Taken:
    """What the task of a load would report about the records that it read from one partition."""

    lines: int = 0
    lowest: dict[FileKey, int] = field(default_factory=dict)
    highest: dict[FileKey, int] = field(default_factory=dict)
    sums: dict[BucketKey, Sums] = field(default_factory=dict)
    hours: dict[int, int] = field(default_factory=dict)
    """The number of lines in each hour; the key is the number of hours since 1970."""


class Fleet:
    """Simulated hosts. They have written their lines up to `minute`."""

    def __init__(self, hosts: int, partitions: int, step: int) -> None:
        """step: minutes between two loads."""
        draw = random.Random(1)
        self._ids = [draw.getrandbits(62) | 1 for _ in range(hosts)]
        self._partitions, self._step = partitions, step
        self._number = 0
        self._delta = [encode(self._counts(agent)) for agent in self._ids]
        self.minute = 0
        self.ends = [0] * partitions
        """The end offset of each partition."""

    @property
    def time_ms(self) -> int:
        """The time up to which all lines are written."""
        return START_MS + self.minute * MINUTE_MS + SHIFT_MS

    def pass_time(self) -> list[Taken]:
        """Lets the hosts write until the next load. Returns what that load reads from each
        partition."""
        taken = [Taken() for _ in range(self._partitions)]
        first, end = self.minute, self.minute + self._step
        for host, agent in enumerate(self._ids):
            for file, begin, until in self._files(host, first, end):
                self._write(taken[file % self._partitions], (agent, file), host, begin, until)
        for partition, each in enumerate(taken):
            self.ends[partition] += each.lines
        self.minute = end
        return taken

    def messages(self) -> Iterator[bytes]:
        """The agents' audit messages since the previous load: an announcement of each file that
        began or ended, and from each agent one delta (new counts) and the newest seal."""
        since, until = self.minute - self._step, self.minute
        for host, agent in enumerate(self._ids):
            yield from map(encode, self._announced(host, agent, since, until))
        yield from self._delta
        self._number += 1
        offsets = tuple(enumerate(each - 1 for each in self.ends))
        sealed = (SealedTopic(SOURCE, self.time_ms, self._number, offsets),)
        names = [_named(agent) for agent in self._ids]
        first_seal = encode(Seal(_sender(self._ids[0]), self._number, self.time_ms, sealed))
        begin, end = first_seal.split(names[0])  # seals of one minute differ only in agent and host
        yield from (begin + name + end for name in names)

    def _files(self, host: int, first: int, end: int) -> Iterator[tuple[int, int, int]]:
        """The files that a host writes in the minutes [first, end), each with the range of minutes
        in which the host writes it."""
        while first < end:
            number = (first + host) // FILE_MINUTES
            until = min(end, (number + 1) * FILE_MINUTES - host)
            yield self._file(host, number), first, until
            first = until

    def _file(self, host: int, number: int) -> int:
        """Returns the id of a host's file. The id looks random, like the file ids that real agents
        choose."""
        return (self._ids[host] * 0x9E3779B97F4A7C15 + number * 0xBF58476D1CE4E5B9) >> 3 & (
            (1 << 62) - 1
        )

    def _write(self, taken: Taken, key: FileKey, host: int, first: int, end: int) -> None:
        """Adds the lines that a host writes to one file in the minutes [first, end). Each of these
        minutes begins SHIFT_MS after a full minute. taken: what the next load reads from the file's
        partition."""
        size = LINES * LENGTH
        position = (first + host) % FILE_MINUTES * size
        taken.lowest[key], taken.highest[key] = position, position + (end - first) * size
        taken.lines += (end - first) * LINES
        early = LINES - LINES * SHIFT_MS // MINUTE_MS
        for minute in range(first, end):
            for bucket, lines in ((minute, early), (minute + 1, LINES - early)):
                start = START_MS + bucket * MINUTE_MS
                at = (SOURCE, key[0], start)
                sums = Sums(lines, lines * LENGTH, key[1] ^ start)
                taken.sums[at] = taken.sums[at] + sums if at in taken.sums else sums
                hour = start // (60 * MINUTE_MS)
                taken.hours[hour] = taken.hours.get(hour, 0) + lines

    def _announced(self, host: int, agent: int, first: int, end: int) -> Iterator[Announcement]:
        """The announcements of a host. A file is announced before its first line, and announced as
        closed a minute after its last line."""
        for file, begin, _ in self._files(host, first, end):
            if begin == 0 or (begin + host) % FILE_MINUTES == 0:
                yield _announcement(agent, file, host, START_MS + begin * MINUTE_MS, None)
        for minute in range(first, end):
            number, past = divmod(minute - 1 + host, FILE_MINUTES)
            if past == 0 and minute > 1:
                file, time_ms = self._file(host, number - 1), START_MS + minute * MINUTE_MS
                size = LINES * LENGTH * FILE_MINUTES
                yield _announcement(agent, file, host, time_ms, size)

    def _counts(self, agent: int) -> Message:
        """The delta (new counts) of an agent. Loaders do not need the counts of agents, so each
        agent can always send the same delta."""
        counts = (
            Count(SOURCE, agent, START_MS + at * MINUTE_MS, MINUTE_MS, LINES, LINES * LENGTH, 1)
            for at in range(2)
        )
        return Delta(_sender(agent), 1, START_MS, counts=tuple(counts))


def _sender(agent: int) -> Sender:
    return Sender(Tier.AGENT, SOURCE.cluster, str(agent), f"host-{agent % 10_000}", 1)


def _named(agent: int) -> bytes:
    """The producer and host of an agent's messages, encoded as Avro."""
    sender = _sender(agent)
    texts = (sender.producer.encode(), sender.host.encode())
    return b"".join(bytes([2 * len(text)]) + text for text in texts)


def _announcement(
    agent: int, file: int, host: int, time_ms: int, length: int | None
) -> Announcement:
    path = f"/var/log/service/{file % 1_000_000}.log"
    return Announcement(
        time_ms, agent, file, f"host-{host}.example", path, 1, file, b"f" * 32, 1024, SOURCE,
        length=length,
    )  # fmt: skip
