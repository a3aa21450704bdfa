"""Reads segment files batch by batch and record by record, so that people can see their content.

The command `dump-log` only reads the files and takes no lock, so it may run while the broker is
running. In this case the active segment may end with an incomplete batch. The command checks every
CRC.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from skidway.broker.log import names, scan
from skidway.broker.log.files import OpenFile
from skidway.broker.log.timestamps import RECORDS_BYTES_MAX
from skidway.errors import UsageError
from skidway.kafka.batch import HEADER_BYTES, BatchHeader, CorruptBatch
from skidway.kafka.codecs import codec_of
from skidway.kafka.errors import ProtocolError
from skidway.kafka.protocol.primitives import MessageReader


@dataclass(frozen=True, slots=True)
class DumpedBatch:
    """A batch: its file, its position in the file, its header, and whether its CRC is right."""

    path: Path
    position: int
    header: BatchHeader
    crc_ok: bool


@dataclass(frozen=True, slots=True)
class NoBatch:
    """Says that the bytes at a position of a file are no batch. The rest of the file is not
    read."""

    path: Path
    position: int
    size_bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class DumpedRecord:
    """A record. The timestamp is in ms."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def segment_files(path: Path) -> list[Path]:
    """Returns the segment files of a partition's directory, in the order of their offsets. If
    `path` is a file, returns only this file. Raises UsageError if there is no segment file.
    """
    if path.is_dir():
        found = [path / names.segment_file(base, names.LOG) for base in names.segment_bases(path)]
        if not found:
            partitions = sorted(
                each.name for each in path.iterdir() if names.partition_of(each.name) is not None
            )
            hint = f"; it has the partitions {', '.join(partitions[:20])}" if partitions else ""
            raise UsageError(f"{path} holds no segments (*.log){hint}")
        return found
    if not path.is_file():
        raise UsageError(f"there is no file or directory {path}")
    if names.OFFSET_INDEX in path.suffixes or names.TIME_INDEX in path.suffixes:
        raise UsageError(f"{path} is an index; name the .log file beside it")
    return [path]


def batches(path: Path) -> Iterator[DumpedBatch | NoBatch]:
    """Yields every batch of a file. If the rest of the file is no batch, the last item is a
    NoBatch. Raises OSError.
    """
    file = OpenFile(path, os.O_RDONLY)
    size, position = file.size, 0
    window = scan.Window(file.descriptor)
    while position < size:
        try:
            header = window.header(position)
        except scan.InvalidBatch as error:
            yield NoBatch(path, position, size - position, error.reason)
            return
        if header.size_bytes > size - position:
            reason = f"a batch of {header.size_bytes} bytes where {size - position} are left"
            yield NoBatch(path, position, size - position, reason)
            return
        yield DumpedBatch(path, position, header, window.crc(position, header) == header.crc)
        position += header.size_bytes


def records(batch: DumpedBatch) -> list[DumpedRecord]:
    """Returns the records of a batch, read from its file. Raises CorruptBatch if the records cannot
    be decoded, and OSError if the file cannot be read.
    """
    header = batch.header
    file = OpenFile(batch.path, os.O_RDONLY)
    size = header.size_bytes - HEADER_BYTES
    body = os.pread(file.descriptor, size, batch.position + HEADER_BYTES)
    try:
        data = codec_of(header).decompress(body, RECORDS_BYTES_MAX)
        reader = MessageReader(memoryview(data))
        return [_record(reader, header) for _ in range(header.count)]
    except ProtocolError as error:
        raise CorruptBatch(str(error)) from error


def _record(reader: MessageReader, header: BatchHeader) -> DumpedRecord:
    end = reader.varint() + reader.at
    reader.int8()
    timestamp = header.base_timestamp + reader.varlong()
    offset = header.base_offset + reader.varint()
    key, value = _sized(reader), _sized(reader)
    headers = tuple(_header(reader) for _ in range(max(reader.varint(), 0)))
    if reader.at != end:
        raise CorruptBatch(f"a record that does not end where it says, at byte {end}")
    if header.has_log_append_time:
        timestamp = header.max_timestamp
    return DumpedRecord(offset, timestamp, key, value, headers)


def _header(reader: MessageReader) -> tuple[str, bytes | None]:
    name = _sized(reader) or b""
    return name.decode("utf-8", "backslashreplace"), _sized(reader)


def _sized(reader: MessageReader) -> bytes | None:
    size = reader.varint()
    return None if size < 0 else bytes(reader.take(size))
