from __future__ import annotations

import pytest

from skidway.broker.log import names
from skidway.kafka.types import TopicPartition


@pytest.mark.parametrize(
    ("directory", "partition"),
    [
        ("logs-0", TopicPartition("logs", 0)),
        ("a-b-12", TopicPartition("a-b", 12)),
        ("logs", None),
        ("logs-", None),
        ("logs-01", None),
        ("-1", None),
        ("logs-0.0123456789abcdef0123456789abcdef-delete", None),
    ],
)
def test_directories_and_partitions(directory: str, partition: TopicPartition | None) -> None:
    """A directory counts as the directory of a partition only if its name is exactly as the broker
    writes it (`logs-1`, and not `logs-01`)."""
    found = names.partition_of(directory)
    assert found == partition
    if found is not None:
        assert names.partition_directory(found) == directory


def test_leaving_directories_are_told_apart_and_fit() -> None:
    """The broker renames the directories of deleted partitions and of stray partitions (partitions
    of no known topic). The new name shows whether the partition was deleted or is stray. Even with
    the longest topic name, the new name is not too long for the file system."""
    partition = TopicPartition("x" * 249, 99999)
    deleted = names.leaving_directory(partition, names.DELETED_DIRECTORY)
    stray = names.leaving_directory(partition, names.STRAY_DIRECTORY)
    assert len(deleted) <= 255
    assert names.is_deleted_directory(deleted)
    assert not names.is_deleted_directory(stray)
    assert names.is_stray_directory(stray)


def test_segment_names_sort_as_their_offsets() -> None:
    """The name of a segment file is its base offset in twenty digits, so that names sort by offset.
    Files with other names are ignored."""
    assert names.segment_file(42, ".log") == "00000000000000000042.log"
    assert names.base_offset_of("00000000000000000042.log", ".log") == 42
    for other in ("42.log", "00000000000000000042.index", "0000000000000000004x.log", "x.log"):
        assert names.base_offset_of(other, ".log") is None
