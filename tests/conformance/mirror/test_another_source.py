"""A mirror copies the topics of its source cluster. If this cluster was replaced by a different
cluster, or one of its topics or logs by a different one, the mirror stops, reports the reason, and
copies none of the new records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.mirroring import Cluster, Pair, pair, refill
from support.processes import eventually, run_skidway


@pytest.fixture
def clusters(tmp_path: Path, zookeeper: str) -> Iterator[Pair]:
    """Yields a source cluster that has one topic with ten batches, and the mirror of this
    cluster."""
    for made in pair(tmp_path, zookeeper):
        made.source.create("logs")
        made.source.produce("logs", 10)
        made.mirrored("logs")
        yield made


def stopped(clusters: Pair, what: str) -> str:
    """Waits until the mirror has stopped copying the topic or partition `what`, and returns the
    reason that it reports."""
    return str(eventually(lambda: clusters.here.mirror()["stopped"].get(what), what="it stops"))


def assert_untouched(clusters: Pair, before: bytes, words: str) -> None:
    """Asserts that the mirror's log is still equal to `before`, that /health answers that the
    broker is not healthy, and that `mirror status` gives a reason that contains `words`."""
    assert clusters.here.log_bytes("dc1.logs") == before
    assert clusters.here.ends("dc1.logs") == {0: 30}, "what is there is served"
    assert clusters.here.health()["ok"] is False
    status = run_skidway(
        "mirror", "status", "--url", f"http://127.0.0.1:{clusters.here.metrics_port}"
    )
    assert status.returncode == 1
    assert re.search(f"stopped: dc1: dc1.logs.*{words}", status.stdout), status.stdout
    command = f"topics delete dc1.logs --yes --bootstrap-server {clusters.here.address}"
    assert command in status.stdout


def test_a_topic_made_again_is_another_topic(clusters: Pair) -> None:
    """If a topic of the source is deleted and created again with the same name, the mirror stops
    copying it, even if the new topic has more records. After an operator has deleted the
    mirror's copy of the old topic, the mirror copies the new topic."""
    before = clusters.here.log_bytes("dc1.logs")
    clusters.source.delete("logs")
    clusters.source.create("logs")
    clusters.source.produce("logs", 20)
    assert "was made again" in stopped(clusters, "dc1.logs")
    assert_untouched(clusters, before, "made again")
    eventually(lambda: clusters.here.mirror()["missed"] == {"dc1.logs": 60}, what="the lag")
    assert clusters.here.mirror()["lag"] == 60
    clusters.here.delete("dc1.logs")
    clusters.mirrored("logs")
    clusters.same("logs")
    assert clusters.here.health()["ok"] is True


@pytest.mark.parametrize("batches", [10, 25])
def test_a_log_that_was_replaced_has_diverged(clusters: Pair, batches: int) -> None:
    """If the log of a partition was replaced in the source by a log with different records, while
    the topic kept its id, the mirror stops copying the partition. This also holds if the source's
    log is as long as the mirror's log, or longer."""
    before = clusters.here.log_bytes("dc1.logs")
    clusters.source.program.kill()
    refill(clusters.source, batches)
    clusters.source.start()
    assert "diverged" in stopped(clusters, "dc1.logs-0")
    clusters.source.produce("logs", 3)
    assert_untouched(clusters, before, "diverged")


def test_a_log_that_was_replaced_while_the_mirror_was_away(clusters: Pair) -> None:
    """If the log of a partition was replaced in the source while the mirror was down, the mirror
    copies no batch of the new log. After a start, the mirror first checks whether its own log
    agrees with the source's log."""
    before = clusters.here.log_bytes("dc1.logs")
    clusters.here.program.kill()
    clusters.source.program.kill()
    refill(clusters.source, 25)
    clusters.source.start()
    clusters.here.start()
    assert "diverged" in stopped(clusters, "dc1.logs-0")
    assert_untouched(clusters, before, "diverged")


def test_a_source_that_is_shorter_than_we_are_lost_something(clusters: Pair) -> None:
    """If the source's log of a partition ends at a lower offset than the mirror's log, the mirror
    stops copying the partition, and keeps the records that it has."""
    before = clusters.here.log_bytes("dc1.logs")
    clusters.source.program.kill()
    refill(clusters.source, 4)
    clusters.source.start()
    assert "ends at offset 12, below the mirror's end 30" in stopped(clusters, "dc1.logs-0")
    assert_untouched(clusters, before, "below the mirror's end")


def test_another_cluster_in_the_sources_place(
    clusters: Pair, tmp_path: Path, zookeeper: str
) -> None:
    """If a new cluster with topics of the same names takes the source's place, the mirror copies
    none of the new cluster's records."""
    before = clusters.here.log_bytes("dc1.logs")
    clusters.source.program.kill()
    other = Cluster(tmp_path / "other", zookeeper, "dc1x")
    other.settings["listeners"] = clusters.source.settings["listeners"]
    other.settings["cluster.name"] = "dc1"
    other.address = clusters.source.address
    try:
        other.start()
        other.create("logs")
        other.produce("logs", 20)
        assert "dc1 is another cluster now" in stopped(clusters, "dc1.logs")
        assert_untouched(clusters, before, "another cluster")
    finally:
        other.program.kill()


def test_the_right_source_is_followed_again_when_it_is_back(
    clusters: Pair, restored: Callable[[], None]
) -> None:
    """After an operator has restored the right log in the source and restarted the mirror, the
    mirror continues."""
    right = clusters.source.log_bytes("logs")
    clusters.source.program.kill()
    refill(clusters.source, 25)
    clusters.source.start()
    assert "diverged" in stopped(clusters, "dc1.logs-0")
    clusters.source.program.kill()
    refill(clusters.source, 0)
    (clusters.source.logs / "logs-0" / f"{0:020d}.log").write_bytes(right)
    clusters.source.start()
    clusters.here.crash()
    restored()
    clusters.source.produce("logs", 3)
    clusters.mirrored("logs")
    clusters.same("logs")


@pytest.fixture
def restored(clusters: Pair) -> Callable[[], None]:
    def check() -> None:
        eventually(lambda: clusters.here.health()["ok"], what="nothing is stopped any more")

    return check
