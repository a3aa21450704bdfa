"""A source that is not the mirrored one is stopped by name; none of its records is copied."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skidway.kafka.batch import Codec, EncodedBatch, seal, stamp
from support.mirroring import Cluster, Pair, pair
from support.processes import eventually, run_skidway

pytestmark = pytest.mark.conformance


@pytest.fixture
def clusters(tmp_path: Path, zookeeper: str) -> Iterator[Pair]:
    """The source has a topic of ten batches, which is mirrored."""
    for made in pair(tmp_path, zookeeper):
        made.source.create("logs")
        made.source.produce("logs", 10)
        made.mirrored("logs")
        yield made


def refill(cluster: Cluster, batches: int, *, topic: str = "logs") -> None:
    """Puts other records at the same offsets into the files of a broker that is not running."""
    directory = cluster.logs / f"{topic}-0"
    for path in directory.iterdir():
        if path.suffix in (".log", ".index", ".timeindex", ".snapshot"):
            path.unlink()
    data = bytearray()
    for number in range(batches):
        encoded = EncodedBatch(b"other %d" % number, Codec.NONE, 3, 0, 0, 10)
        raw = bytearray(seal(encoded))
        stamp(raw, 0, 3 * number, 0)
        data += raw
    (directory / f"{0:020d}.log").write_bytes(data)
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        (cluster.logs / name).unlink(missing_ok=True)


def stopped(clusters: Pair, what: str) -> str:
    """Why a topic or partition has stopped, once it has."""
    return str(eventually(lambda: clusters.here.mirror()["stopped"].get(what), what="it stops"))


def assert_untouched(clusters: Pair, before: bytes, words: str) -> None:
    """Nothing was copied, and health and `mirror status` say why."""
    assert clusters.here.log_bytes("dc1.logs") == before
    assert clusters.here.ends("dc1.logs") == {0: 30}, "what is there is served"
    assert clusters.here.health()["ok"] is False
    status = run_skidway(
        "mirror", "status", "--url", f"http://127.0.0.1:{clusters.here.metrics_port}"
    )
    assert status.returncode == 1
    assert re.search(f"stopped: dc1: dc1.logs.*{words}", status.stdout), status.stdout


def test_a_topic_made_again_is_another_topic(clusters: Pair) -> None:
    """A topic deleted and made again under its name, even with more records, has another id."""
    before = clusters.here.log_bytes("dc1.logs")
    clusters.source.delete("logs")
    clusters.source.create("logs")
    clusters.source.produce("logs", 20)
    assert "was made again" in stopped(clusters, "dc1.logs")
    assert_untouched(clusters, before, "made again")
    clusters.here.delete("dc1.logs")
    clusters.mirrored("logs")
    clusters.same("logs")
    assert clusters.here.health()["ok"] is True


@pytest.mark.parametrize("batches", [10, 25])
def test_a_log_that_was_replaced_has_diverged(clusters: Pair, batches: int) -> None:
    """The source has the same topic id and offsets but other records, as many as the mirror or
    more."""
    before = clusters.here.log_bytes("dc1.logs")
    clusters.source.program.kill()
    refill(clusters.source, batches)
    clusters.source.start()
    assert "diverged" in stopped(clusters, "dc1.logs-0")
    clusters.source.produce("logs", 3)
    assert_untouched(clusters, before, "diverged")


def test_a_log_that_was_replaced_while_the_mirror_was_away(clusters: Pair) -> None:
    """The check before the first batch after a start notices the replaced log too."""
    before = clusters.here.log_bytes("dc1.logs")
    clusters.here.program.kill()
    clusters.source.program.kill()
    refill(clusters.source, 25)
    clusters.source.start()
    clusters.here.start()
    assert "diverged" in stopped(clusters, "dc1.logs-0")
    assert_untouched(clusters, before, "diverged")


def test_a_source_that_is_shorter_than_we_are_lost_something(clusters: Pair) -> None:
    """A source whose log ends below the mirror's end stops the partition: nothing is copied, and
    the mirror keeps its records."""
    before = clusters.here.log_bytes("dc1.logs")
    clusters.source.program.kill()
    refill(clusters.source, 4)
    clusters.source.start()
    assert "ends at offset 12, below our end 30" in stopped(clusters, "dc1.logs-0")
    assert_untouched(clusters, before, "below our end")


def test_another_cluster_in_the_sources_place(
    clusters: Pair, tmp_path: Path, zookeeper: str
) -> None:
    """A newly built cluster has topics of the same names: none of its records are mixed in."""
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
    """Once an operator has put the right log back and restarted the mirror, it goes on."""
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
