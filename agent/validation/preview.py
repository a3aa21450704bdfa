"""Shows which rows and rejects a sample of lines becomes. A running agent makes rows and rejects
with the same code.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from skidway.agent.batches.fieldless import add, sentences
from skidway.agent.batches.press import Pressed
from skidway.agent.batches.rejected import RejectedLine
from skidway.agent.batches.source_recipes import derived_schema
from skidway.agent.cluster.connection import compiled
from skidway.agent.cluster.destinations import label_source
from skidway.agent.files.host import shown
from skidway.agent.files.operating_system import OperatingSystem
from skidway.agent.files.pod_labels import present_labels
from skidway.agent.parsing.added_fields import path_groups
from skidway.agent.parsing.byte_order import UTF_16, UTF_16BE, order_of
from skidway.agent.parsing.framing import READ_BYTES
from skidway.agent.recipe import Schema
from skidway.agent.settings import BATCH_BYTES_MIN, SourceSettings
from skidway.agent.shaping.grammar import parse
from skidway.agent.shaping.shaped_schemas import private_rules
from skidway.agent.validation.excerpts import counted
from skidway.agent.validation.report import of_pieces
from skidway.agent.values.intents import Intent, Reading
from skidway.agent.values.labels import Labels
from skidway.kafka.batch import seal
from skidway.kafka.columns import decode
from skidway.kafka.source import Source
from skidway.schemas.codec import Codec
from skidway.schemas.codec.objects import objects

BUCKET_MS: Final = 60_000
SHOWN_CHARACTERS_MAX: Final = 100
"""How many characters of a value `agent guess` and `agent test` show."""

PREFIX_BYTES: Final = 5
"""The length of Confluent's prefix before each value: a zero byte and the schema id."""


@dataclass(frozen=True, slots=True)
class PreviewedRow:
    """The row of one record. first, length: where the record's bytes begin in the sample, and how
    many they are. time: the record's event time. row: the record's fields. A value is None where a
    running agent would write the moment of reading.
    """

    first: int
    length: int
    time: datetime | None
    row: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PreviewedFiltered:
    """A record that a rule of `shape` leaves out. first, length: where its bytes begin in the
    sample, and how many they are."""

    first: int
    length: int
    rule: str


@dataclass(frozen=True, slots=True)
class Preview:
    """What a running agent would make of a sample of lines. Every byte of the sample is in a row,
    in a reject, or in a record that a rule leaves out. notes: sentences for the reader of the rows.
    """

    rows: list[PreviewedRow]
    rejects: list[RejectedLine]
    notes: tuple[str, ...] = ()
    filtered: tuple[PreviewedFiltered, ...] = ()

    def document(self) -> list[dict[str, Any]]:
        """Returns one entry for each row, each reject and each record that a rule leaves out, in
        the order of the sample, as a JSON document.
        """
        rows = [
            {"first": x.first, "length": x.length, "time": x.time and x.time.isoformat(),
             "row": x.row}
            for x in self.rows
        ]  # fmt: skip
        rejects = [
            {"first": x.first, "length": x.length, "rejected": x.reason, "detail": x.detail,
             "line": x.line.decode("utf-8", "replace")}
            for x in self.rejects
        ]  # fmt: skip
        filtered = [
            {"first": x.first, "length": x.length, "filtered": x.rule} for x in self.filtered
        ]
        return sorted([*rows, *rejects, *filtered], key=lambda each: each["first"])

    @property
    def by_rule(self) -> dict[str, int]:
        """How many records each rule leaves out."""
        return dict(Counter(each.rule for each in self.filtered))

    @property
    def share(self) -> float:
        """Of the bytes that become rows or rejects, the share that becomes rows, from 0 to 1."""
        good = sum(each.length for each in self.rows)
        all_ = good + sum(each.length for each in self.rejects)
        return good / all_ if all_ else 0.0


def preview(
    source: SourceSettings,
    data: bytes,
    path: str,
    *,
    schema: str | None = None,
    now_ms: int = 0,
    batch_bytes: int = max(2 * READ_BYTES, BATCH_BYTES_MIN),
) -> Preview:
    """Makes rows of a sample, which begins at the beginning of a record.

    schema: the schema of the rows; if it is None, the schema is derived from the source. now_ms:
    the moment at which the sample counts as read; 0 means the present moment. batch_bytes: the size
    of the largest batch. Raises ConfigurationRefused if the source cannot work with the schema.
    """
    text = derived_schema(source) if schema is None else schema
    if source.encoding == UTF_16:
        source = replace(source, encoding="utf-16be" if order_of(data) == UTF_16BE else "utf-16le")
    press = compiled(source, Schema(0, text), batch_bytes)
    codec = Codec(text)
    intent = Intent(0, 0, 0, len(data), 0, now_ms or time.time_ns() // 1_000_000, b"")
    topics = press.recipe.topics
    sources = Source("", "", topics[0], ""), Source("", "", topics[1], "")
    labels, notes_of_labels = _labels(source, path)
    reading = Reading(intent, data, "", shown(path), labels)
    pressed = press.press(0, [reading], sources, BUCKET_MS)
    found: list[PreviewedRow] = []
    for batch in pressed.batches:
        if not batch.is_rejected:
            found += _rows(codec, memoryview(seal(batch.encoded)), intent.read_ms)
    notes = [
        f"{counted(count, 'record', 'has')} the time of reading, because the written time {why}"
        for count, why in (
            (pressed.unbelieved_times, "is more than an hour ahead, or before 1970"),
            (pressed.unread_times, "is missing or cannot be read"),
        )
        if count
    ]
    if pressed.coloured:
        count = counted(pressed.coloured, "record")
        notes.append(f"Codes for terminals (colours) were taken out of {count}")
    if pressed.pieces:
        notes.append(of_pieces(pressed.pieces))
    lines = len(found) + len(pressed.rejected)
    lines += 0 if pressed.filtered is None else len(pressed.filtered)
    fieldless: dict[str, int] = {}
    add(fieldless, pressed.fieldless)
    notes += sentences(fieldless, lines)
    notes += [*notes_of_labels, *_notes_of_path(source)]
    rows = sorted(found, key=lambda each: each.first)
    return Preview(rows, pressed.rejected, tuple(notes), _filtered(pressed))


def _filtered(pressed: Pressed) -> tuple[PreviewedFiltered, ...]:
    found = pressed.filtered
    if found is None:
        return ()
    columns = zip(found.first.tolist(), found.length.tolist(), found.rule.tolist(), strict=True)
    return tuple(PreviewedFiltered(first, size, found.rules[rule]) for first, size, rule in columns)


def _labels(source: SourceSettings, path: str) -> tuple[Labels, list[str]]:
    where = label_source(source)
    if where is None:
        return (), []
    labels, why = present_labels(OperatingSystem(), where, path)
    return labels, [] if why is None else [f"The records have no labels: {why}"]


def _notes_of_path(source: SourceSettings) -> list[str]:
    """Returns a warning if rules mask, hash or remove groups of `path.pattern`; otherwise an empty
    list. The warning says that rejected records and the audit contain the whole path. Groups of
    Kubernetes' own paths are not secret, so they do not count.
    """
    if source.path_pattern is None:
        return []
    groups = path_groups((source.path_pattern,))
    private = sorted(private_rules(parse(source.shape or "")).keys() & {*groups})
    if not private:
        return []
    return [
        f"Rules mask, hash or remove {', '.join(private)}, but rejected records and the audit have "
        "the whole path of the file."
    ]


def _rows(codec: Codec, batch: memoryview, read_ms: int) -> list[PreviewedRow]:
    records = decode(batch)
    origins = records.origins
    assert origins is not None
    values = [value[PREFIX_BYTES:] for value in records.values.to_pylist()]
    rows = objects(codec.decode(pa.array(values, pa.binary())).batch)
    places = zip(
        origins.first.tolist(), origins.length.tolist(), records.timestamps.tolist(), rows,
        strict=True,
    )  # fmt: skip
    now = datetime.fromtimestamp(read_ms / 1000, UTC)

    def shown(value: Any) -> Any:
        """Returns the value; None if the value is the moment of reading, which would be different
        in each preview of the same sample.
        """
        return None if isinstance(value, datetime) and value == now else value

    return [
        PreviewedRow(
            first,
            length,
            shown(datetime.fromtimestamp(ms / 1000, UTC)),
            {name: shown(value) for name, value in row.items()},
        )
        for first, length, ms, row in places
    ]
