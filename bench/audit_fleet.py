"""Simulates the senders of audit messages for the benchmark `audit`: agents, the counters of broker
and mirror, and a loader. Each sends its messages at the default rate.

Every host writes lines of every topic in each second. One host in a hundred falls silent, one
begins late, and the broker's counter counts too few records of one. One host in twenty also writes
lines whose event time is an hour old.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from skidway.agent.settings import AgentSettings
from skidway.audit.settings import CounterSettings
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import Announcement, Delta, Message, Range, Seal, Sender, Tier
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.kafka.source import Source
from skidway.settings.document import documented

SECOND_MS, MINUTE_MS, HOUR_MS = 1_000, 60_000, 3_600_000
START_MS = 1_767_225_600_000
"""2026-01-01T00:00Z."""

LINES, LENGTH = 10, 200
"""The number of lines of a topic that a host writes in a second, and the bytes of a line."""

COUNTS_MAX = 5_000
"""A delta of a counter or a loader has at most this many counts."""

SILENT, LATE, SHORT, ONE_IN = 0, 1, 2, 100
"""Of ONE_IN hosts, the numbers of the host that falls silent, of the host that begins late, and of
the host of which the broker's counter counts too few records."""

CHANGE_MINUTE = 2
"""The minute after which hosts fall silent and new hosts begin."""

OLD_LINES_ONE_IN = 20


@dataclass(slots=True)
class _Teller:
    """The state of one sender. previous: for each bucket and part of its counts, the number of the
    last delta that touched the bucket."""

    sender: Sender
    last: int = 0
    previous: dict[tuple[int, int], int] = field(default_factory=dict)

    def next(self) -> int:
        self.last += 1
        return self.last


class Fleet:
    """Simulated hosts with their agents, two counters and a loader. `second` is the number of
    seconds that have passed."""

    def __init__(self, hosts: int, topics: int) -> None:
        self.second = 0
        self.sources = [
            Source("dc1", "c" * 22, f"service-{number}", f"{number:032x}")
            for number in range(topics)
        ]
        self.agents = [(host * 0x9E3779B97F4A7C15 & (1 << 62) - 1) | 1 for host in range(hosts)]
        self._tellers = [
            _Teller(Sender(Tier.AGENT, "dc1", str(agent), f"host-{host}.example", 1))
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
        self._delta_s = _default_s(AgentSettings, "audit.interval.ms")
        self._seal_s = _default_s(AgentSettings, "seal.interval.ms")
        self._counter_s = _default_s(CounterSettings, "commit.interval.ms")

    @property
    def time_ms(self) -> int:
        """The present time of all clocks."""
        return START_MS + self.second * SECOND_MS

    def pass_second(self) -> Iterator[Message]:
        """Lets a second pass. Yields the messages that all senders send in it. The messages of the
        agents are spread evenly over the seconds of their intervals."""
        self.second += 1
        for host, teller in enumerate(self._tellers):
            if not self._is_running(host):
                continue
            if self._begins(host):
                yield from self._announced(host)
            if (self.second + host) % self._delta_s == 0:
                counts = self._counts(teller, [host], self._delta_s, 0)
                yield Delta(teller.sender, teller.next(), self.time_ms, counts=counts)
            if (self.second + host) % self._seal_s == 0:
                yield self._seal(teller)
        if self.second % self._counter_s == 0:
            for teller in self._counters:
                yield from self._counted(teller, self.sources, self._counter_s)
        if self.second % 60 == 0:
            for teller, source in zip(self._loads, self.sources, strict=True):
                yield from self._counted(teller, [source], 60)

    def _is_running(self, host: int, second: int | None = None) -> bool:
        minute = (self.second if second is None else second) / 60
        if host % ONE_IN == SILENT:
            return minute <= CHANGE_MINUTE
        return host % ONE_IN != LATE or minute > CHANGE_MINUTE

    def _begins(self, host: int) -> bool:
        return self.second == 1 or not self._is_running(host, self.second - 1)

    def _announced(self, host: int) -> Iterator[Announcement]:
        for number, source in enumerate(self.sources):
            yield Announcement(
                self.time_ms, self.agents[host], host * 1000 + number + 1, f"host-{host}.example",
                f"/var/log/{source.topic}.log", 1, number + 1, b"f" * 32, 1024, source,
                born_ns=START_MS * 1_000_000 + number,
            )  # fmt: skip

    def _seal(self, teller: _Teller) -> Seal:
        offsets = ((0, self.second), (1, self.second))
        sealed = (SealedTopic(x, self.time_ms, teller.last, offsets) for x in self.sources)
        topics = tuple(sealed)
        return Seal(teller.sender, teller.next(), self.time_ms, topics)

    def _counted(self, teller: _Teller, sources: Sequence[Source], seconds: int) -> Iterator[Delta]:
        """The deltas of a counter or a loader about the last `seconds`."""
        first, end = self.second - seconds, self.second
        ranges = tuple(Range(x, 0, first * 100, end * 100) for x in sources)
        size = max(COUNTS_MAX // (2 * len(sources)), 1)
        hosts = range(len(self.agents))
        for part, begin in enumerate(range(0, len(hosts), size)):
            running = [x for x in hosts[begin : begin + size] if self._is_running(x)]
            counts = self._counts(teller, running, seconds, part, sources)
            yield Delta(teller.sender, teller.next(), self.time_ms, ranges, counts)

    def _counts(
        self,
        teller: _Teller,
        hosts: Sequence[int],
        seconds: int,
        part: int,
        sources: Sequence[Source] | None = None,
    ) -> tuple[Count, ...]:
        """The counts of the last `seconds` of these hosts. All of a host's lines in a delta are in
        one bucket; some hosts also have old lines."""
        number = teller.last + 1
        now = (self.time_ms - 1) // MINUTE_MS * MINUTE_MS
        found, previous = [], teller.previous
        for is_old, bucket in ((False, now), (True, now - HOUR_MS)):
            before = previous.get((bucket, part), 0)
            touched = False
            for host in hosts:
                if is_old and host % OLD_LINES_ONE_IN:
                    continue
                touched, agent = True, self.agents[host]
                lines = seconds * (1 if is_old else LINES)
                if host % ONE_IN == SHORT and teller.sender.tier is Tier.BROKER:
                    lines -= 1
                for source in sources or self.sources:
                    found.append(
                        Count(
                            source, agent, bucket, MINUTE_MS, lines, lines * LENGTH,
                            lines * (agent ^ bucket) % (1 << 62), 0, 0, before,
                        )
                    )  # fmt: skip
            if touched:
                previous[bucket, part] = number
        return tuple(found)


def _default_s(settings: type[Any], key: str) -> int:
    """The default of an interval in whole seconds, at least one."""
    (found,) = (x.default for x in documented(settings) if x.key == key)
    return max(int(found) // SECOND_MS, 1)
