"""The agent of the simulated site (see support.site_world). The module models the agent's files,
the deltas that the agent commits with each checkpoint, and its seals. It also models what the agent
does after a topic was deleted and created again.

A delta is a message that counts lines. A seal is a message by which an agent guarantees that its
deltas have counted all lines that its files had at a given time.

Here each agent has one file for each topic, and that file only grows. Other models (test_audit,
test_agent) cover agents with several files, rotations and lost states.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from skidway.audit.counts.counts import Sums
from skidway.audit.topic.count_columns import Filtered
from skidway.audit.topic.messages import Certainty, Loss, Seal, Sender, Tier
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.kafka.source import Source
from support.site_logs import (
    LENGTH,
    PARTITIONS,
    AuditLogs,
    Line,
    Placed,
    Record,
    Teller,
    Topic,
    record_of,
)


@dataclass(frozen=True, slots=True)
class Noted:
    """A seal that the agent has prepared and not yet sent. The agent sends the seal as soon as the
    agent's deltas have counted all lines that its files had at the time `sealed_until`. `sizes`
    contains the number of these lines, by topic. `at` is the number of the last message that the
    agent had made at the time `sealed_until`. `written` is the number of lines that the whole site
    had written at this time."""

    sealed_until: int
    sizes: dict[str, int]
    at: int
    written: int


class SiteAgent:
    """The agent of one host. The function `current` returns the topic that now has the given name
    on the brokers."""

    def __init__(
        self,
        number: int,
        names: tuple[str, ...],
        current: Callable[[str], Topic],
        audit: AuditLogs,
        choose: random.Random,
    ) -> None:
        self.number, self.current, self.random = number, current, choose
        sender = Sender(Tier.AGENT, "dc1", str(number), f"host{number}", 1)
        self.teller = Teller(sender, "dc1", audit)
        self.lines: dict[str, list[Line]] = {name: [] for name in names}
        self.position: dict[str, int] = dict.fromkeys(names, 0)
        self.checkpoint: dict[str, int] = dict.fromkeys(names, 0)
        self.seen = {name: current(name) for name in names}
        self.file_ids = 0
        self.ids = {name: self.new_id() for name in names}
        self.open: list[tuple[Placed, Record]] = []
        self.left_out: list[tuple[Placed, Sums]] = []
        self.acknowledged: dict[tuple[Source, int], int] = defaultdict(lambda: -1)
        self.noted: Noted | None = None
        self.counted_as: dict[int, Source] = {}
        self.uncertain: list[Placed] = []
        self.vouched: dict[int, int] = {}
        self.sealed: dict[Source, tuple[int, int]] = {}

    def new_id(self) -> int:
        """Returns a new file id for this host."""
        self.file_ids += 1
        return self.number * 100 + self.file_ids

    def behind(self) -> list[str]:
        """The topics with unread lines."""
        return [name for name, lines in self.lines.items() if self.position[name] < len(lines)]

    def send(self, name: str, now_ms: int, *, twice: bool = False) -> None:
        """Reads the next line of the topic `name` and sends it, twice if `twice` is true. The
        broker acknowledges the line immediately. If a rule of the agent leaves the line out, the
        agent does not send the line and only counts it."""
        index, seen, now = self.position[name], self.seen[name], self.current(name)
        line, file = self.lines[name][index], self.ids[name]
        if line.rule:
            self.leave_out(line, seen.source)
            self.position[name] += 1
            return
        record = record_of(line, file, index * LENGTH)
        partition = file % len(PARTITIONS)
        log = now.broker[partition]
        offset = log.end
        log.records += [record, record] if twice else [record]
        now.carried.add(line.number)
        self.position[name] += 1
        place = Placed(line.number, seen.source, self.number, line.bucket)
        if now is not seen and offset <= self.acknowledged[seen.source, partition]:
            self.give_up(place, file, index, now_ms)
            self.notice(name, now_ms)
            return
        self.acknowledged[seen.source, partition] = log.end - 1
        self.counted_as[line.number] = seen.source
        self.open.append((place, record))

    def leave_out(self, line: Line, source: Source) -> None:
        """Counts a line as left out by a rule of the agent."""
        self.counted_as[line.number] = source
        sums = Sums(filtered=(Filtered(line.rule, 1, LENGTH),))
        self.left_out.append((Placed(line.number, source, self.number, line.bucket), sums))

    def give_up(self, place: Placed, file: int, index: int, now_ms: int) -> None:
        """Declares a line uncertain: line number `index` of its file. The agent does this if the
        offset in the line's acknowledgement shows that the topic was deleted and created again."""
        self.uncertain.append(place)
        first, end = index * LENGTH, (index + 1) * LENGTH
        words = "it was on its way to a topic that was made again"
        loss = Loss(
            place.source, self.number, file, first, end, Certainty.UNCERTAIN, words,
            place.bucket, place.bucket,
        )  # fmt: skip
        self.commit(now_ms, [loss])

    def notice(self, name: str, now_ms: int) -> None:
        """Makes the agent notice whether the topic `name` was deleted and created again. If so, the
        agent uses the topic's new id and a new file id from now on."""
        if self.seen[name] is self.current(name):
            return
        self.noted = None
        self.commit(now_ms)
        self.seen[name] = self.current(name)
        self.ids[name] = self.new_id()

    def commit(self, now_ms: int, losses: list[Loss] | None = None) -> None:
        """Commits a checkpoint together with a delta, which counts all lines that were acknowledged
        or left out since the last checkpoint. The delta also declares the losses in `losses`."""
        placed = [(place, record.sums) for place, record in self.open]
        placed += self.left_out
        self.teller.tell(now_ms, placed, losses=losses or [], choose=self.random)
        self.open, self.left_out = [], []
        self.checkpoint.update(self.position)
        self.seal_if_passed(now_ms)

    def note_seal(self, now_ms: int, written: int) -> None:
        """Prepares a seal (notes the time and the present sizes of all files of the agent), unless
        an earlier seal is prepared and not sent yet. Sends the seal at once if all lines of these
        files are already counted."""
        if self.noted is None:
            sizes = {name: len(lines) for name, lines in self.lines.items()}
            self.noted = Noted(now_ms, sizes, self.teller.last, written)
            self.seal_if_passed(now_ms)

    def seal_if_passed(self, now_ms: int) -> None:
        """Sends the prepared seal if the agent's deltas have counted all lines up to the sizes in
        `noted`."""
        noted = self.noted
        if noted is None or any(self.checkpoint[x] < size for x, size in noted.sizes.items()):
            return
        self.noted, teller = None, self.teller
        teller.last += 1
        sources = [topic.source for topic in self.seen.values()]
        topics = tuple(SealedTopic(x, noted.sealed_until, noted.at) for x in sources)
        teller.outbox.append(Seal(teller.sender, teller.last, now_ms, topics))
        self.vouched[teller.last] = noted.written
        self.sealed.update(dict.fromkeys(sources, (noted.sealed_until, noted.at)))
