"""The names of files and directories in a log directory. No other module contains these names."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from skidway.kafka.topic_names import illegal_topic
from skidway.kafka.types import TopicPartition

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
PRODUCERS = ".producers"
CUT = ".cut"
DELETED = ".deleted"
SEGMENT_SUFFIXES = (LOG, OFFSET_INDEX, TIME_INDEX, PRODUCERS)

PARTITION_METADATA = "partition.metadata"
LEADER_EPOCHS = "leader-epoch-checkpoint"
META_PROPERTIES = "meta.properties"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

DELETED_DIRECTORY = "-delete"
STRAY_DIRECTORY = "-stray"
MOVED_DIRECTORY = ".moved"

FILE_NAME_MAX = 255

_DIGITS = 20
_PARTITION_DIRECTORY = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")
_LEAVING = re.compile(r".+\.[0-9a-f]{32}(-delete|-stray)")


def segment_file(base_offset: int, suffix: str) -> str:
    """Returns the name of a segment's file: the base offset with leading zeros, then the suffix. So
    the names sort in the order of the offsets.
    """
    return f"{base_offset:0{_DIGITS}d}{suffix}"


def base_offset_of(name: str, suffix: str) -> int | None:
    """Returns the base offset in a file name of the form that `segment_file` makes with `suffix`;
    None for any other name."""
    stem = name[: -len(suffix)]
    if not name.endswith(suffix) or len(stem) != _DIGITS or not stem.isdecimal():
        return None
    return int(stem)


def cut_file(base_offset: int, position: int) -> str:
    """Returns the name of the file to which recovery copies the bytes of a segment from `position`
    on, before it cuts them off.
    """
    return f"{base_offset:0{_DIGITS}d}.{position}{CUT}"


def partition_directory(partition: TopicPartition) -> str:
    """Returns the name of a partition's directory."""
    return f"{partition.topic}-{partition.partition}"


def partition_of(directory: str) -> TopicPartition | None:
    """Returns the partition whose directory has this name; None for any other name."""
    match = _PARTITION_DIRECTORY.fullmatch(directory)
    if match is None or illegal_topic(match[1]) is not None:
        return None
    return TopicPartition(match[1], int(match[2]))


def leaving_directory(partition: TopicPartition, suffix: str) -> str:
    """Returns a new name, which ends with `suffix`, for the directory of a partition that is no
    longer served."""
    tail = f".{secrets.token_hex(16)}{suffix}"
    return partition_directory(partition)[: FILE_NAME_MAX - len(tail)] + tail


def is_deleted_directory(directory: str) -> bool:
    """Returns whether a directory of this name belongs to a deleted partition and is to be
    removed.
    """
    match = _LEAVING.fullmatch(directory)
    return match is not None and match[1] == DELETED_DIRECTORY


def is_stray_directory(directory: str) -> bool:
    """Returns whether a directory of this name was set aside because no known topic owns it."""
    match = _LEAVING.fullmatch(directory)
    return match is not None and match[1] == STRAY_DIRECTORY


def moved_directory(partition: TopicPartition) -> str:
    """Returns the name of a partition's directory between its hand-over by one broker and its
    take-over by another broker.
    """
    return partition_directory(partition) + MOVED_DIRECTORY


def moved_partition(directory: str) -> TopicPartition | None:
    """Returns the partition whose directory has this name after its hand-over; None for any other
    name.
    """
    stem = directory.removesuffix(MOVED_DIRECTORY)
    return None if stem == directory else partition_of(stem)


def segment_bases(directory: Path) -> list[int]:
    """Returns the base offsets of the segments in a partition's directory, in ascending order."""
    found = (base_offset_of(entry.name, LOG) for entry in directory.iterdir())
    return sorted(base for base in found if base is not None)
