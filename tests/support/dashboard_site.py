"""Fills a collector's store with the messages of a small made-up site. These messages are the same
in every run, and no program of the site runs.

Agents on six hosts send lines to three topics. The messages contain the counts of every tier: for
each minute of the current hour and of the hour before it, and for one minute of each of the 40
hours before these two hours. One of the 40 hours has no counts. Tests of the pages and `make
screenshots` use the site in several states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from skidway.audit.collector.editions import Editions, step_of
from skidway.audit.collector.history_store import HistoryStore
from skidway.audit.collector.judge import Judge
from skidway.audit.collector.web.dashboard import Dashboard
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.explanation.next_command import Access
from skidway.audit.judgement.policy import FreshnessTarget, Policy
from skidway.audit.judgement.roster import Roster, RosterEntry
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.topic import fieldless_note, load_note, retention
from skidway.audit.topic.backlog import KIND, Backlog, FileBacklog, TopicBacklog, body_of
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.load_note import Load
from skidway.audit.topic.messages import (
    Announcement,
    Certainty,
    Delta,
    Heartbeat,
    Loss,
    Message,
    Range,
    Seal,
    Sender,
    Tier,
    encode,
)
from skidway.audit.topic.notes import Note
from skidway.audit.topic.recount_result import RecountResult
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from skidway.schemas.consuming.rejected_examples import RejectedExample
from support.clock import ManualClock
from support.ledgers import take
from support.processes import eventually

MINUTE, HOUR = 60_000, 3_600_000
NOW = 1_769_853_920_000
"""The present time on the site, in ms: 2026-01-31T10:05:20Z."""
TOPICS = tuple(Source("dc1", "cid", name, f"{name}-id") for name in ("auth", "nginx", "orders"))
AUTH, NGINX, ORDERS = TOPICS
REJECTED = Source("dc1", "cid", "auth.rejected", "auth.rejected-id")
ALL = (*TOPICS, REJECTED)
EXAMPLE = RejectedExample(
    TopicPartition("dc1.auth.rejected", 0), 812, NOW - 70_000, "no-match", "", "app2",
    "/var/log/auth.log", 51_022,
    "Jan 31 10:04:10 app2 sshd: <b>bad</b> packet length 1349676916 from 10.0.3.157, closing the"
    " connection\\x00",
)  # fmt: skip
HOSTS = tuple(f"app{number}" for number in range(1, 7))
BROKER = Sender(Tier.BROKER, "dc1", "broker-dc1", "audit1", 1)
MIRROR = Sender(Tier.MIRROR, "offline", "mirror-offline", "audit1", 1)
LOADERS = {
    x: Sender(Tier.HDFS, "dc1", f"hdfs://nn:8020/logs/dc1.{x.topic}", "etl1", 1) for x in TOPICS
}
LOADERS[REJECTED] = replace(LOADERS[AUTH], producer="hdfs://nn:8020/logs/dc1.auth.rejected")
POLICY = Policy(
    roster=Roster(RosterEntry(host, "dc1", frozenset(x.topic for x in TOPICS)) for host in HOSTS),
    freshness_targets=(FreshnessTarget("dc1.orders", 240_000), FreshnessTarget(".+", 600_000)),
)
HOURS_BEFORE = 40
LOST = NOW // MINUTE * MINUTE - 17 * MINUTE


@dataclass
class Site:
    """What happened on the site. `silent` says, for each silent host, how many minutes ago its last
    message came. `mirror_late` is the number of minutes for which the mirror's counter and the
    loader have counted no record of the topic `orders`. `rejects` is the number of lines of the
    topic `auth` that the agent of host app2 rejected in each minute. `lost` says whether the agent
    of host app4 declared a loss. `unjudged` is the number of hours that the collector has not
    judged yet. `is_empty` says whether nothing was ever counted. `has_recount` says whether a
    recount of the Parquet files has sent its results. `held_up` contains the hosts whose agents
    cannot deliver. For each of them, it says by how many minutes the time in the agent's last seal
    is behind the clock. `copied` is a file that the recount of the first topic found twice.
    `backlogs` contains, for each host, the last message of the host's agent about its backlog
    (bytes that are not read or not acknowledged yet). `kept_ms` says how long the brokers keep
    records, according to the counters. `records` contains, by topic, a record that the loader
    rejected.
    """

    silent: dict[str, float] = field(default_factory=dict)
    mirror_late: int = 0
    rejects: int = 0
    lost: bool = False
    unjudged: int = 0
    is_empty: bool = False
    has_recount: bool = False
    copied: str = ""
    held_up: dict[str, float] = field(default_factory=dict)
    backlogs: dict[str, Backlog] = field(default_factory=dict)
    fieldless: dict[str, dict[str, int]] = field(default_factory=dict)
    kept_ms: int | None = None
    records: dict[Source, RejectedExample] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clock = ManualClock(NOW)
        self.ledger = Ledger()
        self._numbers: dict[Sender, int] = {}
        if not self.is_empty:
            take(self.ledger, map(encode, self.messages()), {}, NOW - 2_000)

    def messages(self) -> Iterator[Message]:
        """Yields all messages. Each agent sends all its counts in one delta. Each counter and each
        loader sends one delta for each topic."""
        agents = [_agent(number, host) for number, host in enumerate(HOSTS, 1)]
        written = {x: list(self._written(number, x)) for number, x in enumerate(agents, 1)}
        for sender, counts in written.items():
            yield Delta(sender, 1, self._until(sender.host) - 3 * MINUTE, counts=counts)
        for source in (*TOPICS, REJECTED):
            of_topic = [x for each in written.values() for x in each if x.source == source]
            for sender in (BROKER, MIRROR, LOADERS[source]):
                seen = [x for x in of_topic if x.bucket < self._counted_until(sender, source)]
                ranges = (Range(source, 0, 0, sum(x.count for x in seen)),)
                number = self._next(sender)
                yield Delta(sender, number, NOW - MINUTE, ranges, tuple(seen))
        for sender in agents:
            yield from self._sealed(sender)
        for sender in (BROKER, MIRROR):
            yield Heartbeat(sender, self._numbers[sender], NOW - 20_000)
        yield from self._notes(agents)
        if self.has_recount:
            for source in TOPICS:
                said = (self.copied,) if self.copied and source is TOPICS[0] else ()
                yield RecountResult(
                    NOW - 7 * HOUR, "etl1", "hdfs://nn:8020/logs", source, NOW - 33 * HOUR, 26, 41,
                    812_344, len(said), 0, said,
                )  # fmt: skip

    def _notes(self, agents: Sequence[Sender]) -> Iterator[Message]:
        for x in agents:
            if x.host in self.backlogs:
                body = body_of(self.backlogs[x.host])
                until = self._until(x.host) - 20_000
                yield Note(KIND, x.producer, x.host, x.cluster, x.epoch, 9, until, body)
        if self.fieldless:
            x, found = agents[0], fieldless_note.FieldlessMembers(0, self.fieldless)
            kind, said = fieldless_note.KIND, fieldless_note.body_of(found)
            yield Note(kind, x.producer, x.host, x.cluster, x.epoch, 9, NOW - 20_000, said)
        if self.has_recount:
            yield from map(_load_note, range(17, 21))
        if self.kept_ms is not None:
            found = dict.fromkeys(TOPICS, self.kept_ms)
            for x in (BROKER, MIRROR):
                body = retention.body_of(found)
                yield Note(
                    retention.KIND, x.producer, x.host, x.cluster, x.epoch, 9, NOW - 9_000, body
                )

    def _sealed(self, sender: Sender) -> Iterator[Message]:
        at, number = self._until(sender.host), 2
        if self.lost and sender.host == "app4":
            yield Seal(sender, 2, LOST, tuple(SealedTopic(x, LOST, 1) for x in ALL))
            yield from _loss(sender, 3)
            number = 4
        vouched = at - 4_000 - round(self.held_up.get(sender.host, 0) * MINUTE)
        sealed = tuple(SealedTopic(x, vouched, 1) for x in ALL)
        yield Seal(sender, number, at - 2_000, sealed)

    def starts(self) -> Iterator[int]:
        """Yields the starts of the buckets. Each of the earlier hours has one bucket, except one
        hour that has none. The present hour and the hour before it have a bucket for every
        minute."""
        first = NOW // HOUR * HOUR - HOUR
        yield from (first - back * HOUR for back in range(HOURS_BEFORE, 0, -1) if back != 20)
        yield from range(first, NOW // MINUTE * MINUTE, MINUTE)

    def _written(self, number: int, sender: Sender) -> Iterator[Count]:
        for start in self.starts():
            if start + MINUTE <= self._until(sender.host):
                for source in ALL:
                    if count := _lines(source, number, start, self.rejects):
                        yield _count(source, number, start, count)

    def _counted_until(self, sender: Sender, source: Source) -> int:
        late = 2 if sender.tier is Tier.HDFS else 1
        if source == ORDERS and sender.tier is not Tier.BROKER:
            late = max(late, self.mirror_late)
        return NOW // MINUTE * MINUTE - late * MINUTE

    def _next(self, sender: Sender) -> int:
        self._numbers[sender] = self._numbers.get(sender, 0) + 1
        return self._numbers[sender]

    def _until(self, host: str) -> int:
        return NOW - round(self.silent.get(host, 0) * MINUTE)

    def dashboard(self, *, has_history: bool = True) -> Dashboard:
        """The dashboard that shows this site, with or without a history."""
        judge = Judge(self.ledger, lambda: POLICY, self.clock)
        found = replace(judge.step(), unjudged=self.unjudged)
        if self.unjudged:
            cut = [replace(x, complete_until=None) for x in found.topics]
            found = replace(found, topics=tuple(cut))
        self._editions = Editions([self.ledger], lambda: None)
        self._step = step_of(judge, found, self.clock.time_ms())
        self._editions.publish(self._step)
        access = Access("audit1", "k1:9092")
        examples = self.records | ({REJECTED: EXAMPLE} if self.rejects else {})
        history = self._history() if has_history else None
        return Dashboard(self._editions, self.clock, history, access, lambda: examples)

    def judge_again(self, now_ms: int) -> None:
        """Publishes the same verdicts again, as if the collector had made them at `now_ms`. The
        dashboard's next pages show these verdicts.
        """
        later = replace(self._step, standing=replace(self._step.standing, judged_ms=now_ms))
        eventually(lambda: self._editions.publish(later), what="no answer uses the store")

    def _history(self) -> HistoryStore:
        """A history in which each complete bucket became complete some minutes after its end."""
        history = HistoryStore(now_ms=NOW - 3 * HOUR)
        since = NOW // HOUR * HOUR - HOUR
        found = verdicts(self.ledger.evidence((since, NOW)), POLICY, NOW)
        for verdict in found:
            after_ms = 190_000 + verdict.bucket // MINUTE * 7_919 % 60 * 1_000
            at = verdict.bucket + verdict.bucket_ms + after_ms
            if at <= NOW:
                history.note([verdict], at)
        return history


def _load_note(number: int) -> Note:
    """Returns the message (a note) in which the loader tells the audit about one load of `nginx`.
    There is one load in each minute. The first note contains no number of bytes, like the notes of
    older loaders."""
    at, sender = NOW - (21 - number) * MINUTE, LOADERS[NGINX]
    load = Load(
        number, NGINX, 2.5 * (number - 15), 3_000, 2_990, 10, 2, None if number == 17 else 81_300
    )
    return Note("load", sender.producer, "etl1", "dc1", 1, number, at, load_note.body_of(load))


def _count(source: Source, agent: int, start: int, count: int) -> Count:
    return Count(source, agent, start, MINUTE, count, count * 180, count * 31 + agent)


def _agent(number: int, host: str) -> Sender:
    return Sender(Tier.AGENT, "dc1", str(number), host, 1)


def _lines(source: Source, host: int, start: int, rejects: int) -> int:
    if source == REJECTED:
        return rejects if host == 2 and start >= NOW // MINUTE * MINUTE - 50 * MINUTE else 0
    base = {AUTH: 3, NGINX: 140, ORDERS: 21}[source]
    return base * host + start // MINUTE * 31 % (base + 5)


def _loss(sender: Sender, number: int) -> Iterator[Message]:
    path, start = "/var/log/nginx/access.log", LOST
    yield Announcement(
        start, 4, 12, "app4", path, 1, 77, b"f" * 32, 1024, NGINX, born_ns=start * 1_000_000
    )
    loss = Loss(NGINX, 4, 12, 84_211, 90_440, Certainty.LOST, "deleted unread", start, start)
    yield Delta(sender, number, start + 5_000, losses=(loss,))


_OLDEST, _GONE = NOW - 26 * MINUTE, NOW + 92 * MINUTE
_ROTATED = FileBacklog("/var/log/nginx/access.log.6", 41_870_332, _OLDEST, _GONE)
UNREAD = Backlog((TopicBacklog("nginx", 48_102_118, 212_400, _OLDEST, _GONE, (_ROTATED,)),))
"""The backlog (lines that are not read or not acknowledged) of an agent that has stopped reading a
log. Log rotation will soon delete the oldest file of this log."""

STATES: dict[str, Callable[[], Site]] = {
    "empty": lambda: Site(is_empty=True),
    "complete": lambda: Site(has_recount=True),
    "incomplete": lambda: Site(mirror_late=9),
    "lost": lambda: Site(lost=True),
    "warned": lambda: Site(rejects=4),
    "rebuilding": lambda: Site(unjudged=31),
    "silent": lambda: Site(silent={"app3": 14}),
    "incidents": lambda: Site(
        silent={"app3": 14},
        mirror_late=9,
        rejects=4,
        lost=True,
        has_recount=True,
        backlogs={**dict.fromkeys(HOSTS, Backlog()), "app3": UNREAD},
        kept_ms=6 * HOUR,
    ),
}
"""For the name of each state, a function that makes the site in this state."""
