"""The judgement, rule by rule: from a handful of messages to a verdict and its reason."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.evidence.hearing import Heard
from skidway.audit.judgement.policy import Exemption, Policy
from skidway.audit.judgement.roster import Entry, Roster
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.topic.messages import (
    Announcement,
    Bounds,
    Certainty,
    Count,
    Delta,
    Gap,
    Heartbeat,
    Loss,
    Message,
    Range,
    Seal,
    SealedTopic,
    Sender,
    Tier,
)
from skidway.kafka.source import Source
from support.audit_senders import AGENT, BROKER, LOGS, REJECTED
from support.fold import Fold, judge
from support.promises import promise

AGAIN = replace(LOGS, topic_id="other")
SIZE = 60_000
START = 600_000
END = START + SIZE
LATENESS = 10_000
DUE = END + LATENESS
NOW = DUE + 5_000
POLICY = Policy(lateness_ms=LATENESS, silence_ms=100_000, ahead_ms=30_000)

SECOND = Sender(Tier.AGENT, "dc1", "8", "web2", 1)
MIRROR = Sender(Tier.MIRROR, "offline", "mirror-offline", "c2", 1)
HDFS = Sender(Tier.HDFS, "offline", "/logs/dc1.logs", "l1", 1)
COUNTERS = (BROKER, MIRROR, HDFS)


def count(
    records: int = 5, *, agent: int = 7, bucket: int = START, previous: int = 0, checksum: int = 99,
    source: Source = LOGS,
) -> Count:  # fmt: skip
    return Count(source, agent, bucket, SIZE, records, records * 10, checksum, previous=previous)


def delta(sender: Sender, number: int, *counts: Count, **parts: object) -> Delta:
    ranges = () if sender.tier is Tier.AGENT else (Range(LOGS, 0, 0, 10),)
    extra = {"ranges": ranges, **parts}
    return Delta(sender, number, START, counts=tuple(counts), **extra)  # type: ignore[arg-type]


def seal(sender: Sender, number: int, until: int, at: int, source: Source = LOGS) -> Seal:
    return Seal(sender, number, until, (SealedTopic(source, until, at),))


def roster(*hosts: str) -> Roster:
    return Roster(Entry(host, "dc1", frozenset({"logs"})) for host in hosts)


def good() -> list[Message]:
    """A bucket that every tier counted alike and whose agent has sealed it."""
    return [
        delta(AGENT, 1, count()),
        *(delta(sender, 1, count()) for sender in COUNTERS),
        seal(AGENT, 2, DUE, 1),
    ]


def verdict(messages: list[Message], policy: Policy = POLICY, now: int = NOW) -> BucketVerdict:
    [found] = [x for x in judge(messages, policy, now) if x.source == LOGS and x.bucket == START]
    return found


def test_equal_counts_and_a_seal_make_a_bucket_complete() -> None:
    """The one good case, with no reason against it."""
    found = verdict(good())
    assert (found.status, found.reasons, found.due) == (Status.COMPLETE, (), True)
    assert found.count(Tier.HDFS) == 5


UNMIRRORED = [*good()[:2], good()[4]]
"""The good bucket of a topic that nobody mirrors, and so nobody loads."""


@promise("6 missing tier")
@pytest.mark.parametrize("topics", [("dc1.logs",), ("dc1\\..+",), ("dc9.logs", "dc1\\.l.*")])
def test_a_topic_that_nobody_mirrors_or_loads_is_complete_without(topics: tuple[str, ...]) -> None:
    """The exemptions say so, by name or pattern; with one of the tiers alone exempted the other is
    still asked for."""
    exempt = tuple(Exemption(tier, topics) for tier in (Tier.MIRROR, Tier.HDFS))
    found = verdict(UNMIRRORED, replace(POLICY, exemptions=exempt))
    assert (found.status, found.reasons) == (Status.COMPLETE, ())
    assert found.count(Tier.MIRROR) is None
    found = verdict(UNMIRRORED, replace(POLICY, exemptions=exempt[:1]))
    assert found.reasons == ("web1: tier hdfs never reported this topic",)


def test_an_exempt_topic_is_still_compared_where_it_is_expected() -> None:
    """Between agent and broker a line may be missing as anywhere."""
    exempt = tuple(Exemption(tier, ("dc1.logs",)) for tier in (Tier.MIRROR, Tier.HDFS))
    short = [UNMIRRORED[0], delta(BROKER, 1, count(4)), UNMIRRORED[2]]
    found = verdict(short, replace(POLICY, exemptions=exempt))
    assert (found.status, found.reasons) == (
        Status.INCOMPLETE,
        ("web1: broker dc1 is short by 1 of 5",),
    )


@promise("6 missing tier")
@pytest.mark.parametrize("topics", ["dc2.logs", "dc1.log", "logs", "dc1.logs.+", "dc2\\..+"])
def test_other_topics_are_not_exempt(topics: str) -> None:
    """Names and patterns are of whole names, with the cluster: what is not named must be in every
    tier, or a topic that should be mirrored and is not would be called complete."""
    exempt = tuple(Exemption(tier, (topics,)) for tier in (Tier.MIRROR, Tier.HDFS))
    found = verdict(UNMIRRORED, replace(POLICY, exemptions=exempt))
    assert found.status is Status.INCOMPLETE
    assert any("tier mirror never reported this topic" in reason for reason in found.reasons)


def test_what_was_rejected_of_an_exempt_topic_is_exempt() -> None:
    """Whoever names a topic means its rejects too, as in other lists of topics."""
    assert Exemption(Tier.MIRROR, ("dc1.logs",)).holds(REJECTED)
    assert not Exemption(Tier.MIRROR, ("dc1.logs",)).holds(replace(LOGS, topic="logs2"))


@given(st.permutations(range(5)), st.lists(st.integers(0, 4), max_size=5))
def test_order_and_repetition_do_not_matter(order: list[int], again: list[int]) -> None:
    """Messages come from several clusters, some twice."""
    messages = good()
    shuffled = [messages[i] for i in [*order, *again]]
    assert judge(shuffled, POLICY, NOW) == judge(messages, POLICY, NOW)


@dataclass(frozen=True)
class Case:
    """A change to the good bucket, and what must come of it."""

    name: str
    status: Status
    reason: str
    add: list[Message] = field(default_factory=list)
    drop: tuple[int, ...] = ()
    policy: Policy = POLICY
    now: int = NOW


LOSS = Loss(LOGS, 7, 3, 100, 200, Certainty.LOST, "truncated", START, START)
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


@promise("6 checksum")
@pytest.mark.parametrize("field", ["count", "bytes", "checksum"])
def test_tiers_agree_in_count_bytes_and_checksum(field: str) -> None:
    """Each of them alone is enough to tell that they do not have the same records."""
    other = replace(count(), **{field: getattr(count(), field) + 1})
    messages = [*good()[:3], delta(HDFS, 1, other), good()[4]]
    assert verdict(messages).status is Status.INCOMPLETE


@promise("6 expected hosts")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_rule_keeps_a_bucket_from_being_complete(case: Case) -> None:
    """And says why, in words."""
    messages = [x for i, x in enumerate(good()) if i not in case.drop] + case.add
    found = verdict(messages, case.policy, case.now)
    assert found.status is case.status, found.reasons
    assert any(case.reason in reason for reason in found.reasons), found.reasons


def test_at_the_moment_at_which_it_is_due_a_bucket_is_judged() -> None:
    """It is no longer too young, and all rules hold: what is short is not complete for a moment."""
    found = verdict(good(), now=DUE)
    assert (found.status, found.due) == (Status.COMPLETE, True)
    short = [*good()[:3], good()[4], delta(HDFS, 1, count(3))]
    assert verdict(short, now=DUE).status is Status.INCOMPLETE
    assert verdict(_from_the_broker_on(), now=DUE).status is Status.COMPLETE


def test_who_is_waited_for_is_silent_when_the_silence_is_over() -> None:
    """An agent that never sealed, and a host of the roster of which no agent is known."""
    over = DUE + POLICY.silence_ms
    expected = replace(POLICY, roster=roster("web1", "web9"))
    sealed = [*good(), seal(AGENT, 3, over, 2)]
    for messages, policy in ((good()[:4], POLICY), (sealed, expected)):
        assert verdict(messages, policy, over - 1).status is Status.OPEN
        assert verdict(messages, policy, over).status is Status.UNKNOWN
    alive = [*good()[:4], Heartbeat(AGENT, 1, DUE + 1)]
    assert verdict(alive, now=over).status is Status.OPEN
    assert verdict(alive, now=over + 1).status is Status.UNKNOWN


@pytest.mark.parametrize("missing", ["the agent's", "a counter's that is called like the agent"])
def test_only_an_agents_later_epoch_makes_up_for_a_missing_number(missing: str) -> None:
    """And only of buckets that no time of the epoch before can be of: behind the first seal of the
    later one by more than event times are ahead."""
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
    """Its epochs and numbers are none of the agent's."""
    named = replace(BROKER, producer="7", epoch=2)
    assert verdict([*good(), delta(named, 1, count())]).status is Status.COMPLETE


def test_a_seal_of_the_same_epoch_makes_up_for_no_missing_number() -> None:
    """However old it is: what is missing may have come behind it, and be of any bucket."""
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
    """Unless it touched it: what came before the number with two contents was said by one agent."""
    copies = [delta(AGENT, 4, count(n, bucket=bucket, previous=1)) for n in (1, 2)]
    seals = [seal(AGENT, 2, START, 1), seal(AGENT, 3, sealed, 1)]
    messages = [*good()[:4], *seals, *copies]
    assert verdict(messages).status is expected


def taken(
    messages: list[Message], ahead: Seal, taken_ms: int, policy: Policy = POLICY
) -> BucketVerdict:
    """The verdict where a seal was taken when our clock said that, whatever its own W."""
    fold = Fold(messages)
    fold.apply(ahead, Heard("audit", "id", 0, 9, ahead.time_ms, taken_ms, is_live=False))
    [found] = [x for x in verdicts(fold.evidence(), policy, NOW) if x.bucket == START]
    return found


@promise("6 moment of a seal")
@pytest.mark.parametrize(("late", "expected"), [(0, Status.COMPLETE), (-1, Status.UNKNOWN)])
def test_beside_a_copy_a_seal_ahead_of_us_vouches_up_to_when_it_was_taken(
    late: int, expected: Status
) -> None:
    """Also where the last word of a host that is retired lets the audit do without a later one."""
    copies = [delta(AGENT, 4, count(n, bucket=START + 9 * SIZE)) for n in (1, 2)]
    messages = [*good()[:4], last_word(AGENT, 3, 1), *copies]
    gone = replace(POLICY, roster=Roster(retired=["web1"]))
    assert taken(messages, seal(AGENT, 2, DUE + 1, 1), DUE + late, gone).status is expected


@promise("6 moment of a seal")
@pytest.mark.parametrize(("late", "expected"), [(0, Status.COMPLETE), (-1, Status.UNKNOWN)])
def test_a_seal_ahead_of_us_proves_no_epoch_behind_the_moment_at_which_it_was_taken(
    late: int, expected: Status
) -> None:
    """The next epoch began behind the bucket, and may have read again what was unread then."""
    messages = [*good()[:4], seal(replace(AGENT, epoch=2), 1, END + 9 * SIZE, 0)]
    assert taken(messages, seal(AGENT, 2, END + 8 * SIZE, 1), DUE + late).status is expected


@promise("6 seal")
@pytest.mark.parametrize(("at", "expected"), [(2, Status.COMPLETE), (1, Status.OPEN)])
def test_a_seal_vouches_for_nothing_that_came_between_its_look_and_it(
    at: int, expected: Status
) -> None:
    """Lines of a delta with a number between may have come behind the look, and more of them."""
    parts = [delta(sender, 2, count(1, previous=1)) for sender in (AGENT, *COUNTERS)]
    messages = [*good()[:4], *parts, seal(AGENT, 3, DUE, at)]
    found = verdict(messages)
    assert found.status is expected
    later = seal(replace(AGENT, epoch=2), 1, END + 9 * SIZE, 0)
    is_proven = expected is Status.COMPLETE
    assert (verdict([*messages, later]).status is Status.COMPLETE) is is_proven


@promise("6 epochs")
@pytest.mark.parametrize(
    ("until", "expected"), [(START, Status.UNKNOWN), (START - 1, Status.COMPLETE)]
)
def test_what_lay_between_two_epochs_goes_up_to_the_first_seal_by_its_own_clock(
    until: int, expected: Status
) -> None:
    """Event times are of that clock, though ours was behind it when we took the seal."""
    new = replace(AGENT, epoch=2)
    messages = [delta(new, 2, count()), *good()[1:4], seal(new, 3, DUE, 2)]
    assert taken(messages, seal(new, 1, until, 0), START - SIZE).status is expected


def test_a_later_epoch_makes_up_for_a_missing_number_by_the_agents_own_clock() -> None:
    """Which event times are no farther ahead of, though we took its seal long before."""
    new = replace(AGENT, epoch=2)
    messages = [seal(AGENT, 1, START - 9 * SIZE, 0), Heartbeat(AGENT, 2, START)]
    messages += [*good()[1:4], delta(new, 2, count()), seal(new, 3, DUE, 2)]
    first = START - POLICY.ahead_ms
    assert taken(messages, seal(new, 1, first, 0), first - SIZE).status is Status.COMPLETE
    assert taken(messages, seal(new, 1, first + 1, 0), first - SIZE).status is Status.UNKNOWN


def test_a_counters_copy_leaves_complete_what_it_did_not_touch() -> None:
    """Nobody but the counter's own deltas says what it has counted of a bucket."""
    copies = [delta(BROKER, 2, count(n, bucket=START + 9 * SIZE)) for n in (1, 2)]
    assert verdict([*good(), *copies]).status is Status.COMPLETE
    copies = [delta(BROKER, 2, count(n, previous=1)) for n in (1, 2)]
    elsewhere = delta(MIRROR, 2, count(bucket=START + 9 * SIZE))  # and nothing of the copy there
    assert verdict([*good(), *copies, elsewhere]).status is Status.UNKNOWN


@promise("6 repeats and rejects")
def test_repeats_are_shown_and_are_no_fault() -> None:
    """A re-sent batch is dropped by marks, not a sign of loss."""
    messages = good()
    messages[1] = delta(BROKER, 1, replace(count(), repeats=3))
    found = verdict(messages)
    assert found.status is Status.COMPLETE
    assert sum(x.repeats for x in found.places().values() if x) == 3


@promise("6 repeats and rejects")
def test_the_loaders_rejects_count_as_arrived() -> None:
    """hdfs rows + rejects: a line that no row could hold is set apart, not lost."""
    messages = good()
    messages[3] = delta(HDFS, 1, replace(count(), rejects=2))
    assert verdict(messages).status is Status.COMPLETE


def test_a_one_cluster_site_expects_no_mirror() -> None:
    """Tiers are what the site has."""
    messages = [x for x in good() if not (isinstance(x, Delta) and x.sender.tier is Tier.MIRROR)]
    policy = replace(POLICY, tiers=(Tier.AGENT, Tier.BROKER, Tier.HDFS))
    assert verdict(messages, policy).status is Status.COMPLETE


def test_a_seal_covers_an_agent_that_sent_nothing() -> None:
    """An idle host is idle, because it said so."""
    assert verdict([*good(), seal(SECOND, 1, DUE, 0)]).status is Status.COMPLETE


def test_an_announced_agent_is_expected_before_it_seals() -> None:
    """It may hold lines of any bucket."""
    announcement = Announcement(START, 8, 1, "web2", "/x", 1, 1, b"f", 4, LOGS)
    found = verdict([*good(), announcement])
    assert found.status is Status.OPEN
    assert "web2" in found.reasons[0]


def test_a_retired_host_is_not_waited_for() -> None:
    """An operator has decided; only what it did send must still agree."""
    messages = [*good(), seal(SECOND, 1, START, 0)]
    assert verdict(messages).status is Status.OPEN
    for name in ("web2", "8"):
        policy = replace(POLICY, roster=Roster(retired=[name]))
        assert verdict(messages, policy).status is Status.COMPLETE


def last_word(sender: Sender, number: int, at: int) -> Seal:
    return Seal(sender, number, START + 1, (SealedTopic(LOGS, START + 1, at, final=True),))


def test_the_last_word_of_a_retired_host_needs_no_seal_behind_it() -> None:
    """An ordinary seal as old leaves the bucket unknown; so does a line behind the last word."""
    retired = replace(POLICY, roster=Roster(retired=["web1"]))
    messages, late = good()[:4], NOW + POLICY.silence_ms
    ordinary = verdict([*messages, seal(AGENT, 2, START + 1, 1)], retired, late)
    assert ordinary.status is Status.UNKNOWN
    assert verdict([*messages, last_word(AGENT, 2, 1)], retired, late).status is Status.COMPLETE
    more = [delta(x, 3, count(1, previous=1)) for x in (AGENT, *COUNTERS)]
    more += [delta(x, 2) for x in COUNTERS]
    found = verdict([*messages, last_word(AGENT, 2, 1), *more], retired, late)
    assert found.status is Status.UNKNOWN


def test_a_last_word_that_was_taken_back_is_none() -> None:
    """The newest seal counts: the agent came back, and may have more to say."""
    retired = replace(POLICY, roster=Roster(retired=["web1"]))
    messages = [*good()[:4], last_word(AGENT, 2, 1), seal(AGENT, 3, START + 1, 2)]
    assert verdict(messages, retired).status is Status.OPEN


@promise("6 last word")
def test_the_last_word_of_an_expected_host_is_a_seal_like_any_other() -> None:
    """It may have been written to since: only who is retired, or has a newer agent, is gone."""
    messages = [*good()[:4], last_word(AGENT, 2, 1)]
    expected = replace(POLICY, roster=roster("web1"))
    for policy in (POLICY, expected):
        assert verdict(messages, policy).status is Status.OPEN
        assert verdict(messages, policy, NOW + POLICY.silence_ms).status is Status.UNKNOWN
    newer = seal(replace(SECOND, host="web1"), 1, DUE, 0)
    assert verdict([*messages, newer], expected).status is Status.COMPLETE
    assert verdict([*messages, newer], POLICY).status is Status.OPEN


@promise("6 expected hosts")
def test_an_agent_that_began_later_is_waited_for_though_the_old_ones_clock_was_ahead() -> None:
    """The host's clock was set back when the state was lost: the new agent reads old lines again,
    and until it has sealed nobody knows where these count. One that is silent is waited for no
    more: its state may have been replaced by the old one's."""
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
    """Its state was lost between its last seal and the new agent's first message: of that time no
    bucket is complete, also where the new one counted all of it, unless it said its last word."""
    old = replace(SECOND, host="web1")
    topics = (SealedTopic(LOGS, sealed, 0, final=is_final),)
    messages = [Seal(old, 1, START - SIZE, topics), *good()]
    policy = replace(POLICY, roster=roster("web1"))
    assert verdict(messages, policy, NOW + POLICY.silence_ms).status is expected
    again = [seal(AGENT, 2, DUE, 1, AGAIN), Delta(AGENT, 1, START, counts=(count(source=AGAIN),))]
    ranges = (Range(AGAIN, 0, 0, 10),)
    again += [Delta(x, 1, START, ranges=ranges, counts=(count(source=AGAIN),)) for x in COUNTERS]
    [found] = judge([messages[0], *again], policy, NOW + POLICY.silence_ms)
    assert (found.source, found.status) == (AGAIN, expected)  # of which it never spoke


def test_a_replaced_agent_says_nothing_of_what_came_later() -> None:
    """The new agent began before the bucket did: all of it was written for that one to read."""
    old = replace(SECOND, host="web1")
    first = Announcement(START - 1, 7, 1, "web1", "/x", 1, 1, b"f", 4, LOGS)
    messages = [seal(old, 1, START - SIZE, 0), first, *good()]
    policy = replace(POLICY, roster=roster("web1"))
    assert verdict(messages, policy, NOW + POLICY.silence_ms).status is Status.COMPLETE


def test_the_roster_decides_who_is_expected() -> None:
    """A host that is not in it is not waited for; one that is must have sealed."""
    messages = [*good(), seal(SECOND, 1, START, 0)]
    assert verdict(messages, replace(POLICY, roster=roster("web1"))).status is (Status.COMPLETE)
    both = replace(POLICY, roster=roster("web1", "web2"))
    assert verdict(messages, both).status is Status.OPEN


def test_only_topics_that_are_asked_for_are_judged() -> None:
    """Others are in the evidence for their sake."""
    evidence = Fold([*good(), Delta(AGENT, 3, START, counts=(count(source=REJECTED),))]).evidence()
    for asked in (frozenset({"logs"}), frozenset({"logs.rejected"})):
        found = verdicts(replace(evidence, asked=asked), POLICY, NOW)
        assert {x.source.topic for x in found} == asked


def test_a_topic_of_rejects_is_sealed_by_its_topic() -> None:
    """The agent seals a topic; that covers the lines that the topic's schema refused."""
    messages: list[Message] = good()
    rejected = count(2, source=REJECTED)
    messages += [
        Delta(AGENT, 3, START, counts=(rejected,)),
        *(
            Delta(x, 2, START, ranges=(Range(REJECTED, 0, 0, 2),), counts=(rejected,))
            for x in COUNTERS
        ),
        seal(AGENT, 4, DUE, 3),
    ]
    found = {x.source.topic: x.status for x in judge(messages, POLICY, NOW)}
    assert found == {"logs": Status.COMPLETE, "logs.rejected": Status.COMPLETE}
    retired = replace(POLICY, roster=Roster(retired=["web1"]))
    said = judge(
        [*messages[:4], *messages[5:-1], delta(AGENT, 2), last_word(AGENT, 4, 3)], retired, NOW
    )
    assert {x.status for x in said} == {Status.COMPLETE}
    lost = [*messages, delta(AGENT, 5, losses=(LOSS,)), seal(AGENT, 6, DUE, 5)]
    assert {x.status for x in judge(lost, POLICY, NOW)} == {Status.LOST}


@promise("1 topic made again")
def test_a_topic_made_again_is_another_topic() -> None:
    """Counts of the two never add up to each other."""
    again = replace(LOGS, topic_id="other")
    messages = [*good(), Delta(AGENT, 3, START, counts=(count(source=again),))]
    found = {x.source.topic_id: x.status for x in judge(messages, POLICY, NOW)}
    assert found["tid"] is Status.COMPLETE
    assert found["other"] is Status.INCOMPLETE


def of(source: Source, messages: list[Message], policy: Policy = POLICY) -> BucketVerdict:
    [found] = [x for x in judge(messages, policy, NOW) if x.source == source and x.bucket == START]
    return found


@promise("6 seal of a topic made again")
def test_a_seal_of_a_topic_made_again_is_one_of_the_topic_before() -> None:
    """Young buckets of the old id become complete; what it lacks is incomplete, and lines that came
    behind the newest seal leave it open."""
    early = [*good()[:4], seal(AGENT, 2, END - 1, 1)]
    assert verdict(early).status is Status.OPEN
    again = Delta(AGENT, 3, START, counts=(count(source=AGAIN),))
    sealed = seal(AGENT, 4, DUE, 3, AGAIN)
    assert verdict([*early, again]).status is Status.OPEN
    assert verdict([*early, again, sealed]).status is Status.COMPLETE
    assert verdict([early[0], *early[2:], again, sealed]).status is Status.INCOMPLETE
    late = delta(AGENT, 5, count(1, previous=1))
    found = verdict([*early, again, sealed, late])
    assert "web1: lines came after the agent's newest seal" in found.reasons


def made_again(*more: Message) -> list[Message]:
    """Two hosts had the old topic; of the new one only the first has spoken, and all have counted
    its five records."""
    ranges = (Range(AGAIN, 0, 0, 10),)
    return [
        seal(SECOND, 1, END - 1, 0),
        Delta(AGENT, 1, START, counts=(count(source=AGAIN),)),
        seal(AGENT, 2, DUE, 1, AGAIN),
        *(Delta(x, 1, START, ranges=ranges, counts=(count(source=AGAIN),)) for x in COUNTERS),
        *more,
    ]


@promise("6 expected hosts")
@pytest.mark.parametrize(
    "expected", [Roster(), Roster([Entry("web1"), Entry("web2")]), roster("web1", "web2")]
)
def test_who_had_a_topic_is_waited_for_when_it_was_made_again(expected: Roster) -> None:
    """A host that is away may have lines for it, until it seals the new one, or is retired."""
    policy = replace(POLICY, roster=expected)
    found = of(AGAIN, made_again(), policy)
    assert (found.status, found.reasons) == (
        Status.OPEN, ("web2: the agent has sealed up to 1970-01-01 00:10:59Z only",)
    )  # fmt: skip
    back = seal(SECOND, 2, DUE, 1, AGAIN)
    assert of(AGAIN, made_again(back), policy).status is Status.COMPLETE
    gone = replace(policy, roster=Roster(expected, ["web2"]))
    assert of(AGAIN, made_again(), gone).status is Status.COMPLETE


@promise("6 seal of a topic made again")
def test_a_last_word_on_a_topic_is_none_on_the_one_that_was_made_again() -> None:
    """Once its agent has spoken of that, which it has not sealed."""
    gone = replace(POLICY, roster=Roster([Entry("web1"), Entry("web2", retired=True)]))
    word = Seal(SECOND, 1, START, (SealedTopic(LOGS, START, 0, final=True),))
    part = Delta(SECOND, 2, START, counts=(count(agent=8, source=AGAIN),))
    both = made_again()[1:]
    counted = [
        replace(x, counts=(*x.counts, count(agent=8, source=AGAIN)))
        if isinstance(x, Delta) and x.sender in COUNTERS
        else x
        for x in both
    ]
    found = of(AGAIN, [word, part, *counted], gone)
    assert found.status is Status.OPEN
    assert any(x.startswith("web2 (retired): the agent has sealed up to") for x in found.reasons)


@promise("6 seal of a topic made again")
def test_who_spoke_of_rejects_alone_has_spoken_of_the_topic_that_was_made_again() -> None:
    """Of a cluster that is another one now: that nothing more comes was said of the one before."""
    gone = replace(POLICY, roster=Roster([Entry("web1"), Entry("web2", retired=True)]))
    logs, rejected = (replace(x, cluster_id="new", topic_id="new") for x in (LOGS, REJECTED))
    part = count(agent=8, source=rejected)
    messages = [
        Delta(SECOND, 1, START, counts=(part,)),
        *(Delta(x, 1, START, ranges=(Range(rejected, 0, 0, 9),), counts=(part,)) for x in COUNTERS),
        seal(AGENT, 1, DUE, 0, logs),
    ]
    old, new = (
        Seal(SECOND, 2, START, (SealedTopic(x, START, 1, final=True),)) for x in (LOGS, logs)
    )
    assert of(rejected, [*messages, new], gone).status is Status.COMPLETE
    found = of(rejected, [*messages, old], gone)
    assert found.status is Status.OPEN
    assert any(x.startswith("web2 (retired): the agent has sealed up to") for x in found.reasons)


@promise("6 epochs")
def test_a_higher_epoch_of_a_counter_replaces_the_lower() -> None:
    """It counted everything again; the old sums are not added to the new ones."""
    new = replace(HDFS, epoch=2)
    assert verdict([*good(), delta(new, 1, count())]).status is Status.COMPLETE
    behind = verdict([*good(), delta(new, 1)])
    assert behind.status is Status.INCOMPLETE


@promise("6 epochs")
def test_an_agents_new_epoch_adds() -> None:
    """What the old epoch counted stays; a bucket sealed by the old one stays complete."""
    new = replace(AGENT, epoch=2)
    later = END + 10 * SIZE
    messages = [*good(), seal(new, 1, later, 0)]
    assert verdict(messages).status is Status.COMPLETE
    found = verdict([*messages, delta(new, 2, count(1))])
    assert (found.status is Status.COMPLETE, found.count(Tier.AGENT)) == (False, 6)


@promise("6 epochs")
def test_what_an_agent_delivered_in_a_new_epoch_before_its_first_seal_is_in_doubt() -> None:
    """Its state may have been an older copy, which reads again what the newer one had sent: every
    tier counts such lines twice, whatever event times they have and whatever was sealed before."""
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
    """An epoch in which an agent died before it could seal is none that is waited for for ever."""
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
    """An agent begins with epoch 1: what that one had done lies before the first seal of the
    second."""
    new = replace(AGENT, epoch=2)
    messages = [seal(new, 1, until, 0), delta(new, 2, count()), *good()[1:4], seal(new, 3, DUE, 2)]
    assert verdict(messages).status is expected


def test_what_an_epoch_touched_behind_its_last_seal_is_not_proven_by_it() -> None:
    """The next epoch may have read again what came then; the newest seal of an epoch counts."""
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
    assert verdict([*messages[:4], first]).status is Status.UNKNOWN  # it never sealed


def test_epochs_are_in_order_whichever_was_heard_first() -> None:
    """The newer one's messages may be read before those of the older one, which proves a bucket."""
    later = seal(replace(AGENT, epoch=2), 1, END + 9 * SIZE, 0)
    for messages in ([*good(), later], [later, *good()]):
        assert verdict(messages).status is Status.COMPLETE


def test_a_counters_copy_that_ran_is_mended_by_a_new_epoch() -> None:
    """That counts everything again; what the copy said is replaced."""
    copy = [*good(), delta(BROKER, 1, count(3))]
    assert verdict(copy).status is Status.UNKNOWN
    assert verdict([*copy, delta(replace(BROKER, epoch=2), 1, count())]).status is Status.COMPLETE


@promise("6 epochs")
def test_an_epoch_that_is_used_again_is_never_passed_over() -> None:
    """An output's counts are replaced by those of a higher one, and may be all there is now."""
    higher = replace(HDFS, epoch=2)
    found = verdict([*good(), delta(higher, 1, count())])
    assert found.status is Status.COMPLETE
    found = verdict([*good(), delta(higher, 1, count()), delta(HDFS, 1, count(3))])
    assert found.status is Status.UNKNOWN
    assert any("used epoch 1 again, which epoch 2 replaces" in each for each in found.reasons)


@promise("6 without origin")
def test_without_a_counter_nothing_without_origin_is_complete() -> None:
    """What a loader has of them is all that anybody knows of."""
    policy = replace(POLICY, tiers=(Tier.AGENT, Tier.HDFS))
    found = verdict([delta(HDFS, 1, count(agent=0))], policy)
    assert found.status is Status.UNKNOWN
    assert found.reasons[0] == "nobody counts what has no origin before it is loaded"


def test_two_mirrors_must_each_have_everything() -> None:
    """Counts of two clusters are compared one by one, never added."""
    other = replace(MIRROR, cluster="backup", producer="mirror-backup")
    assert verdict([*good(), delta(other, 1, count())]).status is Status.COMPLETE
    found = verdict([*good(), delta(other, 1, count(4))])
    assert "mirror backup is short by 1 of 5" in found.reasons[0]


def test_a_gap_is_named_where_a_tier_is_short() -> None:
    """The reason behind the number."""
    messages = good()
    gap = Gap(LOGS, 0, 3, 5, "these offsets expired before they were counted")
    messages[1] = delta(BROKER, 1, count(3), gaps=(gap,))
    found = verdict(messages)
    assert found.status is Status.INCOMPLETE
    assert any("offsets 3 to 5 of partition 0" in reason for reason in found.reasons)
    later = replace(messages[1], number=2, time_ms=END, counts=(), gaps=(replace(gap, first=4),))
    found = verdict([*messages, later])
    named = [reason for reason in found.reasons if " of partition 0" in reason]
    assert len(named) == 1
    assert "offsets 4 to 5" in named[0]


def test_a_gap_is_no_reason_where_another_tier_is_short() -> None:
    """What one counter could not read says nothing of what another place has."""
    messages = good()
    messages[2] = delta(MIRROR, 1, count(), gaps=(Gap(LOGS, 0, 3, 5, "expired"),))
    messages[3] = delta(HDFS, 1, count(3))
    found = verdict(messages)
    assert found.reasons == ("web1: hdfs /logs/dc1.logs is short by 2 of 5",)


def _from_the_broker_on() -> list[Message]:
    counted = [delta(sender, 1, count(agent=0)) for sender in COUNTERS]
    return [*counted, Heartbeat(BROKER, 1, DUE)]


@promise("6 without origin")
def test_records_without_origin_are_audited_from_the_broker_on() -> None:
    """No agent stands for them, and the verdict says so."""
    found = verdict(_from_the_broker_on())
    assert (found.status, found.reasons) == (Status.COMPLETE, ("audited from the broker on",))
    assert verdict(_from_the_broker_on(), now=DUE - 1).status is Status.OPEN


def test_without_origin_a_bucket_waits_for_its_counter() -> None:
    """No seal says that all is counted: a counter that stands still has counted a part, of which
    the tiers behind it may have as much."""
    stopped = [*_from_the_broker_on()[:-1], Heartbeat(BROKER, 1, DUE - 1)]
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
    """From the first counter on every tier must have the same."""
    messages = _from_the_broker_on()
    messages[2] = delta(HDFS, 1, count(4, agent=0))
    found = verdict(messages)
    assert found.status is Status.INCOMPLETE
    assert any("hdfs /logs/dc1.logs is short by 1 of 5" in reason for reason in found.reasons)


def test_without_origin_and_a_broker_tier_the_mirrors_counter_is_waited_for() -> None:
    """Whoever counts first; where only agents are asked, nobody does."""
    policy = replace(POLICY, tiers=(Tier.AGENT, Tier.MIRROR, Tier.HDFS))
    counted = _from_the_broker_on()[1:3]
    assert verdict(counted, policy).status is Status.OPEN
    heard = [*counted, Heartbeat(MIRROR, 1, DUE)]
    assert verdict(heard, policy).status is Status.COMPLETE
    unmirrored = replace(POLICY, tiers=(Tier.AGENT, Tier.BROKER, Tier.HDFS))
    assert verdict(_from_the_broker_on(), unmirrored).status is Status.COMPLETE
    agents = replace(POLICY, tiers=(Tier.AGENT,))
    assert verdict(_from_the_broker_on(), agents).status is Status.UNKNOWN


@promise("6 without origin")
def test_without_origin_no_counter_stands_for_another_one() -> None:
    """A tier that is heard had only what the counter before it may have had in part, and of two
    mirrors each is waited for."""
    counted = _from_the_broker_on()[:3]
    behind = [Heartbeat(BROKER, 1, DUE - 1), Heartbeat(MIRROR, 1, DUE)]
    assert verdict([*counted, *behind]).status is Status.OPEN
    unheard = replace(POLICY, tiers=(Tier.AGENT, Tier.MIRROR, Tier.HDFS))
    other = replace(MIRROR, cluster="second", producer="mirror-second")
    mirrors = [*counted[1:], delta(other, 1, count(agent=0)), Heartbeat(MIRROR, 1, DUE)]
    assert verdict([*mirrors, Heartbeat(other, 1, DUE - 1)], unheard).status is Status.OPEN
    assert verdict([*mirrors, Heartbeat(other, 1, DUE)], unheard).status is Status.COMPLETE


def test_without_origin_a_retired_counter_that_is_short_holds_nothing_back() -> None:
    """What those that count have is what it is compared with."""
    policy = replace(POLICY, retired_places=("broker dc1",))
    short = [*_from_the_broker_on()[1:3], delta(BROKER, 1, count(3, agent=0))]
    assert verdict([*short, Heartbeat(MIRROR, 1, DUE)], policy).status is Status.COMPLETE


@promise("6 without origin", "6 retired place")
@pytest.mark.parametrize(("has", "checksum"), [(7, 1), (5, 1)], ids=["more", "others"])
@pytest.mark.parametrize("tiers", [POLICY.tiers, POLICY.tiers[1:]], ids=["none", "not asked"])
def test_without_a_seal_what_a_retired_place_has_alone_is_missing(
    tiers: tuple[Tier, ...], has: int, checksum: int
) -> None:
    """No agent says how many there were: records that the broker's counter had are missing where
    one still counts, though a mirror that is retired as well has as few."""
    agent = 0 if Tier.AGENT in tiers else 7
    policy = replace(POLICY, tiers=tiers, retired_places=("broker dc1", "mirror offline"))
    counted = [delta(sender, 1, count(agent=agent)) for sender in COUNTERS]
    counted[0] = delta(BROKER, 1, count(has, agent=agent, checksum=checksum))
    heard = Heartbeat(BROKER, 1, DUE)
    found = verdict([*counted, heard], policy)
    assert found.status is Status.INCOMPLETE
    assert any("broker dc1 (retired)" in reason for reason in found.reasons)
    fewer = delta(BROKER, 1, count(4, agent=agent, checksum=checksum))
    assert verdict([fewer, *counted[1:], heard], policy).status is Status.COMPLETE
    counted[:2] = delta(BROKER, 1, count(agent=agent)), delta(MIRROR, 1, *counted[0].counts)
    gone = replace(policy, retired_places=(*policy.retired_places, "hdfs"))
    assert verdict([*counted, heard], gone).status is Status.COMPLETE


@promise("6 retired place")
def test_what_a_retired_place_has_alone_of_an_agent_that_sealed_is_a_remark() -> None:
    """Its seal says how many there were, and where that is confirmed nothing is missing."""
    policy = replace(POLICY, retired_places=("mirror offline",))
    messages = good()
    messages[2] = delta(MIRROR, 1, count(7))
    found = verdict(messages, policy)
    assert (found.status, found.reasons) == (
        Status.COMPLETE, ("web1: mirror offline (retired) has 2 more than the 5 of agent",)
    )  # fmt: skip


@pytest.mark.parametrize(("place", "begin"), [("broker dc1", 0), ("broker", 0), ("broker", 1)])
def test_without_origin_the_counter_behind_a_retired_one_is_waited_for(
    place: str, begin: int
) -> None:
    """One that counts no more proves nothing, nor does a retired tier that never counted."""
    policy = replace(POLICY, retired_places=(place,))
    messages = _from_the_broker_on()[begin:3]
    assert verdict(messages, policy).status is Status.OPEN
    assert verdict([*messages, Heartbeat(MIRROR, 1, DUE)], policy).status is Status.COMPLETE


@promise("6 without origin")
@pytest.mark.parametrize(
    "places", [("broker", "mirror"), ("broker dc1", "mirror offline"), ("broker", "mirror offline")]
)
def test_without_origin_retired_counters_prove_nothing_by_being_silent(
    places: tuple[str, ...],
) -> None:
    """Where all are retired, one must have been heard when the bucket was due: a bucket of which
    they counted a part, and which a loader has as far, is not complete."""
    policy = replace(POLICY, retired_places=places)
    late = DUE + POLICY.silence_ms
    counted = _from_the_broker_on()[:3]
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
    """What was there before is as far ahead as event times can be, and no farther; what a higher
    epoch replaces, or is retired, is of no concern."""
    sender = COUNTERS[tier]
    gap = Gap(LOGS, 0, 3, 5, "expired")
    late = delta(sender, 1, count(agent=0), ranges=(Range(LOGS, 0, 1, 9),))
    for first in (late, delta(sender, 1, count(agent=0), gaps=(gap,))):
        messages = [*_from_the_broker_on(), Heartbeat(MIRROR, 1, DUE)]
        messages[tier] = replace(first, time_ms=said)
        assert verdict(messages).status is expected
        retired = replace(POLICY, retired_places=(place,))
        assert verdict(messages, retired).status is Status.COMPLETE
        new = replace(sender, epoch=2)
        again = [delta(new, 1, count(agent=0)), Heartbeat(new, 1, DUE)]
        assert verdict([*messages, *again]).status is Status.COMPLETE


def test_without_origin_a_late_beginning_or_a_gap_leaves_it_unknown() -> None:
    """Nothing but offsets shows what is not there."""
    messages = _from_the_broker_on()
    messages[0] = delta(BROKER, 1, count(agent=0), ranges=(Range(LOGS, 0, 4, 9),))
    assert "did not count partition 0 from its start" in verdict(messages).reasons[0]
    gap = Gap(LOGS, 0, 3, 5, "expired")
    messages[0] = delta(BROKER, 1, count(agent=0), gaps=(gap,))
    assert verdict(messages).status is Status.UNKNOWN


def test_a_loss_where_nobody_ever_counted_anything_has_a_bucket() -> None:
    """Of the size that buckets have where nobody says otherwise."""
    (found,) = judge([Delta(AGENT, 1, START, losses=(LOSS,))], POLICY, NOW)
    assert (found.bucket, found.bucket_ms, found.status) == (START, 60_000, Status.LOST)


@promise("6 losses")
def test_a_loss_of_other_buckets_leaves_this_one_complete() -> None:
    """A range of event times says which buckets may miss lines: none before it, none behind."""
    for there in (START - 2 * SIZE, START + 2 * SIZE):
        elsewhere = replace(LOSS, from_bucket=there, to_bucket=there)
        messages = [*good(), delta(AGENT, 3, losses=(elsewhere,)), seal(AGENT, 4, DUE, 3)]
        assert verdict(messages).status is Status.COMPLETE


@pytest.mark.parametrize("begin", [None, START + 60 * SIZE], ids=["not known", "the last seal's"])
def test_a_loss_behind_a_seal_of_a_clock_that_was_ahead(begin: int | None) -> None:
    """The clock was an hour ahead at the last seal, and was set right: what was lost is of now."""
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
    """A line that nobody saw may be as old as either says; an agent may have said more before."""
    loss = replace(LOSS, end=None, from_bucket=begin, to_bucket=None)
    said = replace(AGENT, bounds=Bounds(lateness_ms=agents))
    messages = [
        *good(), seal(AGENT, 3, DUE + 1, 1), Heartbeat(said, 3, DUE),
        Delta(AGENT, 4, DUE + 2, losses=(loss,)), seal(AGENT, 5, DUE + 9, 4),
    ]  # fmt: skip
    policy = replace(POLICY, lateness_ms=ours)
    assert verdict(messages, policy).status is expected


@promise("6 lateness")
@pytest.mark.parametrize(
    ("agents", "ours", "expected"),
    [
        (0, SIZE, Status.COMPLETE),
        (SIZE, SIZE, Status.COMPLETE),
        (SIZE + 1, SIZE, Status.UNKNOWN),
        (SIZE, SIZE + 1, Status.UNKNOWN),
    ],
)
def test_event_times_are_ahead_by_the_larger_of_the_agents_bound_and_ours(
    agents: int, ours: int, expected: Status
) -> None:
    """What an agent or a counter said before its first message that is there can be of buckets so
    far ahead of it."""
    said = replace(AGENT, bounds=Bounds(ahead_ms=agents))
    policy = replace(POLICY, ahead_ms=ours)
    whole: list[Message] = [
        Delta(sender, 1, START - SIZE, ranges=() if sender is AGENT else (Range(LOGS, 0, 0, 10),),
              counts=(count(),))
        for sender in (AGENT, *COUNTERS)
    ]  # fmt: skip
    whole += [seal(AGENT, 2, DUE, 1), Heartbeat(said, 2, DUE)]
    whole.insert(4, Heartbeat(replace(SECOND, bounds=Bounds(ahead_ms=1)), 1, DUE))  # says less
    for place in (0, 1):
        late = [*whole]
        late[place] = replace(late[place], number=2)
        if place == 0:
            late[-2:] = [seal(AGENT, 3, DUE, 2), Heartbeat(said, 3, DUE)]
        assert verdict(late, policy).status is expected


OPEN_ENDED = replace(LOSS, end=None, from_bucket=None, to_bucket=None)


def test_a_loss_before_the_first_seal_reaches_back_however_far() -> None:
    """Nobody has said of any time that nothing of it is missing."""
    messages = [*good()[:4], Delta(AGENT, 2, DUE, losses=(OPEN_ENDED,)), seal(AGENT, 3, DUE, 2)]
    assert verdict(messages).status is Status.LOST


@pytest.mark.parametrize(
    ("until", "declared"), [(START - SIZE, START), (START, START - SIZE)], ids=["not", "set back"]
)
def test_a_loss_reaches_up_to_the_greatest_time_that_the_clock_said(
    until: int, declared: int
) -> None:
    """That of its declaration, or that of the last seal where the clock was set back since."""
    lost = Delta(AGENT, 3, declared, losses=(OPEN_ENDED,))
    messages = [*good()[:4], seal(AGENT, 2, until, 1), lost, seal(AGENT, 4, DUE, 3)]
    assert verdict(messages).status is Status.LOST
    ahead = taken([*messages[:4], *messages[5:]], seal(AGENT, 2, until, 1), START - 9 * SIZE)
    assert ahead.status is Status.LOST  # whatever ours said then
    messages[4:6] = seal(AGENT, 2, until - 1, 1), replace(lost, time_ms=declared - 1)
    assert verdict(messages).status is Status.COMPLETE


@promise("6 losses")
def test_an_open_ended_loss_leaves_what_was_sealed_before_it_complete() -> None:
    """What lay in files when the last seal was made is proven; no lost line is older than that."""
    lost = Delta(AGENT, 4, DUE + 1, losses=(OPEN_ENDED,))
    sealed = [seal(AGENT, 1, START - SIZE, 0), delta(AGENT, 2, count()), seal(AGENT, 3, DUE, 2)]
    messages = [*sealed, *good()[1:4], lost, seal(AGENT, 5, DUE + 2, 4)]
    assert verdict(messages).status is Status.COMPLETE


def test_old_buckets_stay_complete_when_a_topic_expired_long_before_them() -> None:
    """What is no longer there was said at a time when it could not touch the bucket."""
    early = START - 10 * SIZE
    messages = [
        Heartbeat(AGENT, 4, early),
        replace(delta(AGENT, 4), time_ms=early),
        delta(AGENT, 5, count()),
        *(delta(sender, 1, count()) for sender in COUNTERS),
        seal(AGENT, 6, DUE, 5),
    ]
    assert verdict(messages).status is Status.COMPLETE


def test_several_hosts_share_one_reason() -> None:
    """A thousand agents with the same fault are one line, not a thousand."""
    messages: list[Message] = good()
    for agent in range(10, 16):
        messages.append(seal(Sender(Tier.AGENT, "dc1", str(agent), f"h{agent}", 1), 1, START, 0))
    found = verdict(messages)
    assert len(found.reasons) == 1
    assert found.reasons[0].startswith("h10, h11, h12 and 3 more: ")


def test_an_unknown_agent_in_the_broker_is_never_complete() -> None:
    """Records whose agent never spoke: the agent tier is not zero, it is missing."""
    messages = good()
    for index, sender in enumerate(COUNTERS, start=1):
        messages[index] = delta(sender, 1, count(), count(2, agent=9))
    assert verdict(messages).status in (Status.INCOMPLETE, Status.UNKNOWN)


@promise("6 telling a loss")
def test_a_loss_is_told_by_its_host_and_path() -> None:
    """Where the file was found first; the id stands beside it, for the host's own ledger."""
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
