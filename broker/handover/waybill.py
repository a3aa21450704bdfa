"""The waybill: a list of the files of a partition that was handed over. The hand-over on the old
broker's host writes it, and the take-over on the new broker's host compares the files with it.

`waybill.json` is the last file that a hand-over writes, and lists every other file. The list
includes the files' modification times, because retention uses these times, and some ways of copying
a file change its modification time.
"""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import google_crc32c

from skidway.broker.log.checkpoints import decode_id, encode_id
from skidway.errors import StateRefused
from skidway.files import fsync_directory, write_atomically
from skidway.kafka.types import TopicPartition
from skidway.regular_file import open_regular, read_regular

FILE = "waybill.json"
VERSION = 1
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Content:
    """One file: its length in bytes, its modification time in ns, and the CRC-32C of its whole
    content."""

    name: str
    size: int
    modified_ns: int
    crc: int


@dataclass(frozen=True, slots=True)
class Waybill:
    """What the waybill says about the partition. leader_epoch: the last leader epoch in which the
    partition was served.
    """

    partition: TopicPartition
    topic_id: uuid.UUID
    cluster_id: str
    broker_id: int
    leader_epoch: int
    log_start_offset: int
    log_end_offset: int
    files: tuple[Content, ...]

    @property
    def size_bytes(self) -> int:
        """The number of bytes of all files together."""
        return sum(each.size for each in self.files)


def contents(directory: Path) -> tuple[Content, ...]:
    """Returns the length, time and CRC of every file in a partition's directory, except the waybill
    and `.tmp` files. Reads each file from beginning to end. Raises OSError."""
    found = sorted(each for each in directory.iterdir() if each.name != FILE)
    return tuple(_content(each) for each in found if not each.name.endswith(".tmp"))


def write(directory: Path, waybill: Waybill) -> None:
    """Writes the waybill into a directory, durably. Raises OSError."""
    document: dict[str, Any] = {
        "version": VERSION,
        "topic": waybill.partition.topic,
        "partition": waybill.partition.partition,
        "topic_id": encode_id(waybill.topic_id),
        "cluster_id": waybill.cluster_id,
        "broker_id": waybill.broker_id,
        "leader_epoch": waybill.leader_epoch,
        "log_start_offset": waybill.log_start_offset,
        "log_end_offset": waybill.log_end_offset,
        "files": [asdict(each) for each in waybill.files],
    }
    write_atomically(directory / FILE, (json.dumps(document, indent=1) + "\n").encode())


def read(directory: Path) -> Waybill | None:
    """Returns the waybill in a directory; None if the directory has no waybill. Raises StateRefused
    and OSError.
    """
    path = directory / FILE
    try:
        content = json.loads(read_regular(path))
        if content["version"] != VERSION:
            raise StateRefused(f"{path} was written by another program version")
        return Waybill(
            TopicPartition(str(content["topic"]), int(content["partition"])),
            decode_id(content["topic_id"]),
            str(content["cluster_id"]),
            int(content["broker_id"]),
            int(content["leader_epoch"]),
            int(content["log_start_offset"]),
            int(content["log_end_offset"]),
            tuple(Content(**each) for each in content["files"]),
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise StateRefused(f"{path} is damaged: {error!r}; copy the directory again") from error


def receive(directory: Path, waybill: Waybill) -> None:
    """Compares every file in the directory with the waybill, gives the file the modification time
    that the waybill names, and makes the file durable.

    Raises StateRefused for the first file that differs from the waybill. Also raises OSError.
    """
    expected = {each.name: each for each in waybill.files}
    found = {each.name: each for each in contents(directory)}
    for name in sorted(expected.keys() | found.keys()):
        if name not in found:
            raise StateRefused(f"{directory / name} is missing; copy the directory again")
        if name not in expected:
            raise StateRefused(f"{directory / name} does not belong to it; remove that file")
        here, there = found[name], expected[name]
        if (here.size, here.crc) != (there.size, there.crc):
            raise StateRefused(
                f"{directory / name} is not the file that was handed over: {here.size} bytes with "
                f"CRC {here.crc:08x}, not {there.size} with {there.crc:08x}; copy it again"
            )
    for name, there in expected.items():
        path = directory / name
        os.utime(path, ns=(there.modified_ns, there.modified_ns))
        _sync(path)
    fsync_directory(directory)


def _content(path: Path) -> Content:
    crc = size = 0
    with open_regular(path) as file:
        while chunk := file.read(_CHUNK_BYTES):
            crc = google_crc32c.extend(crc, chunk)
            size += len(chunk)
        return Content(path.name, size, os.fstat(file.fileno()).st_mtime_ns, crc)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
