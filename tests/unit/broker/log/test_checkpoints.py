from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from skidway.broker.log import checkpoints
from skidway.broker.log.checkpoints import MetaProperties
from skidway.errors import StateRefused
from skidway.kafka.types import TopicPartition


def test_checkpoints_are_in_kafkas_format(tmp_path: Path) -> None:
    """The broker's checkpoint files, which contain offsets of partitions, have the format of Apache
    Kafka, so that Kafka can read them. They contain the version, the number of entries, and then
    topic, partition and offset of each entry."""
    path = tmp_path / "recovery-point-offset-checkpoint"
    offsets = {TopicPartition("b", 10): 7, TopicPartition("a.b", 2): 1 << 40}
    checkpoints.write_offsets(path, offsets)
    assert path.read_text() == f"0\n2\na.b 2 {1 << 40}\nb 10 7\n"
    assert checkpoints.read_offsets(path) == offsets


@pytest.mark.parametrize(
    "text",
    ["", "0\n", "1\n0\n", "0\n2\na 0 1\n", "0\n1\na 0\n", "0\n1\na 0 x\n", "\xff", "nonsense"],
)
def test_a_damaged_checkpoint_is_empty(tmp_path: Path, text: str) -> None:
    """A damaged or missing checkpoint file of the broker counts as empty. Nothing is lost without
    its offsets: without recovery points, the broker reads more of the log, and without log start
    offsets, consumers can again read deleted records whose segments still exist."""
    path = tmp_path / "checkpoint"
    path.write_bytes(text.encode("latin-1"))
    assert checkpoints.read_offsets(path) == {}
    assert checkpoints.read_offsets(tmp_path / "missing") == {}


def test_a_directory_says_whose_it_is(tmp_path: Path) -> None:
    """The broker reads a file meta.properties that the broker itself or Apache Kafka has written.
    It refuses a damaged file."""
    assert checkpoints.read_meta(tmp_path) is None
    meta = MetaProperties(3, "cluster", "directory")
    checkpoints.write_meta(tmp_path, meta)
    assert checkpoints.read_meta(tmp_path) == meta
    path = tmp_path / "meta.properties"
    path.write_text("#\n#Tue Jan 01 00:00:00 UTC 2030\ncluster.id=abc\nversion=0\nbroker.id=7\n")
    found = checkpoints.read_meta(tmp_path)
    assert found is not None
    assert (found.broker_id, found.cluster_id) == (7, "abc")
    path.write_text("broker.id=x\ncluster.id=abc\n")
    with pytest.raises(StateRefused, match=r"meta\.properties"):
        checkpoints.read_meta(tmp_path)


def test_topic_ids_are_spelled_as_kafka_does(tmp_path: Path) -> None:
    """As in Kafka, a topic id is written as 22 characters of URL-safe base64, for example in the
    file partition.metadata."""
    topic_id = uuid.UUID("12345678-9abc-def0-1234-56789abcdef0")
    assert checkpoints.encode_id(topic_id) == "EjRWeJq83vASNFZ4mrze8A"
    checkpoints.write_partition_metadata(tmp_path, topic_id)
    assert (tmp_path / "partition.metadata").read_text() == (
        "version: 0\ntopic_id: EjRWeJq83vASNFZ4mrze8A\n"
    )
    assert checkpoints.read_partition_metadata(tmp_path) == topic_id
    (tmp_path / "partition.metadata").write_text("version: 0\n")
    with pytest.raises(StateRefused):
        checkpoints.read_partition_metadata(tmp_path)


@pytest.mark.parametrize("at", range(22))
def test_a_damaged_byte_is_refused_or_another_name(tmp_path: Path, at: int) -> None:
    """A metadata file has no checksum. So if a byte of its values is damaged, reading the file
    either raises StateRefused, or returns wrong values. It raises no other exception, and never
    treats the file as missing."""
    topic_id = uuid.UUID("12345678-9abc-def0-1234-56789abcdef0")
    checkpoints.write_partition_metadata(tmp_path, topic_id)
    checkpoints.write_meta(tmp_path, MetaProperties(3, "cluster", "directory"))
    for name, read in (
        ("partition.metadata", checkpoints.read_partition_metadata),
        ("meta.properties", checkpoints.read_meta),
    ):
        path = tmp_path / name
        good, undamaged = path.read_bytes(), read(tmp_path)
        for mask in (0x80, 0xFF, 0x10):
            broken = bytearray(good)
            broken[-1 - at] ^= mask
            path.write_bytes(broken)
            try:
                found = read(tmp_path)
            except StateRefused:
                continue
            assert found not in (None, undamaged)
