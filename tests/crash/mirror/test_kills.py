"""If the mirror or the source is killed or paused, or has a full disk, the mirror's log still
equals the source's log."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.mirroring import Cluster, Pair, pair
from support.processes import eventually


@pytest.fixture
def clusters(tmp_path: Path, zookeeper: str) -> Iterator[Pair]:
    yield from pair(tmp_path, zookeeper)


@pytest.mark.parametrize("victims", [("here",), ("source",), ("here", "source")])
def test_killed_while_records_flow(clusters: Pair, victims: tuple[str, ...]) -> None:
    """If the mirror, the source or both are killed with kill -9 again and again, no record is lost
    or doubled, and no record gets a different offset."""
    clusters.source.create("logs", 2, segment_bytes="4096")
    for _ in range(4):
        clusters.source.produce("logs", 15)
        clusters.source.produce("logs", 5, 1, size=3000)
        for victim in victims:
            getattr(clusters, victim).crash()
    clusters.source.produce("logs", 1)
    clusters.mirrored("logs")
    clusters.same("logs", 2)
    assert clusters.here.mirror()["stopped"] == {}
    assert clusters.here.mirror()["unverifiable"] == {}


def test_a_disk_that_takes_no_more_for_a_while(clusters: Pair) -> None:
    """If the mirror's disk is full and refuses a write, the mirror undoes the whole write and
    reports that the partition waits. When there is space again, the mirror fetches the batches
    again."""
    clusters.source.create("logs")
    clusters.source.produce("logs", 6, size=900_000)
    clusters.mirrored("logs")
    room = len(clusters.here.log_bytes("dc1.logs")) + 450_000
    pid = clusters.here.program.pid
    unlimited = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (room, unlimited[1]))
    clusters.source.produce("logs", 4, size=900_000)
    waiting = eventually(lambda: clusters.here.mirror()["waiting"], what="it is named")
    assert waiting == {"dc1.logs-0": "the log refused a write"}
    assert clusters.here.ends("dc1.logs") == {0: 18}
    health = clusters.here.health()
    assert (health["ok"], len(health["full_log_dirs"])) == (False, 1)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited)
    clusters.mirrored("logs")
    clusters.same("logs")
    assert clusters.here.health()["ok"] is True
    assert clusters.here.mirror()["waiting"] == {}
    clusters.here.crash()
    clusters.source.produce("logs", 1)
    clusters.mirrored("logs")
    clusters.same("logs")


def test_a_topic_made_again_while_the_mirror_was_paused(clusters: Pair) -> None:
    """The mirror never mixes the records of a topic and of a new topic with the same name. If a
    topic is deleted and created again while the mirror is paused, the mirror stops copying, and
    copies no record of the new topic."""
    clusters.source.create("logs")
    clusters.source.produce("logs", 10)
    clusters.mirrored("logs")
    before = clusters.here.log_bytes("dc1.logs")
    clusters.here.program.signal(signal.SIGSTOP)
    clusters.source.delete("logs")
    clusters.source.create("logs")
    clusters.source.produce("logs", 40)
    clusters.here.program.signal(signal.SIGCONT)
    eventually(lambda: clusters.here.mirror()["stopped"], what="it stops")
    assert clusters.here.log_bytes("dc1.logs") == before


def test_killed_as_a_gap_is_found(tmp_path: Path, zookeeper: str) -> None:
    """The topic config `mirror.gaps` lists every gap (range of offsets that the mirror skipped)
    once, and outside of the gaps no offset is missing. This is true even if the mirror is killed
    again and again while it starts, creates a topic or finds a gap."""
    forgetful = {"log_retention_check_interval_ms": 50, "log_segment_delete_delay_ms": 0}
    for clusters in pair(tmp_path, zookeeper, source=forgetful):
        clusters.source.create("logs", segment_bytes="1024", retention_bytes="2048")
        for event in ("broker_started", "mirror_gap", "mirror_topic_created") * 2:
            kill_after(clusters.here, event)
            clusters.source.produce("logs", 40)
        clusters.here.start()
        clusters.mirrored("logs")
        end = 0
        named = {gap.first: gap.end for gap in clusters.gaps("logs")}
        for base, last in clusters.here.ranges("dc1.logs"):
            assert base == end or named.get(end) == base, f"{end}-{base} is missing: {named}"
            end = last + 1
        assert end == clusters.source.ends("logs")[0]
        assert clusters.here.health()["ok"] is True


def kill_after(cluster: Cluster, event: str) -> None:
    """Starts the cluster, waits until it has logged the event or has nothing left to do, and then
    kills it."""
    if cluster.program.running:
        cluster.program.kill()
    words = f'"{event}"'
    before = cluster.program.output().count(words)
    cluster.start()
    eventually(
        lambda: cluster.program.output().count(words) > before or cluster.caught_up(),
        what=f"{event}, or nothing to do",
    )
    cluster.program.kill()
