"""Tests when a host is proven healthy since a given time, and which reasons the audit gives if it
is not proven. `skidway audit wait` waits for these proofs, so that an upgrade of many hosts
continues only when the upgraded hosts are proven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import event, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from skidway.audit.evidence.evidence import Evidence
from skidway.audit.judgement import acceptances
from skidway.audit.judgement.acceptances import Signature
from skidway.audit.judgement.host_proofs import Proof, proofs
from skidway.audit.judgement.policy import Exemption, Policy
from skidway.audit.judgement.roster import Roster, RosterEntry
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import Status
from skidway.audit.topic.count_columns import LONGEST_MS, Count
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
)
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.audit.topic.source_report import FilelessSource, SourceReport
from skidway.errors import UsageError
from skidway.kafka.source import Source
from support.audit_senders import BROKER
from support.fold import Fold
from support.promises import promise
from support.randomness import share_of

SIZE = 60_000
START = 6_000_000
END = START + SIZE
SINCE = START + 20_000
LATENESS = 120_000
NGINX = Source("dc1", "c1", "nginx", "n1")
AUTH = Source("dc1", "c1", "auth", "a1")
APP1 = Sender(Tier.AGENT, "dc1", "1", "app1", 1)
APP2 = Sender(Tier.AGENT, "dc1", "2", "app2", 1)
ROSTER = Roster([RosterEntry("app1", "dc1", frozenset({"nginx"}))])
TIERS = (Tier.AGENT, Tier.BROKER)
POLICY = Policy(tiers=TIERS, lateness_ms=LATENESS, silence_ms=600_000, roster=ROSTER)
NOW = END + 11_000


def count(
    records: int = 5,
    *,
    agent: int = 1,
    bucket: int = START,
    previous: int = 0,
    source: Source = NGINX,
) -> Count:
    return Count(source, agent, bucket, SIZE, records, records * 10, 99, previous=previous)


def delta(sender: Sender, number: int, *counts: Count, **parts: object) -> Delta:
    ranges = () if sender.tier is Tier.AGENT else (Range(NGINX, 0, 0, 10),)
    extra = {"ranges": ranges, **parts}
    return Delta(sender, number, NOW - 1, counts=counts, **extra)  # type: ignore[arg-type]


def seal(sender: Sender, number: int, until: int, at: int, *sources: Source) -> Seal:
    sealed = tuple(SealedTopic(source, until, at) for source in sources or (NGINX,))
    return Seal(sender, number, until, sealed)


def good() -> list[Message]:
    """Returns the messages by which the host app1 is proven healthy. The host's agent has counted
    five lines, and has sent a seal for a time after the end of the lines' bucket. The broker's
    counter has counted the same lines."""
    return [delta(APP1, 1, count()), delta(BROKER, 1, count()), seal(APP1, 2, END + 10_000, 1)]


def asked(
    messages: Sequence[Message],
    policy: Policy = POLICY,
    now: int = NOW,
    hosts: Sequence[str] = ("app1",),
) -> list[Proof]:
    return proofs(Fold(messages).evidence(), policy, hosts, SINCE, now)


def reasons(messages: Sequence[Message], policy: Policy = POLICY, now: int = NOW) -> str:
    return " | ".join(reason for proof in asked(messages, policy, now) for reason in proof.reasons)


def test_sealed_behind_the_bucket_and_counted_alike_is_proof() -> None:
    """A host is proven healthy since a given time if two things hold. Its agent has sent a seal for
    a time after the end of the bucket that contains the given time. All tiers have counted the same
    records of the host in this bucket. The sealed time may be only a few seconds after the bucket's
    end, because the proof does not wait for late lines."""
    assert reasons(good()) == ""


@pytest.mark.parametrize("source", [AUTH, NGINX])
def test_no_host_delays_the_proof_of_another(source: Source) -> None:
    """However long the buckets are in which another host counts, a host is proven by its own
    ones."""
    wide = replace(count(agent=2, bucket=0, source=source), bucket_ms=LONGEST_MS)
    assert reasons([*good(), delta(APP2, 1, wide)]) == ""


def test_a_host_that_writes_nothing_is_proven_by_its_seals() -> None:
    """A host whose programs write nothing is proven healthy by its seals alone, even if no counter
    ever reported the topic."""
    assert reasons([seal(APP1, 1, END + 10_000, 0)]) == ""


@pytest.mark.parametrize("size", [10_000, SIZE, 2 * SIZE])
def test_a_deleted_bucket_is_no_proof_whatever_its_length(size: int) -> None:
    """If the counts of a bucket were deleted because of its age, nobody knows what a host counted
    in it. So the bucket proves nothing, even if it is longer or shorter than later buckets."""
    evidence = Fold(good()).evidence()
    evidence.topic(NGINX).pruned.add((SINCE - SINCE % size, size))
    [proof] = proofs(evidence, POLICY, ["app1"], SINCE, NOW)
    assert any("older than the audit keeps" in x for x in proof.reasons)


@dataclass(frozen=True)
class Case:
    """A change to the messages of a host that is proven healthy, and the reason for which the host
    is not proven healthy after this change."""

    name: str
    reason: str
    add: list[Message] = field(default_factory=list)
    drop: tuple[int, ...] = ()
    policy: Policy = POLICY
    now: int = NOW


LOSS = Loss(NGINX, 1, 3, 100, 200, Certainty.LOST, "truncated", START, START)
TWO = replace(POLICY, roster=Roster([RosterEntry("app1", "dc1", frozenset({"nginx", "auth"}))]))
CASES = [
    Case("nobody was heard", "no agent of it was ever heard", drop=(0, 1, 2)),
    Case("never sealed", "topic nginx was never sealed", drop=(2,)),
    Case(
        "sealed past the moment, not past its bucket", "is sealed only to", drop=(2,),
        add=[seal(APP1, 2, END - 1, 1)],
    ),
    Case("not sealed lately", "is sealed only to", now=END + SIZE + LATENESS),
    Case("one of two topics", "topic auth was never sealed", policy=TWO),
    Case(
        "the other topic is behind", "topic auth is sealed only to 1970-01-01 01:40:05Z",
        policy=TWO, add=[seal(APP1, 3, START + 5_000, 1, AUTH)],
    ),
    Case(
        "a topic of which the roster knows nothing", "topic auth is sealed only to",
        add=[seal(APP1, 3, START + 5_000, 1, AUTH)],
    ),
    Case(
        "a clock that is ahead", "which is still to come", drop=(2,),
        add=[seal(APP1, 2, NOW + LATENESS + 1, 1)],
    ),
    Case("our clock is before the end", "not yet to", now=END - 1),
    Case(
        "the broker is short",
        "bucket 1970-01-01 01:40:00Z of topic nginx is incomplete:"
        " broker dc1 is short by 3 of 5",
        drop=(1,), add=[delta(BROKER, 1, count(2))],
    ),
    Case("the broker never reported", "tier broker never reported this topic", drop=(1,)),
    Case(
        "lines behind the seal", "lines came after the agent's newest seal",
        add=[delta(APP1, 3, count(1, previous=1)), delta(BROKER, 2, count(1, previous=1))],
    ),
    Case("a missing message", "message 3 of agent 1 is missing", add=[Heartbeat(APP1, 3, NOW)]),
    Case(
        "a loss", "is lost: bytes 100 to 200 of file 3 are lost",
        add=[delta(APP1, 3, losses=(LOSS,)), seal(APP1, 4, END + 11_000, 3)],
    ),
    Case(
        "a loss on a host that wrote nothing", "bytes 100 to 200", drop=(0, 1, 2),
        add=[delta(APP1, 1, losses=(LOSS,)), seal(APP1, 2, END + 11_000, 1)],
    ),
    Case("silent", "its agent is silent since", now=NOW + 600_001),
    Case(
        "a later bucket that is due", "bucket 1970-01-01 01:41:00Z of topic nginx",
        add=[
            delta(APP1, 3, count(4, bucket=END)), delta(BROKER, 2, count(1, bucket=END)),
            seal(APP1, 4, END + SIZE + LATENESS, 3),
        ],
        now=END + SIZE + LATENESS,
    ),
    Case(
        "an agent that came anew", "topic nginx was never sealed",
        add=[Heartbeat(replace(APP1, producer="9"), 0, NOW)],
    ),
    Case(
        "a new epoch", "epoch 2 sealed nothing before",
        add=[seal(replace(APP1, epoch=2), 1, END + 11_000, 0)],
    ),
]  # fmt: skip


@promise("6 gate", "clocks gate")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_missing_is_said(case: Case) -> None:
    """For everything that keeps a host from being proven healthy, the audit gives a reason."""
    messages = [x for i, x in enumerate(good()) if i not in case.drop] + case.add
    assert case.reason in reasons(messages, case.policy, case.now)


def test_buckets_too_young_to_be_due_are_not_asked_about() -> None:
    """To decide whether a host is proven healthy, the audit ignores buckets that are not due yet
    (too recent to be judged). The broker's counter needs some time until it has counted the newest
    records."""
    young = [delta(APP1, 3, count(4, bucket=END)), seal(APP1, 4, END + 10_500, 3)]
    assert reasons([*good(), *young]) == ""


def test_a_loss_that_was_accepted_does_not_hold_the_gate_back() -> None:
    """A loss that a person has accepted does not keep a host from being proven healthy."""
    loss = Loss(NGINX, 1, 7, 0, 9, Certainty.LOST, "gone", START, START)
    lost = [*good(), delta(APP1, 3, losses=(loss,))]
    later = END + LATENESS + 1
    [proof] = asked(lost, now=later)
    assert proof.is_short
    found = verdicts(Fold(lost).evidence(), POLICY, later)
    accepted = acceptances.acceptances(found, Signature(later, "ada", "known"))
    [proof] = asked([*lost, *accepted], now=later)
    assert not proof.is_short, proof.reasons


def test_a_topic_made_again_needs_no_seal_under_its_old_id() -> None:
    """If a topic was deleted and created again and the agent seals the new topic, the host is
    proven healthy without a newer seal for the topic's old id."""
    old = replace(NGINX, topic_id="n0")
    before = [seal(APP1, 1, START - SIZE, 0, old)]
    assert reasons([*before, seal(APP1, 2, END + 10_000, 1)]) == ""
    assert "never sealed" not in reasons([*before])


def test_hosts_that_nobody_knows_are_a_mistake() -> None:
    """It is a usage error to wait for a host that is not in the roster and never sent a message. It
    is no error to wait for a host that is in the roster, even if it never sent a message. Such a
    host is not proven healthy, and the reason says that no message of an agent on this host ever
    came."""
    with pytest.raises(UsageError, match="--host app7: no roster names"):
        asked(good(), hosts=("app1", "app7"))
    roster = Roster([RosterEntry("app7", "dc1", frozenset({"nginx"}))])
    [proof] = asked([], replace(POLICY, roster=roster), hosts=("app7",))
    assert proof.reasons == ("no agent of it was ever heard",)


def test_nobody_waits_for_a_retired_host() -> None:
    """It is a usage error to wait for a retired host."""
    roster = Roster([RosterEntry("app1", "dc1", retired=True)])
    with pytest.raises(UsageError, match="--host app1: it is retired"):
        asked(good(), replace(POLICY, roster=roster))


def test_each_topic_of_a_host_is_proven_in_the_tiers_that_it_has() -> None:
    """A host is proven healthy only when each required tier has counted all of the host's topics
    that are not exempt from this tier. In this test the tier mirror is required, and one of the
    host's two topics is exempt from this tier."""
    policy = replace(POLICY, tiers=(*TIERS, Tier.MIRROR))
    auth = count(agent=1, source=AUTH)
    broker = delta(BROKER, 1, count(), auth, ranges=(Range(NGINX, 0, 0, 10), Range(AUTH, 0, 0, 10)))
    messages = [delta(APP1, 1, count(), auth), broker, seal(APP1, 2, END + 1, 1, NGINX, AUTH)]
    assert reasons(messages, policy).count("tier mirror never reported this topic") == 2
    policy = replace(policy, exemptions=(Exemption(Tier.MIRROR, ("dc1.auth",)),))
    assert "topic nginx is incomplete: tier mirror never" in reasons(messages, policy)
    assert "auth" not in reasons(messages, policy)
    mirror = Sender(Tier.MIRROR, "offline", "mirror-offline", "c2", 1)
    assert reasons([*messages, delta(mirror, 1, count())], policy) == ""


@promise("6 source without files")
def test_a_host_with_a_source_without_files_is_not_proven() -> None:
    """A host with a source that has never matched a file does not pass the gate, and the reason
    names the pattern, if the agent's note does."""
    evidence = Fold([*good()[:2], seal(APP1, 2, -START, 1)]).evidence()
    missing = FilelessSource("nginx", ("/log/access.log",), START)
    evidence.source_reports[1] = SourceReport(fileless=(missing,))
    [proof] = proofs(evidence, POLICY, ["app1"], SINCE, NOW)
    assert "topic nginx is sealed only to" in proof.reasons[0]
    assert "source /log/access.log has matched no file since" in proof.reasons[0]


@promise("6 gate")
def test_each_of_a_hosts_newest_agents_must_prove_it() -> None:
    """In this test a host lost its agent's state while the host's clock was ahead, and the clock
    was set back later. The seals of the old agent prove nothing about the lines of the new agent,
    although they have later times than the new agent's seals."""
    again = replace(APP1, producer="9")
    old = [Heartbeat(APP1, 0, START), *good(), seal(APP1, 3, NOW + 50_000, 2)]
    assert reasons(old) == ""
    begun = [*old, Heartbeat(again, 0, NOW - 1)]
    assert reasons(begun) == "agent 9: topic nginx was never sealed"
    early = [*begun, seal(again, 1, END - 1, 0)]
    assert reasons(early).startswith("agent 9: topic nginx is sealed only to")
    lines = [*begun, delta(again, 1, count(3, agent=9)), seal(again, 2, END, 1)]
    assert "agent 9: bucket" in reasons(lines)
    counted = delta(BROKER, 2, count(3, agent=9))
    assert reasons([*lines, counted]) == ""


def test_a_host_of_two_clusters_must_be_proven_in_both() -> None:
    """A host that is in two clusters of the roster must be proven healthy in both. If the roster
    names the host in one cluster only, messages of the host in another cluster do not matter. If no
    roster names the host, it must be proven healthy in each cluster to which it has sent
    messages."""
    both = Roster([RosterEntry("app1", "dc1"), RosterEntry("app1", "dc2")])
    found = asked(good(), replace(POLICY, roster=both))
    assert [(x.state.cluster, x.is_short) for x in found] == [("dc1", False), ("dc2", True)]
    moved = seal(Sender(Tier.AGENT, "dc2", "5", "app1", 1), 1, 5, 0, replace(NGINX, cluster="dc2"))
    assert reasons([*good(), moved]) == ""
    found = asked([*good(), moved], replace(POLICY, roster=Roster()))
    assert [(x.state.cluster, x.is_short) for x in found] == [("dc1", False), ("dc2", True)]


# The last test uses random messages, with the agents, buckets and times that follow here.


AGENTS = [APP1, replace(APP1, producer="9"), replace(APP1, epoch=2), APP2]
BUCKETS = [START - SIZE, START, END, END + SIZE]
NOWS = [END - 1, NOW, END + LATENESS + 1_000, END + SIZE + LATENESS + 5_000, END + 900_000]
moments = st.sampled_from(
    [SINCE, END - 1, END, END + 1_000, END + LATENESS, END + SIZE + LATENESS + 1_000, 10**8]
)


@st.composite
def worlds(draw: st.DrawFn) -> list[Message]:
    """Draws the messages of two hosts and two topics. In most cases no message is missing, and the
    broker's counter has counted the same records as the agents."""
    said: list[Message] = []
    numbers: dict[Sender, int] = {}

    def number(sender: Sender) -> int:
        skip = 2 if draw(st.integers(0, 19)) == 0 else 1
        numbers[sender] = numbers.get(sender, 0) + skip
        return numbers[sender]

    agents = draw(st.lists(st.sampled_from(AGENTS), min_size=1, max_size=3, unique=True))
    for sender in [*agents, *agents]:
        source = draw(st.sampled_from([NGINX, NGINX, AUTH]))
        agent = int(sender.producer)
        for start in draw(st.lists(st.sampled_from(BUCKETS), max_size=2, unique=True)):
            records = draw(st.integers(1, 3))
            found = records if draw(st.integers(0, 9)) else records - 1
            counted = {sender: records, BROKER: found}
            for who, each in counted.items():
                if draw(st.integers(0, 19)):
                    one = count(each, agent=agent, bucket=start, source=source)
                    ranges = () if who is sender else (Range(source, 0, 0, 10),)
                    said.append(Delta(who, number(who), draw(moments), ranges, (one,)))
        if draw(st.integers(0, 5)):
            until = draw(moments)
            topics = draw(st.sampled_from([(NGINX,), (NGINX, AUTH), (source,)]))
            said.append(seal(sender, number(sender), until, numbers[sender] - 1, *topics))
    return said


@given(worlds(), st.sampled_from(NOWS), st.sampled_from([None, ("nginx",), ("nginx", "auth")]))
@hypothesis_settings(max_examples=share_of(600))
def test_a_host_is_never_proven_wrongly(
    messages: list[Message], now: int, topics: tuple[str, ...] | None
) -> None:
    """If a host is proven healthy since a given time, two things are true, whatever the messages
    are. First, its newest agent has sealed each topic up to the end of the bucket that contains the
    given time, or further. Second, this bucket and each later bucket, if it is due (old enough to
    be judged), is sealed at least up to its end, and no tier lacks records of the agent. The agent
    need not have sealed a bucket up to the moment at which the bucket was due."""
    entries = (
        []
        if topics is None
        else [RosterEntry(x, "dc1", frozenset(topics)) for x in ("app1", "app2")]
    )
    policy = replace(POLICY, roster=Roster(entries))
    evidence = Fold(messages).evidence()
    for host in ("app1", "app2"):
        heard = [x for x in messages if x.sender.host == host and x.sender.tier is Tier.AGENT]  # type: ignore[union-attr]
        if not heard and topics is None:
            continue
        [proof] = proofs(evidence, policy, [host], SINCE, now)
        event(f"short: {proof.is_short}")
        if not proof.is_short:
            assert heard
            newest = max(heard, key=lambda x: (x.time_ms, int(x.sender.producer)))  # type: ignore[union-attr]
            agent = int(newest.sender.producer)  # type: ignore[union-attr]
            named = {
                *(topics or ()),
                *(s.topic for s, t in evidence.topics.items() if agent in t.agents),
            }
            seals = {name: _newest_seal(evidence, agent, name) for name in named}
            assert all(until >= END > SINCE for until in seals.values())
            _expect_complete(evidence, policy, agent, now, seals)


def _newest_seal(evidence: Evidence, agent: int, name: str) -> int:
    seals = [
        x for s, t in evidence.topics.items() if s.topic == name for x in t.seals.get(agent, [])
    ]
    return max(seals).sealed_until if seals else 0


def _expect_complete(
    evidence: Evidence, policy: Policy, agent: int, now: int, seals: dict[str, int]
) -> None:
    for verdict in verdicts(evidence, policy, now):
        due = verdict.bucket + verdict.bucket_ms + policy.lateness_ms
        if verdict.bucket + verdict.bucket_ms <= SINCE or not verdict.due:
            continue
        for part in verdict.agents:
            if part.agent != agent:
                continue
            if seals[verdict.source.topic] >= due:
                assert part.status is Status.COMPLETE
            else:
                assert part.status is Status.OPEN
                assert seals[verdict.source.topic] >= verdict.bucket + verdict.bucket_ms
                assert len({(x.count, x.bytes, x.checksum) for x in part.sums.values() if x}) <= 1
