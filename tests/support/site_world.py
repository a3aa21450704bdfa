"""A simulated site of agents, brokers, mirror, counters and loader. The simulation knows where
every line is.

The site changes in random steps. Its data flows like this:

    agents --> broker logs --> mirror --> mirror logs --> loader --> rows
                 counter                   counter
    all of them --> `_skidway_audit` of two clusters --> collectors, each at its own speed

The class `Faults` lists what may go wrong. The module site_truth computes what is true, and finds
the false verdicts.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from skidway.audit.counts.counts import NO_AGENT, Sums
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.topic.messages import Delta, Message, Seal, Tier
from support.audit_model import BUCKET_MS
from support.fold import Fold
from support.site_agent import SiteAgent
from support.site_counter import SiteCounter, copy
from support.site_loader import Rows, SiteLoader
from support.site_logs import (
    PARTITIONS,
    SECOND,
    AuditLogs,
    Line,
    NumberKey,
    Placed,
    Teller,
    Topic,
    record_of,
    topic_made,
)

AGENTS = (71, 74)
"""The ids of two agents whose messages go to different partitions of the audit topic."""


@dataclass(frozen=True)
class Faults:
    """The faults that may happen in a simulation. Slow programs and records that are sent twice
    have no field here, because they can happen in every simulation.

    - gaps: the mirror leaves out offsets and declares them as gaps.
    - silent_gaps: the mirror leaves out offsets and does not declare them.
    - kills: counters are killed and continue from their durable state.
    - recounts: counters count everything again in a new epoch.
    - misplaces: the field that is wrong in a misplaced row: "bucket", "agent" or "topic".
    - swaps: two rows exchange their values of the field that `misplaces` names.
    - remakes: a topic is deleted and created again.
    - late: after a topic was created again, the programs notice the new topic at different times.
    - unnamed: topics have no ids, so a topic that is created again looks like the old topic. Such
      topics break the rule that each topic has an id.
    - foreign: some records have no origin (agent, file and first byte).
    - expires: the oldest records of a log are deleted.
    - renews: the loader's output for a topic is removed, and the next load begins a new one.
    - tampers: rows are removed, added or replaced without a change in the manifests.
    - rules: rules of the agents leave out some lines.
    - collectors, steps: no faults, but the number of collectors and the number of random steps.
    - beats: how often counters send heartbeats, relative to other steps.
    - blind: a function that changes the evidence in such a way that one rule of the judgement has
      no effect.
    - unsummed: the recount compares no checksums, only numbers of records and bytes.
    """

    gaps: bool = False
    silent_gaps: bool = False
    kills: bool = False
    recounts: bool = False
    misplaces: str = ""
    swaps: bool = False
    remakes: bool = False
    unnamed: bool = False
    late: bool = False
    foreign: bool = False
    expires: bool = False
    renews: bool = False
    tampers: bool = False
    rules: bool = False
    unsummed: bool = False
    collectors: int = 1
    steps: int = 240
    beats: float = 1
    blind: Callable[[Evidence], None] | None = None


class Collector:
    """A collector of the audit, which reads each partition of the audit topics in order.

    `heard` names the deltas and seals that were read so far, by sender and number. `messages`
    contains all messages, in the order in which they were read.
    """

    def __init__(self, starts: dict[tuple[str, int], int] | None = None) -> None:
        self.fold = Fold()
        self.positions = dict(starts or {})
        self.heard: set[NumberKey] = set()
        self.messages: list[Message] = []

    def take(self, audit: AuditLogs, log: tuple[str, int], count: int) -> None:
        """Reads up to `count` further messages of one partition."""
        begin = self.positions.get(log, 0)
        read = audit.logs[log][begin : begin + count]
        for message in read:
            self.hear(message)
        self.positions[log] = begin + len(read)

    def unread(self, audit: AuditLogs) -> list[tuple[str, int]]:
        """The partitions with messages that the collector has not read."""
        known = self.positions
        return sorted(log for log, has in audit.logs.items() if known.get(log, 0) < len(has))

    def take_all(self, audit: AuditLogs) -> None:
        """Reads all partitions to their ends."""
        for log, messages in audit.logs.items():
            self.take(audit, log, len(messages))

    def hear(self, message: Message) -> None:
        """Adds a message to the collector's evidence. If the message is a delta or a seal, also
        adds its sender and number to `heard`."""
        self.fold.apply(message)
        self.messages.append(message)
        if isinstance(message, Delta | Seal):
            sender = message.sender
            self.heard.add((sender.tier, sender.producer, sender.epoch, message.number))


class World:
    """The simulated site. `seed` determines its random steps."""

    def __init__(self, seed: int, faults: Faults) -> None:
        self.random, self.faults = random.Random(seed), faults
        self.rules = random.Random(-seed - 1) if faults.rules else None
        self.now, self.sequence = 40, 0
        self.names = ("logs", "metrics") if faults.misplaces == "topic" else ("logs",)
        self.topics = {name: [topic_made(name, 1)] for name in self.names}
        self.mirrored = {name: self.current(name) for name in self.names}
        self.lines: list[Line] = []
        self.audit = AuditLogs()
        self.agents = [
            SiteAgent(x, self.names, self.current, self.audit, self.random) for x in AGENTS
        ]
        self.counters = [
            SiteCounter(Tier.BROKER, "dc1", self.current, self.audit, self.random),
            SiteCounter(Tier.MIRROR, "offline", self.copied, self.audit, self.random),
        ]
        self.loader = SiteLoader(self.copied, self.audit, self.random, self.place)
        self.collectors = [Collector() for _ in range(faults.collectors)]

    def current(self, name: str) -> Topic:
        """The topic that now has this name in the datacenter's cluster."""
        return self.topics[name][-1]

    def copied(self, name: str) -> Topic:
        """The topic of the datacenter's cluster that the mirror copies now. If the topic was
        deleted and created again, and the mirror has not noticed it, this is the old topic."""
        return self.mirrored[name]

    @property
    def now_ms(self) -> int:
        """The present time. In this model, all clocks are right."""
        return self.now * SECOND

    @property
    def tellers(self) -> list[Teller]:
        """The `Teller` (message numbers and outbox) of each agent, counter and loader output."""
        programs = [*self.agents, *self.counters, *self.loader.outputs.values()]
        return [program.teller for program in programs]

    # Events in files and logs.

    def tick(self) -> None:
        self.now += 1

    def line(self, agent: int) -> Line:
        """Makes a new line of an agent. Some lines get an event time one or two buckets before
        now."""
        self.sequence += 1
        back = self.random.choice([0] * 8 + [1, 2]) * BUCKET_MS
        bucket = self.now_ms - self.now_ms % BUCKET_MS - back
        name = self.random.choice(self.names)
        rule = ""
        if self.rules is not None and agent != NO_AGENT:
            rule = self.rules.choice(["", "", "debug", "health"])
        number = len(self.lines)
        made = Line(number, agent, name, bucket, self.sequence, self.now_ms, rule)
        self.lines.append(made)
        return made

    def write(self) -> None:
        agent = self.random.choice(self.agents)
        line = self.line(agent.number)
        agent.lines[line.topic].append(line)

    def write_foreign(self) -> None:
        """Writes a record without origin, as a producer that is not an agent does."""
        line = self.line(NO_AGENT)
        if line.bucket + BUCKET_MS <= self.now_ms:
            line = self.lines[-1] = replace(line, bucket=self.now_ms - self.now_ms % BUCKET_MS)
        topic, partition = self.current(line.topic), self.random.choice(PARTITIONS)
        log = topic.broker[partition]
        log.records.append(record_of(line, partition, log.end))
        topic.carried.add(line.number)

    def expire(self) -> None:
        """Deletes a random number of the oldest records of a log, whether or not any program has
        read them."""
        topic = self.current(self.random.choice(self.names))
        log = self.random.choice([*topic.broker, *topic.mirror])
        log.start = self.random.randint(log.start, log.end)

    def remake(self) -> None:
        name = self.random.choice(self.names)
        times = 1 if self.faults.unnamed else len(self.topics[name]) + 1
        self.topics[name].append(topic_made(name, times))
        if not self.faults.late:
            self.notice_all()

    def notice(self) -> None:
        """Chooses a topic name and a program, and makes the program notice whether the topic of
        this name was deleted and created again."""
        name = self.random.choice(self.names)
        chosen = self.random.choice([*self.agents, *self.counters, None])
        if chosen is None:
            self.mirrored[name] = self.current(name)
        else:
            chosen.notice(name, self.now_ms)

    def notice_all(self) -> None:
        self.mirrored = {name: self.current(name) for name in self.names}
        for program in [*self.agents, *self.counters]:
            for name in self.names:
                program.notice(name, self.now_ms)

    # Steps of programs.

    def send(self) -> None:
        agent = self.random.choice(self.agents)
        if behind := agent.behind():
            again = self.random.random() < 0.1
            agent.send(self.random.choice(behind), self.now_ms, twice=again)

    def commit(self) -> None:
        self.random.choice(self.agents).commit(self.now_ms)

    def note_seal(self) -> None:
        self.random.choice(self.agents).note_seal(self.now_ms, self.sequence)

    def mirror(self) -> None:
        name, partition = self.random.choice(self.names), self.random.choice(PARTITIONS)
        if self.mirrored[name] is not self.current(name):
            return  # the topic was created again at the source, so the mirror stops
        faults, skipped = self.faults, 0
        if (faults.gaps or faults.silent_gaps) and self.random.random() < 0.15:
            skipped = self.random.randint(1, 2)
        count = self.random.randint(1, 4)
        copy(self.current(name), partition, count, skipped, names=not faults.silent_gaps)

    def count(self) -> None:
        counter, name = self.random.choice(self.counters), self.random.choice(self.names)
        partition, count = self.random.choice(PARTITIONS), self.random.randint(1, 6)
        counter.fetch(name, partition, count, self.now_ms)

    def count_all(self, counter: SiteCounter) -> None:
        """Makes a counter count all records of all its logs."""
        for name in self.names:
            for partition in PARTITIONS:
                # A first call of `fetch` may count no records, because it skips a gap of offsets. A
                # second call may count none, because it only checks whether the batch that was
                # counted last is still the same. The third call counts the remaining records.
                for _ in range(3):
                    counter.fetch(name, partition, 10_000, self.now_ms)

    def commit_counter(self) -> None:
        self.random.choice(self.counters).commit(self.now_ms)

    def heartbeat(self) -> None:
        self.random.choice(self.counters).heartbeat(self.now_ms)

    def kill(self) -> None:
        self.random.choice(self.counters).kill()

    def recount(self) -> None:
        self.random.choice(self.counters).begin_epoch()

    def load(self) -> None:
        self.loader.load(self.names, self.now_ms)

    def accept_gaps(self) -> None:
        for name in self.names:
            self.loader.accept_gaps(self.copied(name))

    def renew(self) -> None:
        self.loader.remove(self.copied(self.random.choice(self.names)).source)

    def publish(self) -> None:
        self.random.choice(self.tellers).publish()

    # Faults in the loader's rows.

    def place(self, loads: list[Rows]) -> list[Rows]:
        """Returns the rows that the loader writes: the given rows, some of them in a wrong bucket,
        agent or topic if the faults say so."""
        if not self.faults.misplaces:
            return loads
        flat = [(at, row) for at, rows in enumerate(loads) for row in rows]
        if self.faults.swaps:
            return self.swapped(flat, len(loads))
        found: list[Rows] = [[] for _ in loads]
        for at, (place, sums) in flat:
            if self.random.random() < 0.15:
                at, place = self.moved(at, place, len(loads))
            found[at].append((place, sums))
        return found

    def moved(self, at: int, place: Placed, loads: int) -> tuple[int, Placed]:
        """Returns the given row with another bucket, agent or topic, as the field `misplaces` says.
        `at` is the position of the row's topic among the topics of the load."""
        match self.faults.misplaces:
            case "bucket":
                return at, place._replace(bucket=place.bucket + BUCKET_MS)
            case "agent":
                return at, place._replace(agent=sum(AGENTS) - place.agent)
            case _:
                other = (at + 1) % loads
                return other, place._replace(source=self.copied(self.names[other]).source)

    def swapped(self, flat: list[tuple[int, tuple[Placed, Sums]]], loads: int) -> list[Rows]:
        """Puts rows into a wrong bucket, agent or topic, as the fault `misplaces` says. For
        example, if it says `bucket`, two rows of one agent and topic exchange their buckets.
        Returns all rows."""
        fields = {"bucket": ("bucket",), "agent": ("agent",), "topic": ("source",)}
        [name] = fields[self.faults.misplaces]
        others = {"bucket", "agent", "source"} - {name}
        for i, (at, (one, sums)) in enumerate(flat):
            for j, (there, (other, others_sums)) in enumerate(flat[:i]):
                alike = all(getattr(one, x) == getattr(other, x) for x in others)
                if alike and getattr(one, name) != getattr(other, name):
                    flat[i] = (there, (other._replace(line=one.line), sums))
                    flat[j] = (at, (one._replace(line=other.line), others_sums))
                    break
        found: list[Rows] = [[] for _ in range(loads)]
        for at, row in flat:
            found[at].append(row)
        return found

    def tamper(self) -> None:
        """Removes a row from an output, adds a copy of a row, or does both, without a change in the
        manifests."""
        outputs = [x for x in self.loader.outputs.values() if len(x.rows) > 1]
        if not outputs:
            return
        rows = self.random.choice(outputs).rows
        kind = self.random.choice(["goes", "comes", "both"])
        chosen = self.random.choice(rows)
        if kind != "comes":
            rows.remove(chosen)
        if kind != "goes":
            beside = [x for x in rows if x[0][1:] == chosen[0][1:]] or rows
            rows.append(self.random.choice(beside))

    # The schedule.

    def step(self) -> None:
        """Takes one random step. The step does not let collectors read messages; the caller does
        this."""
        faults = self.faults
        actions = [
            (self.tick, 7.0), (self.write, 4), (self.send, 10), (self.commit, 5),
            (self.note_seal, 5), (self.mirror, 6), (self.count, 10), (self.commit_counter, 5),
            (self.heartbeat, faults.beats), (self.load, 3), (self.publish, 16),
        ]  # fmt: skip
        actions += [(self.accept_gaps, 0.5)] if faults.gaps or faults.expires else []
        actions += [(self.accept_gaps, 0.5)] if faults.silent_gaps else []
        actions += [(self.kill, 0.7)] if faults.kills else []
        actions += [(self.recount, 0.5)] if faults.recounts else []
        actions += [(self.remake, 0.7)] if faults.remakes else []
        actions += [(self.notice, 2)] if faults.late else []
        actions += [(self.write_foreign, 3)] if faults.foreign else []
        actions += [(self.expire, 1)] if faults.expires else []
        actions += [(self.renew, 0.4)] if faults.renews else []
        actions += [(self.tamper, 1)] if faults.tampers else []
        chosen, weights = zip(*actions, strict=True)
        self.random.choices(chosen, weights)[0]()

    def settle(self) -> None:
        """Lets all programs finish their work: they notice every topic that was created again, and
        read, count, load and publish everything."""
        for _ in range(3):
            self.now += 40
            self.notice_all()
            for agent in self.agents:
                for name in agent.behind():
                    while agent.position[name] < len(agent.lines[name]):
                        agent.send(name, self.now_ms)
                agent.commit(self.now_ms)
                agent.note_seal(self.now_ms, self.sequence)
            for name in self.names:
                for partition in PARTITIONS:
                    copy(self.current(name), partition, 10_000, 0, names=True)
            self.accept_gaps()
            for counter in self.counters:
                self.count_all(counter)
                counter.commit(self.now_ms)
            self.load()
            for teller in self.tellers:
                teller.publish()
            for counter in self.counters:
                counter.heartbeat(self.now_ms)
