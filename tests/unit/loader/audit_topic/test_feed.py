"""The feed is what the loader has read from the audit topic: announcements, which give the host and
path of each file, and the numbers of the loader's own messages."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from skidway.audit.topic import topic
from skidway.audit.topic.messages import (
    TOPIC,
    Announcement,
    Delta,
    Heartbeat,
    Seal,
    Sender,
    Tier,
    encode,
)
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.kafka import columns
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from skidway.loader.audit_topic.endings import Place
from skidway.loader.audit_topic.feed import Feed, audit_topics, read_on
from skidway.loader.state.closures import Heard
from support.clock import ManualClock
from support.loading import once
from support.memory_kafka import MemoryClient, MemoryCluster, MemoryFetcher
from support.memory_loading import MemoryLoading
from support.promises import promise

SOURCE = Source("dc1", "c", "logs", "1" * 32)


def announce(
    file: int, path: str, source: Source = SOURCE, length: int | None = None
) -> Announcement:
    return Announcement(0, 7, file, "host", path, 1, 2, b"", 0, source, length=length)


def delta(tier: Tier, number: int, *, producer: str = "/out/logs", epoch: int = 3, **more) -> Delta:
    return Delta(Sender(tier, "offline", producer, "h", epoch), number, 0, **more)


def test_the_first_announcement_holds() -> None:
    """A file that is announced again keeps the path of its first announcement, so that all rows of
    the file have the same path."""
    feed = Feed()
    feed.take(announce(1, "/a"))
    feed.take(announce(1, "/b"))
    assert feed.locations_of(SOURCE) == {(7, 1): ("host", "/a")}


def test_rejected_lines_are_of_the_files_of_their_topic() -> None:
    """Agents announce a file only for the topic of its lines, not for the topic of its rejected
    lines. So the files of `logs.rejected` are looked up among the files that were announced for
    `logs`."""
    feed = Feed()
    feed.take(announce(1, "/a"))
    rejects = Source("dc1", "c", "logs.rejected", "2" * 32)
    assert feed.locations_of(rejects) == {(7, 1): ("host", "/a")}
    assert feed.locations_of(Source("dc2", "c", "logs", "1" * 32)) == {}


def test_own_numbers_are_noted() -> None:
    """From the audit topic the loader learns, for each output and epoch, the highest number of a
    message that a load has published for the output. If the number in the output's own state is
    lower, the output is an older copy (for example from a backup)."""
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
    """The loader reads the announcements for a mirrored topic from the mirror of the source
    cluster's audit topic."""
    sources = [SOURCE, Source("offline", "c", "own", "")]
    existing = ["_skidway_audit", "dc1._skidway_audit", "dc2._skidway_audit", "dc1.logs"]
    assert audit_topics(sources, "offline", existing) == ["_skidway_audit", "dc1._skidway_audit"]
    assert audit_topics(sources, "offline", ["dc1.logs"]) == []


def _publish(cluster: MemoryCluster, *files: int) -> None:
    values = pa.array([encode(announce(file, "/a")) for file in files], pa.binary())
    batch = columns.encode(values, np.zeros(len(files), np.int64))
    cluster.log(TopicPartition(TOPIC, 0)).append(batch)


@promise("6 audit topic made again")
def test_an_audit_topic_made_again_and_longer_than_before_is_read_from_its_start() -> None:
    """An audit topic that was deleted and created again is read from its start, even if the new
    topic's end is beyond the position that the loader has stored. The loader stores the position
    together with the id of the audit topic, so it notices the new topic."""
    cluster, clock = MemoryCluster(), ManualClock()
    client: Any = MemoryClient(cluster, clock)
    cluster.create(TOPIC)
    _publish(cluster, 1, 2)
    before, after, on = Feed(), Feed(), Feed()
    with patch("skidway.loader.audit_topic.feed.Fetcher", lambda _: MemoryFetcher(cluster)):
        read_on(client, [TOPIC], before, clock)
        _publish(cluster, 3)
        on.positions = dict(before.positions)
        read_on(client, [TOPIC], on, clock)
        assert set(on.locations_of(SOURCE)) == {(7, 3)}
        cluster.create(TOPIC)
        for file in (4, 5, 6):
            _publish(cluster, file)
        after.positions = dict(before.positions)
        read_on(client, [TOPIC], after, clock)
    assert set(after.locations_of(SOURCE)) == {(7, 4), (7, 5), (7, 6)}
    assert list(after.positions.values()) == [3]


def seal(number: int, offset: int, *, tier: Tier = Tier.AGENT, source: Source = SOURCE) -> Seal:
    sealed = SealedTopic(source, 0, number, ((0, offset),))
    return Seal(Sender(tier, "dc1", "7", "h", 1), number, 100 * number, (sealed,))


@promise("5 closed files")
def test_the_newest_seal_counts_from_where_it_was_first_read() -> None:
    """A seal is an agent's message that it has counted all lines up to a time. After a crash, an
    agent may send its newest seal again. Between the two copies the agent may have sent the closure
    of a file (a message that the file was closed). The seal proves nothing about a file that was
    closed after the seal's first copy. So the position of a seal in the audit topic is that of its
    first copy, which comes before the closure."""
    feed = Feed()
    messages = [seal(4, 10), seal(5, 20), announce(1, "/a", length=9), seal(4, 10), seal(5, 20)]
    for offset, message in enumerate(messages):
        feed.take(message, Place("log", offset))
    assert feed.seals(SOURCE, {}) == {7: Heard(500, {0: 20}, frozenset())}
    feed.take(seal(6, 20), Place("log", 5))
    assert feed.seals(SOURCE, {}) == {7: Heard(600, {0: 20}, frozenset({(7, 1)}))}
    assert feed.seals(SOURCE, {"log": 6}) == {}


@promise("5 closed files")
def test_a_seal_in_another_log_follows_no_closure() -> None:
    """A seal counts as later than a file's closure (the message that the agent has closed the file)
    only if both messages are in the same log. Messages in different logs have no order."""
    feed = Feed()
    feed.take(announce(1, "/a", length=9), Place("log", 3))
    feed.take(seal(6, 20), Place("other", 9))
    assert feed.seals(SOURCE, {})[7].follows == frozenset()


def test_closures_of_a_topic_are_those_of_its_rejects() -> None:
    """The messages that announce and close a file name only the topic `logs`, but also count for
    the topic of its rejected lines, `logs.rejected`. A seal counts only for the topics that it
    names."""
    feed, rejects = Feed(), Source("dc1", "c", "logs.rejected", "2" * 32)
    feed.take(announce(1, "/a", length=9), Place("log", 3))
    feed.take(seal(6, 20), Place("log", 4))
    feed.take(seal(7, 2, source=rejects), Place("log", 5))
    assert feed.closed(rejects, {}) == feed.closed(SOURCE, {}) == {(7, 1): 0}
    assert feed.closed(SOURCE, {"log": 4}) == {}
    assert feed.seals(rejects, {})[7].offsets == {0: 2}
    assert feed.endings.named(SOURCE) == {0: 20}


def test_only_agents_seal() -> None:
    """The feed (what the loader has read from the audit topic) keeps only the seals of agents, and
    ignores those of another tier. A seal with another topic id does not count for the topic: such a
    seal is for an earlier or later topic of the same name."""
    feed = Feed()
    feed.take(seal(6, 20, tier=Tier.HDFS), Place("log", 4))
    feed.take(seal(6, 20, source=Source("dc1", "c", "logs", "9" * 32)), Place("log", 5))
    assert feed.seals(SOURCE, {}) == {}
    assert feed.endings.named(SOURCE) == {}


def test_a_name_is_new_to_a_topic_once() -> None:
    """The loader stores, for each source topic, a position in the audit topic. A run may begin to
    read the audit topic before this position, because another source topic needs older messages.
    The run then ignores, for each source topic, the announcements before the position of this
    topic. So if the loader has dropped the name (host and path) of a closed file, the name does not
    come back."""
    feed = Feed()
    feed.take(announce(1, "/a"), Place("log", 3))
    feed.take(announce(2, "/b"), Place("log", 4))
    assert set(feed.new_locations(SOURCE, {"log": 4})) == {(7, 2)}
    assert set(feed.new_locations(SOURCE, {"other log": 9})) == {(7, 1), (7, 2)}


class Audit:
    """An audit topic in memory, and a feed that reads it in several runs."""

    def __init__(self) -> None:
        self.cluster, self.clock = MemoryCluster(), ManualClock()
        self.cluster.create(TOPIC)
        self.feed = Feed()
        self.fetched: list[int] = []

    def run(self, wanted: dict[str, int] | None = None) -> set[int]:
        """Reads the audit topic as a run of the loader does if the run needs the messages from the
        positions `wanted` on. Without `wanted`, the run begins where the last run ended. Returns
        the ids of the files that the feed knows afterwards."""
        client: Any = MemoryClient(self.cluster, self.clock)
        self.feed.begin(dict(self.feed.positions) if wanted is None else wanted)
        self.fetched.append(sum(self.feed.positions.values()))
        with patch(
            "skidway.loader.audit_topic.feed.Fetcher", lambda _: MemoryFetcher(self.cluster)
        ):
            read_on(client, [TOPIC], self.feed, self.clock)
        return {file for _, file in self.feed.locations_of(SOURCE)}


def test_a_feed_goes_on_where_the_last_run_ended() -> None:
    """A feed is an object that reads the audit topic and keeps what the messages of the topic say.
    If the same feed is used for many runs, it reads only new messages of the audit topic, and
    remembers what earlier runs read. The feed reads no message twice, even if a source topic (for
    example one without loads) needs old messages, because the feed still has what these messages
    say."""
    audit = Audit()
    _publish(audit.cluster, 1, 2)
    assert audit.run({}) == {1, 2}
    _publish(audit.cluster, 3)
    assert audit.run({}) == {1, 2, 3}
    assert audit.run() == {1, 2, 3}
    assert audit.fetched == [0, 2, 3]


def test_a_topic_that_needs_older_messages_gets_them() -> None:
    """A feed that has read the audit topic from some position on may later need older messages. If
    the newest load of a source topic has stored an earlier position, the feed reads the audit topic
    again from there. If a source topic has no load, the feed reads the audit topic from its
    start."""
    audit = Audit()
    _publish(audit.cluster, 1, 2, 3)
    audit.run({})
    (key,) = audit.feed.positions
    audit.feed = Feed()
    assert audit.run({key: 2}) == {3}
    assert audit.run({key: 3}) == {3}
    assert audit.run({key: 1}) == {2, 3}
    assert audit.run({}) == {1, 2, 3}


@promise("6 audit topic made again")
def test_what_an_audit_topic_said_is_forgotten_when_it_is_made_again() -> None:
    """If the audit topic is deleted and created again between two runs, the loader forgets what it
    read from the old topic. If this happens during a run, after the run has asked for the topic's
    offsets, the next run forgets what was read from the old topic."""
    audit = Audit()
    _publish(audit.cluster, 1)
    audit.run({})
    audit.feed.take(delta(Tier.HDFS, 4))
    assert audit.feed.number("/out/logs", 3) == 4
    audit.cluster.create(TOPIC)
    _publish(audit.cluster, 2, 3)
    assert audit.run() == {2, 3}
    assert audit.feed.number("/out/logs", 3) == 0
    assert list(audit.feed.begins.values()) == [0]
    audit.feed.take(delta(Tier.HDFS, 5))
    _publish(audit.cluster, 9)
    audit.cluster.log(TopicPartition(TOPIC, 0)).expire(2)
    bounds = topic.bounds

    @once
    def make_again() -> None:
        audit.cluster.create(TOPIC)
        _publish(audit.cluster, 4, 5, 6)

    def made_again_afterwards(*given: Any) -> Any:
        found = bounds(*given)
        make_again()
        return found

    with patch("skidway.loader.audit_topic.feed.topic.bounds", made_again_afterwards):
        audit.run()
    assert audit.run() == {4, 5, 6}
    assert audit.feed.number("/out/logs", 3) == 0


def test_counts_are_published_again_to_an_audit_topic_that_was_made_again() -> None:
    """If the audit topic is deleted and created again, the next run publishes the counts of the
    newest load again, even if the run has nothing to load. This also holds for a loader that makes
    many runs with one feed, and has read the counts from the old topic."""
    loading, feed = MemoryLoading(), Feed()
    loading.write(10)
    with patch("support.memory_loading.Feed", lambda: feed):
        loading.run()
        (published,) = loading.deltas()
        loading.run()
        assert loading.deltas() == [published]
        loading.cluster.create(TOPIC)
        assert loading.run().loads == []
    assert loading.deltas() == [published]


def test_a_feed_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the loader has read announcements of very many files, it forgets the announcements, and
    reads the audit topic again from the positions that the newest loads have stored. Nothing is
    lost, because the tables of these loads contain the forgotten files."""
    monkeypatch.setattr("skidway.loader.audit_topic.feed.FILES_KEPT_MAX", 2)
    audit = Audit()
    _publish(audit.cluster, 1, 2)
    assert audit.run({}) == {1, 2}
    _publish(audit.cluster, 3)
    assert audit.run({}) == {1, 2, 3}
    _publish(audit.cluster, 4)
    assert audit.run({}) == {1, 2, 3, 4}, "a topic needs all of them"
    assert audit.fetched[-1] == 3, "and they are not read again"
    assert audit.run() == set()


@promise("5 closed files")
def test_what_is_read_is_what_all_messages_say() -> None:
    """The loader skips most messages of the audit topic without decoding them. What the loader
    learns is the same as if it had decoded all messages."""
    agent = Sender(Tier.AGENT, "dc1", "7", "h", 1)
    messages = [
        announce(1, "/a"), delta(Tier.AGENT, 3), seal(4, 10), announce(1, "/a", length=9),
        seal(5, 20), delta(Tier.HDFS, 6), delta(Tier.BROKER, 7), Heartbeat(agent, 5, 0),
        Seal(Sender(Tier.HDFS, "offline", "/out/logs", "h", 3), 8, 0, ()), announce(2, "/b"),
    ]  # fmt: skip
    cluster, clock = MemoryCluster(), ManualClock()
    cluster.create(TOPIC)
    log = cluster.log(TopicPartition(TOPIC, 0))
    values = pa.array([*map(encode, messages), b"hello, audit"], pa.binary())
    log.append(columns.encode(values, np.zeros(len(values), np.int64)))
    read, taken = Feed(), Feed()
    with patch("skidway.loader.audit_topic.feed.Fetcher", lambda _: MemoryFetcher(cluster)):
        read_on(MemoryClient(cluster, clock), [TOPIC], read, clock)
    (name,) = read.positions
    for offset, message in enumerate(messages):
        taken.take(message, Place(name, offset))
    assert read.unread
    assert (read.locations, read.places) == (taken.locations, taken.places)
    assert (read.endings, read.numbers) == (taken.endings, taken.numbers)
    assert read.newest("/out/logs") == (3, 8)
