"""Turns audit messages into evidence in memory. The audit's ledger (the collector's store) does the
same in SQLite. This module is a second implementation in plain Python.

Evidence is the information that the audit gets from messages and uses for its verdicts. Tests take
the evidence of this module as right and compare the ledger's evidence with it. Models use this
module for verdicts, because it is faster than the ledger if there are few messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from skidway.audit.counts import checksum
from skidway.audit.counts.counts import Sums
from skidway.audit.evidence.counted_until import CountedUntil
from skidway.audit.evidence.evidence import (
    NEVER_AHEAD_MS,
    Coverage,
    Evidence,
    GapNote,
    Numbers,
    SealNote,
    TopicEvidence,
    agent_of,
    agents_in,
    loss_note,
    only_claimed,
    sender_key,
)
from skidway.audit.evidence.hearing import Heard, Spoken, after
from skidway.audit.evidence.overlaps import overlaps, partners
from skidway.audit.evidence.rereading import rereadings
from skidway.audit.evidence.statuses import Statuses
from skidway.audit.evidence.tallies import BucketId, SenderKey, Tally, links_of
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.decisions import Decision
from skidway.audit.topic.messages import (
    NOTHING_SAID,
    Announcement,
    Bounds,
    Delta,
    Heartbeat,
    Message,
    Seal,
    Tier,
)
from skidway.audit.topic.notes import Note
from skidway.audit.topic.notes import encode as encode_note
from skidway.audit.topic.program_status import KIND as STATUS
from skidway.audit.topic.recount_result import RecountResult
from skidway.audit.topic.transactions import KIND as TRANSACTIONS
from skidway.audit.topic.transactions import transactions_of
from skidway.kafka.source import Source
from support.file_notes import FileNotes
from support.hearings import Hearings, hear


def judge(messages: Iterable[Message], policy: Policy, now_ms: int) -> list[BucketVerdict]:
    """Returns the verdicts that follow from these messages. The messages may be in any order and
    may contain repetitions."""
    return verdicts(Fold(messages).evidence(), policy, now_ms)


def in_one_log(messages: Iterable[Message], taken_ms: int) -> Evidence:
    """Returns the evidence of these messages, which were read from one log in this order, while the
    reader's clock and the senders' clocks showed `taken_ms`."""
    fold = Fold()
    for offset, message in enumerate(messages):
        fold.apply(message, Heard("audit", "id", 0, offset, taken_ms, taken_ms, is_live=False))
    return fold.evidence()


class Fold:
    """Takes messages one by one, and returns the evidence of all messages so far."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        # the keys of all senders, in the order of their first messages
        self._senders: dict[SenderKey, None] = {}
        self._messages: dict[SenderKey, dict[int, Delta | Seal]] = {}
        self._others: dict[SenderKey, dict[int, list[Delta | Seal]]] = {}
        self._claims: dict[SenderKey, Heartbeat] = {}
        self._files: dict[Source, FileNotes] = {}
        self._hosts: dict[int, tuple[int, int, int, str]] = {}
        self._began: dict[tuple[int, str], int] = {}
        self._bounds: dict[int, Bounds] = {}
        self._decisions: list[Decision] = []
        self._recounts: dict[tuple[Source, str], RecountResult] = {}
        self._evidence = Evidence()
        self._statuses: dict[str, bytes] = {}
        self._transactions: dict[str, Note] = {}
        self._hearings = Hearings()
        self._taken: dict[tuple[SenderKey, int], int] = {}
        for message in messages:
            self.apply(message)

    def apply(self, message: Message, where: Heard | None = None) -> None:
        """Processes one message, which may be a repetition. `where` is the message's place in the
        audit topic, if the place is known."""
        repeated = where is not None and self._is_repeated(message)
        hear(self._hearings, message, where, is_repeated=repeated)
        if where is not None:
            self._evidence.taken_ms = where.taken_ms
        if isinstance(message, Delta | Seal | Heartbeat):
            self._apply_numbered(message, where)
        elif isinstance(message, Announcement):
            self._announced(message)
        elif isinstance(message, Decision):
            self._decisions.append(message)
        elif isinstance(message, RecountResult):
            output = message.source, message.output
            known_result = self._recounts.get(output, message)
            self._recounts[output] = max(known_result, message, key=lambda x: (x.loads, x.time_ms))
        elif isinstance(message, Note) and message.kind == STATUS:
            self._statuses[message.producer] = encode_note(message)
        elif isinstance(message, Note) and message.kind == TRANSACTIONS:
            known = self._transactions.get(message.producer, message)
            self._transactions[message.producer] = max(known, message, key=lambda x: x.rank)

    def _is_repeated(self, message: Message) -> bool:
        """Whether the message was sent before, or is a heartbeat that was sent before a later
        one."""
        if isinstance(message, Heartbeat):
            newest = self._claims.get(sender_key(message.sender))
            said = message.number, message.time_ms
            return newest is not None and said <= (newest.number, newest.time_ms)
        if not isinstance(message, Delta | Seal):
            return False
        return self._messages.get(sender_key(message.sender), {}).get(message.number) == message

    def _apply_numbered(self, message: Delta | Seal | Heartbeat, where: Heard | None) -> None:
        key = sender_key(message.sender)
        self._senders[key] = None
        seen = self._evidence.last_seen
        seen[key[:2]] = max(seen.get(key[:2], message.time_ms), message.time_ms)
        if message.sender.tier is Tier.AGENT:
            agent, bounds = agent_of(message.sender), message.sender.bounds
            said = message.sender.epoch, message.number, message.time_ms
            self._host(agent, said, message.sender.host)
            before = self._bounds.get(agent, NOTHING_SAID)
            self._bounds[agent] = Bounds(
                max(before.lateness_ms, bounds.lateness_ms), max(before.ahead_ms, bounds.ahead_ms)
            )
        if isinstance(message, Heartbeat):
            known_claim = self._claims.get(key, message)
            self._claims[key] = max(known_claim, message, key=lambda x: (x.number, x.time_ms))
            if key.tier in (Tier.BROKER, Tier.MIRROR):
                said, counted = CountedUntil.of(message, where), self._evidence.counted
                counted[key] = said.joined(counted.get(key, said))
            return
        known = self._messages.setdefault(key, {})
        if message.number not in known:
            known[message.number] = message
            if where is not None:
                self._taken[key, message.number] = where.arrived_ms
        elif known[message.number] != message:
            self._others.setdefault(key, {}).setdefault(message.number, []).append(message)

    def evidence(self) -> Evidence:
        """Returns the evidence of all messages that were processed so far."""
        hosts = {agent: host for agent, (*_, host) in self._hosts.items()}
        found = Evidence(
            hosts=hosts,
            last_seen=dict(self._evidence.last_seen),
            bounds=dict(self._bounds),
            heard=dict(self._hearings.heard),
            counted=dict(self._evidence.counted),
            readings={
                name: reading
                for name, found in self._hearings.readings.items()
                if (reading := after(None, found)) is not None
            },
            taken_ms=self._evidence.taken_ms,
            statuses=Statuses(list(self._statuses.values())),
        )
        self._add_beginnings(found)
        found.resumed = dict(self._hearings.sealed)
        found.overlaps = partners(
            overlaps({}, self._hearings.spoken, _named(self._hearings.spoken))
        )
        for source, topic in self._evidence.topics.items():
            found.topic(source).agents |= topic.agents
        for key in self._senders:
            if key in self._messages:
                self._add_sender(found, key)
            elif (claim := self._claims[key]).number > 0:
                found.senders[key] = only_claimed(
                    claim.sender.cluster, claim.sender.host, claim.number, claim.time_ms
                )
        for source, notes in self._files.items():
            known = rereadings(notes.files(), found.first_heard, found.last_heard)
            topic = found.topic(source)
            topic.rereadings = known
            files = {(x.loss.agent, x.loss.file) for own in topic.losses.values() for x in own}
            topic.paths = notes.paths(files)
        found.decided(self._decisions)
        _add_lossy(found)
        for (source, _), recount in sorted(self._recounts.items(), key=lambda x: x[0][1]):
            found.topic(source).recounts.append(recount)
        for note in self._transactions.values():
            for source, told in transactions_of(note).items():
                if source in found.topics:
                    found.topic(source).transactions[note.producer] = told
        return found

    def _add_beginnings(self, found: Evidence) -> None:
        """Adds the time of each agent's first message. Also adds the offsets of the messages that
        contain the present name of the agent's host, and the time of the first of these
        messages."""
        for (agent, host), time_ms in self._began.items():
            found.began[agent] = min(found.began.get(agent, time_ms), time_ms)
            if host == found.hosts[agent]:
                found.began_here[agent] = time_ms
        for (agent, host, log), offsets in self._hearings.offsets.items():
            if host == found.hosts[agent]:
                found.offsets.setdefault(agent, {})[log] = offsets

    def _add_sender(self, found: Evidence, key: SenderKey) -> None:
        found.senders[key] = self._numbers(key)
        for message in self._messages[key].values():
            taken_ms = self._taken.get((key, message.number), NEVER_AHEAD_MS)
            _add(found, key, message, counted=True, taken_ms=taken_ms)
        for clones in self._others.get(key, {}).values():
            for message in clones:
                _add(found, key, message, counted=False)

    def _announced(self, message: Announcement) -> None:
        self._host(message.agent, (0, 0, message.time_ms), message.host)
        self._evidence.topic(message.source).agents.add(message.agent)
        self._files.setdefault(message.source, FileNotes()).take(message)

    def _host(self, agent: int, said: tuple[int, int, int], host: str) -> None:
        """Stores the host that an agent's message contains. `said` is the message's epoch, number
        and time. For an announcement, epoch and number are 0. If an agent's messages contain
        different hosts, the host of the message with the highest `said` counts."""
        *_, time_ms = said
        self._hosts[agent] = max(self._hosts.get(agent, (*said, host)), (*said, host))
        self._began[agent, host] = min(self._began.get((agent, host), time_ms), time_ms)

    def _numbers(self, key: SenderKey) -> Numbers:
        messages = self._messages[key]
        first = messages[min(messages)]
        claimed = self._claims[key].number if key in self._claims else 0
        last = max(max(messages), claimed)
        missing = next((n for n in range(first.number, last + 1) if n not in messages), None)
        return Numbers(
            cluster=first.sender.cluster,
            host=first.sender.host,
            first=first.number,
            last=last,
            first_time_ms=first.time_ms,
            missing=missing,
            cloned_at=min(self._others[key]) if key in self._others else None,
        )


def _named(spoken: Iterable[Spoken]) -> dict[str, set[int]]:
    """Returns, for each host name, the agents whose messages contain this name."""
    found: dict[str, set[int]] = {}
    for each in spoken:
        found.setdefault(each.host, set()).add(each.agent)
    return found


def _add_lossy(found: Evidence) -> None:
    for topic in found.topics.values():
        topic.lossy = set(_lossy(topic, 60_000))


def _lossy(topic: TopicEvidence, size: int) -> Iterator[BucketId]:
    """Yields the buckets of a topic for which there is a declared loss, but no counts. `size` is
    the length in ms that such a bucket gets if nobody has accepted it."""
    accepted = {(each.bucket, each.bucket_ms) for each in topic.acceptances}
    for note in (note for notes in topic.losses.values() for note in notes):
        time_ms = note.loss.to_bucket
        if time_ms is None or any(x <= time_ms < x + length for x, length in topic.tallies):
            continue
        kept = [x for x in accepted if x[0] <= time_ms < sum(x)]
        yield from kept or [(time_ms - time_ms % size, size)]


def _add(
    found: Evidence,
    key: SenderKey,
    message: Delta | Seal,
    *,
    counted: bool,
    taken_ms: int = NEVER_AHEAD_MS,
) -> None:
    """Adds one message to the evidence. If `counted` is false, the evidence already has another
    message with the same sender and number. In this case the function adds the buckets that the new
    message names, and the message's losses, gaps and ranges. It ignores the message's counts and
    seals.
    """
    for source, agent in agents_in(message):
        found.topic(source).agents.add(agent)
    if isinstance(message, Delta):
        for count in message.counts:
            _add_count(found.topic(count.source), key, message.number, count, counted=counted)
        _add_progress(found, key, message)
    elif counted:
        agent = agent_of(message.sender)
        for sealed in message.topics:
            note = SealNote.of(
                key.epoch, message.number, sealed.sealed_until, sealed.at, sealed.final, taken_ms
            )
            found.topic(sealed.source).seals.setdefault(agent, []).append(note)


def _add_count(
    topic: TopicEvidence, key: SenderKey, number: int, count: Count, *, counted: bool
) -> None:
    by_agent = topic.tallies.setdefault((count.bucket, count.bucket_ms), {})
    tallies = by_agent.setdefault(count.agent, {})
    sums = _sums_of(count) if counted else Sums()
    links = links_of(number, count.previous) if counted else 0
    known = tallies.get(key)
    if known is None:
        tallies[key] = Tally(sums, number, number, links)
    else:
        tallies[key] = Tally(
            known.sums + sums,
            min(known.first, number),
            max(known.last, number),
            checksum.add(known.links, links),
        )


def _add_progress(found: Evidence, key: SenderKey, message: Delta) -> None:
    for loss in message.losses:
        note = loss_note(key, message.number, message.time_ms, loss)
        found.topic(loss.source).losses.setdefault(loss.agent, []).append(note)
    for gap in message.gaps:
        found.topic(gap.source).gaps.append(GapNote(key, message.time_ms, gap))
    for part in message.ranges:
        covered = found.topic(part.source).coverage.setdefault(key, {})
        known = covered.get(part.partition, Coverage(part.first, part.end))
        covered[part.partition] = Coverage(min(known.first, part.first), max(known.end, part.end))


def _sums_of(count: Count) -> Sums:
    return Sums(
        count.count, count.bytes, count.checksum, count.rejects, count.repeats, count.filtered
    )
