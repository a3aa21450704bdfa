"""Tests how an agent's epochs are judged. If an agent continues with an older copy of its state, it
begins a new epoch, and may read lines a second time. Lines that it delivers between the last seal
of the old epoch and the first seal of the new epoch are in doubt: they may be doubled, so their
bucket is unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skidway.audit.judgement.verdict import Status
from skidway.audit.topic.messages import (
    Tier,
)
from support.audit_senders import AGENT
from support.one_bucket import (
    COUNTERS,
    DUE,
    END,
    SIZE,
    START,
    count,
    delta,
    good,
    seal,
    verdict,
    verdict_taken,
)
from support.promises import promise


@promise("6 moment of a seal")
@pytest.mark.parametrize(("late", "expected"), [(0, Status.COMPLETE), (-1, Status.UNKNOWN)])
def test_a_seal_ahead_of_us_proves_no_epoch_behind_the_moment_at_which_it_was_taken(
    late: int, expected: Status
) -> None:
    """If an agent's clock is ahead of the audit's clock, the times in its seals are in the future.
    By its own clock, the audit received such a seal at an earlier time. An epoch's last seal then
    proves only that all lines up to this earlier time were counted. Later lines may have been read
    again in the next epoch."""
    messages = [*good()[:4], seal(replace(AGENT, epoch=2), 1, END + 9 * SIZE, 0)]
    assert verdict_taken(messages, seal(AGENT, 2, END + 8 * SIZE, 1), DUE + late).status is expected


@promise("6 epochs")
@pytest.mark.parametrize(
    ("until", "expected"), [(START, Status.UNKNOWN), (START - 1, Status.COMPLETE)]
)
def test_what_lay_between_two_epochs_goes_up_to_the_first_seal_by_its_own_clock(
    until: int, expected: Status
) -> None:
    """Lines that an agent sends after the last seal of an epoch may be doubled in the next epoch.
    Lines with event times up to the time in the next epoch's first seal are in doubt. The time in
    the seal comes from the agent's clock, as event times do. It does not matter that, by the
    audit's clock, the seal arrived before this time."""
    new = replace(AGENT, epoch=2)
    messages = [delta(new, 2, count()), *good()[1:4], seal(new, 3, DUE, 2)]
    assert verdict_taken(messages, seal(new, 1, until, 0), START - SIZE).status is expected


@promise("6 epochs")
def test_an_agents_new_epoch_adds() -> None:
    """The counts of an agent's new epoch are added to those of its old epoch. If the agent has
    sealed a bucket in the old epoch, the bucket stays complete unless the agent counts records of
    the bucket in the new epoch."""
    new = replace(AGENT, epoch=2)
    later = END + 10 * SIZE
    messages = [*good(), seal(new, 1, later, 0)]
    assert verdict(messages).status is Status.COMPLETE
    found = verdict([*messages, delta(new, 2, count(1))])
    assert (found.status is Status.COMPLETE, found.count(Tier.AGENT)) == (False, 6)


@promise("6 epochs")
def test_what_an_agent_delivered_in_a_new_epoch_before_its_first_seal_is_in_doubt() -> None:
    """Lines that an agent delivers in a new epoch before the first seal of this epoch are in doubt
    (may be doubled), whatever their event times are, and whatever the old epoch had sealed. The
    agent may use an older copy of its state and send lines a second time. All tiers count such
    lines twice, so equal counts prove nothing."""
    new = replace(AGENT, epoch=2)
    doubled = [delta(sender, 2, count(previous=1)) for sender in COUNTERS]
    again = [*good(), *doubled, delta(new, 1, count())]
    later = END + 10 * SIZE
    for messages in (again, [*again, seal(new, 2, later, 1)], [*again, seal(new, 2, later, 0)]):
        found = verdict(messages)
        assert found.status is Status.UNKNOWN
        assert any(
            "delivered lines of this bucket before its first seal" in x for x in found.reasons
        )
    both = [delta(new, 1, count(3)), seal(new, 2, later, 1), delta(new, 3, count(2, previous=1))]
    assert verdict([*good(), *doubled, *both, seal(new, 4, later, 3)]).status is Status.UNKNOWN
    behind = [*good(), *doubled, seal(new, 1, later, 0), delta(new, 2, count())]
    assert verdict([*behind, seal(new, 3, later, 2)]).status is Status.COMPLETE


@promise("6 epochs")
def test_a_later_epochs_seal_bounds_one_that_sealed_nothing() -> None:
    """Lines of a new epoch are in doubt (may be doubled) until the epoch's first seal. If the agent
    ended before it sent a seal in this epoch, the first seal of a later epoch ends the doubt about
    the lines of both epochs. The audit does not wait for a seal of the epoch that has none."""
    second, third = replace(AGENT, epoch=2), replace(AGENT, epoch=3)
    early = [seal(AGENT, 1, START - SIZE, 0), delta(second, 1)]
    counted = [delta(third, 2, count()), *(delta(sender, 1, count()) for sender in COUNTERS)]
    messages = [*early, seal(third, 1, START - 1, 0), *counted, seal(third, 3, DUE, 2)]
    assert verdict(messages).status is Status.COMPLETE


@pytest.mark.parametrize(
    ("until", "expected"), [(START, Status.UNKNOWN), (START - 1, Status.COMPLETE)]
)
def test_an_epoch_before_the_first_that_is_there_has_left_no_trace(
    until: int, expected: Status
) -> None:
    """The audit may have messages of an agent's epoch 2, but none of epoch 1. It then assumes that
    epoch 1 has no lines with event times after the time in the first seal of epoch 2."""
    new = replace(AGENT, epoch=2)
    messages = [seal(new, 1, until, 0), delta(new, 2, count()), *good()[1:4], seal(new, 3, DUE, 2)]
    assert verdict(messages).status is expected


def test_what_an_epoch_touched_behind_its_last_seal_is_not_proven_by_it() -> None:
    """If an agent counted lines of a bucket after the last seal of its old epoch, this seal does
    not prove that each line of the bucket was counted only once. The agent may have read these
    lines again in the new epoch."""
    new = replace(AGENT, epoch=2)
    late = [delta(sender, 3, count(previous=1)) for sender in (AGENT, *COUNTERS)]
    late += [delta(sender, 2) for sender in COUNTERS]
    messages = [*good()[:4], seal(AGENT, 2, DUE, 1), *late]
    first = seal(new, 1, END + 9 * SIZE, 0)
    found = verdict([*messages, first])
    assert found.status is Status.UNKNOWN
    assert "epoch 2 sealed nothing before this bucket" in found.reasons[0]
    assert verdict([*messages, seal(AGENT, 4, DUE, 3), first]).status is Status.COMPLETE
    assert verdict([*messages, seal(AGENT, 4, DUE - 1, 3), first]).status is Status.UNKNOWN
    assert verdict([*messages[:4], first]).status is Status.UNKNOWN  # epoch 1 has no seal


def test_epochs_are_in_order_whichever_was_heard_first() -> None:
    """The order in which the audit reads the messages of two epochs does not matter. If a seal of
    the older epoch proves that all lines of a bucket were counted, it does so even if the newer
    epoch's messages are read first."""
    later = seal(replace(AGENT, epoch=2), 1, END + 9 * SIZE, 0)
    for messages in ([*good(), later], [later, *good()]):
        assert verdict(messages).status is Status.COMPLETE
