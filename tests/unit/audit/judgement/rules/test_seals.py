"""Tests which buckets an agent's seal proves, and which its last word (its final seal) proves. A
seal of an agent proves a bucket if it shows that the agent has counted all of its own lines of the
bucket. Until then the bucket is open, or unknown if the agent has been silent for too long."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skidway.audit.judgement.roster import Roster, RosterEntry
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import Status
from skidway.audit.topic.messages import Delta, Heartbeat, Message, Range, Seal
from skidway.audit.topic.seal_columns import SealedTopic
from support.audit_senders import AGENT, LOGS, REJECTED
from support.fold import in_one_log, judge
from support.one_bucket import (
    AGAIN,
    COUNTERS,
    DUE,
    END,
    LOSS,
    NOW,
    POLICY,
    SECOND,
    SIZE,
    START,
    count,
    delta,
    good,
    last_word,
    made_again,
    roster,
    seal,
    verdict,
    verdict_of,
)
from support.promises import promise


def test_who_is_waited_for_is_silent_when_the_silence_is_over() -> None:
    """If an agent never sent a seal, or a host of the roster never sent a message, the audit waits
    for this agent or host. After a bucket is old enough to be complete, it stays open for the
    configured silence time, and is unknown afterwards. A message of the agent makes the silence
    time begin again."""
    over = DUE + POLICY.silence_ms
    expected = replace(POLICY, roster=roster("web1", "web9"))
    sealed = [*good(), seal(AGENT, 3, over, 2)]
    for messages, policy in ((good()[:4], POLICY), (sealed, expected)):
        assert verdict(messages, policy, over - 1).status is Status.OPEN
        assert verdict(messages, policy, over).status is Status.UNKNOWN
    alive = [*good()[:4], Heartbeat(AGENT, 1, DUE + 1)]
    assert verdict(alive, now=over).status is Status.OPEN
    assert verdict(alive, now=over + 1).status is Status.UNKNOWN


@promise("6 seal")
@pytest.mark.parametrize(("at", "expected"), [(2, Status.COMPLETE), (1, Status.OPEN)])
def test_a_seal_vouches_for_nothing_that_came_between_its_look_and_it(
    at: int, expected: Status
) -> None:
    """Before a seal, the agent looks where its files end; the seal says that all lines up to these
    ends are counted. If the agent has counted lines of a bucket after this look, the seal does not
    prove that all lines of the bucket are counted, because more of them may follow. This is so even
    if the agent has sent these counts before the seal."""
    parts = [delta(sender, 2, count(1, previous=1)) for sender in (AGENT, *COUNTERS)]
    messages = [*good()[:4], *parts, seal(AGENT, 3, DUE, at)]
    found = verdict(messages)
    assert found.status is expected
    later = seal(replace(AGENT, epoch=2), 1, END + 9 * SIZE, 0)
    is_proven = expected is Status.COMPLETE
    assert (verdict([*messages, later]).status is Status.COMPLETE) is is_proven


@promise("6 source without files")
@pytest.mark.parametrize(
    ("since", "now", "expected"),
    [
        (START, DUE - 1, Status.OPEN),
        (START, DUE, Status.UNKNOWN),
        (END, DUE, Status.UNKNOWN),
        (DUE, DUE, Status.COMPLETE),
    ],
)
def test_a_source_without_files_makes_its_topic_unknown(
    since: int, now: int, expected: Status
) -> None:
    """While no file has matched a source since a time, the topic's buckets after this time are
    unknown as soon as they are due, whatever was counted; earlier buckets are complete. When a file
    appears, and a seal says so, they are complete."""
    said = [*good()[:4], seal(AGENT, 2, -since, 1)]
    found = verdict(said, now=now)
    assert found.status is expected
    words = "unknown: a source has matched no file since 1970-01-01 00:1"
    assert any(words in x for x in found.reasons) is (expected is Status.UNKNOWN)
    assert verdict([*said, seal(AGENT, 3, DUE, 2)], now=DUE).status is Status.COMPLETE


@promise("6 source without files")
def test_a_silent_host_is_called_silent_whatever_its_sources_are() -> None:
    """If an agent with a source without files is silent, the silence is the reason."""
    said = [*good()[:4], seal(AGENT, 2, -START, 1)]
    found = verdict(said, now=DUE + POLICY.silence_ms)
    assert [x for x in found.reasons if "the agent is silent" in x]


def test_a_damaged_time_is_no_source_without_files() -> None:
    """A seal with a time before all times vouches for nothing."""
    found = verdict([*good()[:4], seal(AGENT, 2, -(1 << 62), 1)])
    assert found.status is Status.OPEN


def test_the_last_word_of_a_retired_host_needs_no_seal_behind_it() -> None:
    """If a host is retired, its last word (final seal) is enough to complete a bucket, even if the
    bucket ends after the time of this seal. If the host sent an ordinary seal of the same time
    instead, or counts a line after its last word, the bucket is unknown."""
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
    """If an ordinary seal follows a last word (final seal), the last word is no longer valid,
    because the agent runs again and may send more lines."""
    retired = replace(POLICY, roster=Roster(retired=["web1"]))
    messages = [*good()[:4], last_word(AGENT, 2, 1), seal(AGENT, 3, START + 1, 2)]
    assert verdict(messages, retired).status is Status.OPEN


@promise("6 last word")
def test_the_last_word_of_an_expected_host_is_a_seal_like_any_other() -> None:
    """If a host is expected to report, its last word (final seal) counts like an ordinary seal,
    because the host's files may have grown since. If the roster names the host, and a newer agent
    of the host has sent a seal, the last word of the old agent proves that this agent will send
    nothing more. Without a roster, the audit waits for both agents."""
    messages = [*good()[:4], last_word(AGENT, 2, 1)]
    expected = replace(POLICY, roster=roster("web1"))
    for policy in (POLICY, expected):
        assert verdict(messages, policy).status is Status.OPEN
        assert verdict(messages, policy, NOW + POLICY.silence_ms).status is Status.UNKNOWN
    newer = seal(replace(SECOND, host="web1"), 1, DUE, 0)
    evidence = in_one_log([*messages, newer], NOW)
    for policy, status in ((expected, Status.COMPLETE), (POLICY, Status.OPEN)):
        assert [x.status for x in verdicts(evidence, policy, NOW)] == [status]


def test_a_topic_of_rejects_is_sealed_by_its_topic() -> None:
    """A seal of a topic (which says that all lines before a time are counted) is also valid for the
    topic to which the agent sends this topic's rejected lines."""
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


@promise("6 seal of a topic made again")
def test_a_seal_of_a_topic_made_again_is_one_of_the_topic_before() -> None:
    """After a topic was deleted and created again, a seal of the new topic is also valid for the
    old topic. So the open buckets of the old topic become complete or incomplete. If an agent
    counts more lines of such a bucket after the seal, the bucket needs a newer seal."""
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


@promise("6 seal of a topic made again")
def test_a_last_word_on_a_topic_is_none_on_the_one_that_was_made_again() -> None:
    """After a topic was deleted and created again, an agent may count lines in the new topic before
    it sends a seal for the new topic. Then the agent's last word (final seal) on the old topic is
    not valid for the new topic."""
    gone = replace(POLICY, roster=Roster([RosterEntry("web1"), RosterEntry("web2", retired=True)]))
    word = Seal(SECOND, 1, START, (SealedTopic(LOGS, START, 0, final=True),))
    part = Delta(SECOND, 2, START, counts=(count(agent=8, source=AGAIN),))
    both = made_again()[1:]
    counted = [
        replace(x, counts=(*x.counts, count(agent=8, source=AGAIN)))
        if isinstance(x, Delta) and x.sender in COUNTERS
        else x
        for x in both
    ]
    found = verdict_of(AGAIN, [word, part, *counted], gone)
    assert found.status is Status.OPEN
    assert any(x.startswith("web2 (retired): the agent has sealed up to") for x in found.reasons)


@promise("6 seal of a topic made again")
def test_who_spoke_of_rejects_alone_has_spoken_of_the_topic_that_was_made_again() -> None:
    """A topic is deleted and created again, and an agent counts only rejected lines of the new
    topic. This shows that the agent sends to the new topic, too, so its last word (final seal) on
    the old topic is not valid for the new one."""
    gone = replace(POLICY, roster=Roster([RosterEntry("web1"), RosterEntry("web2", retired=True)]))
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
    assert verdict_of(rejected, [*messages, new], gone).status is Status.COMPLETE
    found = verdict_of(rejected, [*messages, old], gone)
    assert found.status is Status.OPEN
    assert any(x.startswith("web2 (retired): the agent has sealed up to") for x in found.reasons)
