"""Simulates a small fleet (agents and counters) that sends random audit messages, and an audit
whose clock and settings change at random. Tests use the fleet to compare two ways of judging the
same ledger (a collector's store of all messages).

The fleet mostly behaves like a healthy site, so that most buckets become complete. Sometimes an
event happens for which the audit has a rule: A message is missing, comes twice, or comes a second
time with different content. An agent begins a new epoch, declares a loss, falls silent or shares
its host with another agent. A counter skips offsets. A person accepts a finding or retires a place.
The roster changes, or a clock is set to another time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from skidway.audit.evidence.hearing import Heard
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.judgement.acceptances import Signature, acceptances
from skidway.audit.judgement.policy import Exemption, Policy
from skidway.audit.judgement.roster import Roster, RosterEntry
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.topic.count_columns import Count, Filtered
from skidway.audit.topic.decisions import Retirement, Revocation
from skidway.audit.topic.messages import (
    TOPIC,
    Announcement,
    Bounds,
    Certainty,
    Delta,
    Gap,
    Heartbeat,
    Loss,
    Message,
    Range,
    Seal,
    Sender,
    Tier,
    encode,
)
from skidway.audit.topic.recount_result import RecountResult
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.errors import UsageError
from skidway.kafka.source import Source
from support.audit_senders import LOGS, OTHER, REJECTED
from support.clock import ManualClock

SIZE = 60_000
HOSTS = 5
SOURCES = (LOGS, OTHER, REJECTED)
POLICY = Policy(tiers=(Tier.AGENT, Tier.BROKER, Tier.HDFS), lateness_ms=120_000, silence_ms=180_000)
UNKNOWN_SCHEMA = b"\xc3\x01" + b"\x07" * 8 + b"newer"

Pending = dict[tuple[Source, int, int], int]
"""How many records a sender has not counted yet, by topic, agent and bucket."""


@dataclass(eq=False)
class Teller:
    """The state of a sender. `last` is the message number of the sender's last message, and
    `last_delta` is that of its last delta (message with counts). `pending` says how many records
    the sender has not counted yet. `touched` contains, for each bucket, the message number of the
    last delta that has counts of the bucket. `fileless_since` is the time since when no file has
    matched a source of the sender.
    """

    sender: Sender
    last: int = 0
    last_delta: int = 0
    pending: Pending = field(default_factory=dict)
    touched: Pending = field(default_factory=dict)
    is_running: bool = True
    fileless_since: int | None = None

    def add(self, source: Source, agent: int, bucket: int, count: int) -> None:
        key = source, agent, bucket
        self.pending[key] = self.pending.get(key, 0) + count


class AuditFleet:
    """The fleet, the ledger that stores the fleet's messages, and the clock and policy of the
    audit.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.ledger, self.clock, self.policy = Ledger(), ManualClock(), POLICY
        self.offset, self.offsets_counted = 0, 0
        self.agents = [self._agent(100 + host, host) for host in range(HOSTS)]
        self.counters = [
            Teller(Sender(Tier.BROKER, "dc1", "count-dc1", "c1", 1)),
            Teller(Sender(Tier.HDFS, "offline", "/logs", "l1", 1)),
        ]
        self.sent: list[bytes] = []
        self.decisions: list[int] = []
        for teller in [*self.agents, *self.counters]:
            self._delta(teller)
            self._seal(teller)

    def step(self) -> None:
        """Lets one random event happen. Most events are those of a healthy site."""
        usual: list[tuple[Callable[[], None], int]] = [
            (self._write, 12), (self._count, 14), (self._seal_any, 10), (self._pass_time, 8),
            (self._everybody, 4), (self._beat, 3),
        ]  # fmt: skip
        rare = [
            self._set_clock, self._begin_epoch, self._begin_agent, self._stop_agent, self._lose,
            self._skip_offsets, self._write_without_origin, self._accept, self._revoke,
            self._retire, self._change_policy, self._recount, self._clone, self._repeat,
            self._lose_message, self._break_chain, self._announce, self._be_wrong, self._filter,
            self._reject, self._last_word, self._set_seal_back, self._count_anew,
        ]  # fmt: skip
        if self.random.random() < 0.02:
            rare = [self._send_newer]
        if self.random.random() < 0.25:
            return self.random.choice(rare)()
        actions, weights = zip(*usual, strict=True)
        return self.random.choices(actions, weights)[0]()

    # Events of a healthy site.

    def _write(self) -> None:
        for agent in self.random.sample(self.agents, self.random.randrange(1, 4)):
            source = self.random.choice([LOGS, LOGS, OTHER])
            number = int(agent.sender.producer)
            for teller in [agent, *self.counters]:
                teller.add(source, number, self._bucket(), self.random.randrange(1, 9))
            bucket, count = self._bucket(), self.random.randrange(1, 9)
            for teller in [agent, *self.counters]:
                teller.pending.pop((source, number, bucket), None)
                teller.add(source, number, bucket, count)

    def _bucket(self) -> int:
        back = self.random.choice([0, 0, 0, 1, 2, 60, 200])
        return (self.clock.time_ms() // SIZE - back) * SIZE

    def _count(self) -> None:
        self._delta(self.random.choice([*self._running(), *self.counters]))

    def _seal_any(self) -> None:
        self._seal(self.random.choice(self._running()))

    def _everybody(self) -> None:
        """Lets every running agent and every counter send a delta (a message with counts) that
        counts its pending records. Then every running agent sends a seal, which says that all lines
        so far are counted.
        """
        for teller in [*self._running(), *self.counters]:
            self._delta(teller)
        for teller in self._running():
            self._seal(teller)

    def _beat(self) -> None:
        teller = self.random.choice([*self._running(), *self.counters])
        self._send(Heartbeat(teller.sender, teller.last, self.clock.time_ms()))

    def _pass_time(self) -> None:
        self.clock.advance(self.random.choice([1, 5, 20, 60, 100, 250, 700]))

    # Rare events.

    def _set_clock(self) -> None:
        self.clock.set_time_ms(
            self.clock.time_ms() + self.random.choice([-400_000, -50_000, 50_000, 4_000_000])
        )

    def _begin_epoch(self) -> None:
        teller = self.random.choice(self.agents)
        place = self.agents.index(teller)
        sender = replace(teller.sender, epoch=teller.sender.epoch + 1)
        self.agents[place] = Teller(sender, pending=teller.pending)

    def _begin_agent(self) -> None:
        host = self.random.randrange(HOSTS + 3)
        self.agents.append(self._agent(self.random.randrange(200, 10_000), host))

    def _stop_agent(self) -> None:
        self.random.choice(self.agents).is_running = self.random.random() < 0.5

    def _lose(self) -> None:
        teller, now = self.random.choice(self._running()), self.clock.time_ms()
        bucket, is_open = self._bucket(), self.random.random() < 0.3
        loss = Loss(
            self.random.choice(SOURCES), int(teller.sender.producer), 3, 0, None if is_open else 50,
            self.random.choice([*Certainty]), "it vanished",
            self.random.choice([bucket - SIZE, None]), self.random.choice([bucket, None]),
        )  # fmt: skip
        teller.last += 1
        self._send(Delta(teller.sender, teller.last, now, losses=(loss,)))

    def _skip_offsets(self) -> None:
        gap = Gap(self.random.choice(SOURCES), 0, 5, 9, "they expired")
        self._delta(self.random.choice(self.counters), gaps=(gap,))

    def _write_without_origin(self) -> None:
        bucket = self._bucket()
        for teller in self.counters:
            teller.add(LOGS, 0, bucket, 3)

    def _accept(self) -> None:
        found = verdicts(self.ledger.evidence(), self.policy, self.clock.time_ms())
        chosen = self.random.sample(found, min(3, len(found)))
        try:
            made = acceptances(chosen, Signature(self.clock.time_ms(), "anna", "known"))
        except UsageError:
            return
        for each in made:
            self.decisions.append(each.id)
            self._send(each)

    def _revoke(self) -> None:
        if self.decisions:
            said = (self.clock.time_ms(), "bert", "no")
            revoked = self.random.choice(self.decisions)
            self._send(Revocation(self.random.getrandbits(60), *said, revoked))

    def _retire(self) -> None:
        number = self.random.getrandbits(60)
        place = self.random.choice(["hdfs /logs", "cluster dc1", "hdfs"])
        self.decisions.append(number)
        self._send(Retirement(number, self.clock.time_ms(), "anna", "gone", place))

    def _change_policy(self) -> None:
        hosts = [RosterEntry(f"h{x}", "dc1", frozenset({"logs"})) for x in range(HOSTS + 1)]
        gone = [RosterEntry("h1", "dc1", retired=True)]
        self.policy = self.random.choice([
            POLICY, POLICY, replace(POLICY, lateness_ms=0), replace(POLICY, silence_ms=30_000),
            replace(POLICY, roster=Roster(hosts)), replace(POLICY, roster=Roster(hosts[:3] + gone)),
            replace(POLICY, roster=Roster(retired=["h2", "103"])),
            replace(POLICY, exemptions=(Exemption(Tier.HDFS, ("dc1.logs",)),)),
            replace(POLICY, rejects_share=0.5), replace(POLICY, tiers=(Tier.AGENT, Tier.BROKER)),
            replace(POLICY, tiers=(Tier.BROKER, Tier.HDFS)),
        ])  # fmt: skip

    def _recount(self) -> None:
        now, faults = self.clock.time_ms(), self.random.randrange(2)
        self._send(RecountResult(now, "l1", "/logs", LOGS, None, 1, 1, 1, faults, 0, ()))

    def _clone(self) -> None:
        teller = self.random.choice([*self._running(), *self.counters])
        said = Count(LOGS, 100, self._bucket(), SIZE, 1, 1, self.random.getrandbits(30))
        number = self.random.randint(max(1, teller.last - 3), max(1, teller.last))
        self._send(Delta(teller.sender, number, self.clock.time_ms(), counts=(said,)))

    def _repeat(self) -> None:
        self._take(self.random.choices(self.sent, k=3))

    def _lose_message(self) -> None:
        self.random.choice([*self._running(), *self.counters]).last += 1

    def _break_chain(self) -> None:
        teller = self.random.choice([*self._running(), *self.counters])
        if teller.touched:
            teller.touched[self.random.choice([*teller.touched])] = 0

    def _announce(self) -> None:
        agent = self.random.choice(self.agents)
        self._send(
            Announcement(
                self.clock.time_ms(), int(agent.sender.producer), self.random.randrange(1, 4),
                agent.sender.host, "/a.log", 1, self.random.randrange(1, 3), b"f" * 32, 1024, LOGS,
                born_ns=self.random.choice([5, None]),
            )
        )  # fmt: skip

    def _be_wrong(self) -> None:
        teller = self.random.choice([*self._running(), *self.counters])
        for key in teller.pending:
            teller.pending[key] += self.random.choice([-1, 0, 1])

    def _filter(self) -> None:
        self._delta(self.random.choice(self._running()), rules=(Filtered("drop", 2, 20),))

    def _reject(self) -> None:
        agent, bucket = self.random.choice(self._running()), self._bucket()
        for teller in [agent, *self.counters]:
            teller.add(REJECTED, int(agent.sender.producer), bucket, 2)

    def _last_word(self) -> None:
        self._seal(self.random.choice(self._running()), is_final=True)

    def _set_seal_back(self) -> None:
        teller = self.random.choice(self._running())
        teller.last += 1
        at = self.random.randint(0, teller.last_delta)
        sealed = SealedTopic(LOGS, self.clock.time_ms() - 100_000, at)
        self._send(Seal(teller.sender, teller.last, self.clock.time_ms(), (sealed,)))

    def _count_anew(self) -> None:
        place = self.random.randrange(len(self.counters))
        old = self.counters[place]
        epoch = old.sender.epoch + self.random.choice([1, 1, 0])
        self.counters[place] = Teller(
            replace(old.sender, epoch=epoch), pending=old.pending,
            last=old.last if epoch == old.sender.epoch else 0,
        )  # fmt: skip

    def _send_newer(self) -> None:
        self._take([UNKNOWN_SCHEMA])

    # Functions that send messages.

    def _agent(self, agent: int, host: int) -> Teller:
        bounds = Bounds(*self.random.choice([(0, 0), (0, 0), (150_000, 3_700_000)]))
        return Teller(Sender(Tier.AGENT, "dc1", str(agent), f"h{host}", 1, bounds))

    def _running(self) -> list[Teller]:
        return [x for x in self.agents if x.is_running] or self.agents[:1]

    def _delta(
        self, teller: Teller, gaps: Iterable[Gap] = (), rules: tuple[Filtered, ...] = ()
    ) -> None:
        teller.last = teller.last_delta = teller.last + 1
        counts, sources = [], [LOGS, OTHER]
        for (source, agent, bucket), count in teller.pending.items():
            previous = teller.touched.get((source, agent, bucket), 0)
            teller.touched[source, agent, bucket] = teller.last
            digest = count * (agent + bucket) % (1 << 60)
            count = max(count, 0)
            counts.append(
                Count(source, agent, bucket, SIZE, count, 10 * count, digest, 0, 0, previous, rules)
            )
            sources += [source] if source not in sources else []
        teller.pending = {}
        self.offsets_counted += 5
        first, end = self.offsets_counted - 5, self.offsets_counted
        is_counter = teller.sender.tier is not Tier.AGENT
        ranges = tuple(Range(x, 0, first, end) for x in sources) if is_counter else ()
        now = self.clock.time_ms()
        self._send(Delta(teller.sender, teller.last, now, ranges, tuple(counts), (), tuple(gaps)))

    def _seal(self, teller: Teller, *, is_final: bool = False) -> None:
        if teller.sender.tier is not Tier.AGENT:
            return
        teller.last += 1
        now = self.clock.time_ms()
        if self.random.random() < 0.1:
            teller.fileless_since = now if teller.fileless_since is None else None
        until = now if teller.fileless_since is None else -teller.fileless_since
        sealed = (SealedTopic(x, until, teller.last_delta, final=is_final) for x in SOURCES[:2])
        self._send(Seal(teller.sender, teller.last, now, tuple(sealed)))

    def _send(self, message: Message) -> None:
        self._take([encode(message)])

    def _take(self, values: list[bytes]) -> None:
        now = self.clock.time_ms()
        self.sent += values
        places = []
        for _ in values:
            self.offset += 1
            is_live = self.random.random() < 0.8
            places.append(Heard(TOPIC, "t", 0, self.offset, now, now, is_live=is_live))
        self.ledger.take_records(zip(values, places, strict=True), {}, now)
