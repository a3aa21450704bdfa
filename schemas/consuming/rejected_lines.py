"""Reads each rejected line in `<topic>.rejected` once, and turns it into a line of JSON that people
can repair."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from skidway.cli.topics import existing
from skidway.errors import UsageError
from skidway.kafka.client import EARLIEST, LATEST, Client, TopicMetadata
from skidway.kafka.columns import DecodedRecords
from skidway.kafka.errors import ErrorCode, KafkaError
from skidway.kafka.types import TopicPartition
from skidway.schemas import wire
from skidway.schemas.codec import Codec
from skidway.schemas.codec.objects import objects
from skidway.schemas.consuming.consume import offsets_at
from skidway.schemas.consuming.values import plain
from skidway.schemas.single_object import schema_text
from skidway.schemas.topic_reading import read_ranges

SUFFIX: Final = ".rejected"
ORIGIN: Final = ("agent", "file", "first")
WITHHELD: Final = b"[withheld]"
"""The text that agents send instead of a rejected line that may contain secrets."""

ENDS_MAX: Final = 6
"""The field `length` of a record counts the line's byte order mark and terminator, which the record
does not contain. Together the two have at most this many bytes: four for the byte order mark of GB
18030, and two for CRLF. If the record's text is shorter than `length` by more bytes than this, the
record has only a part of its line."""

NUL_BYTES: Final = "nul-bytes"
"""The rejection reason in a record that has no line, but reports a run of NUL bytes in the log
file."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Selects the rejected lines to read. since, until: times of rejection in ms; until is
    exclusive. files: a pattern for the paths of log files, such as /var/log/nginx/*.
    """

    since: int | None = None
    until: int | None = None
    reasons: tuple[str, ...] = ()
    files: str | None = None

    def takes(self, document: Mapping[str, Any], timestamp: int) -> bool:
        """Returns whether the rejected line `document` is one of the lines to read. timestamp: the
        time of rejection, in ms."""
        return (
            (self.since is None or timestamp >= self.since)
            and (self.until is None or timestamp < self.until)
            and (not self.reasons or document["reason"] in self.reasons)
            and (self.files is None or fnmatchcase(document["path"], self.files))
        )


class FoundLine(NamedTuple):
    """A rejected line (`document`), and the partition, offset and timestamp of its record."""

    tp: TopicPartition
    offset: int
    timestamp: int
    document: dict[str, Any]


class RejectedLines:
    """Reads rejected lines. repeats: how many records `found` and `read` left out because an
    earlier record had the same line. unread: how many records this version of the program cannot
    read.
    """

    def __init__(self, client: Client, topic: str) -> None:
        self._client = client
        self._name = topic if topic.endswith(SUFFIX) else topic + SUFFIX
        self.repeats = self.unread = 0

    def read(self, wanted: Wanted) -> Iterator[dict[str, Any]]:
        """Yields each wanted line once. Raises Unreachable, KafkaError, UsageError."""
        for found in self.found(wanted):
            yield found.document

    def found(self, wanted: Wanted, most: int | None = None) -> Iterator[FoundLine]:
        """Yields each wanted line once, with the partition and offset of its record. most: how many
        records of each partition are read at most. Raises Unreachable, KafkaError, UsageError."""
        ranges = self._bounds(wanted)
        if most is not None:
            ranges = {tp: (first, min(end, first + most)) for tp, (first, end) in ranges.items()}
        yield from self._once(wanted, ranges)

    def newest(self, wanted: Wanted, most: int) -> list[FoundLine]:
        """Returns the wanted lines among the last `most` records of each partition: the newest
        `most` of these lines, ordered by the time of rejection. Raises Unreachable, KafkaError,
        UsageError."""
        bounds = self._bounds(wanted)
        ranges = {tp: (max(first, end - most), end) for tp, (first, end) in bounds.items()}
        return sorted(self._once(wanted, ranges), key=lambda found: found.timestamp)[-most:]

    def _bounds(self, wanted: Wanted) -> dict[TopicPartition, tuple[int, int]]:
        """Returns the first offset and the end offset of each partition. If `wanted` has a time, no
        record before the first offset was rejected since this time. Later records may have earlier
        times."""
        topic = topic_of_rejects(self._client, self._name)
        partitions = [TopicPartition(self._name, each.index) for each in topic.partitions]
        begin = EARLIEST if wanted.since is None else wanted.since
        first = offsets_at(self._client, partitions, begin)
        end = offsets_at(self._client, partitions, LATEST)
        return {tp: (first[tp], end[tp]) for tp in partitions}

    def _once(
        self, wanted: Wanted, ranges: Mapping[TopicPartition, tuple[int, int]]
    ) -> Iterator[FoundLine]:
        codec = Codec(schema_text("Rejected"))
        seen: set[tuple[int, int, int]] = set()
        for tp, batch in read_ranges(self._client, ranges):
            for found in self._lines(codec, tp, batch, ranges[tp]):
                document = found.document
                if not wanted.takes(document, found.timestamp):
                    continue
                key = (document["agent"], document["file"], document["first"])
                if key in seen:
                    self.repeats += 1
                else:
                    seen.add(key)
                    yield found

    def _lines(
        self, codec: Codec, tp: TopicPartition, batch: DecodedRecords, bounds: tuple[int, int]
    ) -> Iterator[FoundLine]:
        offsets = np.asarray(batch.offsets)
        wanted = np.flatnonzero((offsets >= bounds[0]) & (offsets < bounds[1]))
        ids, datums = wire.split(batch.values.take(pa.array(wanted)))
        framed = np.flatnonzero(ids >= 0)
        decoded = codec.decode(datums.take(pa.array(framed)))
        good = wanted[framed[decoded.good]].tolist()
        self.unread += len(wanted) - len(good)
        for row, document in zip(good, objects(decoded.batch), strict=True):
            yield FoundLine(tp, int(offsets[row]), int(batch.timestamps[row]), document)


def topic_of_rejects(client: Client, name: str) -> TopicMetadata:
    """Returns the topic with this name, which ends with SUFFIX. Raises UsageError if there is no
    such topic. The error does not propose to create the topic, because only agents create topics of
    rejected lines."""
    try:
        (topic,) = existing(client, [name])
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        raise UsageError(
            f"There is no topic {name} in this cluster. Name the topic as this cluster does: only a"
            " cluster with mirrored topics puts the name of their cluster in front (dc1.nginx)."
        ) from error
    return topic


def repairable(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a rejected line in the form in which people and programs repair it: as `plain`
    returns it, without members that are null. If the record does not have the whole line, the
    result has the member `is_cut`. If the line is not ASCII, or has NUL bytes, the result also has
    the line's bytes as `line_base64`, because the line may have another encoding than UTF-8. With
    these bytes, `skidway agent replay` sees whether somebody has edited `line`."""
    shown = {name: value for name, value in plain(dict(document)).items() if value is not None}
    line: bytes = document["line"]
    if not line.isascii() or b"\0" in line:
        shown["line_base64"] = base64.b64encode(line).decode()
    return shown | ({"is_cut": True} if is_cut(document) else {})


def is_cut(document: Mapping[str, Any]) -> bool:
    """Returns whether a rejected record has only the beginning of its line, or nothing of the line.
    A repaired line may be rejected again. The record's `length` is then the length of the JSON
    document in which `skidway agent replay` sent the line. This document is longer than the line,
    so `length` does not show whether the line was cut. A repaired line counts as cut only if it was
    withheld (the agent sent no text, because the line may contain secrets)."""
    if document["line"] == WITHHELD or document["reason"] == NUL_BYTES:
        return True
    if document.get("original_first") is not None:
        return False
    return len(document["line"]) + ENDS_MAX < int(document["length"])
