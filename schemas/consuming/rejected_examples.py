"""Finds an example of the lines that were rejected in a time span, and shows it as one line of text
of limited length.

A record of `<topic>.rejected` has no more of its line than the agent's rules (the setting `shape`)
allow. These rules mask, hash or remove fields. The agent has applied these rules to the line's
text, or has withheld the text. So the example contains no text that the rules hide.
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
DETAIL_BYTES_MAX: Final = 120
RECORDS_MAX: Final = 1_000
"""The search for examples of rejected lines reads at most this many records of each partition."""


@dataclass(frozen=True, slots=True)
class RejectedExample:
    """A rejected line. `tp` and `offset` say where its record is; `host`, `path` and `first` (the
    first byte) say where the line is. `text` is at most TEXT_BYTES_MAX bytes of the line, with
    escapes for everything that is not printable."""

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
        """Returns a text that says where the record is, where the line is, and why the line was
        rejected."""
        detail = f": {self.detail}" if self.detail else ""
        place = f"{self.host}:{self.path} byte {self.first:,}"
        return f"{self.tp} at offset {self.offset} ({place}, {self.reason}{detail})"


def rejected_example(
    client: Client,
    topic: str,
    wanted: Wanted,
    is_meant: Callable[[Mapping[str, Any]], bool] = lambda _: True,
) -> RejectedExample | None:
    """Returns one of the rejected lines that `wanted` selects: the first line for which `is_meant`
    returns true, or, if there is none, the first line. Returns None if `wanted` selects no line.
    Searches at most `RECORDS_MAX` records of each partition. Raises Unreachable, KafkaError,
    UsageError."""
    other: RejectedExample | None = None
    for found in RejectedLines(client, topic).found(wanted, RECORDS_MAX):
        made = _example(found)
        if is_meant(found.document):
            return made
        other = other or made
    return other


def line_text(document: Mapping[str, Any], bytes_max: int = TEXT_BYTES_MAX) -> str:
    """Returns the first bytes of a rejected line as `shown_text` does. An ellipsis also shows that
    the record does not have the whole line."""
    line: bytes = document["line"]
    if document["reason"] == NUL_BYTES:
        return f"({document['length']:,} NUL bytes)"
    text = shown_text(line, bytes_max)
    if is_cut(document) and line != WITHHELD and len(line) <= bytes_max:
        text += CUT
    return text


def shown_text(data: bytes, bytes_max: int = TEXT_BYTES_MAX) -> str:
    """Returns the first bytes of a text as one line that a terminal can print: control characters,
    bytes that are not UTF-8, and characters that reorder text are escaped. If a part of the text is
    left out, an ellipsis shows this."""
    kept = data[:bytes_max]
    if len(kept) < len(data):
        kept = _whole_characters(kept)
    text = printable(kept.decode("utf-8", "backslashreplace"))
    return text + CUT if len(kept) < len(data) else text


def printable(text: str) -> str:
    """Returns the text with an escape for each character that cannot be printed."""
    return "".join(x if x.isprintable() else x.encode("unicode_escape").decode() for x in text)


def _whole_characters(data: bytes) -> bytes:
    """Returns the bytes, without an incomplete UTF-8 character at their end."""
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
    return RejectedExample(
        found.tp,
        found.offset,
        found.timestamp,
        printable(document["reason"]),
        shown_text(document["detail"].encode(), DETAIL_BYTES_MAX),
        printable(document["host"]),
        printable(document["path"]),
        int(document["first"]),
        line_text(document),
    )
