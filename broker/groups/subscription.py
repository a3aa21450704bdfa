"""Reads the names of the topics from a consumer's protocol metadata. Only clients use the rest of
the metadata.

The metadata is Kafka's ConsumerProtocolSubscription. Each of its versions begins with an int16 (the
version), an int32 (the number of topics) and the topics' names. Before each name is an int16 with
the length of the name.
"""

from __future__ import annotations

import struct

CONSUMER = "consumer"
_HEAD = struct.Struct(">hi")
_LENGTH = struct.Struct(">h")


def topics(metadata: bytes) -> frozenset[str] | None:
    """Returns the names of the topics; None if `metadata` is not the metadata of a consumer."""
    try:
        _, count = _HEAD.unpack_from(metadata)
        at, found = _HEAD.size, set()
        if not 0 <= count <= len(metadata) // _LENGTH.size:
            return None
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(metadata, at)
            at += _LENGTH.size
            name = metadata[at : at + length] if length >= 0 else b""
            if length < 0 or len(name) != length:
                return None
            found.add(name.decode())
            at += length
    except (struct.error, UnicodeDecodeError):
        return None
    return frozenset(found)
