"""Says for an encoding how many bytes a code unit has, in which order these bytes are, and which
bytes are the byte order mark.

With `encoding: utf-16`, the first two bytes of a file decide its byte order. A file id names one
immutable sequence of bytes, so these two bytes and the byte order never change. Each intent names a
recipe (the settings with which its records are made). The recipe contains the byte order: it names
utf-16le or utf-16be, and never utf-16. A file without a byte order mark counts as little-endian,
because programs for Windows write such files.
"""

from __future__ import annotations

from typing import Final

UTF_8: Final = "utf-8"
UTF_16: Final = "utf-16"
UTF_16LE: Final = "utf-16le"
UTF_16BE: Final = "utf-16be"

WIDE: Final = (UTF_16, UTF_16LE, UTF_16BE)
"""The encodings whose code units have two bytes."""

_MARKS: Final = {
    UTF_8: b"\xef\xbb\xbf",
    UTF_16LE: b"\xff\xfe",
    UTF_16BE: b"\xfe\xff",
    "gb18030": b"\x84\x31\x95\x33",
}


def order_of(head: bytes) -> str:
    """For a file of a source with `encoding: utf-16`, returns utf-16be or utf-16le. head: the
    file's first bytes.
    """
    return UTF_16BE if head.startswith(_MARKS[UTF_16BE]) else UTF_16LE


def mark_of(encoding: str) -> bytes:
    """Returns the bytes of an encoding's byte order mark; empty if the encoding has none."""
    return _MARKS.get(encoding, b"")


def marked(text: bytes, encoding: str) -> bytes:
    """Puts a byte order mark before UTF-16 text, so that people who have only the text's bytes know
    the byte order. Returns text in other encodings unchanged.
    """
    return mark_of(encoding) + text if encoding in WIDE else text


def in_order(text: bytes, encoding: str) -> bytes:
    """Removes the byte order mark of a text, and swaps the bytes of the text if the mark shows
    another byte order than that of `encoding`. (utf-16 counts as little-endian.) If the text has no
    mark, returns it unchanged.
    """
    own = UTF_16LE if encoding == UTF_16 else encoding
    if own not in WIDE or not has_order(text):
        return text
    units = bytearray(text[2:])
    if not text.startswith(_MARKS[own]):
        end = len(units) // 2 * 2  # if the text ends with half a unit, this byte is not swapped
        units[0:end:2], units[1:end:2] = units[1:end:2], units[0:end:2]
    return bytes(units)


def has_order(text: bytes) -> bool:
    """Whether `text`, in UTF-16, begins with a byte order mark."""
    return text.startswith((_MARKS[UTF_16LE], _MARKS[UTF_16BE]))


def unit_bytes(encoding: str) -> int:
    """Returns how many bytes a code unit of an encoding has."""
    return 2 if encoding in WIDE else 1
