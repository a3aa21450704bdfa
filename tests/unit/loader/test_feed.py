"""What the loader learns from the audit topic."""

from __future__ import annotations

from audit.messages import Announcement, Delta, Gap, Heartbeat, Sender, Tier
from loader.feed import Feed, audit_topics
from skidway.kafka.source import Source

SOURCE = Source("dc1", "c", "logs", "1" * 32)


def announce(file: int, path: str, source: Source = SOURCE) -> Announcement:
    return Announcement(0, 7, file, "host", path, 1, 2, b"", 0, source)


def delta(tier: Tier, number: int, *, producer: str = "/out/logs", epoch: int = 3, **more) -> Delta:
    return Delta(Sender(tier, "offline", producer, "h", epoch), number, 0, **more)


def test_the_first_announcement_holds() -> None:
    """A file that is announced again keeps the path of the first time: rows do not change."""
    feed = Feed()
    feed.take(announce(1, "/a"))
    feed.take(announce(1, "/b"))
    assert feed.names_of(SOURCE) == {(7, 1): ("host", "/a")}


def test_rejected_lines_are_of_the_files_of_their_topic() -> None:
    """The rejects of a topic come from its files, which are announced for the topic itself."""
    feed = Feed()
    feed.take(announce(1, "/a"))
    rejects = Source("dc1", "c", "logs.rejected", "2" * 32)
    assert feed.names_of(rejects) == {(7, 1): ("host", "/a")}
    assert feed.names_of(Source("dc2", "c", "logs", "1" * 32)) == {}


def test_gaps_that_a_mirror_named() -> None:
    """Gaps of the mirror tier are kept by topic and partition; other tiers' are not ours."""
    feed = Feed()
    gap = Gap(SOURCE, 2, 5, 9, "expired")
    feed.take(delta(Tier.BROKER, 1, gaps=(Gap(SOURCE, 2, 0, 1, "x"),)))
    feed.take(delta(Tier.MIRROR, 1, gaps=(gap,)))
    assert {p: [(g.first, g.end) for g in gaps] for p, gaps in feed.gaps_of(SOURCE).items()} == {
        2: [(5, 9)]
    }
    assert feed.gaps_of(Source("dc1", "c", "logs", "9" * 32)) == {}
    assert 2 in feed.gaps_of(Source("dc1", "c", "logs", ""))


def test_own_numbers_are_noted() -> None:
    """The highest number that an output published tells whether the output is an older copy."""
    feed = Feed()
    feed.take(delta(Tier.HDFS, 4))
    feed.take(delta(Tier.HDFS, 2))
    feed.take(delta(Tier.HDFS, 9, epoch=2))
    feed.take(delta(Tier.HDFS, 8, producer="/other/logs"))
    feed.take(delta(Tier.AGENT, 11))
    feed.take(Heartbeat(Sender(Tier.HDFS, "offline", "/out/logs", "h", 3), 99, 0))
    assert feed.number("/out/logs", 3) == 4
    assert feed.number("/out/logs", 4) == 0


def test_audit_topics_of_sources() -> None:
    """Announcements of mirrored topics come in the mirror of their cluster's audit topic."""
    sources = [SOURCE, Source("offline", "c", "own", "")]
    existing = ["_skidway_audit", "dc1._skidway_audit", "dc2._skidway_audit", "dc1.logs"]
    assert audit_topics(sources, "offline", existing) == ["_skidway_audit", "dc1._skidway_audit"]
    assert audit_topics(sources, "offline", ["dc1.logs"]) == []
