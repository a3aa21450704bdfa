"""Notes: messages of `_skidway_audit` that change no verdict.

A note contains information that helps people, for example which bytes no broker has acknowledged
yet. Notes are JSON, and not Avro in single-object encoding. If notes had an Avro schema, a newer
version could not change them without harm: a collector cannot exclude that a message with an
unknown schema reports a loss, so it calls every bucket unknown. Fields of the body may be missing,
because a newer version of Skidway may have written the note. A reader treats a missing field as
unknown or, if it counts bytes, as 0.

    {"note": KIND, "producer": NAME, "host": HOST, "cluster": NAME, "epoch": N, "number": N,
     "time": MS, "body": {...}}

Of the notes about loads, the audit keeps several for each producer (see module load_note). Of all
other notes, the audit keeps only the newest note of each kind and producer, that is, the note with
the greatest (epoch, number, time). `number` is normally the number of the producer's last numbered
message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from skidway.audit.topic.field_bounds import TEXT_MAX
from skidway.errors import SkidwayError

BEGINNING: Final = b'{"note":'
NOTE_BYTES_MAX: Final = 128 * 1024

_TEXTS, _NUMBERS = ("note", "producer", "host", "cluster"), ("epoch", "number", "time")
_LONG_END = 1 << 63


class NoteInvalid(SkidwayError):
    """Raised for bytes that begin like a note (with BEGINNING), but are no valid note."""


@dataclass(frozen=True, slots=True)
class Note:
    """A note. kind: the name of the kind, which determines the form of the body."""

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
        """The key that orders the notes of one kind and producer: a note with a greater rank is
        newer."""
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
    """Returns the note in a record's value. Raises NoteInvalid."""
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
    if not all(isinstance(x, str) for x in texts):
        raise NoteInvalid("A note does not say what it is about, or who sent it.")
    if max(map(len, texts)) > TEXT_MAX:
        raise NoteInvalid(f"A note has a kind or a name of more than {TEXT_MAX:,} characters.")
    if not all(is_count(x) for x in numbers) or not isinstance(record.get("body"), dict):
        raise NoteInvalid("A note has no numbers, or no body.")
    return Note(kind, producer, host, cluster, epoch, number, time_ms, record["body"])


def _is_unicode(record: dict[str, Any]) -> bool:
    """Whether UTF-8 can encode all texts of the record. If not, SQLite, pages and metrics could not
    write the texts. JSON may contain half of a surrogate pair, which UTF-8 cannot encode. Also
    returns False if lists and objects are nested too deeply.
    """
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def is_count(value: object) -> bool:
    """Whether a value is an integer that is not negative and that SQLite can store."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LONG_END
