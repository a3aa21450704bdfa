"""Tests the output of `skidway audit complete`: which hours lack records, how many records they
lack, and why."""

from __future__ import annotations

from dataclasses import replace

from skidway.audit.judgement import acceptances
from skidway.audit.judgement.acceptances import Signature
from skidway.audit.judgement.completeness import Question, completeness
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.reports import completeness_report
from skidway.audit.topic.messages import Delta, Heartbeat, Message
from support.audit_senders import AGENT, BROKER, LOGS
from support.fold import Fold
from support.one_bucket import (
    DUE,
    END,
    HDFS,
    MIRROR,
    NOW,
    POLICY,
    SIZE,
    START,
    count,
    delta,
    from_the_broker_on,
    good,
    seal,
)  # fmt: skip

HEARD = Heartbeat(BROKER, 1, DUE)
QUESTION = Question(
    "logs",
    lambda x: x.topic == "logs",
    lambda x: x.topic in ("logs", "logs.rejected"),
    START - 2 * SIZE,
    END,
)


def said(messages: list[Message], policy: Policy = POLICY, now: int = NOW) -> list[str]:
    found = completeness(Fold(messages).evidence(), policy, QUESTION, now)
    return completeness_report.sentences(found, QUESTION, policy)


def short() -> list[Message]:
    return [*good()[:3], delta(HDFS, 1, count(3)), *good()[4:], HEARD]


def test_a_time_without_records_is_said_with_who_vouches_for_it() -> None:
    """If a time has no record, the sentence says who vouches for that: the agents of the topic or,
    if the topic has no agent, nobody."""
    early = replace(QUESTION, until_ms=START)
    for messages, words in (
        (
            [*good(), HEARD],
            "each agent of the topic vouches that its files had no line of this time",
        ),
        (from_the_broker_on(), "no agent has this topic, and nothing was counted of this time"),
    ):
        found = completeness(Fold(messages).evidence(), POLICY, early, NOW)
        (sentence,) = completeness_report.sentences(found, early, POLICY)
        assert sentence.endswith(f"(0 records: {words}).")


def test_a_complete_topic_is_said_with_its_tiers() -> None:
    """For a complete topic, `skidway audit complete` prints one sentence with the span of time, the
    tiers and the number of records."""
    assert said([*good(), HEARD]) == [
        "dc1.logs is complete from 1970-01-01T00:08:00Z to 1970-01-01T00:11:00Z in agent, broker,"
        " mirror, hdfs (5 records)."
    ]


def test_a_short_topic_is_said_with_hours_numbers_and_reasons() -> None:
    """For a topic that is not complete, `skidway audit complete` prints the hours, the number of
    records that each tier or output lacks, and the first bucket of each kind of verdict. It does
    not print remarks, which do not keep a bucket from being complete."""
    counted = [delta(x, 2, count(2, agent=0, bucket=START - SIZE)) for x in (BROKER, MIRROR)]
    [only] = said([*short(), *counted, seal(AGENT, 3, START - 1, 1)])
    assert only == (
        "dc1.logs is not complete up to 1970-01-01T00:11:00Z. 2 of 3 buckets are short, in the hour"
        " 1970-01-01T00:00:00Z. There hdfs /logs/dc1.logs lacks 4 records. 1970-01-01T00:09:00Z is"
        " incomplete: hdfs /logs/dc1.logs is short by 2 of 2; web1: the agent has sealed up to"
        " 1970-01-01 00:09:59Z only."
    )


def test_what_is_accepted_is_named() -> None:
    """`skidway audit complete` lists accepted buckets with the person and the reason, even if all
    other buckets are complete."""
    judged = verdicts(Fold(short()).evidence(), POLICY, NOW)
    accepted = acceptances.acceptances(judged, Signature(NOW, "ada", "ticket 4711"))
    assert said([*short(), *accepted])[1:] == [
        "dc1.logs 1970-01-01T00:10:00Z is incomplete, accepted by ada (ticket 4711)."
    ]


def test_topics_that_were_made_again_are_told_apart() -> None:
    """If a topic was deleted and created again, the sentences about the old and the new topic
    contain the topics' ids."""
    again = replace(LOGS, topic_id="other")
    lines = Delta(AGENT, 3, START, counts=(count(source=again),))
    first, second = said([*good(), HEARD, lines, seal(AGENT, 4, DUE, 3)])
    assert first.startswith("dc1.logs (id other) is not complete")
    assert second.startswith("dc1.logs (id tid) is complete")
