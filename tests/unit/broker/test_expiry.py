from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from skidway.broker.counts import Counts
from skidway.broker.expiry import Expiry
from skidway.broker.log.config import LogConfig
from skidway.broker.log.flusher import WorkOutcome, timed
from skidway.broker.log.log_manager import LogManager
from skidway.errors import Unreachable
from skidway.kafka.types import TopicPartition
from support.batches import NOW_MS, append, batch, flush, open_in
from support.clock import ManualClock
from support.hosting import World as Hosting
from support.promises import promise

HOUR = 3_600_000
LOGS = TopicPartition("logs", 0)
HELD = LogConfig(segment_bytes=100, retention_ms=HOUR, held_by=("mirror", "load"), hold_ms_max=-1)


class AtOnce:
    def submit(self, work: Callable[[], None], done: Callable[[WorkOutcome], None]) -> None:
        done(timed(work))


class FakeSession:
    """A fake ZooKeeper, which returns the given committed offsets of groups, or which cannot be
    reached."""

    def __init__(self) -> None:
        self.offsets: dict[Any, int] | Unreachable = {}
        self.asked = 0

    def submit(self, _work: object, done: Callable[[Any], None]) -> None:
        self.asked += 1
        done(self.offsets)


class World:
    """A log of five segments with one record each. All segments but the last are old enough to
    expire."""

    def __init__(self, directory: Path, config: LogConfig) -> None:
        (directory / "logs-0").mkdir()
        self.log = open_in(directory / "logs-0", config)
        for _ in range(5):
            append(self.log, batch(b"x" * 40))
        flush(self.log)
        for segment in self.log.segments[:-1]:
            segment.last_append_ms = NOW_MS - 2 * HOUR
        manager = LogManager(ManualClock(time_ms=NOW_MS), AtOnce())
        manager.open_directories([directory])
        manager.logs[LOGS] = self.log
        self.session, self.counts = FakeSession(), Counts()
        self.later: list[tuple[float, Callable[[], None]]] = []
        partitions: Any = None
        self.expiry = Expiry(
            manager,
            partitions,
            self.session,
            self.counts,
            lambda delay_ms, action: self.later.append((delay_ms, action)),
            10 * HOUR,
        )

    def look(self, offsets: dict[str, int] | Unreachable) -> int:
        """Commits the given offsets, lets the expiry look for expired segments once, and returns
        the resulting log start offset."""
        self.session.offsets = (
            offsets
            if isinstance(offsets, Unreachable)
            else {(group, LOGS): offset for group, offset in offsets.items()}
        )
        self.expiry.look()
        return self.log.log_start_offset


def test_the_slowest_group_holds(tmp_path: Path) -> None:
    """The setting retention.hold lists groups, and records that one of these groups has not read do
    not expire. So segments expire only up to the lowest committed offset of these groups."""
    world = World(tmp_path, HELD)
    assert world.look({"mirror": 3, "load": 1, "other": 0}) == 1
    assert world.counts.partitions_held == 1
    assert world.look({"mirror": 4, "load": 4}) == 4
    assert world.counts.partitions_held == 0
    assert world.counts.hold_lost_records == 0


def test_a_group_that_has_committed_nothing_holds_everything(tmp_path: Path) -> None:
    """If a group that is listed in retention.hold has committed nothing, no segment expires,
    because the group may have read nothing yet."""
    assert World(tmp_path, HELD).look({"mirror": 4}) == 0


def test_an_offset_behind_the_end_is_another_topics(tmp_path: Path) -> None:
    """If a group's committed offset is beyond the log's end, it was committed for an earlier topic
    of the same name. Such a group counts as a group that has committed nothing."""
    assert World(tmp_path, HELD).look({"mirror": 4, "load": 6}) == 0


def test_an_offset_that_is_gone_is_not_believed_any_more(tmp_path: Path) -> None:
    """A group's committed offset no longer exists after the topic was created again, or after the
    group was deleted. The broker then does not use the offset that it read before. The group counts
    as a group that has committed nothing."""
    world = World(tmp_path, HELD)
    assert world.look({"mirror": 1, "load": 3}) == 1
    assert world.look({"mirror": 3}) == 1
    assert world.look(Unreachable("ZooKeeper is away")) == 1


def test_a_group_named_while_others_were_asked_for_holds_at_once(tmp_path: Path) -> None:
    """An operator may add a group to retention.hold while the broker reads the committed offsets of
    other groups. The broker then deletes no segment before it has also read the offset of the added
    group."""
    world = World(tmp_path, replace(HELD, held_by=("mirror",)))
    answers: list[Callable[[], None]] = []
    world.session.submit = (  # type: ignore[method-assign]
        lambda _work, done: answers.append(lambda: done({("mirror", LOGS): 4}))
    )
    world.expiry.look()
    world.log.config = HELD
    answers.pop()()
    assert world.log.log_start_offset == 0


@promise("4 readers")
def test_without_zookeeper_what_was_read_last_counts(tmp_path: Path) -> None:
    """While ZooKeeper cannot be reached, segments expire only up to the group offsets that were
    read last."""
    world = World(tmp_path, HELD)
    away = Unreachable("ZooKeeper is away")
    assert world.look(away) == 0
    third = world.log.segments[2]
    third.last_append_ms = NOW_MS
    assert world.look({"mirror": 3, "load": 4}) == 2
    third.last_append_ms = NOW_MS - 2 * HOUR
    assert world.look(away) == 3, "as far as all had read"
    assert world.look(away) == 3, "and no farther"


@promise("4 readers")
def test_beyond_the_limit_what_is_lost_is_counted(tmp_path: Path) -> None:
    """Records that a group in retention.hold has not read do not expire, up to a limit (here
    retention.hold.max.ms). Records beyond this limit expire even if a slow group has not read them.
    The expired records are counted as lost to that group."""
    world = World(tmp_path, LogConfig(
        segment_bytes=100, retention_ms=HOUR, held_by=("mirror", "load"), hold_ms_max=HOUR,
    ))  # fmt: skip
    assert world.look({"mirror": 1, "load": 4}) == 4
    assert world.counts.hold_lost_records == 3


def test_zookeeper_is_asked_only_where_something_would_go(tmp_path: Path) -> None:
    """The broker reads the offsets of groups from ZooKeeper only if retention would otherwise
    delete a segment."""
    world = World(tmp_path, LogConfig(segment_bytes=100, held_by=("mirror",)))
    world.look({})
    assert world.session.asked == 0


def test_a_segment_stays_until_its_successor_is_durable(tmp_path: Path) -> None:
    """If the active segment expires, the broker begins a new segment and flushes it on the disk
    worker. The expired segment stays until this flush has ended. Otherwise a power failure could
    leave neither segment, and the next start would call the log damaged."""
    world = Hosting(tmp_path, LogConfig(retention_ms=HOUR))
    world.produce(b"a")
    world.advance(0.05)
    world.worker.finish()
    log = world.replica.log
    log.active.last_append_ms = world.clock.time_ms() - 2 * HOUR
    session: Any = FakeSession()
    expiry = Expiry(
        world.logs, world.hosted, session, Counts(), lambda _delay_ms, _action: None, 10 * HOUR
    )
    expiry.look()
    assert (len(log.segments), len(world.worker.waiting)) == (2, 1)
    expiry.look()
    assert (log.log_start_offset, len(world.worker.waiting)) == (0, 1)
    world.worker.finish()
    expiry.look()
    assert (log.log_start_offset, len(log.segments), len(world.worker.waiting)) == (1, 1, 0)


def test_files_go_after_the_delay_of_their_topic(tmp_path: Path) -> None:
    """The files of expired segments are first renamed, and then deleted after the topic's
    file.delete.delay.ms."""
    world = World(
        tmp_path, LogConfig(segment_bytes=100, retention_ms=HOUR, file_delete_delay_ms=77)
    )
    world.look({})
    ((delay_ms, action),) = world.later
    assert delay_ms == 77
    assert list((tmp_path / "logs-0").glob("*.deleted"))
    action()
    assert not list((tmp_path / "logs-0").glob("*.deleted"))
