"""Tests when a topic is complete in a span of time. Jobs check this with `skidway audit complete`
before they read the rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from skidway.audit.judgement import acceptances
from skidway.audit.judgement.acceptances import Signature
from skidway.audit.judgement.completeness import Completeness, Question, completeness
from skidway.audit.judgement.policy import Exemption, Policy
from skidway.audit.judgement.roster import Roster, RosterEntry
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import Status
from skidway.audit.topic.messages import (
    Certainty,
    Delta,
    Gap,
    Heartbeat,
    Loss,
    Message,
    Tier,
)
from skidway.audit.topic.recount_result import RecountResult
from skidway.errors import UsageError
from support.audit_senders import AGENT, BROKER, LOGS, REJECTED
from support.fold import Fold
from support.one_bucket import (
    DUE,
    END,
    HDFS,
    MIRROR,
    NOW,
    POLICY,
    SECOND,
    SIZE,
    START,
    count,
    delta,
    good,
    roster,
    seal,
)
from support.promises import promise

BEFORE = START - 2 * SIZE
EMPTY = START - SIZE
HEARD = Heartbeat(BROKER, 1, DUE)


def question(since: int = BEFORE, until: int = END, name: str = "logs") -> Question:
    names = {name, f"{name}.rejected"}
    return Question(name, lambda x: x.topic == name, lambda x: x.topic in names, since, until)


def day() -> list[Message]:
    """Returns messages about three successive buckets. The first two buckets are empty. In the
    third bucket, every tier counted the same records. The agent has sealed all three buckets, and a
    message of the broker's counter has arrived after their end."""
    return [*good(), HEARD]


def asked(
    messages: list[Message],
    policy: Policy = POLICY,
    now: int = NOW,
    about: Question | None = None,
) -> list[Completeness]:
    return completeness(Fold(messages).evidence(), policy, about or question(), now)


def only(messages: list[Message], policy: Policy = POLICY, now: int = NOW) -> Completeness:
    [found] = asked(messages, policy, now)
    return found


def reasons(found: list[Completeness]) -> str:
    said = [*(x for each in found for x in each.doubts)]
    return " | ".join([*said, *(y for each in found for x in each.short for y in x.reasons)])


@promise("6 complete before a time")
def test_a_day_that_is_sealed_and_counted_is_complete() -> None:
    """A bucket is due when its end and the lateness (the time for late lines) have passed. A topic
    is complete up to a time under three conditions. All tiers have the same counts for the buckets
    before this time. The agents have sealed the topic up to the moment at which the last of these
    buckets was due. A message of the counter has arrived since this moment. The same rules apply to
    buckets without records."""
    found = only(day())
    assert [(x.bucket, x.status) for x in found.verdicts] == [
        (BEFORE, Status.COMPLETE),
        (EMPTY, Status.COMPLETE),
        (START, Status.COMPLETE),
    ]
    assert not found.is_short
    assert not only([seal(AGENT, 1, DUE, 0), Delta(BROKER, 1, DUE), HEARD]).is_short


@promise("6 source without files")
def test_no_record_is_no_proof_while_a_source_has_no_file() -> None:
    """If nothing was counted, and a source has never matched a file, the topic is unknown in every
    span, also before the source was configured. If all sources have files, it is complete."""
    for until in (END, EMPTY):
        about = question(until=until)
        alive = [Heartbeat(AGENT, 1, NOW), Delta(BROKER, 1, DUE), HEARD]
        [found] = asked([seal(AGENT, 1, -EMPTY, 0), *alive], about=about)
        assert found.is_short
        assert "source on web1 has matched no file since 1970-01-01 00:09:00" in found.doubts[0]
        [found] = asked([seal(AGENT, 1, DUE, 0), *alive], about=about)
        assert not found.is_short


@dataclass(frozen=True)
class Case:
    """A change to the messages of a complete day, and the reason for which the audit then calls the
    day incomplete."""

    name: str
    reason: str
    add: list[Message] = field(default_factory=list)
    drop: tuple[int, ...] = ()
    policy: Policy = POLICY
    now: int = NOW
    about: Question = field(default_factory=question)


ABROAD = Roster([RosterEntry("web9", "dc2", frozenset({"logs"}))])
LATE = delta(AGENT, 3, count(1, bucket=EMPTY))
DIFFERS = RecountResult(
    NOW, "l1", "/logs", LOGS, None, 1, 1, 5, faults=1, differences=0, reasons=("gone",)
)  # fmt: skip
CASES = [
    Case("it ends in the future", "it is too young", about=question(until=NOW + SIZE)),
    Case("its last bucket is too young", "it is too young", now=DUE - 1),
    Case("it ends within a bucket", "it is too young", about=question(until=END + 1)),
    Case("an empty bucket is not sealed", "sealed up to", add=[seal(AGENT, 3, EMPTY + 1, 1)]),
    Case("no agent has sealed", "has not sealed this topic yet", drop=(4,)),
    Case(
        "a host was never heard", "host web2 is expected", policy=replace(
            POLICY, roster=roster("web1", "web2")
        ),
    ),
    Case("another agent is behind", "sealed up to", add=[seal(SECOND, 1, END, 0)]),
    Case("lines came since", "lines came after the agent's newest seal", add=[LATE]),
    Case("a message is missing", "message 3 of agent 7 is missing", add=[Heartbeat(AGENT, 3, NOW)]),
    Case(
        "the counter stands still", "the broker counter broker-dc1 was heard last at",
        drop=(5,), add=[Heartbeat(BROKER, 1, DUE - 1)],
    ),
    Case("the rows are not loaded", "tier hdfs never reported this topic", drop=(3,)),
    Case(
        "the output lacks rows", "hdfs /logs/dc1.logs is short by 2 of 5", drop=(3,),
        add=[delta(HDFS, 1, count(3))],
    ),
    Case(
        "the audit never heard of the topic", "the audit has never heard of this topic",
        about=question(name="logz"),
    ),
    Case(
        "it is expected in another cluster", "hosts of dc2 must report it",
        policy=replace(POLICY, roster=ABROAD),
    ),
    Case(
        "a host without named topics was never heard", "host web3 is expected, but was never heard",
        policy=replace(POLICY, roster=Roster([*roster("web1"), RosterEntry("web3", "dc1")])),
    ),
    Case("nobody was heard lately", "nobody of cluster dc1 was heard since", now=DUE + 100_001),
    Case(
        "only another cluster was heard lately", "nobody of cluster dc1 was heard since",
        now=DUE + 100_001, add=[Heartbeat(HDFS, 1, DUE + 100_001)],
    ),
    Case("a recount differs", "by the newest recount of /logs its rows are not", add=[DIFFERS]),
]  # fmt: skip


@promise("6 complete before a time")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_may_still_come_keeps_a_topic_from_being_complete(case: Case) -> None:
    """A topic is not complete if one of the conditions is not met, for example as long as it may
    still get records that no message has mentioned. The audit gives the reason."""
    messages = [x for i, x in enumerate(day()) if i not in case.drop] + case.add
    found = asked(messages, case.policy, case.now, case.about)
    assert any(x.is_short for x in found)
    assert case.reason in reasons(found)


def test_a_bucket_belongs_to_each_span_that_it_touches() -> None:
    """If only a part of a bucket is in the requested span, the audit judges the whole bucket,
    because it cannot tell which of the bucket's records are in the span."""
    short = [x for x in day() if x != day()[3]]
    for since, until in ((END - 1, END), (START, START + 1), (START + 9, START + 10)):
        [found] = asked(short, about=question(since, until))
        assert [(x.bucket, x.status) for x in found.short] == [(START, Status.INCOMPLETE)]
    [found] = asked(short, about=question(until=START))
    assert not found.is_short


def test_how_much_a_place_lacks_is_told() -> None:
    """For each place (a tier of one cluster, or an output) that lacks records, the answer of
    `skidway audit complete` contains the number of missing records, summed over all buckets."""
    more = [
        delta(AGENT, 3, count(7, bucket=EMPTY)),
        *(delta(x, 2, count(7, bucket=EMPTY)) for x in (BROKER, MIRROR)),
        seal(AGENT, 4, DUE, 3),
    ]
    found = only([*day()[:3], delta(HDFS, 1, count(3)), *day()[4:], *more])
    assert {place.name: count for place, count in found.lacking().items()} == {"/logs/dc1.logs": 9}


def test_a_topic_that_nobody_loads_is_complete_without_the_output() -> None:
    """A topic that is exempt from the tier hdfs (nobody loads it) is complete without counts of
    this tier."""
    unloaded = [x for x in day() if x != day()[3]]
    policy = replace(POLICY, exemptions=(Exemption(Tier.HDFS, ("dc1.logs",)),))
    assert only(unloaded).is_short
    assert not only(unloaded, policy).is_short


def test_a_topic_that_no_counter_reported_needs_a_counter_of_its_cluster() -> None:
    """If no counter ever reported the topic, the audit waits for a heartbeat of a counter in the
    topic's cluster. The topic is complete only when such a heartbeat says that everything is
    counted up to the time at which the last bucket of the requested span was due (old enough to be
    complete). Only this proves that the topic has no records."""
    sealed: list[Message] = [seal(AGENT, 1, DUE, 0)]
    abroad = replace(BROKER, cluster="dc2", producer="broker-dc2")
    counted: list[Message] = [Delta(BROKER, 1, DUE)]
    early, behind = Heartbeat(BROKER, 1, DUE - 1), Heartbeat(BROKER, 1, DUE, lag_ms=1)
    for late in ([], counted, [*counted, early], [*counted, behind], [Heartbeat(abroad, 1, DUE)]):
        found = only([*sealed, *late])
        assert "no counter of tier broker was heard since" in reasons([found])
    assert not only([*sealed, *counted, HEARD]).is_short
    without = replace(POLICY, tiers=(Tier.AGENT, Tier.HDFS))
    assert not only(sealed, without).is_short


def test_records_without_origin_keep_empty_buckets_open_until_their_counter_is_heard() -> None:
    """A topic to which no agent sends is complete, including its empty buckets, when a message of
    its counter has arrived after the last bucket of the requested span was due (old enough to be
    complete). If the counter reported a gap (offsets that it could not read), no bucket counts as
    complete, not even an empty one, because the records in the gap may belong to any bucket."""
    counted = [delta(x, 1, count(agent=0)) for x in (BROKER, MIRROR, HDFS)]
    assert not only([*counted, HEARD]).is_short
    late = only([*counted, Heartbeat(BROKER, 1, DUE - 1)])
    assert [x.bucket for x in late.short] == [START]
    gap = replace(counted[0], gaps=(Gap(LOGS, 0, 3, 4, "expired"),))
    doubted = only([gap, *counted[1:], HEARD])
    assert [x.bucket for x in doubted.short] == [BEFORE, EMPTY, START]


def test_nobody_waits_for_hosts_that_are_retired() -> None:
    """For empty buckets, the audit does not wait for the agent of a retired host. If all hosts are
    retired, a message of the counter must have arrived after the buckets were due (old enough to be
    complete)."""
    policy = replace(POLICY, roster=Roster((), ("web1",)))
    empty = question(until=START)
    [found] = asked([*good()[:4], HEARD], policy, about=empty)
    assert not found.is_short
    [found] = asked([*good()[:4], Heartbeat(BROKER, 1, EMPTY)], policy, about=empty)
    assert found.is_short


def test_a_cluster_that_is_retired_need_not_be_heard() -> None:
    """Normally the audit calls a topic complete only if an agent or a counter of the topic's
    cluster was heard within `silence.ms`. If this cluster is retired, it is enough that any sender
    was heard within this time."""
    later = DUE + 100_001
    policy = replace(POLICY, retired_places=("cluster dc1",))
    messages = [*day(), Heartbeat(HDFS, 1, later)]
    assert "nobody of cluster" in reasons([only(messages, now=later)])
    assert "nobody of cluster" not in reasons([only(messages, policy, later)])


def test_topics_of_rejects_are_asked_too() -> None:
    """The answer of `skidway audit complete` about a topic includes its topic of rejects
    (`<topic>.rejected`). If the audit has counts only of the topic of rejects, it answers that it
    does not know the requested topic."""
    rejected = replace(LOGS, topic="logs.rejected", topic_id="rid")
    lines = Delta(AGENT, 3, START, counts=(count(source=rejected),))
    found = asked([*day(), lines, seal(AGENT, 4, DUE, 3)])
    assert [(x.name, x.is_short) for x in found] == [
        ("dc1.logs", False), ("dc1.logs.rejected", True),
    ]  # fmt: skip
    alone = Delta(AGENT, 1, START, counts=(count(source=rejected),))
    assert "never heard" in reasons(asked([alone]))
    by_name = replace(question(name="logs.rejected"), covers=lambda x: x == rejected)
    assert "never heard" not in reasons(asked([alone], about=by_name))


def test_too_many_rejects_keep_a_topic_from_being_complete() -> None:
    """A bucket with more rejects than allowed keeps the topic from being complete, just as it makes
    the report end with status 1."""
    rejected = replace(count(), rejects=3)
    found = only([*day()[:3], delta(HDFS, 1, rejected), *day()[4:]])
    assert [(x.bucket, x.status) for x in found.short] == [(START, Status.COMPLETE)]


@promise("clocks due")
def test_by_a_wrong_clock_nothing_is_complete() -> None:
    """If `skidway audit complete` runs on a host whose clock is wrong, it calls no topic
    complete."""
    evidence = Fold(day()).evidence()
    evidence.taken_ms = NOW + POLICY.clock_difference_ms + 1
    [found] = completeness(evidence, POLICY, question(), NOW)
    assert found.doubts == ("the clock of this host is wrong, so no bucket is certain to be over",)


def test_messages_of_a_newer_version_keep_every_topic_from_being_complete() -> None:
    """While there are messages of a newer version of Skidway that this version could not read, no
    bucket is complete, not even an empty one."""
    evidence = Fold(day()).evidence()
    evidence.unread = {"ab": 1}
    [found] = completeness(evidence, POLICY, question(), NOW)
    assert len(found.short) == len(found.verdicts) == 3


def accept(messages: list[Message], *buckets: int) -> list[Message]:
    """Returns the messages, followed by acceptances of everything that keeps the given buckets from
    being complete."""
    judged = verdicts(Fold(messages).evidence(), POLICY, NOW)
    chosen = [x for x in judged if x.bucket in buckets]
    signed = Signature(NOW, "ada", "ticket 1")
    return [*messages, *acceptances.acceptances(chosen, signed)]


@promise("6 acceptance")
def test_accepted_buckets_count_as_complete_and_are_named() -> None:
    """If a person has accepted all findings (the reasons in the verdict) of a bucket, the bucket no
    longer keeps the topic from being complete. The answer of `skidway audit complete` lists the
    bucket as accepted."""
    short = [*day()[:3], delta(HDFS, 1, count(3)), *day()[4:]]
    found = only(accept(short, START))
    assert not found.is_short
    assert [x.bucket for x in found.accepted] == [START]
    assert not found.lacking()


@promise("6 acceptance")
def test_an_accepted_loss_is_accepted_in_empty_buckets_too() -> None:
    """If a loss affects a series of consecutive buckets without counts, reports list only the
    latest of these buckets. A person who accepts this latest bucket also accepts the loss in the
    empty buckets before it. If another loss also affects one of these empty buckets, reports list
    that bucket as well, and the acceptance does not cover it."""
    loss = Loss(LOGS, 7, 3, 100, 200, Certainty.LOST, "gone", BEFORE, START)
    lossy = [delta(AGENT, 1, count(), losses=(loss,)), *day()[1:]]
    assert len(only(lossy).short) == 3
    found = only(accept(lossy, START))
    assert not found.is_short
    assert [x.bucket for x in found.accepted] == [BEFORE, EMPTY, START]
    other = Loss(LOGS, 7, 4, 0, 9, Certainty.LOST, "gone", BEFORE, EMPTY)
    two = [delta(AGENT, 1, count(), losses=(loss, other)), *day()[1:]]
    assert [x.bucket for x in only(accept(two, START)).short] == [EMPTY]


@promise("6 acceptance")
def test_an_accepted_loss_is_accepted_in_the_empty_buckets_of_the_topic_of_rejects() -> None:
    """The lines of a declared loss may belong to the topic or to the topic of its rejects. While
    nothing was rejected, reports list no bucket of the topic of rejects, so a person can accept the
    loss only in the topic itself. That acceptance also counts in the empty buckets of the topic of
    rejects. A loss that nobody accepted still keeps these buckets from being complete."""
    loss = Loss(LOGS, 7, 3, 100, 200, Certainty.LOST, "gone", BEFORE, START)

    def short(losses: tuple[Loss, ...], *accepted: int) -> list[tuple[str, list[int]]]:
        messages = [delta(AGENT, 1, count(), losses=losses), *day()[1:], sealed]
        decided = accept(messages, *accepted) if accepted else messages
        return [(x.name, [y.bucket for y in x.short]) for x in asked(decided)]

    sealed = seal(AGENT, 3, DUE, 1, REJECTED)
    all_three = [BEFORE, EMPTY, START]
    assert short((loss,)) == [("dc1.logs", all_three), ("dc1.logs.rejected", all_three)]
    assert short((loss,), START) == [("dc1.logs", []), ("dc1.logs.rejected", [])]
    early, late = (replace(loss, from_bucket=x, to_bucket=x) for x in (BEFORE, START))
    late = replace(late, first=200, end=300)
    left = [EMPTY, START]
    assert short((early, late), BEFORE) == [("dc1.logs", left), ("dc1.logs.rejected", left)]


@promise("6 acceptance")
def test_only_losses_are_accepted_for_the_topic_of_rejects() -> None:
    """If a person accepts a finding other than a loss in a topic, such as a silent agent, the
    acceptance does not apply to the topic of rejects, even if the topic of rejects has the same
    finding."""
    parts = (count(), count(bucket=BEFORE))
    tiers = [delta(x, 1, *parts) for x in (AGENT, BROKER, MIRROR, HDFS)]
    sealed = [seal(AGENT, 2, BEFORE - SIZE, 1), seal(AGENT, 3, BEFORE - SIZE, 1, REJECTED)]
    now = NOW + 200_000
    silent = [*tiers, *sealed, Heartbeat(BROKER, 1, now)]
    chosen = verdicts(Fold(silent).evidence(), POLICY, now)
    decided = acceptances.acceptances(chosen, Signature(now, "ada", "ticket 1"))
    logs, rejected = asked([*silent, *decided], now=now)
    assert not logs.short
    assert [x.bucket for x in rejected.short] == [BEFORE, EMPTY, START]


@promise("6 acceptance")
def test_another_finding_is_accepted_in_empty_buckets_only_between_accepted_ones() -> None:
    """A finding is a reason in a verdict. A finding other than a loss, such as a silent agent, may
    concern an empty bucket. Reports do not list the empty bucket, so a person cannot accept the
    finding there. The finding counts as accepted in the empty bucket if a person has accepted it in
    two other buckets: one before the empty bucket, and one after the empty bucket."""
    parts = (count(), count(bucket=BEFORE))
    tiers = [delta(x, 1, *parts) for x in (AGENT, BROKER, MIRROR, HDFS)]
    silent = [*tiers, seal(AGENT, 2, BEFORE - SIZE, 1), Heartbeat(BROKER, 1, NOW + 200_000)]
    now = NOW + 200_000

    def short(*buckets: int) -> list[int]:
        judged = verdicts(Fold(silent).evidence(), POLICY, now)
        chosen = [x for x in judged if x.bucket in buckets]
        signed = Signature(now, "ada", "ticket 1")
        decided = acceptances.acceptances(chosen, signed) if chosen else []
        return [x.bucket for x in only([*silent, *decided], now=now).short]

    assert short() == [BEFORE, EMPTY, START]
    assert short(START) == [BEFORE, EMPTY]
    assert short(BEFORE, START) == []


@pytest.mark.parametrize(
    ("since", "words"), [(END, "earlier than --until"), (END - 10_081 * SIZE, "10,080 buckets")]
)
def test_spans_that_make_no_sense_are_refused(since: int, words: str) -> None:
    """The audit refuses a question about a span that is empty, or that has more than 10,080 buckets
    (the minutes of a week). The error is one sentence."""
    with pytest.raises(UsageError, match=words):
        asked(day(), about=question(since))
