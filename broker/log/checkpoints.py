"""Reads and writes the small files of a log directory: checkpoints (files with an offset for each
partition), meta.properties, partition.metadata.

The formats are Kafka's. A checkpoint file looks like this::

    0                           version
    2                           entries
    hdfs-logs 0 1200            topic, partition, offset
    hdfs-logs 1 1187

All these files are written atomically. A damaged checkpoint is treated as empty. Without recovery
points, the broker reads the whole logs again at its start. Without log start offsets, consumers can
again read deleted records whose segments still exist. But meta.properties says to which broker the
data belongs, and partition.metadata says to which topic. If one of these two files is damaged, the
broker refuses to use the data.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skidway import log
from skidway.broker.log import names
from skidway.errors import StateRefused
from skidway.files import write_atomically
from skidway.kafka.types import TopicPartition

_VERSION = "0"
_log = log.get(__name__)


def write_offsets(path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Writes a checkpoint file. Raises OSError."""
    lines = [_VERSION, str(len(offsets))]
    lines += [f"{tp.topic} {tp.partition} {offset}" for tp, offset in sorted(offsets.items())]
    write_atomically(path, ("\n".join(lines) + "\n").encode())


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """Reads a checkpoint file. If it is missing or damaged, returns no offsets."""
    try:
        lines = path.read_text("ascii").splitlines()
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        lines = []
    try:
        return _entries(lines)
    except (IndexError, ValueError) as error:
        _log.warning("checkpoint_ignored", file=str(path), reason=str(error))
        return {}


def _entries(lines: list[str]) -> dict[TopicPartition, int]:
    version, count, entries = lines[0], int(lines[1]), lines[2:]
    if version != _VERSION or len(entries) != count:
        raise ValueError(f"version {version}, {count} entries, {len(entries)} lines")
    return dict(_entry(line) for line in entries)


def _entry(line: str) -> tuple[TopicPartition, int]:
    topic, partition, offset = line.split(" ")
    return TopicPartition(topic, int(partition)), int(offset)


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The broker and the cluster to which a log directory belongs, and the directory's own id."""

    broker_id: int
    cluster_id: str
    directory_id: str


def write_meta(directory: Path, meta: MetaProperties) -> None:
    """Writes meta.properties, which marks a log directory as this broker's. Raises OSError."""
    text = (
        f"version={_VERSION}\nbroker.id={meta.broker_id}\ncluster.id={meta.cluster_id}\n"
        f"directory.id={meta.directory_id}\n"
    )
    write_atomically(directory / names.META_PROPERTIES, text.encode())


def read_meta(directory: Path) -> MetaProperties | None:
    """Returns the content of a log directory's meta.properties; None if the directory has no such
    file yet. Raises StateRefused.
    """
    path = directory / names.META_PROPERTIES
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return None
    pairs = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    try:
        # A directory of Apache Kafka before 3.7 has no directory.id.
        directory_id = pairs.get("directory.id") or encode_id(uuid.uuid4())
        return MetaProperties(int(pairs["broker.id"]), pairs["cluster.id"], directory_id)
    except (KeyError, ValueError) as error:
        raise StateRefused(f"{path} has no valid broker.id and cluster.id") from error


def write_partition_metadata(directory: Path, topic_id: uuid.UUID) -> None:
    """Writes partition.metadata: the topic to which a partition's directory belongs. Raises
    OSError."""
    text = f"version: {_VERSION}\ntopic_id: {encode_id(topic_id)}\n"
    write_atomically(directory / names.PARTITION_METADATA, text.encode())


def read_partition_metadata(directory: Path) -> uuid.UUID | None:
    """Returns the topic id in a directory's partition.metadata; None if the directory has no such
    file. Raises StateRefused.
    """
    path = directory / names.PARTITION_METADATA
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return None
    pairs = dict(line.split(": ", 1) for line in lines if ": " in line)
    try:
        return decode_id(pairs["topic_id"])
    except (KeyError, ValueError) as error:
        raise StateRefused(f"{path} has no valid topic_id") from error


def encode_id(value: uuid.UUID) -> str:
    """Returns the UUID as text in the form in which Kafka writes it: 22 characters of URL-safe
    base64.
    """
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def decode_id(text: str) -> uuid.UUID:
    """Returns the UUID that `text` contains in the form in which Kafka writes it. Raises
    ValueError.
    """
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def clean_shutdown_content(broker_epoch: int) -> bytes:
    """Returns the content of the file `.kafka_cleanshutdown`, which marks a clean stop."""
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}).encode()
