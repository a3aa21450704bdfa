"""Which messages the ledger takes, if senders sign their messages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from skidway.audit.evidence import admission
from skidway.audit.evidence.admission import OTHERS, Mode, Signatures
from skidway.audit.evidence.hearing import Heard
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import Status
from skidway.audit.signing import signature
from skidway.audit.signing.agent_ids import agent_id, new_agent_id
from skidway.audit.signing.identity import Identity
from skidway.audit.signing.keys import MasterKey
from skidway.audit.signing.verifier import Verifier
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.decisions import Retirement
from skidway.audit.topic.messages import (
    TOPIC,
    Delta,
    Heartbeat,
    Message,
    Range,
    Seal,
    Sender,
    Tier,
    encode,
)
from skidway.audit.topic.seal_columns import SealedTopic
from support.forgery_model import (
    ADA,
    AGENT,
    BROKER,
    BUCKET_MS,
    BUCKETS,
    EVIL_AGENT,
    EVIL_COUNTER,
    HONEST,
    LOGS,
    MASTER,
    NOW,
    OTHER,
    OWN,
)

ENDED = BUCKETS[0] + BUCKET_MS
READ = ENDED + 1_000
"""When the records are read, by the reader's clock."""

UNKNOWN = b"\xc3\x01" + bytes(8)
"""A message with a schema that nobody has."""

TIERS = Policy(tiers=(Tier.AGENT, Tier.BROKER), lateness_ms=0)


class Reader:
    """A ledger that reads records of one audit topic."""

    def __init__(self, mode: Mode = Mode.REQUIRE, path: str | Path = ":memory:") -> None:
        verifier = None if mode is Mode.OFF else Verifier([MASTER])
        self.ledger = Ledger(path, signatures=Signatures(mode, verifier))
        self._offset = 0

    def read(
        self,
        message: Message | bytes,
        identity: Identity | None = None,
        *,
        time_ms: int = NOW,
        topic: str = TOPIC,
        master: MasterKey = MASTER,
    ) -> None:
        """Reads a message that the holder of this identity has signed; None if nobody has."""
        value = message if isinstance(message, bytes) else encode(message)
        header = identity and signature.sign(master.sender_key(identity), value)
        at = topic, "id", 0, self._offset, time_ms, READ
        where = Heard(*at, is_live=True, signature=header)
        self.ledger.take_records([(value, where)], {}, NOW)
        self._offset += 1

    def refused(self) -> list[tuple[str, str, str, str]]:
        return [(x.sender, x.kind, x.reason, x.detail) for x in self.ledger.refused()]

    def complete(self, *, signed: bool = True) -> None:
        """Reads what makes a bucket of agent and broker complete."""
        agent, broker = (HONEST[x] if signed else None for x in (AGENT, BROKER))
        count = Count(LOGS, OWN, BUCKETS[0], BUCKET_MS, 5, 10, 77)
        seal = Seal(AGENT, 2, READ, (SealedTopic(LOGS, ENDED, ENDED),))
        self.read(Delta(AGENT, 1, READ, counts=(count,)), agent, time_ms=READ)
        self.read(seal, agent, time_ms=READ)
        ranges = (Range(LOGS, 0, 0, 5),)
        self.read(Delta(BROKER, 1, READ, ranges, (count,)), broker, time_ms=READ)

    def status(self, policy: Policy = TIERS) -> tuple[Status, set[Cause]]:
        [found] = verdicts(self.ledger.evidence(), policy, READ)
        causes = {x.cause for x in found.findings}
        return found.status, causes | {x.cause for each in found.agents for x in each.findings}


def test_what_is_refused_is_named_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused message is counted under its sender, kind, reason and topic, with the offsets of
    the first and the last one. There are at most so many of these; all others are counted
    together."""
    monkeypatch.setattr(admission, "REFUSED_MAX", 3)
    reader = Reader()
    for number in range(3):
        reader.read(Seal(AGENT, number, NOW, ()), None, topic=f"dc1.{TOPIC}")
    reader.read(b"hello", HONEST[EVIL_AGENT])
    reader.read(Heartbeat(BROKER, 1, NOW), HONEST[EVIL_AGENT])
    for number in range(5):
        reader.read(Heartbeat(replace(AGENT, producer=str(100 + number)), 1, NOW), None)
    found = {x.kind: x for x in reader.ledger.refused()}
    seals = found["seal"]
    assert (seals.sender, seals.reason) == ("agent/dc1/web1", "unsigned")
    assert seals.topic == f"dc1.{TOPIC}"
    assert (seals.count, seals.first, seals.last) == (3, 0, 2)
    assert ("agent/dc1/evil", "", "no message", "") in reader.refused()
    by_reason = reader.ledger.refused_by_reason().items()
    assert {x: n for x, n in by_reason if n} == {"unsigned": 8, "no message": 1, "not its own": 1}
    assert [(x.sender, x.count) for x in reader.ledger.refused() if x.sender == OTHERS] == [
        (OTHERS, 5)
    ]


@pytest.mark.parametrize(
    ("mode", "taken", "named"),
    [(Mode.OFF, True, False), (Mode.WARN, True, True), (Mode.REQUIRE, False, True)],
)
def test_a_warning_takes_the_message(mode: Mode, taken: bool, named: bool) -> None:
    """With `warn`, a message without a signature counts, and is named all the same; with `require`
    it does not count; with `off` nobody is named."""
    reader = Reader(mode)
    reader.complete(signed=False)
    assert reader.ledger.topics() == ([LOGS] if taken else [])
    assert not taken or reader.status()[0] is Status.COMPLETE
    assert bool(reader.refused()) is named


def test_an_unreadable_message_without_a_signature_changes_nothing() -> None:
    """Twelve bytes of somebody without a key, which no version can read, are a refused message; the
    verdict stays complete."""
    reader = Reader()
    reader.complete()
    for identity, master in ((None, MASTER), (HONEST[AGENT], MasterKey(1, b"x" * 32))):
        reader.read(UNKNOWN, identity, master=master)
    assert reader.status() == (Status.COMPLETE, set())
    assert reader.ledger.unread() == {}
    assert set(reader.refused()) == {
        ("agent/dc1/web1", "unread", "wrong signature", ""), ("", "unread", "unsigned", ""),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("identity", "concerned"),
    [
        (HONEST[AGENT], True),
        (HONEST[EVIL_AGENT], False),
        (HONEST[BROKER], True),
        (HONEST[EVIL_COUNTER], False),
        (Identity.parse("counter/mirror/off"), True),
        (Identity.parse("loader/off/out"), True),
        (ADA, True),
        (Identity.parse("recount/l1"), False),
    ],
)
def test_what_a_sender_signs_and_nobody_can_read_concerns_its_own(
    identity: Identity, concerned: bool
) -> None:
    """A message of a newer version makes unknown what its sender may speak of: the lines of an
    agent, the topics of a cluster for the counter of its brokers, and everything for the others."""
    reader = Reader()
    reader.complete()
    reader.read(Heartbeat(EVIL_AGENT, 0, NOW), HONEST[EVIL_AGENT])
    reader.read(UNKNOWN, identity)
    expected = (Status.UNKNOWN, {Cause.NEWER_VERSION}) if concerned else (Status.COMPLETE, set())
    assert reader.status() == expected


def test_what_was_taken_before_anybody_had_to_sign_stays(tmp_path: Path) -> None:
    """A fleet that begins to sign: what the store has taken without signatures stays complete, and
    from then on only signed messages of the same senders are taken."""
    before = Reader(Mode.OFF, tmp_path / "audit.db")
    before.complete(signed=False)
    before.ledger.close()
    reader = Reader(path=tmp_path / "audit.db")
    assert reader.status() == (Status.COMPLETE, set())
    reader.read(Heartbeat(AGENT, 2, READ + 5), None)
    reader.read(Heartbeat(AGENT, 2, READ + 5), HONEST[AGENT])
    assert [x[:3] for x in reader.refused()] == [("agent/dc1/web1", "heartbeat", "unsigned")]
    assert reader.status() == (Status.COMPLETE, set())


def test_an_id_says_whose_it_is() -> None:
    """Nobody can claim the id of another's agent, not even before the agent was heard, nor an id
    that was made for nobody."""
    reader, old = Reader(), replace(AGENT, producer="5")
    reader.read(Heartbeat(replace(AGENT, host="evil"), 9, NOW), HONEST[EVIL_AGENT])
    reader.read(Heartbeat(AGENT, 2, NOW), HONEST[AGENT])
    reader.read(Heartbeat(old, 2, NOW), HONEST[AGENT])
    assert {x[::2] for x in reader.refused()} == {
        ("agent/dc1/evil", "another's agent id"), ("agent/dc1/web1", "another's agent id"),
    }  # fmt: skip


def test_several_agents_of_a_host_have_their_own_keys() -> None:
    """Two agents of one host have identities with different names, and neither speaks for the
    other."""
    one, two = (Identity.parse(f"agent/dc1/web1/{x}") for x in ("shop", "bank"))
    ours, theirs = (replace(AGENT, producer=str(new_agent_id(x))) for x in (one, two))
    reader = Reader()
    reader.read(Heartbeat(ours, 1, NOW), one)
    reader.read(Heartbeat(theirs, 1, NOW), two)
    assert reader.refused() == []
    reader.read(Heartbeat(ours, 2, NOW + 1), two)
    assert [x[::2] for x in reader.refused()] == [("agent/dc1/web1/bank", "another's agent id")]


@pytest.mark.parametrize("is_epoch", [False, True])
def test_a_host_cannot_make_up_agents_without_end(
    monkeypatch: pytest.MonkeyPatch, is_epoch: bool
) -> None:
    """An identity speaks for a bounded number of agents' ids and their epochs. What comes beyond is
    refused and named; its first agents, and other hosts, go on."""
    monkeypatch.setattr(admission, "AGENTS_MAX", 4)
    evil, reader = HONEST[EVIL_AGENT], Reader()
    made = [
        replace(EVIL_AGENT, epoch=x) if is_epoch
        else replace(EVIL_AGENT, producer=str(agent_id(evil, x)))
        for x in range(1, 9)
    ]  # fmt: skip
    for number in (1, 2):
        for sender in (*made, AGENT):
            reader.read(Heartbeat(sender, number, NOW + number), HONEST.get(sender, evil))
    [(sender, _, *reason)] = reader.refused()
    assert (sender, reason) == (str(evil), ["too many agents", "more than 4"])
    assert reader.ledger.refused_by_reason()["too many agents"] == 8
    known = {(x.producer, x.epoch): y.last for x, y in reader.ledger.evidence().senders.items()}
    assert known == {(x.producer, x.epoch): 2 for x in (*made[:4], AGENT)}


def test_a_producer_that_is_no_id_is_nobody() -> None:
    """An agent's producer is its id; a message with any other name is no message, even with the
    host's own key."""
    reader = Reader()
    for name in ("", "7x", "-7", "07", str(1 << 63), "9" * 5000):
        reader.read(Heartbeat(replace(AGENT, producer=name), 1, NOW), HONEST[AGENT])
    assert {x[1:3] for x in reader.refused()} == {("", "no message")}
    assert not reader.ledger.evidence().senders


def test_schemas_without_end_of_one_sender_hide_none_of_another() -> None:
    """Whoever has a key can sign any number of messages with unknown schemas. The schema of another
    sender's message is told apart all the same, so a version that has it reads the message."""
    reader = Reader()
    for number in range(1, 100):
        reader.read(b"\xc3\x01" + number.to_bytes(8), HONEST[EVIL_AGENT])
    reader.read(UNKNOWN, HONEST[AGENT])
    assert len(reader.ledger.unread()) == 66
    assert reader.ledger.unread()[UNKNOWN[2:].hex()] == 1


@pytest.mark.parametrize(
    ("mode", "signed", "is_unproven"),
    [(Mode.WARN, True, True), (Mode.WARN, False, False), (Mode.REQUIRE, False, True)],
)
def test_a_program_without_keys_never_says_complete(
    mode: Mode, signed: bool, is_unproven: bool
) -> None:
    """A program that reads the topics itself, and has no master keys, takes the messages so that it
    can show them. It says complete only if it has no settings, and nobody signs anything."""
    ledger = Ledger(signatures=Signatures(mode))
    count = Count(LOGS, OWN, BUCKETS[0], BUCKET_MS, 5, 10, 77)
    value = encode(Delta(BROKER, 1, NOW, (Range(LOGS, 0, 0, 5),), (count,)))
    header = signature.sign(MASTER.sender_key(HONEST[BROKER]), value) if signed else None
    where = Heard(TOPIC, "id", 0, 0, NOW, NOW, is_live=True, signature=header)
    ledger.take_records([(value, where)], {}, NOW)
    evidence = ledger.evidence()
    assert evidence.unproven is is_unproven
    [found] = verdicts(evidence, TIERS, READ)
    assert (Cause.NOT_VERIFIED in {x.cause for x in found.findings}) is is_unproven


def test_the_audit_knows_which_keys_are_in_use() -> None:
    """For each sender, the ledger has the number of the key with which it signed last."""
    masters = [MASTER, MasterKey(2, b"b" * 32)]
    ledger = Ledger(signatures=Signatures(Mode.REQUIRE, Verifier(masters)))
    for number, (sender, master) in enumerate(
        [
            (AGENT, masters[0]),
            (BROKER, masters[0]),
            (AGENT, masters[1]),
            (BROKER, masters[1]),
            (BROKER, masters[0]),  # as if its older key had been put back
            (BROKER, masters[0]),
        ]
    ):
        value = encode(Heartbeat(sender, number, NOW + number))
        header = signature.sign(master.sender_key(HONEST[sender]), value)
        where = Heard(TOPIC, "id", 0, number, NOW, NOW, is_live=True, signature=header)
        ledger.take_records([(value, where)], {}, NOW)
    assert ledger.signers() == {"agent/dc1/web1": 2, "counter/broker/dc1": 1}


def test_a_person_who_has_decided_uses_a_key() -> None:
    """Whoever signs any message uses its key: a person who has only made decisions, too."""
    reader = Reader()
    reader.read(Retirement(7, NOW, "ada", "because", "mirror off"), ADA)
    assert reader.refused() == []
    assert list(reader.ledger.signers()) == ["person/ada"]


def test_a_broker_counts_its_own_cluster() -> None:
    """The counter of a cluster cannot count topics of another one, even with its own key."""
    reader = Reader()
    count = Count(OTHER, OWN, BUCKETS[0], BUCKET_MS, 5, 10, 77)
    reader.read(Delta(BROKER, 1, NOW, (), (count,)), HONEST[BROKER])
    other = Sender(Tier.BROKER, "dc1", "second", "b1", 1)
    reader.read(Heartbeat(other, 1, NOW), HONEST[BROKER])
    assert {x[3] for x in reader.refused()} == {"topics of cluster dc2", "a message of second"}
