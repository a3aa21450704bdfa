"""A model of senders that sign, and of others who forge their messages.

The site has two clusters that meet in one audit. The honest senders are an agent, the counters of
tiers broker and mirror, a loader, a recount and a person. Others write into the same topics:

    N   has no key
    H   has the key of another host of the same cluster
    C   has the key of the counter of another cluster
    P   has the key of another person, and that of recounts on another host

Each of them writes what an honest sender could write next, or has written, with a signature that it
can make, or repeats records of honest senders. H and C also send true messages about themselves.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from skidway.audit.evidence.admission import Mode, Signatures
from skidway.audit.evidence.hearing import Heard
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.judgement.policy import AHEAD_MS
from skidway.audit.signing import signature
from skidway.audit.signing.agent_ids import agent_id
from skidway.audit.signing.identity import Identity
from skidway.audit.signing.keys import MasterKey
from skidway.audit.signing.verifier import Verifier
from skidway.audit.topic import (
    backlog,
    fieldless_note,
    load_note,
    program_status,
    retention,
    source_report,
    transactions,
)
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.decisions import Acceptance, FindingName, Retirement, Revocation
from skidway.audit.topic.messages import (
    TOPIC,
    Announcement,
    Behind,
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
from skidway.audit.topic.notes import Note
from skidway.audit.topic.recount_result import RecountResult
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.kafka.source import Source

MASTER = MasterKey(1, b"the audit's own master key......")
STRANGE = MasterKey(1, b"a key that somebody has made up.")
NOW = 1_800_000_000_000
BUCKET_MS = 60_000
READ = NOW - NOW % BUCKET_MS + BUCKET_MS + 1_000
"""A second after the end of the first bucket."""
BUCKETS = [NOW - NOW % BUCKET_MS + n * BUCKET_MS for n in range(3)]
LOGS, OTHER = Source("dc1", "c1", "logs", "t1"), Source("dc2", "c2", "logs", "t2")
OUTPUT = "/out"

WEB1, EVIL = Identity.parse("agent/dc1/web1"), Identity.parse("agent/dc1/evil")
OWN, EVILS = agent_id(WEB1, 7), agent_id(EVIL, 66)
"""The ids of the honest agent, and of one of the host `evil`."""
AGENT = Sender(Tier.AGENT, "dc1", str(OWN), "web1", 1)
BROKER = Sender(Tier.BROKER, "dc1", "broker-dc1", "b1", 1)
MIRROR = Sender(Tier.MIRROR, "off", "mirror-off", "m1", 1)
LOADER = Sender(Tier.HDFS, "off", f"{OUTPUT}/dc1.logs", "l1", 1)
EVIL_AGENT = Sender(Tier.AGENT, "dc1", str(EVILS), "evil", 1)
EVIL_COUNTER = Sender(Tier.BROKER, "dc2", "broker-dc2", "b9", 1)

HONEST = {
    AGENT: WEB1,
    BROKER: Identity.parse("counter/broker/dc1"),
    MIRROR: Identity.parse("counter/mirror/off"),
    LOADER: Identity.parse(f"loader/off/{OUTPUT}"),
    EVIL_AGENT: EVIL,
    EVIL_COUNTER: Identity.parse("counter/broker/dc2"),
}
ADA, EVE = Identity.parse("person/ada"), Identity.parse("person/eve")
RECOUNT, OTHER_RECOUNT = Identity.parse("recount/l1"), Identity.parse("recount/evil")
FORGERS = [HONEST[EVIL_AGENT], HONEST[EVIL_COUNTER], EVE, OTHER_RECOUNT]
_CLUSTERS = [TOPIC, f"dc1.{TOPIC}", f"dc2.{TOPIC}"]


class Written(NamedTuple):
    """A record of an audit topic. is_true: whether its sender may say what it says. time_ms: when
    it is read. sent_ms: when it was sent, by the clock of who sent it."""

    offset: int
    value: bytes
    header: bytes | None
    topic: str
    time_ms: int
    is_true: bool
    sent_ms: int


@dataclass
class Forgery:
    """Draws records, true and forged ones."""

    random: random.Random
    now_ms: int = NOW
    numbers: dict[Sender, int] = field(default_factory=dict)
    written: list[Written] = field(default_factory=list)

    def run(self, steps: int) -> list[Written]:
        """Returns the records of a run."""
        self.numbers = dict.fromkeys(HONEST, self.random.choice([0, 5]))
        for sender in (AGENT, EVIL_AGENT):
            self._write(Heartbeat(sender, 0, self.now_ms), HONEST[sender], is_true=True)
        for _ in range(steps):
            self.now_ms += self.random.choice([0, 1, 999, 15_000, 3_600_000])
            draw = self.random.choice([self._honest, self._honest, self._forged, self._repeated])
            draw()
        return self.written

    def lies(self, steps: int) -> list[Written]:
        """Returns records that make the first bucket complete for the honest agent, and between
        them records in which the host `evil` says anything of itself."""
        self.now_ms = READ
        honest = list(self._complete())
        for _ in range(steps):
            agent = agent_id(EVIL, self.random.choice([66, *range(100, 140)]))
            bounds = Bounds(*(self.random.choice([0, 1, 1 << 40, 1 << 62]) for _ in range(2)))
            sender = Sender(
                Tier.AGENT, "dc1", str(agent), "evil", self.random.randint(1, 2), bounds
            )
            message = self._numbered(sender)
            if not isinstance(message, Note) and self.random.random() < 0.5:
                far = self.random.choice([0, 1, NOW - 86_400_000, NOW + 86_400_000, 1 << 55])
                message = replace(message, time_ms=far)
            lag_ms = self.random.choice([7_200_000, 7_200_000, 0, -7_200_000])
            self._write(message, HONEST[EVIL_AGENT], is_true=True)
            self.written[-1] = self.written[-1]._replace(sent_ms=READ - lag_ms)
        for message, sender in honest:
            self._write(message, HONEST[sender], is_true=True)
            at = self.random.randrange(len(self.written))
            self.written.insert(at, self.written.pop())
        return [x._replace(offset=offset) for offset, x in enumerate(self.written)]

    def _complete(self) -> Iterator[tuple[Message, Sender]]:
        """Yields messages that make the first bucket complete. The first messages of the senders
        have expired long before."""
        count, until = _count(LOGS, OWN), READ - 1_000
        long_before = BUCKETS[0] - 3 * AHEAD_MS
        yield Delta(AGENT, 5, long_before), AGENT
        yield Delta(AGENT, 6, READ, counts=(replace(count, previous=0),)), AGENT
        yield Seal(AGENT, 7, READ, (SealedTopic(LOGS, until, until),)), AGENT
        yield Delta(BROKER, 5, long_before, (Range(LOGS, 0, 0, 5),)), BROKER
        counted = (Range(LOGS, 0, 5, 10),)
        yield Delta(BROKER, 6, READ, counted, (replace(count, previous=0),)), BROKER
        for sender in (MIRROR, LOADER):
            yield Heartbeat(sender, 1, READ), sender

    def _honest(self) -> None:
        if self.random.random() < 0.2:
            message, identity = self.random.choice(
                [(self._decision("ada"), ADA), (self._result("l1"), RECOUNT)]
            )
        else:
            sender = self.random.choice(list(HONEST))
            message, identity = self._numbered(sender), HONEST[sender]
        self._write(message, identity, is_true=True)

    def _forged(self) -> None:
        """Writes a message in the name of an honest sender, with a signature that a forger can
        make; or bytes that are no message."""
        if self.random.random() < 0.1:
            value = self.random.choice([b"", b"{", b"\xc3\x01" + self.random.randbytes(8), b"\xc3"])
            forgers = [x for x in FORGERS if x is not EVE]  # what a person decides concerns all
            self._append(value, self._header(value, forgers), is_true=False)
            return
        if self.random.random() < 0.4:
            message, identity = self.random.choice(_OVERCLAIMS)(self)
            self._write(message, identity, is_true=False)
            return
        victim = self.random.choice([AGENT, BROKER, MIRROR, LOADER])
        message = self.random.choice(
            [lambda: self._numbered(victim, advance=False), lambda: self._decision("ada"),
             lambda: self._result("l1")]
        )()  # fmt: skip
        value = encode(message)
        self._append(value, self._header(value), is_true=False)

    def _repeated(self) -> None:
        """Somebody writes a record of an honest sender again, whole, or with a changed value."""
        known = self.random.choice(self.written)
        value = known.value
        if self.random.random() < 0.3 and value:
            at = self.random.randrange(len(value))
            other = value[at] ^ 1 << self.random.randrange(8)
            value = value[:at] + bytes((other,)) + value[at + 1 :]
        self._append(value, known.header, is_true=False)

    def _header(self, value: bytes, forgers: Sequence[Identity] = FORGERS) -> bytes | None:
        """Returns a signature that somebody without the key of the victim can make."""
        draw = self.random.random()
        if draw < 0.3:
            return None
        if draw < 0.5:
            identity = self.random.choice([*HONEST.values(), ADA, RECOUNT])
            return signature.sign(STRANGE.sender_key(identity), value)
        if draw < 0.6:
            return self.random.randbytes(self.random.choice([1, 33, 60]))
        return signature.sign(MASTER.sender_key(self.random.choice(forgers)), value)

    def _numbered(self, sender: Sender, *, advance: bool = True) -> Message:
        """Returns a message of a sender: the next one, or one that it could have sent."""
        if not advance and self.random.random() < 0.3:
            sender = replace(sender, epoch=self.random.choice([1, 2, 9]))
        number = self.numbers.get(sender, 0) + (1 if advance else self.random.choice([0, 1, 1, 9]))
        kinds = [self._delta, self._heartbeat, self._note]
        if sender.tier is Tier.AGENT:
            kinds += [self._seal, self._announcement]
        message = self.random.choice(kinds)(sender, number)
        if advance and isinstance(message, Delta | Seal):
            self.numbers[sender] = number
        return message

    def _delta(self, sender: Sender, number: int) -> Delta:
        is_agent = sender.tier is Tier.AGENT
        agent = int(sender.producer) if is_agent else self.random.choice([0, OWN, EVILS])
        source = OTHER if sender.cluster == "dc2" else LOGS
        count = Count(
            source, agent, self.random.choice(BUCKETS), BUCKET_MS, self.random.randint(-3, 9), 10,
            self.random.getrandbits(62), previous=-1,
        )  # fmt: skip
        if sender.tier is Tier.AGENT:
            losses = (self._loss(source, agent),) if self.random.random() < 0.3 else ()
            return Delta(sender, number, self.now_ms, counts=(count,), losses=losses)
        ranges = (Range(source, 0, number * 10, number * 10 + 10),)
        gaps = (Gap(source, 0, 5, 6, "gone"),) if self.random.random() < 0.2 else ()
        return Delta(sender, number, self.now_ms, ranges, (count,), gaps=gaps)

    def _loss(self, source: Source, agent: int) -> Loss:
        return Loss(source, agent, 4, 0, 9, Certainty.LOST, "gone", BUCKETS[0], BUCKETS[1])

    def _seal(self, sender: Sender, number: int) -> Seal:
        until = self.random.choice([BUCKETS[0], BUCKETS[-1] + 10 * BUCKET_MS, self.now_ms])
        return Seal(sender, number, self.now_ms, (SealedTopic(LOGS, until, self.now_ms),))

    def _heartbeat(self, sender: Sender, number: int) -> Heartbeat:
        behind = () if sender.tier is not Tier.BROKER else (Behind(self._source(sender), 10),)
        return Heartbeat(sender, number, self.now_ms, 5, behind)

    def _source(self, sender: Sender) -> Source:
        return OTHER if sender.cluster == "dc2" else LOGS

    def _announcement(self, sender: Sender, number: int) -> Announcement:
        path = f"/var/log/{self.random.choice('ab')}.log"
        return Announcement(
            self.now_ms, int(sender.producer), self.random.randint(1, 3), sender.host, path, 1,
            self.random.randint(1, 2), b"f", 4, LOGS, length=self.random.choice([None, 9]),
        )  # fmt: skip

    def _note(self, sender: Sender, number: int) -> Note:
        kinds = {
            Tier.AGENT: (backlog, fieldless_note, source_report, program_status),
            Tier.HDFS: (load_note, program_status),
        }.get(sender.tier, (retention, transactions, program_status))
        return self.note(self.random.choice(kinds).KIND, sender, number)

    def note(self, kind: str, sender: Sender, number: int, **body: object) -> Note:
        """Returns a note of a kind, in the name of a sender."""
        names = sender.producer, sender.host, sender.cluster, sender.epoch
        return Note(kind, *names, max(number, 0), self.now_ms, {"since": self.now_ms, **body})

    def _decision(self, person: str) -> Message:
        said = self.random.getrandbits(62), self.now_ms, person, "because"
        finding = FindingName(OWN, "missing")
        return self.random.choice(
            [
                Acceptance(*said, LOGS, self.random.choice(BUCKETS), BUCKET_MS, (finding,)),
                Retirement(*said, "mirror off"),
                Revocation(*said, self.random.getrandbits(62)),
            ]
        )

    def _result(self, host: str) -> RecountResult:
        faults = self.random.choice([0, 2])
        return RecountResult(
            self.now_ms, host, OUTPUT, LOGS, None, self.random.randint(1, 9), 1, 1, faults, 0, ()
        )

    def _write(self, message: Message, identity: Identity, *, is_true: bool) -> None:
        value = encode(message)
        header = signature.sign(MASTER.sender_key(identity), value)
        self._append(value, header, is_true=is_true)

    def _append(self, value: bytes, header: bytes | None, *, is_true: bool) -> None:
        topic = _CLUSTERS[0] if is_true else self.random.choice(_CLUSTERS)
        offset = len(self.written)
        self.written.append(
            Written(offset, value, header, topic, self.now_ms, is_true, self.now_ms)
        )


def _by_agent(make: Callable[[Forgery], Message]) -> Callable[[Forgery], tuple[Message, Identity]]:
    return lambda run: (make(run), HONEST[EVIL_AGENT])


def _by_counter(
    make: Callable[[Forgery], Message],
) -> Callable[[Forgery], tuple[Message, Identity]]:
    return lambda run: (make(run), HONEST[EVIL_COUNTER])


def _count(source: Source, agent: int) -> Count:
    return Count(source, agent, BUCKETS[0], BUCKET_MS, 5, 10, 77, previous=-1)


_DISGUISED = replace(AGENT, host="evil")
_IN_ITS_PLACE = replace(EVIL_AGENT, host="web1")
_SEALED = SealedTopic(OTHER, BUCKETS[-1], NOW)
_OVERCLAIMS: Sequence[Callable[[Forgery], tuple[Message, Identity]]] = [
    *map(
        _by_agent,
        [
            lambda x: Delta(EVIL_AGENT, 900, x.now_ms, counts=(_count(LOGS, OWN),)),
            lambda x: Delta(EVIL_AGENT, 901, x.now_ms, counts=(_count(OTHER, EVILS),)),
            lambda x: Delta(EVIL_AGENT, 902, x.now_ms, losses=(x._loss(LOGS, OWN),)),
            lambda x: Delta(EVIL_AGENT, 903, x.now_ms, losses=(x._loss(OTHER, EVILS),)),
            lambda x: Delta(EVIL_AGENT, 904, x.now_ms, (Range(LOGS, 0, 0, 10**6),)),
            lambda x: Delta(EVIL_AGENT, 905, x.now_ms, gaps=(Gap(LOGS, 0, 0, 9, "gone"),)),
            lambda x: Seal(EVIL_AGENT, 906, x.now_ms, (_SEALED,)),
            lambda x: Heartbeat(EVIL_AGENT, 900, x.now_ms, 0, (Behind(OTHER, 5),)),
            lambda x: x._seal(_IN_ITS_PLACE, 907),
            lambda x: x._heartbeat(_IN_ITS_PLACE, 900),
            lambda x: x._announcement(_IN_ITS_PLACE, 0),
            lambda x: x._seal(_DISGUISED, 900),
            lambda x: x._heartbeat(_DISGUISED, 900),
            lambda x: x._announcement(_DISGUISED, 0),
            lambda x: x.note(backlog.KIND, _DISGUISED, 900),
            lambda x: x.note(program_status.KIND, _DISGUISED, 900),
            lambda x: x.note(retention.KIND, EVIL_AGENT, 900),
            lambda x: x.note(transactions.KIND, EVIL_AGENT, 900),
            lambda x: x.note(load_note.KIND, EVIL_AGENT, 900),
            lambda x: x.note(program_status.KIND, EVIL_AGENT, 900, brokers=[{"address": "b:1"}]),
            lambda x: replace(x._announcement(EVIL_AGENT, 0), source=OTHER),
        ],
    ),
    *map(
        _by_counter,
        [
            lambda x: Delta(EVIL_COUNTER, 900, x.now_ms, counts=(_count(LOGS, OWN),)),
            lambda x: Delta(EVIL_COUNTER, 901, x.now_ms, (Range(LOGS, 0, 0, 10**6),)),
            lambda x: Delta(EVIL_COUNTER, 902, x.now_ms, gaps=(Gap(LOGS, 0, 0, 9, "gone"),)),
            lambda x: Delta(EVIL_COUNTER, 903, x.now_ms, losses=(x._loss(OTHER, OWN),)),
            lambda x: Heartbeat(EVIL_COUNTER, 900, x.now_ms, 0, (Behind(LOGS, 5),)),
            lambda x: Seal(EVIL_COUNTER, 904, x.now_ms, (_SEALED,)),
            lambda x: x.note(fieldless_note.KIND, EVIL_COUNTER, 900),
        ],
    ),
]
"""Messages that an honest sender's own key signs, and that say what is not its own to say."""


def _where(x: Written) -> Heard:
    at = x.topic, "id", 0, x.offset, x.sent_ms, x.time_ms
    return Heard(*at, is_live=True, signature=x.header)


def ledger_of(written: Sequence[Written], mode: Mode = Mode.REQUIRE) -> Ledger:
    """Returns a ledger that has read these records."""
    verifier = None if mode is Mode.OFF else Verifier([MASTER])
    ledger = Ledger(signatures=Signatures(mode, verifier))
    ledger.take_records(((x.value, _where(x)) for x in written), {}, NOW)
    return ledger
