"""Finds an example of the lines that were rejected in a time span, and shows it as one bounded line
of text.

A record of `<topic>.rejected` has no more of its line than the agent's rules (`shape`) let it send:
rules that mask, hash or remove fields have been applied to its text, or the text was withheld. So
the example contains no text that the rules hide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from skidway.kafka.client import Client
from skidway.kafka.types import TopicPartition
from skidway.schemas.consuming.rejected_lines import (
    NUL_BYTES,
    WITHHELD,
    FoundLine,
    RejectedLines,
    Wanted,
    is_cut,
)

TEXT_BYTES_MAX: Final = 300
CUT: Final = "\N{HORIZONTAL ELLIPSIS}"
DETAIL_CHARACTERS_MAX: Final = 120
RECORDS_MAX: Final = 1_000
"""An example is chosen among at most this many records of each partition."""


@dataclass(frozen=True, slots=True)
class RejectedExample:
    """A rejected line, with the place of its record and with its place on its host. `text` is at
    most TEXT_BYTES_MAX bytes of the line, with escapes for everything that is not printable."""

    tp: TopicPartition
    offset: int
    time_ms: int
    reason: str
    detail: str
    host: str
    path: str
    first: int
    text: str

    @property
    def where(self) -> str:
        """The place of the record, the place of the line, and the reason, in words."""
        detail = f": {self.detail}" if self.detail else ""
        place = f"{self.host}:{self.path} byte {self.first:,}"
        return f"{self.tp} at offset {self.offset} ({place}, {self.reason}{detail})"


def rejected_example(
    client: Client,
    topic: str,
    wanted: Wanted,
    is_meant: Callable[[Mapping[str, Any]], bool] = lambda _: True,
) -> RejectedExample | None:
    """The first rejected line that is meant; otherwise the first that is wanted; None if there is
    none. Raises Unreachable, KafkaError, UsageError."""
    other: RejectedExample | None = None
    for found in RejectedLines(client, topic).found(wanted, RECORDS_MAX):
        made = _example(found)
        if is_meant(found.document):
            return made
        other = other or made
    return other


def shown_text(data: bytes, bytes_max: int = TEXT_BYTES_MAX) -> str:
    """The first bytes of a text as one line that a terminal can print: control characters, bytes
    that are not UTF-8, and characters that reorder text are escaped. An ellipsis marks a cut."""
    kept = data[:bytes_max]
    if len(kept) < len(data):
        kept = _whole_characters(kept)
    text = printable(kept.decode("utf-8", "backslashreplace"))
    return text + CUT if len(kept) < len(data) else text


def printable(text: str) -> str:
    """The text with an escape for each character that cannot be printed."""
    return "".join(x if x.isprintable() else x.encode("unicode_escape").decode() for x in text)


def _whole_characters(data: bytes) -> bytes:
    """The bytes without the beginning of a character of UTF-8 at their end."""
    for back in range(1, min(len(data), 4) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if length > back else data
        if byte < 0x80:
            return data
    return data


def _example(found: FoundLine) -> RejectedExample:
    document = found.document
    line: bytes = document["line"]
    if document["reason"] == NUL_BYTES:
        text = f"({document['length']:,} NUL bytes)"
    else:
        text = shown_text(line)
        if is_cut(document) and line != WITHHELD and len(line) <= TEXT_BYTES_MAX:
            text += CUT
    return RejectedExample(
        found.tp,
        found.offset,
        found.timestamp,
        printable(document["reason"]),
        printable(document["detail"][:DETAIL_CHARACTERS_MAX]),
        printable(document["host"]),
        printable(document["path"]),
        int(document["first"]),
        text,
    )
