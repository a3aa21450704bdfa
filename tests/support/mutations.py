"""Reads requests that stock Kafka clients have sent, and makes damaged copies of them.

Each line of `tests/data/requests/recorded.txt` contains one frame, with the client, the API key,
the version, and the bytes in hexadecimal.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

RECORDED = Path(__file__).parent.parent / "data" / "requests" / "recorded.txt"
EXTREMES = (
    b"\xff", b"\x7f", b"\x80", b"\0", b"\x01", b"\x02",
    b"\xff\xff", b"\x7f\xff", b"\x80\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff",
    b"\x80\0\0\0", b"\0\0\0\x02", b"\xff\xff\xff\xfe", b"\xff\xff\xff\xff\x0f",
    b"\x7f" + b"\xff" * 7, b"\x80" + b"\0" * 7, b"\xff" * 8,
)  # fmt: skip
"""Bytes that replace others in a damaged request. A broker that reads them as a length, a count, an
offset or a time gets a value that no client sends."""
_HEAD = 12  # the bytes of length field, API key, version and correlation id together
_LENGTH = struct.Struct(">i")


class Recorded(NamedTuple):
    """A request as a client sent it, including its length field."""

    client: str
    key: int
    version: int
    frame: bytes


def recorded() -> list[Recorded]:
    """All recorded requests."""
    found = []
    for line in RECORDED.read_text("ascii").splitlines():
        client, key, version, frame = line.split(" ")
        found.append(Recorded(client, int(key), int(version), bytes.fromhex(frame)))
    return found


def mutated(frame: bytes, chance: random.Random) -> bytes:
    """Returns a copy of the frame with up to four damaged places and a length field that fits the
    new length."""
    body = bytearray(frame[_HEAD:])
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(body))
        damage = chance.randrange(6)
        if damage == 0 and at < len(body):
            body[at] ^= 1 << chance.randrange(8)
        elif damage <= 2:
            extreme = chance.choice(EXTREMES)
            body[at : at + len(extreme)] = extreme
        elif damage == 3:
            del body[at : at + chance.randint(1, 8)]
        elif damage == 4:
            body[at:at] = body[at : at + chance.randint(1, 40)] * chance.randint(1, 20)
        else:
            body[at:at] = chance.randbytes(chance.randint(1, 8))
    return framed(frame[4:_HEAD] + bytes(body))


def cut_everywhere(frame: bytes) -> Iterator[bytes]:
    """Yields every beginning of the frame that contains at least the head (see `_HEAD`). The length
    field is changed so that it fits the length of the beginning."""
    for end in range(_HEAD, len(frame)):
        yield framed(frame[4:end])


def framed(content: bytes) -> bytes:
    """Returns the content as a frame with the right length field."""
    return _LENGTH.pack(len(content)) + content
