"""Notes: messages of `_skidway_audit` that change no verdict.

A note says what helps people, such as which bytes are not safe yet. It is JSON, and not Avro in
single-object encoding. An older collector skips it as a record that is no message. If it had a new
Avro schema instead, the older collector could not rule out that it reports a loss, and would call
every bucket unknown. For the same reason, a reader takes a note without the fields that it wants
for a note that does not tell them.

    {"note": KIND, "producer": NAME, "host": HOST, "cluster": NAME, "epoch": N, "number": N,
     "time": MS, "body": {...}}

Of the notes of one kind of a producer, only the newest counts: the one with the greatest (epoch,
number, time). `number` is the number of the producer's last numbered message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from skidway.errors import SkidwayError

BEGINNING: Final = b'{"note":'
NOTE_BYTES_MAX: Final = 128 * 1024

_TEXTS, _NUMBERS = ("note", "producer", "host", "cluster"), ("epoch", "number", "time")
_LONG_END = 1 << 63
_NAME_MAX = 255
"""The greatest length of the texts that say what a note is about, and who sent it."""


class NoteInvalid(SkidwayError):
    """Bytes that begin like a note and are none."""


@dataclass(frozen=True, slots=True)
class Note:
    """A note. kind: what the body is about."""

    kind: str
    producer: str
    host: str
    cluster: str
    epoch: int
    number: int
    time_ms: int
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rank(self) -> tuple[int, int, int]:
        """Of two notes, the one with the greater rank is newer."""
        return self.epoch, self.number, self.time_ms


def is_note(value: bytes) -> bool:
    """Whether a record's value begins like a note."""
    return value.startswith(BEGINNING)


def encode(note: Note) -> bytes:
    """Encodes a note as a record's value."""
    record = {
        "note": note.kind,
        "producer": note.producer,
        "host": note.host,
        "cluster": note.cluster,
        "epoch": note.epoch,
        "number": note.number,
        "time": note.time_ms,
        "body": note.body,
    }
    return json.dumps(record, separators=(",", ":")).encode()


def decode(value: bytes) -> Note:
    """Decodes a record's value. Raises NoteInvalid."""
    if len(value) > NOTE_BYTES_MAX:
        raise NoteInvalid(f"A note has {len(value):,} bytes, and may have {NOTE_BYTES_MAX:,}.")
    try:
        record = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise NoteInvalid(f"A note is no JSON: {error}.") from error
    if not _is_unicode(record):
        raise NoteInvalid("A note has half of a surrogate pair, or too many levels.")
    kind, producer, host, cluster = texts = [record.get(x) for x in _TEXTS]
    epoch, number, time_ms = numbers = [record.get(x) for x in _NUMBERS]
    if not all(isinstance(x, str) and len(x) <= _NAME_MAX for x in texts):
        raise NoteInvalid("A note does not say what it is about, or who sent it.")
    if not all(is_count(x) for x in numbers) or not isinstance(record.get("body"), dict):
        raise NoteInvalid("A note has no numbers, or no body.")
    return Note(kind, producer, host, cluster, epoch, number, time_ms, record["body"])


def _is_unicode(record: dict[str, Any]) -> bool:
    """Whether SQLite, pages and metrics can write each text of the record. JSON may have half of a
    surrogate pair, which UTF-8 cannot."""
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def is_count(value: object) -> bool:
    """Whether a value is a whole number that SQLite can store, and not negative."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LONG_END
