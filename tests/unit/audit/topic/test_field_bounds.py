"""Tests which values the fields of a message may have, with values that no program writes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from skidway.audit.evidence.admission import Mode, Signatures
from skidway.audit.evidence.hearing import Heard
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.evidence.refused import Reason
from skidway.audit.judgement.clocks import clocks
from skidway.audit.judgement.hosts import survey
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.reports import report
from skidway.audit.signing import signature
from skidway.audit.signing.identity import Identity
from skidway.audit.signing.verifier import Verifier
from skidway.audit.topic import field_bounds, messages, usual_messages
from skidway.audit.topic.decisions import Acceptance, Disownment, FindingName, Retirement
from skidway.audit.topic.head import head_of
from skidway.audit.topic.messages import (
    TOPIC,
    Announcement,
    Behind,
    Certainty,
    Delta,
    Gap,
    Heartbeat,
    Loss,
    Message,
    MessageRefused,
    Range,
    Seal,
    encode,
)
from skidway.audit.topic.recount_result import RecountResult
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.kafka.source import Source
from support.any_messages import TIME_MS
from support.extreme_messages import extremes_of
from support.forgery_model import ADA, AGENT, BROKER, HONEST, LOADER, LOGS, MASTER, OWN, RECOUNT
from support.one_bucket import POLICY, count

KINDS: list[tuple[Message, Identity]] = [
    (Delta(AGENT, 1, TIME_MS, (), (count(agent=OWN, source=LOGS),)), HONEST[AGENT]),
    (
        Delta(
            AGENT, 2, TIME_MS, losses=(Loss(LOGS, OWN, 3, 1, 2, Certainty.LOST, "gone", 5, 6),)
        ),
        HONEST[AGENT],
    ),
    (Seal(AGENT, 3, TIME_MS, (SealedTopic(LOGS, TIME_MS, 2, ((0, 9),)),)), HONEST[AGENT]),
    (Heartbeat(AGENT, 3, TIME_MS), HONEST[AGENT]),
    (
        Announcement(
            TIME_MS, OWN, 1, "web1", "/p", 1, 2, b"f", 1, LOGS, 0, 2, 3, length=5, born_ns=6
        ),
        HONEST[AGENT],
    ),
    (
        Delta(
            BROKER, 1, TIME_MS, (Range(LOGS, 0, 0, 5),), (count(agent=OWN, source=LOGS),),
            gaps=(Gap(LOGS, 0, 7, 8, "gone"),),
        ),
        HONEST[BROKER],
    ),
    (Heartbeat(BROKER, 1, TIME_MS, 5, (Behind(LOGS, 9),)), HONEST[BROKER]),
    (Delta(LOADER, 1, TIME_MS, (Range(LOGS, 0, 0, 5),)), HONEST[LOADER]),
    (
        Acceptance(1, TIME_MS, "ada", "fine", LOGS, 0, 60_000, (FindingName(OWN, "late"),)),
        ADA,
    ),
    (Retirement(2, TIME_MS, "ada", "gone", "tier broker dc1"), ADA),
    (Disownment(3, TIME_MS, "ada", "gone", "00" * 8), ADA),
    (RecountResult(TIME_MS, "l1", "/out", LOGS, 5, 1, 1, 1, 0, 0, ("why",)), RECOUNT),
]  # fmt: skip


def _extremes() -> Iterator[tuple[str, bytes, Identity]]:
    for message, identity in KINDS:
        for path, value in extremes_of(message):
            yield path, value, identity


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.REQUIRE])
def test_no_value_of_a_field_stops_a_reader(mode: Mode) -> None:
    """Whatever value a field of a message has, signed with the sender's own key: the ledger takes
    the message, or counts it as no message, and judges and reports everything else."""
    ledger = Ledger(signatures=Signatures(mode, Verifier([MASTER])))
    for offset, (_, value, identity) in enumerate(_extremes()):
        header = signature.sign(MASTER.sender_key(identity), value)
        where = Heard(TOPIC, "id", 0, offset, TIME_MS, TIME_MS, is_live=True, signature=header)
        ledger.take_records([(value, where)], {}, TIME_MS)
    evidence = ledger.evidence()
    found = verdicts(evidence, POLICY, TIME_MS)
    assert report.table(found, POLICY.tiers)
    assert survey(evidence, POLICY, TIME_MS)
    clocks(evidence, POLICY, TIME_MS)
    ledger.prune([], TIME_MS, TIME_MS)
    assert ledger.refused_by_reason()[Reason.NO_MESSAGE] > 100
    ledger.close()


def test_a_message_with_such_a_value_is_none_to_any_decoder() -> None:
    """All decoders of messages refuse the same values, and no number of a message that they decode
    is near to the end of 64 bits."""
    refused = set()
    for path, value, _ in _extremes():
        try:
            message = messages.decode(value)
        except MessageRefused:
            refused.add(path)
            with pytest.raises(MessageRefused):
                usual_messages.decode(value)
            if path in {"epoch", "number"}:
                with pytest.raises(MessageRefused):
                    head_of(value)
            continue
        assert usual_messages.decode(value) == message
        if isinstance(message, Seal):
            for _, offset in message.topics[0].offsets:
                assert 0 <= offset + 1 < 1 << 63
    assert {"producer", "number", "epoch", "time", "sealed.table", "sealed.offsets"} <= refused
    assert {"ranges.0.first", "gaps.0.end", "losses.0.file", "behind.0.lag_ms"} <= refused
    assert {"agent", "host", "path", "length", "reason", "person", "rows", "reasons.0"} <= refused


def test_a_message_is_not_longer_than_any_program_writes_it() -> None:
    """A message that is too long, however few bytes its batch had, is no message."""
    topics = [SealedTopic(Source("dc1", "", "x" * 9_000, str(n)), 5, 1) for n in range(500)]
    value = encode(Seal(AGENT, 1, 5, topics))
    assert len(value) > field_bounds.MESSAGE_BYTES_MAX
    for decode in (messages.decode, usual_messages.decode):
        with pytest.raises(MessageRefused, match="bytes"):
            decode(value)
