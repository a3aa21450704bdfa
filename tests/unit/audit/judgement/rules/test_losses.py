"""Tests which buckets a declared loss affects: only those to which the lost lines may belong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skidway.audit.judgement.verdict import Status
from skidway.audit.topic.messages import Announcement, Bounds, Delta, Heartbeat, Seal
from skidway.audit.topic.seal_columns import SealedTopic
from support.audit_senders import AGENT, LOGS
from support.fold import judge
from support.one_bucket import (
    DUE,
    END,
    LATENESS,
    LOSS,
    NOW,
    POLICY,
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


def test_a_loss_where_nobody_ever_counted_anything_has_a_bucket() -> None:
    """If an agent declares a loss in a topic for which nothing was ever counted, no count says how
    long buckets are. The bucket of the loss then has the default length, a minute."""
    (found,) = judge([Delta(AGENT, 1, START, losses=(LOSS,))], POLICY, NOW)
    assert (found.bucket, found.bucket_ms, found.status) == (START, 60_000, Status.LOST)


@promise("6 losses")
def test_a_loss_of_other_buckets_leaves_this_one_complete() -> None:
    """If the message about a loss gives the range of buckets to which the lost lines belong,
    buckets before and after this range stay complete."""
    for there in (START - 2 * SIZE, START + 2 * SIZE):
        elsewhere = replace(LOSS, from_bucket=there, to_bucket=there)
        messages = [*good(), delta(AGENT, 3, losses=(elsewhere,)), seal(AGENT, 4, DUE, 3)]
        assert verdict(messages).status is Status.COMPLETE


@pytest.mark.parametrize("agent", [0, -1, 99])
def test_a_loss_of_an_agent_that_nobody_knows_is_judged(agent: int) -> None:
    """A loss may name an agent of which the audit knows nothing else. The bucket of the loss still
    gets the verdict "lost"."""
    said = delta(AGENT, 3, losses=(replace(LOSS, agent=agent),))
    assert verdict([*good(), said, seal(AGENT, 4, DUE, 3)]).status is Status.LOST


@pytest.mark.parametrize("begin", [None, START + 60 * SIZE], ids=["not known", "the last seal's"])
def test_a_loss_behind_a_seal_of_a_clock_that_was_ahead(begin: int | None) -> None:
    """If an agent's clock was ahead and was then corrected, the agent's last seal has a time in the
    future. Nevertheless, a loss that the agent declares after the correction affects buckets of the
    present time."""
    loss = replace(LOSS, end=None, from_bucket=begin, to_bucket=begin)
    ahead = Seal(AGENT, 3, START + 60 * SIZE, (SealedTopic(LOGS, START + 60 * SIZE, 1),))
    messages = [*good(), ahead, Delta(AGENT, 4, END, losses=(loss,)), seal(AGENT, 5, DUE, 4)]
    assert verdict(messages).status is Status.LOST


@promise("6 lateness")
@pytest.mark.parametrize("begin", [None, DUE + 1], ids=["not known", "the last seal's"])
@pytest.mark.parametrize(
    ("agents", "ours", "expected"),
    [
        (0, LATENESS, Status.COMPLETE),
        (LATENESS, LATENESS, Status.COMPLETE),
        (LATENESS + 2, LATENESS, Status.LOST),
        (LATENESS, LATENESS + 2, Status.LOST),
        (0, LATENESS + 2, Status.LOST),
    ],
)
def test_a_loss_reaches_back_by_the_larger_of_the_agents_lateness_and_ours(
    begin: int | None, agents: int, ours: int, expected: Status
) -> None:
    """Lost lines may have event times before the agent's last seal, so a loss also affects buckets
    before the time of this seal. A setting, the lateness, says how far back a loss reaches (how
    much older than the seal an event time may be). The agent and the audit both have this setting,
    and the larger value counts. If the agent has sent several values, the largest one counts."""
    loss = replace(LOSS, end=None, from_bucket=begin, to_bucket=None)
    said = replace(AGENT, bounds=Bounds(lateness_ms=agents))
    messages = [
        *good(), seal(AGENT, 3, DUE + 1, 1), Heartbeat(said, 3, DUE),
        Delta(AGENT, 4, DUE + 2, losses=(loss,)), seal(AGENT, 5, DUE + 9, 4),
    ]  # fmt: skip
    policy = replace(POLICY, lateness_ms=ours)
    assert verdict(messages, policy).status is expected


OPEN_ENDED = replace(LOSS, end=None, from_bucket=None, to_bucket=None)


def test_a_loss_before_the_first_seal_reaches_back_however_far() -> None:
    """A loss that an agent declares before its first seal affects all earlier buckets, because no
    seal has proven yet that the agent's lines of a bucket are all counted."""
    messages = [*good()[:4], Delta(AGENT, 2, DUE, losses=(OPEN_ENDED,)), seal(AGENT, 3, DUE, 2)]
    assert verdict(messages).status is Status.LOST


@pytest.mark.parametrize(
    ("until", "declared"), [(START - SIZE, START), (START, START - SIZE)], ids=["not", "set back"]
)
def test_a_loss_reaches_up_to_the_greatest_time_that_the_clock_said(
    until: int, declared: int
) -> None:
    """A loss affects buckets up to the time of its declaration. If the clock was set back after the
    last seal, the loss affects buckets up to the time of that seal."""
    lost = Delta(AGENT, 3, declared, losses=(OPEN_ENDED,))
    messages = [*good()[:4], seal(AGENT, 2, until, 1), lost, seal(AGENT, 4, DUE, 3)]
    assert verdict(messages).status is Status.LOST
    ahead = verdict_taken(
        [*messages[:4], *messages[5:]], seal(AGENT, 2, until, 1), START - 9 * SIZE
    )
    assert ahead.status is Status.LOST  # even if the audit's clock was behind
    messages[4:6] = seal(AGENT, 2, until - 1, 1), replace(lost, time_ms=declared - 1)
    assert verdict(messages).status is Status.COMPLETE


@promise("6 losses")
def test_an_open_ended_loss_leaves_what_was_sealed_before_it_complete() -> None:
    """The message about a loss may give no range of buckets. A lost line may be older than the time
    of the agent's last seal, but at most by the lateness (a setting). Buckets that ended even
    earlier stay complete, because no lost line can belong to them."""
    lost = Delta(AGENT, 4, DUE + 1, losses=(OPEN_ENDED,))
    sealed = [seal(AGENT, 1, START - SIZE, 0), delta(AGENT, 2, count()), seal(AGENT, 3, DUE, 2)]
    messages = [*sealed, *good()[1:4], lost, seal(AGENT, 5, DUE + 2, 4)]
    assert verdict(messages).status is Status.COMPLETE


@promise("6 telling a loss")
def test_a_loss_is_told_by_its_host_and_path() -> None:
    """The audit reports a loss with the file's id, with the host, and with the path at which the
    file was first found."""
    found_at = Announcement(START, 7, 3, "web1", "/log/a.log", 1, 1, b"f", 4, LOGS)
    moved = replace(found_at, time_ms=START + 1, path="/log/a.log.1")
    lost = [delta(AGENT, 3, losses=(LOSS,)), seal(AGENT, 4, DUE, 3)]
    assert verdict([*good(), *lost, moved, found_at]).reasons == (
        "web1: bytes 100 to 200 of /log/a.log (file 3) are lost: truncated",
    )
    unseen = replace(LOSS, file=9, first=0, end=None, reason="/log/b.log: it was rotated away")
    lost[0] = delta(AGENT, 3, losses=(unseen,))
    assert verdict([*good(), *lost, found_at]).reasons == (
        "web1: lines are lost: /log/b.log: it was rotated away",
    )
