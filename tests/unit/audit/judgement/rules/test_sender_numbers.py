"""Tests how the audit notices that messages are missing: by the numbers of a sender's messages, and
by chains of counts. (Each count names the previous message that counted the same bucket.) The tests
also show when a later message "makes up" for a missing one, so that a bucket can be complete
although the message is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skidway.audit.judgement.roster import Roster
from skidway.audit.judgement.verdict import Status
from skidway.audit.topic.messages import (
    Bounds,
    Delta,
    Heartbeat,
    Message,
    Range,
)
from support.audit_senders import AGENT, BROKER, LOGS
from support.one_bucket import (
    COUNTERS,
    DUE,
    MIRROR,
    POLICY,
    SECOND,
    SIZE,
    START,
    count,
    delta,
    good,
    last_word,
    seal,
    verdict,
    verdict_taken,
)
from support.promises import promise


@pytest.mark.parametrize("missing", ["the agent's", "a counter's that is called like the agent"])
def test_only_an_agents_later_epoch_makes_up_for_a_missing_number(missing: str) -> None:
    """If a message of an agent is missing, a later epoch of the agent makes up for it: buckets can
    be complete without the message. The first seal of the later epoch contains a time. Event times
    may be ahead of the clock by at most `ahead_ms`. So the later epoch makes up for the message
    only in buckets that begin at least `ahead_ms` after this time. No line that the agent read
    before the seal can belong to such a bucket. A later epoch of a counter never makes up for a
    missing message in this way, even if the counter has the agent's name."""
    new = replace(AGENT, epoch=2)
    first = START - POLICY.ahead_ms
    counters = [delta(sender, 1, count()) for sender in COUNTERS]
    if missing == "the agent's":
        hole: list[Message] = [seal(AGENT, 1, START - 9 * SIZE, 0), Heartbeat(AGENT, 2, START)]
    else:
        named = replace(BROKER, producer="7")
        hole = [seal(AGENT, 1, START - 9 * SIZE, 0), Heartbeat(named, 2, START)]
        counters[0] = delta(named, 1, count())

    def said(until: int) -> list[Message]:
        again = [seal(new, 1, until, 0), delta(new, 2, count()), seal(new, 3, DUE, 2)]
        return [*hole, *again, *counters]

    is_overcome = missing == "the agent's"
    expected = Status.COMPLETE if is_overcome else Status.UNKNOWN
    assert verdict(said(first)).status is expected
    assert verdict(said(first + 1)).status is Status.UNKNOWN


def test_a_counter_that_is_called_like_an_agent_is_a_counter() -> None:
    """If the name of a counter is the id of an agent, the counter is still judged as a counter, by
    its own epochs and message numbers."""
    named = replace(BROKER, producer="7", epoch=2)
    assert verdict([*good(), delta(named, 1, count())]).status is Status.COMPLETE


def test_a_seal_of_the_same_epoch_makes_up_for_no_missing_number() -> None:
    """If a message of an agent is missing, a bucket is unknown, even if the agent sent a seal
    before the missing message, and however old this seal is. The missing message came after the
    seal, and may count lines of any bucket."""
    messages = [
        seal(AGENT, 1, START - 9 * SIZE, 0),
        delta(AGENT, 3, count()),
        *good()[1:4],
        seal(AGENT, 4, DUE, 3),
    ]
    found = verdict(messages)
    assert found.status is Status.UNKNOWN
    assert found.reasons == ("web1: message 2 of agent 7 is missing",)


@pytest.mark.parametrize(
    ("sealed", "bucket", "expected"),
    [
        (DUE, START + 9 * SIZE, Status.COMPLETE),
        (DUE - 1, START + 9 * SIZE, Status.UNKNOWN),
        (DUE, START, Status.UNKNOWN),
    ],
)
def test_a_copy_that_runs_leaves_complete_what_was_sealed_before(
    sealed: int, bucket: int, expected: Status
) -> None:
    """Two running copies of an agent may send different messages with the same number. A bucket
    stays complete if the agent sealed it before the first of these messages, and if none of them
    counts lines of the bucket."""
    copies = [delta(AGENT, 4, count(n, bucket=bucket, previous=1)) for n in (1, 2)]
    seals = [seal(AGENT, 2, START, 1), seal(AGENT, 3, sealed, 1)]
    messages = [*good()[:4], *seals, *copies]
    assert verdict(messages).status is expected


@promise("6 moment of a seal")
@pytest.mark.parametrize(("late", "expected"), [(0, Status.COMPLETE), (-1, Status.UNKNOWN)])
def test_beside_a_copy_a_seal_ahead_of_us_vouches_up_to_when_it_was_taken(
    late: int, expected: Status
) -> None:
    """If two copies of an agent run, and their clock is ahead of the audit's clock, their seals
    have times in the future. The audit received such a seal at an earlier time by its own clock.
    The seal proves only that all lines up to this earlier time are counted. This is also true if
    the host is retired and has sent its last word (final seal)."""
    copies = [delta(AGENT, 4, count(n, bucket=START + 9 * SIZE)) for n in (1, 2)]
    messages = [*good()[:4], last_word(AGENT, 3, 1), *copies]
    gone = replace(POLICY, roster=Roster(retired=["web1"]))
    assert verdict_taken(messages, seal(AGENT, 2, DUE + 1, 1), DUE + late, gone).status is expected


def test_a_later_epoch_makes_up_for_a_missing_number_by_the_agents_own_clock() -> None:
    """Whether a later epoch makes up for a missing message depends on the time in the epoch's first
    seal. This time comes from the agent's own clock, by which the agent also limits event times. It
    does not matter that, by the audit's clock, the seal arrived before this time."""
    new = replace(AGENT, epoch=2)
    messages = [seal(AGENT, 1, START - 9 * SIZE, 0), Heartbeat(AGENT, 2, START)]
    messages += [*good()[1:4], delta(new, 2, count()), seal(new, 3, DUE, 2)]
    first = START - POLICY.ahead_ms
    assert verdict_taken(messages, seal(new, 1, first, 0), first - SIZE).status is Status.COMPLETE
    assert (
        verdict_taken(messages, seal(new, 1, first + 1, 0), first - SIZE).status is Status.UNKNOWN
    )


def test_a_counters_copy_leaves_complete_what_it_did_not_touch() -> None:
    """If two copies of a counter run, they may send different messages with the same number. A
    bucket stays complete if none of these messages counts records of it, and is unknown
    otherwise."""
    copies = [delta(BROKER, 2, count(n, bucket=START + 9 * SIZE)) for n in (1, 2)]
    assert verdict([*good(), *copies]).status is Status.COMPLETE
    copies = [delta(BROKER, 2, count(n, previous=1)) for n in (1, 2)]
    elsewhere = delta(MIRROR, 2, count(bucket=START + 9 * SIZE))  # only one mirror counter runs
    assert verdict([*good(), *copies, elsewhere]).status is Status.UNKNOWN


@promise("6 lateness")
@pytest.mark.parametrize(
    ("agents", "ours", "of_agent", "of_counter"),
    [
        (0, SIZE, Status.COMPLETE, Status.COMPLETE),
        (SIZE, SIZE, Status.COMPLETE, Status.COMPLETE),
        (SIZE + 1, SIZE, Status.UNKNOWN, Status.COMPLETE),
        (SIZE, SIZE + 1, Status.UNKNOWN, Status.UNKNOWN),
    ],
)
def test_event_times_are_ahead_by_the_larger_of_the_agents_bound_and_ours(
    agents: int, ours: int, of_agent: Status, of_counter: Status
) -> None:
    """A line's event time may be later than the time at which the line was read, up to a limit. The
    agent and the audit both have a setting for this limit, and the larger value counts for the
    agent's own messages; for those of other senders, an agent cannot set it. If a sender's first
    messages have expired, they may have counted lines of any bucket that begins within this limit
    after the first message that is left."""
    said = replace(AGENT, bounds=Bounds(ahead_ms=agents))
    policy = replace(POLICY, ahead_ms=ours)
    whole: list[Message] = [
        Delta(sender, 1, START - SIZE, ranges=() if sender is AGENT else (Range(LOGS, 0, 0, 10),),
              counts=(count(),))
        for sender in (AGENT, *COUNTERS)
    ]  # fmt: skip
    whole += [seal(AGENT, 2, DUE, 1), Heartbeat(said, 2, DUE)]
    whole.insert(4, Heartbeat(replace(SECOND, bounds=Bounds(ahead_ms=1)), 1, DUE))  # smaller limit
    for place, expected in enumerate((of_agent, of_counter)):
        late = [*whole]
        late[place] = replace(late[place], number=2)
        if place == 0:
            late[-2:] = [seal(AGENT, 3, DUE, 2), Heartbeat(said, 3, DUE)]
        assert verdict(late, policy).status is expected


def test_old_buckets_stay_complete_when_a_topic_expired_long_before_them() -> None:
    """If an agent's first messages have expired, they may have counted lines of early buckets. A
    bucket that begins long after these messages stays complete, because these messages cannot have
    counted lines of such a bucket."""
    early = START - 10 * SIZE
    messages = [
        Heartbeat(AGENT, 4, early),
        replace(delta(AGENT, 4), time_ms=early),
        delta(AGENT, 5, count()),
        *(delta(sender, 1, count()) for sender in COUNTERS),
        seal(AGENT, 6, DUE, 5),
    ]
    assert verdict(messages).status is Status.COMPLETE
