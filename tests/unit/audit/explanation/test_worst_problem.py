"""Tests which problem of a bucket reports and pages name first."""

from __future__ import annotations

from collections.abc import Sequence

from skidway.audit.explanation.explanation import explain
from skidway.audit.explanation.next_command import Access
from skidway.audit.explanation.worst_problem import Problem, worst_problem
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.topic.messages import Message
from support.audit_senders import AGENT
from support.fold import Fold
from support.one_bucket import HDFS, LOSS, NOW, POLICY, SIZE, START, count, delta, good


def worst(messages: Sequence[Message], now: int = NOW) -> Problem | None:
    evidence = Fold(messages).evidence()
    found = verdicts(evidence, POLICY, now)
    return worst_problem(found, lambda x: explain(x, evidence, POLICY, now))


def test_the_worst_bucket_is_named_with_its_first_cause() -> None:
    """The problem names the topic, the bucket and its first cause with the next command. A bucket
    in which only rows are missing is named only if there is no other."""
    short = [*good()[:3], delta(HDFS, 1, count(3)), good()[4]]
    found = worst(short)
    assert found is not None
    assert found.sentence(Access()).startswith("dc1.logs 1970-01-01T00:10:00Z: records missing: ")
    assert found.document()["cause"] == "records missing"
    later = START + SIZE
    worse = delta(AGENT, 3, count(bucket=later, previous=1))
    found = worst([*short, worse], NOW + POLICY.silence_ms + SIZE)
    assert found is not None
    assert found.bucket == "1970-01-01T00:11:00Z"


def test_a_bucket_that_waits_for_its_seal_is_no_problem() -> None:
    """Each bucket is open for some seconds after it is due, so this is not told first."""
    assert worst(good()) is None
    assert worst(good()[:4]) is None


def test_a_command_that_accepts_more_than_is_shown_is_not_named() -> None:
    """If a person can only accept the bucket, the next command is `why`, which shows all causes."""
    found = worst([*good(), delta(AGENT, 3, losses=(LOSS,))])
    assert found is not None
    assert found.sentence(Access()).endswith(
        "Next: skidway audit why dc1.logs 1970-01-01T00:10:00Z"
    )
