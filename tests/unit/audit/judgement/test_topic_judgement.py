"""Tests the rules by which the audit judges a bucket. Each test gives the audit a few messages and
checks the verdict and its reason."""

from __future__ import annotations

import gc
import weakref
from collections.abc import ItemsView, Iterator, ValuesView
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.evidence.evidence import TopicEvidence
from skidway.audit.evidence.ledger import ledger_of
from skidway.audit.judgement.acceptances import unaccepted
from skidway.audit.judgement.expectation import Expectations
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.roster import Roster, RosterEntry
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import Status
from skidway.audit.topic.messages import (
    Announcement,
    Certainty,
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
from skidway.kafka.source import Source
from support.audit_senders import AGENT, BROKER, LOGS, REJECTED
from support.fold import Fold, judge
from support.one_bucket import (
    AGAIN,
    COUNTERS,
    DUE,
    END,
    HDFS,
    LOSS,
    MIRROR,
    NOW,
    POLICY,
    SECOND,
    SIZE,
    START,
    count,
    delta,
    from_the_broker_on,
    good,
    made_again,
    roster,
    seal,
    verdict,
    verdict_of,
)
from support.promises import promise


def test_equal_counts_and_a_seal_make_a_bucket_complete() -> None:
    """If all tiers have equal counts for a bucket and the agent has sealed it, the bucket is
    complete, and the verdict has no reasons."""
    found = verdict(good())
    assert (found.status, found.reasons, found.due) == (Status.COMPLETE, (), True)
    assert found.count(Tier.HDFS) == 5


@given(st.permutations(range(5)), st.lists(st.integers(0, 4), max_size=5))
def test_order_and_repetition_do_not_matter(order: list[int], again: list[int]) -> None:
    """The verdict does not depend on the order of the messages, or on whether some of them arrive
    twice."""
    messages = good()
    shuffled = [messages[i] for i in [*order, *again]]
    assert judge(shuffled, POLICY, NOW) == judge(messages, POLICY, NOW)


@dataclass(frozen=True)
class Case:
    """A change to the messages about a complete bucket, and the verdict and the reason that must
    follow from it."""

    name: str
    status: Status
    reason: str
    add: list[Message] = field(default_factory=list)
    drop: tuple[int, ...] = ()
    policy: Policy = POLICY
    now: int = NOW


CASES = [
    Case("our clock is not past the bucket", Status.OPEN, "too young", now=DUE - 1),
    Case("the agent never sealed", Status.OPEN, "has not sealed this topic yet", drop=(4,)),
    Case(
        "the seal is too old", Status.OPEN, "sealed up to", drop=(4,),
        add=[seal(AGENT, 2, DUE - 1, 1)],
    ),
    Case(
        "a later seal with a smaller W counts", Status.OPEN, "sealed up to",
        add=[seal(AGENT, 3, DUE - 500, 2)],
    ),
    Case(
        "lines after the seal", Status.OPEN, "after the agent's newest seal",
        add=[
            delta(AGENT, 3, count(1, previous=1)),
            *(delta(x, 2, count(1, previous=1)) for x in COUNTERS),
        ],
    ),
    Case(
        "hdfs is short", Status.INCOMPLETE, "hdfs /logs/dc1.logs is short by 2 of 5", drop=(3,),
        add=[delta(HDFS, 1, count(3))],
    ),
    Case(
        "hdfs has too many", Status.INCOMPLETE, "has 1 more than the 5 of agent", drop=(3,),
        add=[delta(HDFS, 1, count(6))],
    ),
    Case(
        "as many but other records", Status.INCOMPLETE, "not the same records", drop=(3,),
        add=[delta(HDFS, 1, count(5, checksum=98))],
    ),
    Case("a tier never reported", Status.INCOMPLETE, "tier mirror never reported", drop=(2,)),
    Case(
        "a tier reported other buckets only", Status.INCOMPLETE, "mirror offline is short by 5",
        drop=(2,), add=[delta(MIRROR, 1, count(bucket=START - SIZE))],
    ),
    Case(
        "an agent's number is missing", Status.UNKNOWN, "message 3 of agent 7 is missing",
        add=[seal(AGENT, 4, DUE, 3)],
    ),
    Case(
        "a number is missing of the epoch before", Status.UNKNOWN, "message 3 of agent 7",
        add=[seal(AGENT, 4, DUE, 3), seal(replace(AGENT, epoch=2), 1, DUE + 1, 0)],
    ),
    Case(
        "a heartbeat knows more numbers", Status.UNKNOWN, "message 3 of agent 7 is missing",
        add=[Heartbeat(AGENT, 3, NOW)],
    ),
    Case(
        "a counter's number is missing", Status.UNKNOWN, "message 2 of the broker counter",
        add=[delta(BROKER, 3)],
    ),
    Case(
        "two contents under one number", Status.UNKNOWN, "came with two contents",
        add=[delta(AGENT, 1, count(4))],
    ),
    Case(
        "two contents under a counter's number", Status.UNKNOWN, "message 1 of the broker counter",
        add=[delta(BROKER, 1, count(4))],
    ),
    Case(
        "a broken chain", Status.UNKNOWN, "for this bucket are missing", drop=(1,),
        add=[delta(BROKER, 1, count(5, previous=4))],
    ),
    Case(
        "the beginning expired", Status.UNKNOWN, "before number 2 are no longer there", drop=(0,),
        add=[seal(AGENT, 3, DUE, 2)],
    ),
    Case(
        "a declared loss in the bucket", Status.LOST, "bytes 100 to 200 of file 3 are lost",
        add=[delta(AGENT, 3, losses=(LOSS,)), seal(AGENT, 4, DUE, 3)],
    ),
    Case(
        "uncertain bytes in the bucket", Status.UNKNOWN, "are uncertain",
        add=[
            delta(AGENT, 3, losses=(replace(LOSS, certainty=Certainty.UNCERTAIN),)),
            seal(AGENT, 4, DUE, 3),
        ],
    ),
    Case(
        "an open-ended loss since the last seal", Status.LOST, "what follows byte 100",
        drop=(4,),
        add=[
            seal(AGENT, 2, END, 1),
            Delta(
                AGENT, 3, DUE + 1,
                losses=(replace(LOSS, end=None, from_bucket=None, to_bucket=None),),
            ),
            seal(AGENT, 4, DUE, 3),
        ],
    ),
    Case(
        "a second agent never sealed", Status.OPEN, "web2: the agent has not sealed",
        add=[delta(BROKER, 2, count(1, agent=8)), delta(SECOND, 1, count(1, agent=8, bucket=0))],
        policy=replace(POLICY, tiers=(Tier.AGENT, Tier.BROKER)),
        now=DUE - 1,
    ),
    Case(
        "a second agent is silent", Status.UNKNOWN, "web2: the agent is silent: unknown since",
        add=[seal(SECOND, 1, START, 0)], now=NOW + 100_000,
    ),
    Case(
        "the roster's host never reported", Status.OPEN, "host web9 is expected",
        policy=replace(POLICY, roster=roster("web1", "web9")),
    ),
    Case(
        "a new epoch of the agent", Status.UNKNOWN, "epoch 2 sealed nothing before", drop=(4,),
        add=[
            seal(AGENT, 2, START, 1),
            seal(replace(AGENT, epoch=2), 1, DUE + 1, 0),
        ],
    ),
    Case(
        "two counters of one partition", Status.UNKNOWN, "both count partition 0",
        add=[delta(replace(BROKER, producer="other"), 1)],
    ),
    Case(
        "a counter replaced in part", Status.UNKNOWN, "in some partitions only", drop=(1,),
        add=[
            delta(BROKER, 1, count(), ranges=(Range(LOGS, 0, 0, 9), Range(LOGS, 1, 0, 9))),
            delta(replace(BROKER, epoch=2), 1),
        ],
    ),
]  # fmt: skip


@promise("6 expected hosts")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_rule_keeps_a_bucket_from_being_complete(case: Case) -> None:
    """If the messages break one of the rules, the bucket is not complete, and the verdict gives the
    reason."""
    messages = [x for i, x in enumerate(good()) if i not in case.drop] + case.add
    found = verdict(messages, case.policy, case.now)
    assert found.status is case.status, found.reasons
    assert any(case.reason in reason for reason in found.reasons), found.reasons


@promise("6 complete")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_rule_applies_to_buckets_that_are_judged_by_columns(case: Case) -> None:
    """If the ledger returns the counts of a bucket as columns (arrays with an entry for each
    agent), the rules are applied to all agents at once. The verdict is the same as if each agent
    had been judged by itself."""
    messages = [x for i, x in enumerate(good()) if i not in case.drop] + case.add
    found = verdicts(ledger_of(map(encode, messages)).evidence(), case.policy, case.now)
    alone = judge(messages, case.policy, case.now)
    assert found == alone
    assert [unaccepted(x) for x in found] == [unaccepted(x) for x in alone]


def test_at_the_moment_at_which_it_is_due_a_bucket_is_judged() -> None:
    """All rules apply as soon as a bucket is due (old enough to be judged). So a bucket that lacks
    records is not complete even for a moment."""
    found = verdict(good(), now=DUE)
    assert (found.status, found.due) == (Status.COMPLETE, True)
    short = [*good()[:3], good()[4], delta(HDFS, 1, count(3))]
    assert verdict(short, now=DUE).status is Status.INCOMPLETE
    assert verdict(from_the_broker_on(), now=DUE).status is Status.COMPLETE


def test_a_seal_covers_an_agent_that_sent_nothing() -> None:
    """A bucket can be complete even if one of the agents sent a seal but no lines."""
    assert verdict([*good(), seal(SECOND, 1, DUE, 0)]).status is Status.COMPLETE


def test_an_announced_agent_is_expected_before_it_seals() -> None:
    """The audit waits for seals of an agent as soon as the agent has announced a file (has sent the
    message that it found the file). It does not matter that the agent has sent no seal yet, because
    the agent may still have lines of any bucket."""
    announcement = Announcement(START, 8, 1, "web2", "/x", 1, 1, b"f", 4, LOGS)
    found = verdict([*good(), announcement])
    assert found.status is Status.OPEN
    assert "web2" in found.reasons[0]


def test_a_retired_host_is_not_waited_for() -> None:
    """The audit does not wait for a host that the settings name as retired, by the host's name or
    by its agent's id. If the host has counted lines that a tier lacks, the bucket is incomplete,
    and the reason says that the host is retired."""
    messages = [*good(), seal(SECOND, 1, START, 0)]
    assert verdict(messages).status is Status.OPEN
    lines = delta(SECOND, 2, count(3, agent=8))
    for name in ("web2", "8"):
        policy = replace(POLICY, roster=Roster(retired=[name]))
        assert verdict(messages, policy).status is Status.COMPLETE
        found = verdict([*messages, lines], policy)
        assert found.status is Status.INCOMPLETE
        assert "web2 (retired): broker dc1 is short by 3 of 3" in found.reasons


@promise("6 expected hosts")
def test_an_agent_that_began_later_is_waited_for_though_the_old_ones_clock_was_ahead() -> None:
    """If a host's clock was set back and its agent's state was lost, the audit waits for the new
    agent, because the new agent reads old lines again. Once the new agent is silent, the audit no
    longer waits for it: the old agent's state may have been restored, and then the new agent never
    sends again."""
    policy = replace(POLICY, roster=roster("web1"))
    again = replace(SECOND, host="web1")
    old = Announcement(START, 7, 1, "web1", "/x", 1, 1, b"f", 4, LOGS)
    new = Announcement(START + 10, 8, 2, "web1", "/y", 1, 2, b"g", 4, LOGS)
    messages = [old, *good(), seal(AGENT, 3, DUE + 50, 2), new]
    assert verdict(messages, policy).status is Status.OPEN
    assert verdict([*messages, seal(again, 1, DUE, 0)], policy).status is Status.COMPLETE
    silent = START + 10 + POLICY.silence_ms
    on = [*messages, seal(AGENT, 4, silent, 3)]
    assert verdict(on, policy, silent - 1).status is Status.OPEN
    assert verdict(on, policy, silent).status is Status.COMPLETE


@pytest.mark.parametrize(
    ("sealed", "is_final", "expected"),
    [
        (START - SIZE, False, Status.UNKNOWN),
        (START - SIZE, True, Status.COMPLETE),
        (DUE, False, Status.COMPLETE),
    ],
)
def test_what_a_replaced_agent_had_unread_nobody_knows(
    sealed: int, is_final: bool, expected: Status
) -> None:
    """If a replaced agent did not send its last word (a final seal), no bucket between its last
    seal and the new agent's first message is complete, even if the new agent counted the whole
    bucket. After a final seal, such a bucket can be complete."""
    old = replace(SECOND, host="web1")
    topics = (SealedTopic(LOGS, sealed, 0, final=is_final),)
    messages = [Seal(old, 1, START - SIZE, topics), *good()]
    policy = replace(POLICY, roster=roster("web1"))
    assert verdict(messages, policy, NOW + POLICY.silence_ms).status is expected
    again = [seal(AGENT, 2, DUE, 1, AGAIN), Delta(AGENT, 1, START, counts=(count(source=AGAIN),))]
    ranges = (Range(AGAIN, 0, 0, 10),)
    again += [Delta(x, 1, START, ranges=ranges, counts=(count(source=AGAIN),)) for x in COUNTERS]
    [found] = judge([messages[0], *again], policy, NOW + POLICY.silence_ms)
    assert (found.source, found.status) == (AGAIN, expected)  # the old agent sealed only LOGS


def test_a_replaced_agent_says_nothing_of_what_came_later() -> None:
    """If a bucket starts after the new agent began, the audit does not wait for the replaced agent,
    because the new agent reads all lines of this bucket."""
    old = replace(SECOND, host="web1")
    first = Announcement(START - 1, 7, 1, "web1", "/x", 1, 1, b"f", 4, LOGS)
    messages = [seal(old, 1, START - SIZE, 0), first, *good()]
    policy = replace(POLICY, roster=roster("web1"))
    assert verdict(messages, policy, NOW + POLICY.silence_ms).status is Status.COMPLETE


def test_the_roster_decides_who_is_expected() -> None:
    """The audit waits for seals of every host in the roster. It does not wait for a host that is
    not in the roster."""
    messages = [*good(), seal(SECOND, 1, START, 0)]
    assert verdict(messages, replace(POLICY, roster=roster("web1"))).status is (Status.COMPLETE)
    both = replace(POLICY, roster=roster("web1", "web2"))
    assert verdict(messages, both).status is Status.OPEN


def test_only_topics_that_are_asked_for_are_judged() -> None:
    """The audit gives verdicts only on the requested topics. The evidence also contains other
    topics, which the audit needs to judge the requested topics."""
    evidence = Fold([*good(), Delta(AGENT, 3, START, counts=(count(source=REJECTED),))]).evidence()
    for asked in (frozenset({"logs"}), frozenset({"logs.rejected"})):
        found = verdicts(replace(evidence, asked=asked), POLICY, NOW)
        assert {x.source.topic for x in found} == asked


@promise("1 topic made again")
def test_a_topic_made_again_is_another_topic() -> None:
    """A topic that was deleted and created again is another topic: the counts of the old and the
    new topic are never added."""
    again = replace(LOGS, topic_id="other")
    messages = [*good(), Delta(AGENT, 3, START, counts=(count(source=again),))]
    found = {x.source.topic_id: x.status for x in judge(messages, POLICY, NOW)}
    assert found["tid"] is Status.COMPLETE
    assert found["other"] is Status.INCOMPLETE


@promise("6 expected hosts")
@pytest.mark.parametrize(
    "expected",
    [Roster(), Roster([RosterEntry("web1"), RosterEntry("web2")]), roster("web1", "web2")],
)
def test_who_had_a_topic_is_waited_for_when_it_was_made_again(expected: Roster) -> None:
    """If a topic is deleted and created again, the audit waits for each host that had sent to the
    old topic. Each of these hosts may have lines for the new topic. The audit waits until the host
    has sealed the new topic or is retired."""
    policy = replace(POLICY, roster=expected)
    found = verdict_of(AGAIN, made_again(), policy)
    assert (found.status, found.reasons) == (
        Status.OPEN, ("web2: the agent has sealed up to 1970-01-01 00:10:59Z only",)
    )  # fmt: skip
    back = seal(SECOND, 2, DUE, 1, AGAIN)
    assert verdict_of(AGAIN, made_again(back), policy).status is Status.COMPLETE
    gone = replace(policy, roster=Roster(expected, ["web2"]))
    assert verdict_of(AGAIN, made_again(), gone).status is Status.COMPLETE


def test_several_hosts_share_one_reason() -> None:
    """If several agents have the same problem, the verdict has one reason for all of them, however
    many they are."""
    messages: list[Message] = good()
    for agent in range(10, 16):
        messages.append(seal(Sender(Tier.AGENT, "dc1", str(agent), f"h{agent}", 1), 1, START, 0))
    found = verdict(messages)
    assert len(found.reasons) == 1
    assert found.reasons[0].startswith("h10, h11, h12 and 3 more: ")


def test_an_unknown_agent_in_the_broker_is_never_complete() -> None:
    """If brokers, mirror and HDFS have records of an agent that never sent a message, the bucket is
    incomplete. The reasons say how many records each of them has more than the agent, and that the
    agent has not sealed the bucket."""
    messages = good()
    for index, sender in enumerate(COUNTERS, start=1):
        messages[index] = delta(sender, 1, count(), count(2, agent=9))
    found = verdict(messages)
    places = ("broker dc1", "hdfs /logs/dc1.logs", "mirror offline")
    assert (found.status, list(found.reasons)) == (
        Status.INCOMPLETE,
        [
            *(f"agent 9: {place} has 2 more than the 0 of agent" for place in places),
            "agent 9: the agent has not sealed this topic yet",
        ],
    )


class _Walked(dict[Source, TopicEvidence]):
    """The evidence of topics. Counts how often somebody walks through all of them."""

    walks = 0

    def __iter__(self) -> Iterator[Source]:
        self.walks += 1
        return super().__iter__()

    def items(self) -> ItemsView[Source, TopicEvidence]:
        self.walks += 1
        return super().items()

    def values(self) -> ValuesView[TopicEvidence]:
        self.walks += 1
        return super().values()


@pytest.mark.parametrize("topic", ["t{0}", "t", "t{0}.rejected", "t.rejected"])
def test_one_seal_may_name_thousands_of_topics(topic: str) -> None:
    """However many topics the messages name, the judgement walks through all topics equally often:
    it takes twice as long for twice as many topics, and not four times."""

    def walks(count: int) -> int:
        named = tuple(
            SealedTopic(replace(LOGS, topic=topic.format(x), topic_id=str(x)), DUE, 0)
            for x in range(count)
        )
        evidence = ledger_of([encode(Seal(AGENT, 1, NOW, named))]).evidence()
        evidence.topics = walked = _Walked(evidence.topics)
        verdicts(evidence, POLICY, NOW)
        return walked.walks

    assert walks(2) == walks(30) > 0


def test_a_topic_that_was_judged_leaves_the_memory() -> None:
    """What the judgement makes of a topic refers to all evidence of it. It goes with the next topic
    at once, not with the next collection of garbage, which the collector makes rarely."""
    sources = [replace(LOGS, topic=name, topic_id=name) for name in ("a", "b")]
    named = tuple(SealedTopic(x, DUE, 0) for x in sources)
    evidence = ledger_of([encode(Seal(AGENT, 1, NOW, named))]).evidence()
    expectations = Expectations(evidence, POLICY, NOW)
    first = expectations.of(sources[0])
    assert list(first.seals) == [7]
    last = weakref.ref(first)
    del first
    gc.disable()
    try:
        expectations.of(sources[1])
        assert last() is None
    finally:
        gc.enable()
