"""Tests messages on the audit topic that a newer version of Skidway has sent, in a schema that this
version does not know. Such a message may report anything, so no bucket is complete until the
message is decoded. After an upgrade to a version that knows the schema, the message is decoded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skidway.audit.evidence.ledger import Ledger, Position
from skidway.audit.judgement import acceptances
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import TopicJudgement, verdicts
from skidway.audit.judgement.verdict import Status
from skidway.audit.topic import messages
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import (
    Announcement,
    Certainty,
    Delta,
    Loss,
    Message,
    Range,
    SchemaUnknown,
    Seal,
    Sender,
    Tier,
)
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.kafka.types import TopicPartition
from skidway.schemas import single_object
from support.audit_senders import BROKER, LOGS
from support.ledgers import take
from support.promises import promise

AGENT = Sender(Tier.AGENT, "dc1", "7", "h1", 1)
COUNT = Count(LOGS, 7, 100, 100, 3, 30, -5)
POLICY = Policy(tiers=(Tier.AGENT, Tier.BROKER), lateness_ms=0, silence_ms=500, ahead_ms=50)
GOOD: list[Message] = [
    Delta(AGENT, 1, 150, counts=(COUNT,)),
    Seal(AGENT, 2, 201, (SealedTopic(LOGS, 200, 1),)),
    Delta(BROKER, 1, 201, (Range(LOGS, 0, 0, 3),), (COUNT,)),
]
"""The messages about one complete bucket."""

LOSS = Loss(LOGS, 7, 3, 0, 9, Certainty.LOST, "the file vanished", 100, 100)
SAID_LATER = [
    Delta(AGENT, 3, 250, losses=(LOSS,)),
    Announcement(1, 8, 1, "h1", "/x", 1, 1, b"f", 4, LOGS),
    Seal(AGENT, 3, 250, (SealedTopic(LOGS, 240, 2),)),
]
TP, OTHER = TopicPartition("_skidway_audit", 0), TopicPartition("dc2._skidway_audit", 0)


def _newer() -> single_object.Messages:
    """Returns the schemas of a newer version of Skidway. In these schemas, every message has one
    more field. The newer version can still read messages of this version."""
    texts = []
    for name in ("Audit", "Announcement"):
        schema = json.loads(single_object.schema_text(name))
        schema["fields"].append({"name": "mood", "type": "string", "default": "good"})
        texts.append(json.dumps(schema))
    found = single_object.Messages(texts)
    found._by_header |= single_object.shipped()._by_header
    return found


NEWER = _newer()


def encoded(message: Message) -> bytes:
    """Encodes the message as a program of the newer version does."""
    name, record = single_object.decode(messages.encode(message))
    return NEWER.encode(name, record | {"mood": "bad"})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Makes a collector's store with one complete bucket, and returns the path of its file."""
    ledger = Ledger(tmp_path / "audit.db")
    take(ledger, [messages.encode(x) for x in GOOD], {TP: Position(17, "id")})
    [found] = verdicts(ledger.evidence(), POLICY, 300)
    assert found.status is Status.COMPLETE
    ledger.close()
    return tmp_path / "audit.db"


@promise("6 newer version")
@pytest.mark.parametrize("said", SAID_LATER, ids=["a loss", "a file", "a seal"])
def test_what_a_newer_version_said_leaves_nothing_complete(store: Path, said: Message) -> None:
    """While there is a message of a newer version that this version cannot read, no bucket is
    complete, because the message may declare a loss in any bucket. The verdict on each bucket, and
    on each agent's part of it, names the fingerprint of the message's schema."""
    with pytest.raises(SchemaUnknown) as unknown:
        messages.decode(encoded(said))
    ledger = Ledger(store)
    take(ledger, [encoded(said)], {TP: Position(18, "id")})
    evidence = ledger.evidence()
    [found] = verdicts(evidence, POLICY, 300)
    assert found.status is Status.UNKNOWN
    assert found.reasons[0].startswith("1 audit messages have a schema that this version does not")
    assert unknown.value.fingerprint in found.reasons[0]
    part = TopicJudgement(evidence, LOGS, POLICY, 300).agent(7, (100, 100))
    assert (part.status, part.reasons[0]) == (Status.UNKNOWN, found.reasons[0])
    assert (sum(ledger.refused_by_reason().values()), ledger.unread()) == (
        0,
        {unknown.value.fingerprint: 1},
    )
    assert not ledger.read_again()
    ledger.close()


@promise("6 newer version")
def test_what_a_newer_version_said_is_covered_by_no_acceptance_of_before(store: Path) -> None:
    """A person has accepted a bucket. Later the collector receives a message of a newer version,
    which it cannot read. The acceptance does not cover the finding about this message. The same is
    true for the findings on one agent's part of the bucket, which `skidway audit wait` checks."""
    ledger = Ledger(store)
    ledger.take([messages.encode(SAID_LATER[0])])
    lost = verdicts(ledger.evidence(), POLICY, 300)
    said = acceptances.acceptances(lost, acceptances.Signature(300, "ada", "the disk died"))
    ledger.take([messages.encode(x) for x in said])
    for more, left in ((), Status.COMPLETE), ([encoded(SAID_LATER[1])], Status.UNKNOWN):
        ledger.take(more)
        evidence = ledger.evidence()
        [found] = verdicts(evidence, POLICY, 300)
        part = TopicJudgement(evidence, LOGS, POLICY, 300).agent(7, (100, 100))
        assert (found.status, found.residue) == (Status.LOST, left)
        assert (part.status, part.residue) == (Status.LOST, left)
    ledger.close()


@promise("6 newer version")
def test_a_version_that_has_the_schema_reads_from_there_on(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later version that knows the schema goes back, in each partition, to an offset at or before
    the first message with this schema. It reads again from this offset on. So it misses none of
    these messages. A message that it reads for the second time does not count again."""
    later = [encoded(SAID_LATER[0]), messages.encode(GOOD[2])]
    ledger = Ledger(store)
    take(ledger, later, {TP: Position(18, "id"), OTHER: Position(5, "other")})
    take(ledger, [encoded(SAID_LATER[1])], {TP: Position(19, "id"), OTHER: Position(9, "other")})
    ledger.close()
    ledger = Ledger(store)
    assert not ledger.read_again()
    monkeypatch.setattr(single_object, "shipped", lambda: NEWER)
    assert ledger.read_again()
    assert ledger.positions() == {TP: Position(17, "id"), OTHER: Position(0, "other")}
    assert ledger.rebuilding == 2 + 9  # the number of messages to read again
    assert not ledger.read_again()
    take(ledger, [*later, encoded(SAID_LATER[1])], {TP: Position(19, "id")})
    [found] = verdicts(ledger.evidence(), POLICY, 300)
    assert (found.status, found.count(Tier.BROKER)) == (Status.LOST, 3)
    ledger.close()


@promise("6 newer version")
@pytest.mark.parametrize("is_first", [True, False], ids=["decided before", "decided after"])
def test_what_was_disowned_is_read_by_a_version_that_has_the_schema(
    store: Path, monkeypatch: pytest.MonkeyPatch, *, is_first: bool
) -> None:
    """Disowned messages hold no verdict up, in whichever order a rebuilt store reads them and the
    decision. But a version that has their schema reads them all the same: if a loss was among them,
    the bucket is lost."""
    said = encoded(SAID_LATER[0])
    ledger = Ledger(store)
    [disownment] = acceptances.disownments(
        [said[2:10].hex()], {said[2:10].hex(): 1}, acceptances.Signature(300, "ada", "not ours")
    )
    read = [said, messages.encode(disownment)]
    take(ledger, reversed(read) if is_first else read, {TP: Position(19, "id")})
    evidence = ledger.evidence()
    assert (ledger.unread(), list(evidence.disowned.values())) == ({}, [1])
    assert evidence.disownments == [disownment]
    assert verdicts(evidence, POLICY, 300)[0].status is Status.COMPLETE
    monkeypatch.setattr(single_object, "shipped", lambda: NEWER)
    assert ledger.read_again()
    assert ledger.positions() == {TP: Position(17, "id")}
    take(ledger, [said], {TP: Position(19, "id")})
    evidence = ledger.evidence()
    assert evidence.disowned == {}
    assert verdicts(evidence, POLICY, 300)[0].status is Status.LOST
    ledger.close()


def test_of_a_topic_made_again_meanwhile_nothing_is_passed_over(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the audit topic was deleted and created again before the newer version's message arrived,
    the program reads the new topic again from its start. A position in the old topic has no meaning
    for the new topic."""
    ledger = Ledger(store)
    take(ledger, [encoded(SAID_LATER[0])], {TP: Position(40, "made again")})
    monkeypatch.setattr(single_object, "shipped", lambda: NEWER)
    assert ledger.read_again()
    assert ledger.positions() == {TP: Position(0, "made again")}
    ledger.close()


def test_schemas_without_end_are_counted_together(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector's store counts the unreadable messages of each unknown schema. If there are
    more unknown schemas than a limit allows, it counts the messages of all further ones together.
    So a program that writes to the topic cannot fill the disk with new schemas. A collector that
    starts, also one of a newer version that has none of the schemas, does not read them again."""
    ledger = Ledger(store)
    ledger.take([b"\xc3\x01" + number.to_bytes(8) for number in range(1, 200)])
    assert len(ledger.unread()) == 65
    assert sum(ledger.unread().values()) == 199
    assert "199 audit messages" in verdicts(ledger.evidence(), POLICY, 300)[0].reasons[0]
    assert not ledger.read_again()
    monkeypatch.setattr(single_object, "shipped", lambda: NEWER)
    assert not ledger.read_again()
    ledger.close()
