"""Tests which buckets are explained together."""

from __future__ import annotations

import pytest

from skidway.audit.evidence.tallies import BucketId
from skidway.audit.explanation import choice
from skidway.audit.explanation.choice import ByTopic, acceptable_with, alike, covered, with_covered
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.verdict import BucketVerdict, Finding, Status
from skidway.audit.reports.topic_names import is_named
from skidway.kafka.source import Source

SOURCES = [
    Source(cluster, cluster, name, topic_id)
    for cluster, topic_id in (("dc1", "a1"), ("dc1", "b2"), ("dc2", "c3"))
    for name in (
        "logs", "logs.rejected", "logs.rejected.rejected", "dc1.logs", "dc1.logs.rejected",
        "logs (id a1)", "other",
    )
]  # fmt: skip
MINUTES = [(at, 1) for at in range(40)]


@pytest.mark.parametrize(
    ("buckets", "time", "expected"),
    [
        (MINUTES, 25, {(25, 1)}),
        ([*MINUTES, (20, 10)], 25, {(25, 1), (20, 10), (20, 1)}),
        ([*MINUTES, (20, 10)], 20, {(20, 1), (20, 10)}),
        ([*MINUTES, (20, 10), (14, 7), (21, 7)], 25, {
            (25, 1), (21, 7), (21, 1), (20, 10), (20, 1), (14, 7), (14, 1)
        }),
        ([(20, 10), (30, 10)], 25, set()),
    ],
)  # fmt: skip
def test_the_buckets_that_commands_may_also_accept(
    buckets: list[BucketId], time: int, expected: set[BucketId]
) -> None:
    """The command that accepts a bucket also accepts each other bucket that contains the bucket's
    start. Each of these other buckets has a command of its own, which may accept further buckets in
    the same way. All these buckets are explained together."""
    assert acceptable_with(time, buckets) == expected


def _verdicts(sources: list[Source], buckets: list[BucketId]) -> list[BucketVerdict]:
    """Returns verdicts on buckets of all these topics. All buckets lack records."""
    finding = Finding(Status.INCOMPLETE, "short", Cause.RECORDS_MISSING)
    return [
        BucketVerdict(source, *bucket, Status.INCOMPLETE, ("short",), due=True, findings=(finding,))
        for bucket in buckets
        for source in sources
    ]


@pytest.mark.parametrize("source", SOURCES)
def test_only_verdicts_on_related_topics_matter(source: Source) -> None:
    """A command names one topic. The verdicts on this topic and on related topics (its rejects,
    topics of the same name, and topics whose name consists of a cluster's and a topic's name)
    decide which buckets the command accepts. The verdicts on other topics do not matter."""
    found = _verdicts(SOURCES, [(0, 10), (0, 1), (1, 1), (2, 1)])
    related = ByTopic(found).related(source)
    assert len(related) < len(found)
    for verdict in (x for x in found if x.source == source):
        assert covered(verdict, 1, related) == covered(verdict, 1, found)
        assert alike(verdict, related) == alike(verdict, found)
        expected = [verdict]
        for each in expected:  # `expected` grows
            more = covered(each, each.bucket, found)
            expected += [x for x in more if x not in expected]
        assert with_covered([verdict], found) == expected


def test_the_time_does_not_grow_with_the_square_of_the_topics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To find the buckets that the commands for many topics also accept, the names of each topic
    are compared with the names of a few related topics, and not with those of all topics."""
    asked = []

    def noted(source: Source, names: list[str]) -> bool:
        asked.append(source)
        return is_named(source, names)

    monkeypatch.setattr(choice, "is_named", noted)
    names = [f"topic{x}{suffix}" for x in range(100) for suffix in ("", ".rejected")]
    found = _verdicts([Source("dc1", "cid", name, "tid") for name in names], [(0, 1)])
    assert with_covered(found[::2], found) == [*found[::2], *found[1::2]]
    assert len(asked) <= 3 * len(found)
