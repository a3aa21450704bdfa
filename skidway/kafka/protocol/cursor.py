"""Functions that read a value at a given position, for the hand-written parsers of Produce and
Fetch.

These functions read the same types, and refuse the same bytes, as ``primitives.MessageReader``. But
they need no object per message: the caller keeps the position in a local variable. Reading past the
end raises ``struct.error`` or ``IndexError``; ``refusing`` turns both errors into ProtocolErrors.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec, Protocol, TypeVar

from skidway.kafka.errors import BadValue, ProtocolError, TrailingBytes, Truncated
from skidway.kafka.protocol.primitives import ELEMENTS_MAX, INT16, INT32, MessageReader

P = ParamSpec("P")
T = TypeVar("T")


def refusing(parse: Callable[P, T]) -> Callable[P, T]:
    """Wraps a parser, so that a read past the end or a text that is not UTF-8 raises a
    ProtocolError."""

    @wraps(parse)
    def refuse(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return parse(*args, **kwargs)
        except ProtocolError:
            raise
        except (struct.error, IndexError):
            raise Truncated("a message ends within a field") from None
        except UnicodeDecodeError:
            raise BadValue("a string is not UTF-8") from None

    return refuse


def text_at(view: memoryview, at: int) -> tuple[str, int]:
    """Reads a non-nullable string whose length is an int16. Returns the string and the position
    after it."""
    size = INT16.unpack_from(view, at)[0]
    start = at + 2
    end = start + size
    if size < 0:
        raise BadValue("a string is null or of negative length")
    if end > len(view):
        raise Truncated(f"a string of {size} bytes in the last {len(view) - start} bytes")
    return str(view[start:end], "utf-8"), end


def compact_text_at(view: memoryview, at: int) -> tuple[str, int]:
    """Reads a non-nullable string with a compact length. Returns the string and the position after
    it."""
    size, start = uvarint_at(view, at)
    end = start + size - 1
    if size == 0:
        raise BadValue("a string is null")
    if end > len(view):
        raise Truncated(f"a string of {size - 1} bytes in the last {len(view) - start} bytes")
    return str(view[start:end], "utf-8"), end


def uvarint_at(view: memoryview, at: int) -> tuple[int, int]:
    """Returns an unsigned variable-length integer, and the position after it."""
    byte = view[at]
    if byte < 0x80:
        return byte, at + 1
    reader = MessageReader(view, at)
    return reader.uvarint(), reader.at


def count_at(
    view: memoryview, at: int, least_bytes: int, most: int = ELEMENTS_MAX
) -> tuple[int, int]:
    """Reads the element count of a non-nullable array. Returns the count, and the position after
    the count."""
    return checked(INT32.unpack_from(view, at)[0], len(view) - at - 4, least_bytes, most), at + 4


def compact_count_at(
    view: memoryview, at: int, least_bytes: int, most: int = ELEMENTS_MAX
) -> tuple[int, int]:
    """Reads the element count, in compact form, of a non-nullable array. Returns the count, and the
    position after the count."""
    count, at = uvarint_at(view, at)
    return checked(count - 1, len(view) - at, least_bytes, most), at


def checked(count: int, left: int, least_bytes: int, most: int = ELEMENTS_MAX) -> int:
    """Returns `count`, the element count of an array. Raises ProtocolError if `count` is negative
    or above `most`. Also raises ProtocolError if the rest of the message (`left` bytes) is too
    short for `count` elements of `least_bytes` bytes each."""
    if count < 0:
        raise BadValue(f"an array of {count} elements")
    if count * least_bytes > left:
        raise Truncated(f"an array of {count} elements in the last {left} bytes of a message")
    if count > most:
        raise BadValue("more array elements than a message may have")
    return count


def skip_tags_at(view: memoryview, at: int) -> int:
    """Returns the position after a tag section."""
    if view[at] == 0:
        return at + 1
    reader = MessageReader(view, at)
    reader.tags()
    return reader.at


def ended(view: memoryview, at: int) -> None:
    """Raises TrailingBytes if the message does not end at position `at`."""
    if at != len(view):
        raise TrailingBytes(f"{len(view) - at} bytes follow the end of a message")


class OfTopic(Protocol):
    """Anything that has the name of a topic in its field `topic`."""

    @property
    def topic(self) -> str:
        """The topic's name."""


Item = TypeVar("Item", bound=OfTopic)


def by_topic(items: Iterable[Item]) -> list[tuple[str, list[Item]]]:
    """Returns the items, grouped by topic: each group has neighbouring items of one topic. Keeps
    the order of the items."""
    groups: list[tuple[str, list[Item]]] = []
    last: str | None = None
    members: list[Item] = []
    for item in items:
        if item.topic != last:
            last = item.topic
            members = []
            groups.append((last, members))
        members.append(item)
    return groups
