"""Tests decisions of people: acceptances, retirements, and revocations of both."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.evidence.ledger import ledger_of
from skidway.audit.judgement import acceptances
from skidway.audit.judgement.acceptances import Signature, unaccepted
from skidway.audit.judgement.policy import Exemption, Policy
from skidway.audit.judgement.retired_places import RetiredPlaces, check
from skidway.audit.judgement.roster import Roster, RosterEntry
from skidway.audit.judgement.standing import standing
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict, Place, Status
from skidway.audit.reports import report
from skidway.audit.topic import messages
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.decisions import (
    Acceptance,
    Decision,
    FindingName,
    Retirement,
    Revocation,
    not_revoked,
)
from skidway.audit.topic.messages import Certainty, Delta, Loss, Message, Range, Seal, Sender, Tier
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.errors import ConfigurationRefused, UsageError
from support.audit_senders import AGENT, BROKER, LOGS
from support.fold import Fold, judge
from support.promises import promise

SIZE, START = 60_000, 600_000
NOW = START + 2 * SIZE
POLICY = Policy(tiers=(Tier.AGENT, Tier.BROKER, Tier.HDFS), lateness_ms=0, silence_ms=10**9)
OLD = Sender(Tier.HDFS, "dc1", "/old/dc1.logs", "l1", 1)
NEW = Sender(Tier.HDFS, "dc1", "/new/dc1.logs", "l1", 1)
LOSS = Loss(LOGS, 7, 3, 100, 200, Certainty.LOST, "it was deleted unread", START, START)
WEB9 = RosterEntry("web9", "dc1", frozenset({"logs"}))
SIGNED = Signature(NOW, "ada", "the disk died")


def delta(sender: Sender, records: int, number: int = 1, losses: tuple[Loss, ...] = ()) -> Delta:
    ranges = () if sender.tier is Tier.AGENT else (Range(LOGS, 0, 0, 10),)
    counts = (Count(LOGS, 7, START, SIZE, records, records * 10, records),) if records else ()
    return Delta(sender, number, START, ranges=ranges, counts=counts, losses=losses)


def said(old: int | None = 5, new: int | None = None, *losses: Loss) -> list[Message]:
    """Returns the messages about a bucket of five records. `old` is how many of these records the
    old output has counted, and `new` how many the new output has counted; None means that the
    output has sent no message. `losses` are the losses that the agent declares."""
    outputs = [delta(x, n) for x, n in ((OLD, old), (NEW, new)) if n is not None]
    seal = Seal(AGENT, 2 + len(losses), NOW, (SealedTopic(LOGS, NOW, 1 + len(losses)),))
    lost = [delta(AGENT, 0, 2 + n, (loss,)) for n, loss in enumerate(losses)]
    return [delta(AGENT, 5), delta(BROKER, 5), *outputs, *lost, seal]


def bucket(found: list[Message], policy: Policy = POLICY, now: int = NOW) -> BucketVerdict:
    [verdict] = judge(found, policy, now)
    return verdict


def accepted(found: list[Message], policy: Policy = POLICY) -> list[Message]:
    return [*found, *acceptances.acceptances([bucket(found, policy)], SIGNED)]


@promise("6 acceptance")
def test_an_accepted_loss_stays_a_loss_and_holds_nothing_back() -> None:
    """An accepted loss no longer makes the report fail. The bucket is shown with the person's name
    and the reason, and is never called complete."""
    lost = said(5, None, LOSS)
    assert (bucket(lost).status, bucket(lost).is_overdue) == (Status.LOST, True)
    found = bucket(accepted(lost))
    assert (found.status, found.residue, found.word) == (
        Status.LOST, Status.COMPLETE, "lost, accepted"
    )  # fmt: skip
    assert (found.is_accepted, found.is_overdue) == (True, False)
    assert found.reasons == (
        "web1: bytes 100 to 200 of file 3 are lost: it was deleted unread,"
        " accepted by ada (the disk died)",
    )
    whole = standing([found])
    assert report.exit_status(whole, everything=True) == 0
    assert (whole.accepted, whole.overdue) == ({Status.LOST: 1}, {})
    assert report.sentence(whole) == (
        "0 of 1 buckets of 1 topic are complete; 1 is not, and accepted (1 lost)."
    )
    document = report.document(whole, [found])
    assert document["buckets_accepted"] == 1
    assert document["buckets"][0]["verdict"] == "lost"
    assert document["buckets"][0]["acceptances"][0]["person"] == "ada"


@promise("6 acceptance")
def test_what_comes_later_is_not_covered() -> None:
    """An acceptance does not include findings (reasons in a verdict) that come after it. Examples
    are another loss in the same bucket, and missing records in a tier that lacked none before."""
    seen = said(5, None, LOSS)
    [acceptance] = acceptances.acceptances([bucket(seen)], SIGNED)
    other = replace(LOSS, first=200, end=300)
    found = bucket([*said(5, None, LOSS, other), acceptance])
    assert (found.residue, found.is_overdue) == (Status.LOST, True)
    assert [x for x in found.reasons if "accepted" in x] == [
        "web1: bytes 100 to 200 of file 3 are lost: it was deleted unread,"
        " accepted by ada (the disk died)"
    ]
    found = bucket([*said(4, None, LOSS), acceptance])
    assert (found.status, found.residue) == (Status.LOST, Status.INCOMPLETE)
    assert found.word == "incomplete (lost, accepted)"  # shown in reports and metrics
    again = acceptances.acceptances([found], SIGNED)
    assert bucket([*said(4, None, LOSS), acceptance, *again]).is_accepted


def test_a_loss_of_the_same_words_is_another_one() -> None:
    """An acceptance identifies a loss by its file and bytes, so it does not cover another loss
    whose reason has the same text."""
    names = {x.name for x in bucket(said(5, None, LOSS)).agents[0].findings}
    assert names == {"LOST 3 100-200"}


def test_an_acceptance_that_is_taken_back_covers_nothing() -> None:
    """A revoked acceptance has no effect. If a person accepts the bucket again, the new acceptance
    has effect."""
    found = accepted(said(5, None, LOSS))
    revoked = [*found, *acceptances.revocations([bucket(found)], _standing(found), SIGNED)]
    assert bucket(revoked).is_overdue
    assert bucket(accepted(revoked)).is_accepted
    with pytest.raises(UsageError, match="Nothing of these buckets was accepted"):
        acceptances.revocations([bucket(revoked)], _standing(revoked), SIGNED)


def _standing(messages: list[Message]) -> list[Acceptance]:
    return Fold(messages).evidence().topic(LOGS).acceptances


def test_all_that_was_accepted_of_a_bucket_is_taken_back() -> None:
    """A revocation takes back all acceptances of a bucket, including those of a second person, and
    those that have no effect because the bucket no longer has the accepted findings."""
    lost = said(5, None, LOSS)
    both = [*lost, *acceptances.acceptances([bucket(lost)], SIGNED)]
    both += acceptances.acceptances([bucket(lost)], replace(SIGNED, person="grace"))
    both += acceptances.acceptances([bucket(said(3, None))], replace(SIGNED, person="bob"))
    assert "bob" not in {x.person for x in bucket(both).acceptances}
    revoked = [*both, *acceptances.revocations([bucket(both)], _standing(both), SIGNED)]
    assert (bucket(both).is_accepted, bucket(revoked).is_accepted) == (True, False)
    assert (len(_standing(both)), _standing(revoked)) == (3, [])


def test_another_difference_of_the_same_words_is_not_covered() -> None:
    """If a person accepts the finding "short by 2" (two records are missing), a later finding
    "short by 2" about other records does not count as accepted."""
    short = said(3, None)
    assert bucket(accepted(short)).is_accepted
    acceptance = acceptances.acceptances([bucket(short)], SIGNED)
    other = [_with_checksum(message, 77) for message in short]
    assert bucket(short).reasons == bucket(other).reasons
    assert not bucket([*other, *acceptance]).is_accepted


def _with_checksum(message: Message, checksum: int) -> Message:
    if not isinstance(message, Delta) or message.sender.tier is not Tier.HDFS:
        return message
    return replace(message, counts=tuple(replace(x, checksum=checksum) for x in message.counts))


def test_of_a_place_that_counted_nothing_the_acceptance_is_of_what_others_had() -> None:
    """If a person accepts that a place (a tier of one cluster, or an output) has counted nothing,
    the acceptance covers only the records that other places have already counted. It does not cover
    records that these places count after the acceptance."""
    early = said(None)
    assert "tier hdfs never reported this topic" in bucket(early).reasons[0]
    [acceptance] = acceptances.acceptances([bucket(early)], SIGNED)
    assert bucket([*early, acceptance]).is_accepted
    more = [delta(AGENT, 2, 3), delta(BROKER, 2, 2)]
    later = bucket([*early, acceptance, *more])
    [words] = [x for x in later.reasons if "tier hdfs never reported" in x]
    assert "accepted" not in words
    assert later.is_overdue


@promise("6 acceptance")
def test_of_lines_in_doubt_the_acceptance_is_of_those_that_were_there() -> None:
    """If an agent begins a new epoch, the lines that it delivers before the epoch's first seal are
    in doubt: they may count twice. An acceptance of such lines applies only to the lines that are
    already in doubt. It does not apply to lines that become doubtful after the acceptance, even for
    the same reason."""
    new = replace(AGENT, epoch=2)
    early = [*said(), delta(new, 5), delta(BROKER, 5, 2), delta(OLD, 5, 2)]
    doubted = "before its first seal"
    [acceptance] = acceptances.acceptances([bucket(early)], SIGNED)
    [words] = [x for x in bucket([*early, acceptance]).reasons if doubted in x]
    assert "accepted by ada" in words
    counted = [delta(BROKER, 9, 3), delta(OLD, 9, 3)]
    [words] = [x for x in bucket([*early, acceptance, *counted]).reasons if doubted in x]
    assert "accepted by ada" in words  # no agent has counted more lines
    for more in ([delta(new, 9, 2)], [delta(new, 9, 2), *counted]):
        [words] = [x for x in bucket([*early, acceptance, *more]).reasons if doubted in x]
        assert "accepted" not in words


def test_what_is_not_there_cannot_be_accepted() -> None:
    """A person cannot accept a bucket that does not exist, is complete, is already accepted, or is
    not yet due (too recent to be judged). A bucket that is only open cannot be accepted either:
    nothing in it is wrong, but records or messages are still to come. The error gives the reason in
    one sentence."""
    lost = said(5, None, LOSS)
    for found, words in (
        ([], "No bucket"),
        ([bucket(said())], "complete"),
        ([bucket(lost, now=NOW - SIZE - 1)], "too young"),
        ([bucket(accepted(lost))], "accepted already"),
        ([bucket(said()[:-1])], "only open"),
    ):
        with pytest.raises(UsageError, match=words):
            acceptances.acceptances(found, SIGNED)


def test_unknown_and_incomplete_buckets_can_be_accepted() -> None:
    """A person can accept unknown and incomplete buckets, because these buckets may never become
    complete. For example, a host with lines of the bucket may be gone, or the bucket's records may
    have expired before they were loaded."""
    short = said(3)
    assert bucket(short).status is Status.INCOMPLETE
    assert bucket(accepted(short)).word == "incomplete, accepted"
    gone = said()[:-1]
    impatient = replace(POLICY, silence_ms=1)
    assert bucket(gone, impatient).status is Status.UNKNOWN
    assert bucket(accepted(gone, impatient), impatient).word == "unknown, accepted"


@promise("6 acceptance")
def test_a_host_that_never_reported_is_accepted_by_its_name_too() -> None:
    """An acceptance of a bucket also covers the finding that an expected host never reported, but
    only if the audit already expected the host when the person accepted the bucket."""
    missed = replace(POLICY, silence_ms=0, roster=Roster([RosterEntry("web1"), WEB9]))
    lost = said(5, None, LOSS)
    found = bucket(accepted(lost), missed)
    assert (found.status, found.residue) == (Status.LOST, Status.UNKNOWN)
    words = "host web9 is expected, but no agent of it reported yet"
    assert unaccepted(found) == (FindingName(0, words),)
    assert bucket(accepted(lost, missed), missed).is_accepted


@promise("6 telling a loss")
def test_a_lost_bucket_that_is_young_is_told_at_once() -> None:
    """If a loss is declared in a bucket that is not yet due (too recent to be judged), the report
    names the loss and ends with status 1, without waiting until the bucket is due."""
    lost = standing([bucket(said(5, None, LOSS), now=NOW - SIZE - 1)])
    assert report.exit_status(lost, everything=False) == 1
    assert "1 is too young to be complete, and lost already" in report.sentence(lost)
    young = standing([bucket(said(), now=NOW - SIZE - 1)])
    assert report.exit_status(young, everything=False) == 0
    assert "too young to say" in report.sentence(young)


@promise("6 retired place")
@pytest.mark.parametrize(
    "texts",
    [
        ("hdfs /old",), ("hdfs /old/",), ("hdfs /old/dc1.logs",), ("mirror x", "hdfs /old"),
    ],
)  # fmt: skip
def test_an_output_that_is_retired_keeps_nothing_incomplete(texts: tuple[str, ...]) -> None:
    """If a retired output lacks records and a newer output has them, the bucket is complete, and
    its verdict says that the output is retired."""
    both = said(3, 5)
    assert bucket(both).status is Status.INCOMPLETE
    found = bucket(both, replace(POLICY, retired_places=texts))
    assert (found.status, found.reasons) == (
        Status.COMPLETE, ("web1: hdfs /old/dc1.logs (retired) is short by 2 of 5",)
    )  # fmt: skip
    assert found.count(Tier.HDFS) == 5


@promise("6 retired place")
@pytest.mark.parametrize(
    "texts",
    [
        ("hdfs /ol",),
        ("hdfs /",),
        ("hdfs //",),
        ("hdfs /new",),
        ("broker /old/dc1.logs",),
        ("mirror",),
        ("cluster dc2",),
    ],
)
def test_other_places_are_not_retired(texts: tuple[str, ...]) -> None:
    """A retirement applies only to the output, tier or cluster that it names. The path of an output
    must have exactly the given folder names: `/ol` does not retire `/old`."""
    found = bucket(said(3, 5), replace(POLICY, retired_places=texts))
    assert found.status is Status.INCOMPLETE


@promise("6 retired place")
def test_what_a_retired_place_has_counted_is_compared_as_ever() -> None:
    """If the counts of a retired place (a tier of one cluster, or an output) agree with all other
    counts, the bucket is complete, and its verdict does not even mention the retired place in a
    remark."""
    found = bucket(said(5), replace(POLICY, retired_places=("hdfs /old",)))
    assert (found.status, found.reasons) == (Status.COMPLETE, ())


def test_a_topic_whose_outputs_are_all_retired_is_as_if_exempt_and_says_so() -> None:
    """If all outputs of a topic are retired, only the counts of the other tiers must agree to make
    a bucket complete. The verdict names the retired output."""
    found = bucket(said(3), replace(POLICY, retired_places=("hdfs /old",)))
    assert (found.status, found.reasons) == (
        Status.COMPLETE, ("web1: hdfs /old/dc1.logs (retired) is short by 2 of 5",)
    )  # fmt: skip
    short = [delta(AGENT, 5), delta(BROKER, 4), *said(3)[2:]]
    found = bucket(short, replace(POLICY, retired_places=("hdfs /old",)))
    assert found.status is Status.INCOMPLETE


@promise("6 retired place")
@pytest.mark.parametrize(
    "texts", [("cluster dc1",), ("broker", "hdfs"), ("broker dc1", "hdfs /old")]
)
def test_a_count_that_nothing_confirms_is_not_complete(texts: tuple[str, ...]) -> None:
    """If all tiers and outputs that could confirm an agent's count are retired and lack records,
    the bucket is not complete."""
    short = [delta(AGENT, 5), delta(BROKER, 4), *said(3)[2:]]
    found = bucket(short, replace(POLICY, retired_places=texts))
    assert found.status is Status.UNKNOWN
    assert "web1: all that could confirm the counts is retired" in found.reasons
    never = bucket(said(None), replace(POLICY, tiers=(Tier.AGENT, Tier.HDFS), retired_places=texts))
    assert never.status is not Status.COMPLETE


@promise("6 acceptance")
def test_of_a_count_that_nothing_confirms_the_acceptance_is_of_what_was_counted_then() -> None:
    """If a person accepts an agent's count that no other tier or output confirms, the acceptance
    does not apply to records that are counted later."""
    policy = replace(POLICY, retired_places=("broker", "hdfs"))
    seen = accepted([delta(AGENT, 5), delta(BROKER, 4), *said(3)[2:]], policy)
    assert bucket(seen, policy).is_accepted
    counts = (Count(LOGS, 7, START, SIZE, 1, 10, 1, previous=1),)
    later = replace(delta(AGENT, 0, 3), counts=counts)
    seal = Seal(AGENT, 4, NOW, (SealedTopic(LOGS, NOW, 3),))
    assert bucket([*seen, later, seal], policy).residue is Status.UNKNOWN


@promise("6 retired place")
def test_a_topic_that_no_newer_output_has_yet_waits_for_one() -> None:
    """If a retired output lacks records, and there is a newer output that has counted nothing of
    the topic yet, the audit waits for the newer output, and the bucket is not complete. The audit
    does not wait if the newer output itself, the newer output's tier, or the topic's cluster is
    retired."""
    other = replace(LOGS, topic="other")
    newer = [
        Delta(replace(NEW, producer="/new/dc1.other"), 1, NOW, ranges=(Range(other, 0, 0, 1),))
    ]

    def found(old: int, *retired: str) -> tuple[Status, bool]:
        verdict = bucket([*said(old), *newer], replace(POLICY, retired_places=retired))
        reason = "web1: no place of tier hdfs that is not retired has this topic"
        return verdict.status, reason in verdict.reasons

    assert found(3, "hdfs /old") == (Status.INCOMPLETE, True)
    one = replace(POLICY, retired_places=("hdfs /old",))
    seen = accepted([*said(3), *newer], one)
    assert bucket(seen, one).is_accepted
    counts = (Count(LOGS, 7, START, SIZE, 1, 10, 1, previous=1),)
    more = [replace(delta(x, 0, n), counts=counts) for x, n in ((AGENT, 3), (BROKER, 2))]
    seal = Seal(AGENT, 4, NOW, (SealedTopic(LOGS, NOW, 3),))
    assert bucket([*seen, *more, seal], one).residue is Status.INCOMPLETE
    assert found(5, "hdfs /old") == (Status.COMPLETE, False)
    assert found(3, "hdfs /old", "hdfs /new") == (Status.COMPLETE, False)
    assert found(3, "hdfs") == (Status.COMPLETE, False)
    _, is_told = found(3, "cluster dc1")
    assert not is_told
    whole = delta(replace(NEW, producer="/older/dc1.logs"), 5)
    policy = replace(POLICY, retired_places=("hdfs /old", "hdfs /older"))
    assert bucket([*said(3), whole, *newer], policy).status is Status.COMPLETE
    exempt = replace(
        POLICY,
        retired_places=("hdfs /old",),
        exemptions=(Exemption(Tier.HDFS, ("dc1.logs",)),),
    )
    assert bucket([*said(3), *newer], exempt).status is Status.COMPLETE
    both = replace(POLICY, retired_places=("hdfs /old",))
    assert bucket([*said(3, 5), *newer], both).status is Status.COMPLETE


def test_a_missing_message_of_a_retired_place_is_a_remark() -> None:
    """If a message of a retired place (a tier of one cluster, or an output) is missing, the bucket
    can still be complete, and its verdict only gets a remark."""
    holed = [*said(5, 5), delta(OLD, 0, 3)]
    assert bucket(holed).status is Status.UNKNOWN
    found = bucket(holed, replace(POLICY, retired_places=("hdfs /old",)))
    assert found.status is Status.COMPLETE
    assert found.reasons == (
        "web1: message 2 of the hdfs counter /old/dc1.logs is missing (retired)",
    )


def _broken(message: Delta) -> Delta:
    return replace(message, counts=tuple(replace(x, previous=9) for x in message.counts))


def test_a_broken_chain_of_a_retired_place_is_a_remark() -> None:
    """Each count of a bucket names the previous message that counted the bucket. If that message is
    missing, the chain is broken. A broken chain of a retired place (a tier of one cluster, or an
    output) only adds a remark to the verdict, which does not keep the bucket from being complete. A
    broken chain of an agent makes the bucket unknown, even if the agent's cluster is retired."""
    others = [x for x in said(5, 5) if not (isinstance(x, Delta) and x.sender == OLD)]
    broken = [*others, _broken(delta(OLD, 5))]
    assert bucket(broken).status is Status.UNKNOWN
    found = bucket(broken, replace(POLICY, retired_places=("hdfs /old",)))
    assert found.status is Status.COMPLETE
    assert found.reasons == (
        "web1: deltas of the hdfs counter /old/dc1.logs for this bucket are missing (retired)",
    )
    agents = [_broken(delta(AGENT, 5)), *said(5, 5)[1:]]
    found = bucket(agents, replace(POLICY, retired_places=("cluster dc1",)))
    assert found.status is Status.UNKNOWN


@promise("6 acceptance")
def test_of_a_broken_chain_the_acceptance_is_of_what_was_counted_then() -> None:
    """Each count of a bucket names the previous message that counted the bucket. If that message is
    missing, the chain is broken. If a person accepts a broken chain, the acceptance does not cover
    records that are counted later."""

    def more(sender: Sender, number: int) -> Delta:
        counts = (Count(LOGS, 7, START, SIZE, 1, 10, 1, previous=1),)
        return replace(delta(sender, 0, number), counts=counts)

    broken = [_broken(x) if isinstance(x, Delta) and x.sender == BROKER else x for x in said()]
    seen = accepted(broken)
    assert bucket(seen).is_accepted
    later = [more(AGENT, 3), more(BROKER, 2), more(OLD, 2)]
    seal = Seal(AGENT, 4, NOW, (SealedTopic(LOGS, NOW, 3),))
    found = bucket([*seen, *later, seal])
    assert (found.status, found.residue) == (Status.UNKNOWN, Status.UNKNOWN)
    [reason] = found.reasons
    assert "the broker counter broker-dc1 for this bucket are missing" in reason


def test_a_place_is_retired_by_a_message_and_taken_back() -> None:
    """A message on the audit topic can retire a place (a tier of one cluster, or an output), as the
    setting `retired.places` can. The place stays retired, for every span of time that the audit
    judges, until the retirement is revoked."""
    known = [Place(Tier.HDFS, "/old/dc1.logs", is_retired=True)]
    retired = acceptances.retirement("hdfs /old", known, SIGNED)
    assert bucket([*said(3, 5), retired]).status is Status.COMPLETE
    ledger = ledger_of(map(messages.encode, [*said(3, 5), retired]))
    assert verdicts(ledger.evidence((START, START + 1)), POLICY, NOW)[0].status is Status.COMPLETE
    [back] = acceptances.reinstatements("hdfs /old", [retired], SIGNED)
    assert bucket([*said(3, 5), retired, back]).status is Status.INCOMPLETE
    with pytest.raises(UsageError, match="was not retired by this command"):
        acceptances.reinstatements("hdfs /new", [retired], SIGNED)


def test_only_what_has_counted_is_retired_by_the_command() -> None:
    """`skidway audit retire` retires only a place that has sent counts. A place is a tier of one
    cluster, or an output. If the named place has sent no counts, the error lists the places that
    have sent counts. If the argument is not in the form of a place's name, the error explains this
    form."""
    known = [Place(Tier.HDFS, "/old/dc1.logs"), Place(Tier.BROKER, "dc1")]
    with pytest.raises(UsageError, match=r"broker dc1, hdfs /old/dc1\.logs"):
        acceptances.retirement("hdfs /odl", known, SIGNED)
    with pytest.raises(UsageError, match="names no place"):
        acceptances.retirement("/old", known, SIGNED)


decisions: st.SearchStrategy[Decision] = st.one_of(
    st.builds(
        Acceptance, st.integers(1, 4), st.integers(0, 2), st.just("ada"), st.just("why"),
        st.just(LOGS), st.just(START), st.just(SIZE),
        st.just((FindingName(7, "LOST 3 100-200"),)),
    ),
    st.builds(
        Retirement, st.integers(1, 4), st.integers(0, 2), st.just("ada"), st.just("why"),
        st.sampled_from(["hdfs /old", "mirror"]),
    ),
    st.builds(
        Revocation, st.integers(5, 8), st.integers(0, 2), st.just("ada"), st.just("why"),
        st.integers(1, 4),
    ),
)  # fmt: skip


@promise("6 acceptance")
@given(st.lists(decisions, max_size=6).flatmap(lambda x: st.tuples(st.just(x), st.permutations(x))))
def test_order_and_repetition_of_decisions_do_not_matter(
    drawn: tuple[list[Decision], list[Decision]],
) -> None:
    """Decisions come from the audit topics of several clusters, so they may be read in any order
    and more than once. Their effect does not depend on the order or on repetitions, and is the same
    in the ledger (the evidence in SQLite) and in the fold (the evidence in memory)."""
    found, shuffled = drawn
    again = [*shuffled, *found[:2]]
    assert not_revoked(again) == not_revoked(found)
    everything = [*said(3, 5, LOSS), *again]
    ledger = ledger_of(map(messages.encode, everything))
    assert ledger.evidence() == Fold(everything).evidence()


@promise("6 acceptance")
def test_a_collector_that_begins_anew_knows_what_was_decided() -> None:
    """A collector that begins with an empty store reads all decisions from the audit topic. The
    decisions say who decided, when, why, and about which finding of a bucket."""
    everything = accepted(said(5, None, LOSS))
    values = [messages.encode(x) for x in everything]
    assert [messages.decode(x) for x in values] == everything
    [found] = verdicts(ledger_of(values).evidence((START, START + 1)), POLICY, NOW)
    assert (found.is_accepted, found.acceptances[0].time_ms) == (True, NOW)
    assert verdicts(ledger_of(values[:-1]).evidence(), POLICY, NOW)[0].is_overdue


def test_an_output_below_a_retired_one_counts() -> None:
    """An output in a folder below a retired output stays active: `/data` is one output, and
    `/data/v2` is another."""
    retired = RetiredPlaces(["hdfs /data"])
    assert retired.holds(Tier.HDFS, "/data/dc1.logs", "dc1")
    assert not retired.holds(Tier.HDFS, "/data/v2/dc1.logs", "dc1")


@pytest.mark.parametrize("text", ["hdfs /", "hdfs //", "cluster", "nowhere x"])
def test_a_text_that_names_no_place_is_refused(text: str) -> None:
    """In a list of retired places, a text that does not name a place (a tier of one cluster, or an
    output) is refused. A single slash, for example, is refused: it names neither an output nor all
    outputs."""
    with pytest.raises(ConfigurationRefused, match="names no place"):
        check([text])


def test_a_retirement_is_taken_back_however_the_place_is_spelled() -> None:
    """The retirement of an output can be revoked by the output's name with or without a slash at
    the end."""
    retired = Retirement(1, 5, "ada", "x", "hdfs /old/")
    assert acceptances.reinstatements("hdfs  /old", [retired], SIGNED)
