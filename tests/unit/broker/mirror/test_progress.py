from __future__ import annotations

from pathlib import Path

import pytest

from skidway.broker.mirror.progress import INTERVAL_S, REPEATED_AFTER_S
from skidway.kafka.errors import ErrorCode
from skidway.kafka.types import TopicPartition
from support.mirror_world import MirrorWorld

GROUP = "mirror-offline"
LOGS = TopicPartition("logs", 0)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MirrorWorld:
    made = MirrorWorld(tmp_path, monkeypatch)
    made.source.create("logs", 2)
    made.source.log("logs").append(5)
    return made


def flush(world: MirrorWorld) -> None:
    """Flushes every partition of the mirror."""
    for replica in world.local.replicas.values():
        work = replica.log.begin_flush()
        if work is not None:
            replica.log.finish_flush(work)
        replica.advance()


def test_the_source_is_told_what_is_on_disk_here(world: MirrorWorld) -> None:
    """For each partition, a mirror commits the offset up to which its own log is flushed. It
    commits these offsets to the source cluster, as the offsets of a consumer group that belongs to
    the mirror. It commits nothing for an empty partition, and does not commit an unchanged offset
    again in the next rounds."""
    world.follow()
    assert world.source.committed == {}
    flush(world)
    world.settle(2 * INTERVAL_S)
    assert world.source.committed == {(GROUP, LOGS): 5}
    count = world.source.commits
    world.settle(5 * INTERVAL_S)
    assert world.source.commits == count
    world.source.log("logs").append(2)
    world.settle(2 * INTERVAL_S)
    assert world.source.committed == {(GROUP, LOGS): 5}, "copied is not on disk"
    flush(world)
    world.settle(2 * INTERVAL_S)
    assert world.source.committed == {(GROUP, LOGS): 7}
    assert world.status["group"] == GROUP
    assert world.status["group_failures"] == 0


def test_what_has_not_changed_is_told_again_now_and_then(world: MirrorWorld) -> None:
    """From time to time, a mirror commits an unchanged offset to the source again, because the
    source deletes the old offsets of a group without members."""
    world.follow()
    flush(world)
    world.settle(2 * INTERVAL_S)
    world.source.committed.clear()
    world.clock.advance(REPEATED_AFTER_S)
    world.settle(2 * INTERVAL_S)
    assert world.source.committed == {(GROUP, LOGS): 5}


def test_a_source_that_does_not_keep_it_stops_nothing(world: MirrorWorld) -> None:
    """If the source refuses a commit of the mirror, mirroring continues. The mirror's status shows
    the refusal and counts it, and the commit is repeated until the source accepts it."""
    world.source.commit_error = ErrorCode.GROUP_AUTHORIZATION_FAILED
    world.follow()
    flush(world)
    world.settle(3 * INTERVAL_S)
    assert world.status["group_failures"] >= 2
    assert "GROUP_AUTHORIZATION_FAILED" in world.status["group_failure"]
    assert world.status["lag"] == 0
    assert world.stopped() == {}
    world.source.commit_error = ErrorCode.NONE
    world.settle(3 * INTERVAL_S)
    assert world.source.committed == {(GROUP, LOGS): 5}
    assert world.status["group_failure"] == ""


def test_a_partition_that_is_stopped_tells_nothing(world: MirrorWorld) -> None:
    """The mirror commits no offset for a stopped partition, because the partition's log is no
    longer a copy of the source's log."""
    world.follow()
    flush(world)
    world.settle(2 * INTERVAL_S)
    log = world.source.log("logs")
    log.batches, log.start, log.end = [], 0, 0
    log.append(9, salt=1000)
    world.start()  # the restarted broker compares its last batch with the source's batch
    world.source.committed.clear()
    world.follow()
    flush(world)
    world.settle(3 * INTERVAL_S)
    assert "dc1.logs-0" in world.stopped()
    assert world.source.committed == {}
