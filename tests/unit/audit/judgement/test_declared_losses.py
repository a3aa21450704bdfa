"""Tests losses that agents declare. A loss affects every bucket to which the lost lines may belong,
even if the audit does not expect the host of these lines to report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skidway.audit.collector.judge import Judge
from skidway.audit.evidence.ledger import Ledger, ledger_of
from skidway.audit.evidence.pruning import OldBucket, digest_of
from skidway.audit.evidence.tallies import BucketTallies
from skidway.audit.judgement.acceptances import Signature, acceptances
from skidway.audit.judgement.hosts import HostStatus, survey
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.roster import Roster, RosterEntry
from skidway.audit.judgement.standing import judged
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.field_bounds import FARTHEST_MS
from skidway.audit.topic.messages import (
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
from skidway.audit.topic.seal_columns import SealedTopic
from support.audit_senders import BROKER, LOGS
from support.clock import ManualClock
from support.fold import Fold, judge
from support.promises import promise

SIZE = 60_000
OLD, START = 0, 100 * SIZE
NOW = START + 10 * SIZE
POLICY = Policy(tiers=(Tier.AGENT, Tier.BROKER), lateness_ms=0)
APP1, APP2 = (RosterEntry(host, "dc1", frozenset({"logs"})) for host in ("app1", "app2"))


def _agent(number: int) -> Sender:
    return Sender(Tier.AGENT, "dc1", str(number), f"app{number}", 1)


def _count(agent: int, bucket: int) -> Count:
    return Count(LOGS, agent, bucket, SIZE, 5, 50, 9)


def _seal(agent: int, number: int, until: int) -> Seal:
    return Seal(_agent(agent), number, until, (SealedTopic(LOGS, until, number - 1),))


def _judged(said: list[Message], policy: Policy, bucket: int = START) -> BucketVerdict:
    [found] = [x for x in judge(said, policy, NOW) if x.bucket == bucket]
    return found


def _two_hosts() -> list[Message]:
    """Returns the messages of two hosts. The agent of app1 counts lines in a bucket. The agent of
    app2 declares a loss in this bucket and counts nothing."""
    lost = Loss(LOGS, 2, 3, 100, None, Certainty.LOST, "it vanished", START, START + SIZE)
    return [
        _seal(1, 1, START),
        _seal(2, 1, START),
        Delta(_agent(1), 2, START + SIZE, counts=(_count(1, START),)),
        Delta(_agent(2), 2, START + SIZE, losses=(lost,)),
        Delta(BROKER, 1, START + SIZE, (Range(LOGS, 0, 0, 5),), (_count(1, START),)),
        _seal(1, 3, NOW),
        _seal(2, 3, NOW),
    ]


@promise("6 losses")
@pytest.mark.parametrize(
    "roster",
    [
        Roster([APP1, APP2]),
        Roster([APP1, replace(APP2, retired=True)]),
        Roster([APP1]),
        Roster(retired=["app2"]),
        Roster(retired=["2"]),
    ],
)
def test_whoever_is_waited_for_a_loss_stays(roster: Roster) -> None:
    """A bucket with a host's declared loss keeps the verdict "lost" when the host is retired or
    removed from the roster."""
    found = _judged(_two_hosts(), replace(POLICY, roster=roster))
    assert found.status is Status.LOST
    assert any("it vanished" in reason for reason in found.reasons)
    assert [each.agent for each in found.agents] == [1, 2]


@pytest.mark.parametrize("together", [False, True])
@promise("6 losses")
@pytest.mark.parametrize("end", [50, None])
def test_a_loss_may_belong_to_all_that_was_touched_since_the_seal(
    end: int | None, together: bool
) -> None:
    """An agent's loss affects every bucket in which the agent has counted lines since its last
    seal. For example, the agent reads yesterday's log today, and a broker permanently refuses one
    record. The record's time is not known, but the records before and after it are from yesterday.
    So the loss affects yesterday's buckets."""
    lost = Loss(LOGS, 1, 3, 40, end, Certainty.LOST, "refused", START, START)
    counts = (_count(1, OLD), _count(1, START))
    said: list[Message] = [
        _seal(1, 1, START),
        Delta(_agent(1), 2, START + 5, counts=counts, losses=(lost,) if together else ()),
        Delta(BROKER, 1, START + 5, (Range(LOGS, 0, 0, 10),), counts),
        Delta(_agent(1), 3, START + 5, losses=() if together else (lost,)),
        _seal(1, 4, NOW),
    ]
    assert _judged(said, POLICY, OLD).status is Status.LOST
    assert _judged(said, POLICY, START).status is Status.LOST


@pytest.mark.parametrize("loser", [1, 2])
def test_a_loss_belongs_to_nothing_that_its_agent_did_not_touch_since_the_seal(loser: int) -> None:
    """A loss does not affect an old bucket if the agent that lost the lines has counted nothing in
    this bucket since its last seal. It does not matter what other agents or counters have counted
    there."""
    lost = Loss(LOGS, loser, 3, 40, 50, Certainty.LOST, "refused", START, START)
    said: list[Message] = [
        Delta(_agent(1), 1, START, counts=(_count(1, OLD),)),
        _seal(1, 2, START),
        _seal(2, 1, START),
        Delta(_agent(2), 2, START + 5),
        Delta(_agent(loser), 3, START + 5, losses=(lost,)),
        *(Delta(BROKER, n, START + 5, (Range(LOGS, 0, 0, 5),)) for n in (1, 2)),
        Delta(BROKER, 3, START + 5, (Range(LOGS, 0, 5, 10),), (_count(1, OLD),)),
        _seal(1, 4 if loser == 1 else 3, NOW),
        _seal(2, 4 if loser == 2 else 3, NOW),
    ]
    assert _judged(said, POLICY, OLD).status is Status.COMPLETE


@promise("6 losses")
@pytest.mark.parametrize(("at", "expected"), [(1, Status.LOST), (2, Status.COMPLETE)])
def test_a_loss_may_belong_to_what_was_touched_since_the_look_of_the_seal(
    at: int, expected: Status
) -> None:
    """Before an agent sends a seal, it notes where its files end. The seal says nothing about lines
    that were written after this moment. So a later loss also affects the buckets in which the agent
    counted lines between this moment and the seal."""
    lost = Loss(LOGS, 1, 3, 40, 50, Certainty.LOST, "refused", START, START)
    seal = Seal(_agent(1), 3, START, (SealedTopic(LOGS, START, at),))
    said: list[Message] = [
        Delta(_agent(1), 1, START),
        Delta(_agent(1), 2, START, counts=(_count(1, OLD),)),
        Delta(BROKER, 1, START, (Range(LOGS, 0, 0, 5),), (_count(1, OLD),)),
        seal,
        Delta(_agent(1), 4, START + 5, losses=(lost,)),
        _seal(1, 5, NOW),
    ]
    assert _judged(said, POLICY, OLD).status is expected


@promise("6 losses")
@pytest.mark.parametrize("touched", [(1, 3), (3, 5)], ids=["before, too", "behind, too"])
def test_what_was_touched_since_the_seal_may_have_been_touched_before_and_behind(
    touched: tuple[int, int],
) -> None:
    """If an agent counted lines of a bucket between its last seal and its loss, the verdict on the
    bucket is "lost". It does not matter whether the agent also counted lines of the bucket before
    the seal or after the loss."""
    lost = Loss(LOGS, 1, 3, 40, 50, Certainty.LOST, "refused", START, START)
    first, again = _count(1, OLD), replace(_count(1, OLD), previous=touched[0])
    counts = dict(zip(touched, (first, again), strict=True))
    said: list[Message] = [
        Delta(_agent(1), n, START, counts=(counts[n],) if n in counts else ()) for n in (1, 3, 5)
    ]
    said += [
        _seal(1, 2, START),
        Delta(_agent(1), 4, START, losses=(lost,)),
        Delta(BROKER, 1, START, (Range(LOGS, 0, 0, 5),), (first,)),
        Delta(BROKER, 2, START, (Range(LOGS, 0, 5, 9),), (replace(first, previous=1),)),
        _seal(1, 6, NOW),
    ]
    assert _judged(said, POLICY, OLD).status is Status.LOST


def test_a_loss_that_another_agent_declares_reaches_back_as_far() -> None:
    """An agent's message may declare lost lines of another agent, from which no message ever
    arrived. Then the audit does not know the lateness setting of this agent (how late a line may
    come), and uses its own setting to decide how far back the loss reaches."""
    policy = replace(POLICY, lateness_ms=SIZE)
    lost = Loss(LOGS, 2, 3, 40, 50, Certainty.LOST, "refused", START, START)
    said: list[Message] = [Delta(_agent(1), 1, START, counts=(_count(1, OLD),), losses=(lost,))]
    for bucket, is_lost in ((START, True), (START - SIZE, True), (OLD, False)):
        counted = Delta(_agent(1), 2, START, counts=(_count(1, bucket),))
        found = _judged([*said, counted], policy, bucket)
        assert (found.status is Status.LOST) is is_lost


def test_a_loss_belongs_to_what_any_epoch_touched_since_the_seal() -> None:
    """After its last seal, an agent counts lines of a bucket in a new epoch, and declares a loss.
    The loss affects this bucket, even if the agent had already counted lines of the bucket in its
    previous epoch."""
    new = replace(_agent(1), epoch=2)
    lost = Loss(LOGS, 1, 3, 40, 50, Certainty.LOST, "refused", START, START)
    said: list[Message] = [
        Delta(_agent(1), 1, OLD, counts=(_count(1, OLD),)),
        _seal(1, 2, START),
        replace(_seal(1, 1, START), sender=new),
        Delta(new, 2, START + 5, counts=(_count(1, OLD),), losses=(lost,)),
    ]
    assert _judged(said, POLICY, OLD).status is Status.LOST


def test_where_agents_are_not_asked_their_losses_are_not() -> None:
    """If the agent tier is not among the audit's configured tiers, the audit ignores the losses
    that agents declare."""
    policy = replace(POLICY, tiers=(Tier.BROKER,))
    said = [*_two_hosts(), Heartbeat(BROKER, 1, NOW)]
    assert _judged(said, policy).status is Status.COMPLETE
    uncounted = [x for x in said if not isinstance(x, Delta) or x.losses]
    assert [x.status for x in judge(uncounted, POLICY, NOW)] == [Status.LOST]
    assert judge(uncounted, policy, NOW) == []  # no count, so no bucket


def test_an_agent_that_is_retired_by_its_id_does_not_speak_for_its_host() -> None:
    """If a person retires an agent by its id, and the roster expects the agent's host, the audit
    expects another agent on this host. Until another agent reports, buckets are not complete,
    because nobody reads the host's logs. If no roster names the host, the host counts as retired,
    too."""
    said: list[Message] = [
        _seal(2, 1, START),
        Delta(_agent(1), 1, START + 5, counts=(_count(1, START),)),
        Delta(BROKER, 1, START + 5, (Range(LOGS, 0, 0, 5),), (_count(1, START),)),
        _seal(1, 2, NOW),
    ]
    policy = replace(POLICY, roster=Roster([APP1, APP2], retired=["2"]))
    found = _judged(said, policy)
    assert found.status is not Status.COMPLETE
    assert any("app2 is expected, but no agent of it reported yet" in x for x in found.reasons)
    states = {x.host: x for x in survey(Fold(said).evidence(), policy, NOW)}
    assert (states["app2"].status, states["app2"].is_missed) == (HostStatus.NEVER_HEARD, True)
    alone = replace(POLICY, roster=Roster(retired=["2"]))
    states = {x.host: x for x in survey(Fold(said).evidence(), alone, NOW)}
    assert states["app2"].status is HostStatus.RETIRED


def test_a_loss_is_listed_in_the_window_that_has_its_bucket() -> None:
    """A loss in a bucket without counts is listed once. If the audit judges several adjoining spans
    of time, it lists the loss only for the span that contains the bucket."""
    lost = Loss(LOGS, 1, 3, 40, 50, Certainty.LOST, "refused", START, START)
    said = [_seal(1, 1, START), Delta(_agent(1), 2, START + 5, losses=(lost,))]
    found = []
    for begin in range(START - 2 * SIZE, START + 3 * SIZE, SIZE):
        evidence = Fold(said).evidence()
        evidence.window = (begin, begin + SIZE)
        found += [(begin, each.bucket) for each in verdicts(evidence, POLICY, NOW)]
    assert found == [(START, START)]


def _accepted(ledger: Ledger) -> None:
    found = verdicts(ledger.evidence(), POLICY, NOW)
    ledger.take(map(encode, acceptances(found, Signature(NOW, "ann", "its disk broke"))))


def _verdicts(ledger: Ledger) -> list[tuple[int, int, str]]:
    """Returns the start, the length and the verdict (as a word) of each bucket. Checks that the
    collector's judge reaches the same standing as a judgement of all evidence at once. Also checks
    that a bucket has the same verdict if only the evidence of this bucket is judged."""
    found = verdicts(ledger.evidence(), POLICY, NOW)
    standing = Judge(ledger, lambda: POLICY, ManualClock(NOW)).step()
    assert standing == judged(ledger.evidence(), POLICY, NOW)
    for x in found:
        here = verdicts(ledger.evidence((x.bucket, x.bucket + 1)), POLICY, NOW)
        assert [y for y in found if y.bucket == x.bucket] == here
        assert x.bucket in ledger.newest_buckets(9)
    return [(x.bucket, x.bucket_ms, x.word) for x in found]


def _lost_at(time_ms: int, size: int, *, is_counted: bool) -> Ledger:
    """Returns a ledger with a loss in the bucket that starts at `time_ms` and has the length
    `size`. If `is_counted`, other lines of this bucket were counted. If not, only lines of an
    earlier bucket were counted."""
    lost = Loss(LOGS, 2, 3, 100, None, Certainty.LOST, "it vanished", time_ms, time_ms)
    counted = Count(LOGS, 2, time_ms if is_counted else time_ms - 2 * size, size, 5, 50, 9)
    said: list[Message] = [
        Delta(_agent(2), 1, OLD, counts=(counted,)),
        Delta(BROKER, 1, NOW, (Range(LOGS, 0, 0, 5),), (counted,)),
        Delta(_agent(2), 2, NOW, losses=(lost,)),
        _seal(2, 3, NOW),
    ]
    return ledger_of(map(encode, said))


def _resize(ledger: Ledger, size: int) -> None:
    """Adds to the ledger the counts of a later bucket, which has the length `size`."""
    counted = Count(LOGS, 2, START + 5 * SIZE, size, 5, 50, 9)
    later: list[Message] = [
        Delta(_agent(2), 4, NOW, counts=(counted,)),
        Delta(BROKER, 2, NOW, (Range(LOGS, 0, 5, 10),), (counted,)),
        _seal(2, 5, NOW),
    ]
    ledger.take(map(encode, later))


@promise("6 losses")
@pytest.mark.parametrize("is_counted", [True, False])
def test_an_accepted_loss_stays_accepted_if_buckets_get_another_length(
    is_counted: bool,
) -> None:
    """If somebody changes `audit.bucket.ms`, an accepted loss stays in the bucket in which it was
    accepted. It does not come back in a bucket of the new length that nobody accepted."""
    time_ms = START + 30_000
    for size, other in ((10_000, SIZE), (30_000, 10_000)):
        ledger = _lost_at(time_ms, size, is_counted=is_counted)
        bucket = (time_ms, size) if is_counted else (START, SIZE)
        assert (*bucket, "lost") in _verdicts(ledger)
        _accepted(ledger)
        before = _verdicts(ledger)
        _resize(ledger, other)
        assert before == [x for x in _verdicts(ledger) if x[0] != START + 5 * SIZE]
        assert (*bucket, "lost, accepted") in before


@promise("6 losses")
def test_a_loss_that_nobody_accepted_is_shown_where_lines_were_counted_or_in_its_minute() -> None:
    """If somebody changes `audit.bucket.ms`, a loss that nobody accepted stays lost. If nothing was
    counted in the bucket of the loss, the loss is shown in the minute that contains its time. If
    something was counted, the loss stays in the old bucket."""
    time_ms = START + 30_000
    for is_counted, bucket in ((True, (time_ms, 10_000)), (False, (START, SIZE))):
        ledger = _lost_at(time_ms, 10_000, is_counted=is_counted)
        _resize(ledger, SIZE)
        found = [x for x in _verdicts(ledger) if x[0] <= time_ms < x[0] + x[1]]
        assert found == [(*bucket, "lost")]


@promise("6 losses")
@promise("6 pruning")
def test_an_accepted_loss_does_not_come_back_after_all_buckets_were_deleted() -> None:
    """After the buckets of an accepted loss were deleted because of their age, no bucket is lost.
    This is so even if the buckets were shorter or longer than a minute, and none of them is
    left."""
    for size in (10_000, 2 * SIZE):
        ledger = _lost_at(START - START % size + size, size, is_counted=True)
        _accepted(ledger)
        for (start, length), tallies in ledger.evidence().topic(LOGS).tallies.items():
            assert isinstance(tallies, BucketTallies)
            old = OldBucket(LOGS, start, length, digest_of(tallies.columns))
            assert ledger.prune([old], 0) == 1
        assert _verdicts(ledger) == []


def test_a_loss_at_a_time_without_counts_has_a_bucket() -> None:
    """A declared loss has a bucket even if the time of the loss is so far from 1970 that no clock
    can show it."""
    for time_ms in (FARTHEST_MS, -FARTHEST_MS):
        lost = Loss(LOGS, 2, 3, 100, None, Certainty.LOST, "it vanished", None, time_ms)
        ledger = ledger_of([encode(Delta(_agent(2), 1, NOW, losses=(lost,)))])
        start = time_ms - time_ms % SIZE
        assert _verdicts(ledger) == [(start, SIZE, "lost")]
        assert ledger.newest_buckets(9) == [start]
