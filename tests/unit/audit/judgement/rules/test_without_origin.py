"""Tests how buckets of records without origin, which no agent has sent, are judged. For these
records, the audit compares only the broker tier and the tiers after it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.topic.messages import (
    Behind,
    Gap,
    Heartbeat,
    Range,
    Tier,
)
from skidway.audit.topic.notes import Note
from skidway.audit.topic.transactions import KIND, Held, Transactions, body_of
from support.audit_senders import BROKER, LOGS
from support.one_bucket import (
    COUNTERS,
    DUE,
    HDFS,
    MIRROR,
    POLICY,
    START,
    count,
    delta,
    from_the_broker_on,
    good,
    verdict,
)
from support.promises import promise


@promise("6 without origin")
def test_without_a_counter_nothing_without_origin_is_complete() -> None:
    """If the configured tiers include neither broker nor mirror, only the loader counts records
    without origin. Their buckets are then unknown, because the loader's counts cannot be compared
    with those of a counter."""
    policy = replace(POLICY, tiers=(Tier.AGENT, Tier.HDFS))
    found = verdict([delta(HDFS, 1, count(agent=0))], policy)
    assert found.status is Status.UNKNOWN
    assert found.reasons[0] == "nobody counts what has no origin before it is loaded"


@promise("6 without origin")
def test_records_without_origin_are_audited_from_the_broker_on() -> None:
    """Records without origin are compared from the broker tier on, because no agent has counted
    them. The verdict says that the comparison began at the broker."""
    found = verdict(from_the_broker_on())
    assert (found.status, found.reasons) == (Status.COMPLETE, ("audited from the broker on",))
    assert verdict(from_the_broker_on(), now=DUE - 1).status is Status.OPEN


def test_without_origin_a_bucket_waits_for_its_counter() -> None:
    """A bucket becomes due when it is old enough to be complete. A bucket of records without origin
    then stays open until the next message of the counter. No seal says that all these records are
    counted, and a counter that has stopped may have counted only some of them."""
    stopped = [*from_the_broker_on()[:-1], Heartbeat(BROKER, 1, DUE - 1)]
    found = verdict(stopped)
    assert found.status is Status.OPEN
    assert "the broker counter broker-dc1 was heard last at" in found.reasons[0]
    assert verdict(stopped, now=DUE + 100_000).status is Status.UNKNOWN
    without_agents = replace(POLICY, tiers=(Tier.BROKER, Tier.MIRROR, Tier.HDFS))
    assert verdict(good()[1:4], without_agents).status is Status.OPEN
    assert verdict([*good()[1:4], Heartbeat(BROKER, 1, DUE)], without_agents).status is (
        Status.COMPLETE
    )


def test_records_without_origin_are_compared_too() -> None:
    """Each later tier must have counted the same records without origin as the first tier that has
    a counter."""
    messages = from_the_broker_on()
    messages[2] = delta(HDFS, 1, count(4, agent=0))
    found = verdict(messages)
    assert found.status is Status.INCOMPLETE
    assert any("hdfs /logs/dc1.logs is short by 1 of 5" in reason for reason in found.reasons)


def test_without_origin_and_a_broker_tier_the_mirrors_counter_is_waited_for() -> None:
    """If the configured tiers do not include the broker, buckets of records without origin wait for
    the mirror's counter. If the agent is the only tier, such buckets are unknown, because no tier
    counts their records."""
    policy = replace(POLICY, tiers=(Tier.AGENT, Tier.MIRROR, Tier.HDFS))
    counted = from_the_broker_on()[1:3]
    assert verdict(counted, policy).status is Status.OPEN
    heard = [*counted, Heartbeat(MIRROR, 1, DUE)]
    assert verdict(heard, policy).status is Status.COMPLETE
    unmirrored = replace(POLICY, tiers=(Tier.AGENT, Tier.BROKER, Tier.HDFS))
    assert verdict(from_the_broker_on(), unmirrored).status is Status.COMPLETE
    agents = replace(POLICY, tiers=(Tier.AGENT,))
    assert verdict(from_the_broker_on(), agents).status is Status.UNKNOWN


@promise("6 without origin")
def test_without_origin_no_counter_stands_for_another_one() -> None:
    """A message of one counter proves nothing about another counter. For example, a message of the
    mirror's counter does not prove that the broker's counter has counted all records. If there are
    two mirrors, the audit waits for the counters of both."""
    counted = from_the_broker_on()[:3]
    behind = [Heartbeat(BROKER, 1, DUE - 1), Heartbeat(MIRROR, 1, DUE)]
    assert verdict([*counted, *behind]).status is Status.OPEN
    unheard = replace(POLICY, tiers=(Tier.AGENT, Tier.MIRROR, Tier.HDFS))
    other = replace(MIRROR, cluster="second", producer="mirror-second")
    mirrors = [*counted[1:], delta(other, 1, count(agent=0)), Heartbeat(MIRROR, 1, DUE)]
    assert verdict([*mirrors, Heartbeat(other, 1, DUE - 1)], unheard).status is Status.OPEN
    assert verdict([*mirrors, Heartbeat(other, 1, DUE)], unheard).status is Status.COMPLETE


def test_without_origin_a_retired_counter_that_is_short_holds_nothing_back() -> None:
    """If a retired counter lacks records of a bucket, the bucket can still be complete, because
    only the active counters are compared."""
    policy = replace(POLICY, retired_places=("broker dc1",))
    short = [*from_the_broker_on()[1:3], delta(BROKER, 1, count(3, agent=0))]
    assert verdict([*short, Heartbeat(MIRROR, 1, DUE)], policy).status is Status.COMPLETE


@pytest.mark.parametrize(("place", "begin"), [("broker dc1", 0), ("broker", 0), ("broker", 1)])
def test_without_origin_the_counter_behind_a_retired_one_is_waited_for(
    place: str, begin: int
) -> None:
    """If the counter of the first tier is retired, the audit waits for the counter of the next
    tier. It does not matter whether the retired counter ever counted anything."""
    policy = replace(POLICY, retired_places=(place,))
    messages = from_the_broker_on()[begin:3]
    assert verdict(messages, policy).status is Status.OPEN
    assert verdict([*messages, Heartbeat(MIRROR, 1, DUE)], policy).status is Status.COMPLETE


@promise("6 without origin")
@pytest.mark.parametrize(
    "places", [("broker", "mirror"), ("broker dc1", "mirror offline"), ("broker", "mirror offline")]
)
def test_without_origin_retired_counters_prove_nothing_by_being_silent(
    places: tuple[str, ...],
) -> None:
    """If all counters are retired, a bucket is complete only if a message of one of them has come
    since the bucket became due (old enough to be complete). Without such a message, the counters
    may have counted only some of the bucket's records. Equal counts of the loader prove nothing,
    because the loader may have stopped, too."""
    policy = replace(POLICY, retired_places=places)
    late = DUE + POLICY.silence_ms
    counted = from_the_broker_on()[:3]
    assert verdict([*counted, Heartbeat(MIRROR, 1, DUE - 1)], policy).status is Status.OPEN
    silent = [*counted, Heartbeat(MIRROR, 1, DUE - 1), Heartbeat(HDFS, 1, DUE)]
    assert verdict(silent, policy, late).status is Status.UNKNOWN
    alone = replace(policy, tiers=(Tier.AGENT, Tier.BROKER))
    assert verdict([counted[0], Heartbeat(BROKER, 1, DUE - 1)], alone, late).status is (
        Status.UNKNOWN
    )
    for sender in (BROKER, MIRROR):
        heard = [*counted, Heartbeat(sender, 1, DUE)]
        assert verdict(heard, policy, late).status is Status.COMPLETE


@pytest.mark.parametrize(
    ("tier", "place"), [(0, "broker dc1"), (1, "mirror offline")], ids=["broker", "mirror"]
)
@pytest.mark.parametrize(
    ("said", "expected"),
    [(START - POLICY.ahead_ms, Status.COMPLETE), (START - POLICY.ahead_ms + 1, Status.UNKNOWN)],
)
def test_without_origin_a_late_beginning_or_a_gap_touches_no_later_bucket(
    said: int, expected: Status, tier: int, place: str
) -> None:
    """If a counter did not begin at the first record, or reported a gap (offsets that it could not
    read), it lacks records. The missing records may have event times after the counter's message,
    but only up to a limit that a setting gives. Buckets that begin after this limit can be
    complete. All buckets can be complete if the counter has counted everything again in a new
    epoch, or is retired."""
    sender = COUNTERS[tier]
    gap = Gap(LOGS, 0, 3, 5, "expired")
    late = delta(sender, 1, count(agent=0), ranges=(Range(LOGS, 0, 1, 9),))
    for first in (late, delta(sender, 1, count(agent=0), gaps=(gap,))):
        messages = [*from_the_broker_on(), Heartbeat(MIRROR, 1, DUE)]
        messages[tier] = replace(first, time_ms=said)
        assert verdict(messages).status is expected
        retired = replace(POLICY, retired_places=(place,))
        assert verdict(messages, retired).status is Status.COMPLETE
        new = replace(sender, epoch=2)
        again = [delta(new, 1, count(agent=0)), Heartbeat(new, 1, DUE)]
        assert verdict([*messages, *again]).status is Status.COMPLETE


def test_without_origin_a_late_beginning_or_a_gap_leaves_it_unknown() -> None:
    """If a counter did not begin at the first record, or reported a gap, buckets of records without
    origin are unknown (apart from buckets that begin long after the counter's message). The offsets
    of the records that the counter lacks are known, but not their buckets."""
    messages = from_the_broker_on()
    messages[0] = delta(BROKER, 1, count(agent=0), ranges=(Range(LOGS, 0, 4, 9),))
    assert "did not count partition 0 from its start" in verdict(messages).reasons[0]
    gap = Gap(LOGS, 0, 3, 5, "expired")
    messages[0] = delta(BROKER, 1, count(agent=0), gaps=(gap,))
    assert verdict(messages).status is Status.UNKNOWN


def told(said: Transactions, number: int = 1) -> Note:
    """Returns the broker counter's note about the transactions of the topic."""
    body = body_of({LOGS: said})
    return Note(KIND, BROKER.producer, BROKER.host, BROKER.cluster, 1, number, DUE, body)


def cause_of(found: BucketVerdict) -> Cause:
    return found.agents[0].findings[0].cause


def beat(lag_ms: int = 0, *behind: Behind, time_ms: int = DUE + 50) -> Heartbeat:
    return Heartbeat(BROKER, 1, time_ms, lag_ms, behind)


@promise("6 without origin")
def test_only_the_heartbeat_of_a_counter_says_up_to_when_it_has_counted() -> None:
    """A bucket of records without origin is complete only if a heartbeat of the counter says that
    everything is counted up to the time at which the bucket was due. Other messages of the counter
    do not say it, however late they come, and neither does a heartbeat about other topics."""
    counted = from_the_broker_on()[:-1]
    late = replace(counted[0], time_ms=DUE + 99)
    assert verdict([late, *counted[1:]]).status is Status.OPEN
    found = verdict([*counted, beat(51)])
    assert (found.status, cause_of(found)) == (Status.OPEN, Cause.COUNTER_BEHIND)
    assert "the broker counter broker-dc1 has counted this topic only until" in found.reasons[0]
    assert verdict([*counted, beat(51)], now=DUE + 100_000).status is Status.UNKNOWN
    assert verdict([*counted, beat(0, Behind(LOGS, 51))]).status is Status.OPEN
    other = replace(LOGS, topic="other")
    assert verdict([*counted, beat(0, Behind(other, 51))]).status is Status.COMPLETE
    assert verdict([*counted, beat(51, Behind(other, 99))]).status is Status.OPEN
    assert verdict([*counted, beat(50)]).status is Status.COMPLETE


@promise("6 without origin")
def test_what_a_counter_once_said_stays_true() -> None:
    """A bucket that was complete stays complete, although the counter starts again and says that
    it does not know up to when it has counted."""
    counted = from_the_broker_on()[:-1]
    starts = beat(DUE + 60, time_ms=DUE + 60)
    for said in ([beat(), starts], [starts, beat()]):
        assert verdict([*counted, *said]).status is Status.COMPLETE
    assert verdict([*counted, starts]).status is Status.OPEN


@promise("6 without origin")
def test_a_note_about_a_transaction_only_names_it() -> None:
    """No verdict depends on the note about transactions, which may be lost or late. If the counter
    has not counted far enough, and the note names an open transaction, the verdict names it too."""
    counted = from_the_broker_on()[:-1]
    waits = told(Transactions(0, Held(3, 17, DUE - 1)))
    assert verdict([*counted, waits, beat()]).status is Status.COMPLETE
    found = verdict([*counted, waits, beat(51)])
    assert (found.status, cause_of(found)) == (Status.OPEN, Cause.TRANSACTION_OPEN)
    assert found.reasons[0].startswith(
        "the broker counter broker-dc1 waits: a transaction is open at offset 17 of partition 3"
    )
    since_ever = told(Transactions(0, Held(3, 17, 0)))
    assert verdict([*counted, since_ever, beat(51)]).reasons[0].endswith("of partition 3")
    assert verdict([*counted, told(Transactions(0)), beat(51)]).status is Status.OPEN


@promise("6 without origin")
def test_a_partition_that_its_counter_has_stopped_is_named() -> None:
    """If the counter has stopped a partition for good, the verdict names partition, offset and
    reason, and does not say that the counter is only late."""
    counted = from_the_broker_on()[:-1]
    stopped = told(Transactions(0, Held(3, 17, DUE - 1, "a batch is damaged: CRC")))
    found = verdict([*counted, stopped, beat(51)])
    assert (found.status, cause_of(found)) == (Status.OPEN, Cause.PARTITION_STOPPED)
    assert found.reasons[0] == (
        "the broker counter broker-dc1 has stopped: partition 3 from offset 17 on:"
        " a batch is damaged: CRC"
    )
