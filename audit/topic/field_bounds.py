"""Which values the fields of a message may have. The module does no I/O.

Anybody who may write to an audit topic can write any bytes. A message with a value that no program
of Skidway writes is refused when it is decoded, so it is no message to any reader. The bounds are
so narrow that a reader can add two values, or compute the value after another one, and the result
fits into 64 bits.

The sums of a delta's counts have no bounds, because they depend on the origins in records, which
anybody can write, too. They wrap around.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MESSAGE_BYTES_MAX: Final = 4 * 1024 * 1024
"""No message is longer, because nearly all are made for a max.message.bytes of 1 MiB. So this also
limits the lists of a message."""

TEXT_MAX: Final = 16_384
"""The greatest length of a name, a path or a sentence, in characters. The loader's name consists of
an output's path (which HDFS limits to 8,000 characters) and the name of a topic."""

FARTHEST_MS: Final = 1 << 60
"""No time of a message is more than this many ms before or after 1970 (2^60 ms are 36 million
years)."""

IDS: Final = range(1 << 63)
NUMBERS: Final = range(1 << 62)
"""Numbers of messages, offsets, positions, and how many there are of something."""
PARTITIONS: Final = range(1 << 31)
TIMES: Final = range(-FARTHEST_MS, FARTHEST_MS + 1)
_SUMS: Final = range(-(1 << 62), 1 << 62)
_ANY: Final = range(-(1 << 63), 1 << 63)

_FIELDS: Final = {
    **dict.fromkeys(("agent", "file", "predecessor"), IDS),
    **dict.fromkeys(("device", "inode", "born_ns", "id", "revoked", "index"), _ANY),
    **dict.fromkeys(("partition", "fingerprint_length", "bucket_ms"), PARTITIONS),
    **dict.fromkeys(("time", "since", "bucket", "from_bucket", "to_bucket"), TIMES),
    **dict.fromkeys(("lag_ms", "lateness_ms", "ahead_ms"), TIMES),
    **dict.fromkeys(("records", "bytes"), _SUMS),
}
"""The bounds of the fields of all schemas of messages, by their names. Any other integer is one of
NUMBERS."""

_LONG_TEXTS: Final = {"sources"}
"""Texts that only the length of the message limits."""

_ID_DIGITS_MAX: Final = 19


def check(record: Mapping[str, Any]) -> None:
    """Raises ValueError if a field of a record, or of a record in it, has a value that it may not
    have."""
    for name, value in record.items():
        _check(name, value)


def check_length(value: bytes) -> None:
    """Raises ValueError if a message is too long."""
    if len(value) > MESSAGE_BYTES_MAX:
        raise ValueError(f"it has {len(value):,} bytes")


def is_agent_id(name: str) -> bool:
    """Whether a producer's name is the id of an agent, as an agent writes it: a decimal number
    above 0 and below 2^63."""
    if not (name.isascii() and name.isdigit() and len(name) <= _ID_DIGITS_MAX):
        return False
    return name[0] != "0" and int(name) in IDS


def _check(name: str, value: Any) -> None:
    if isinstance(value, int):
        if value not in _FIELDS.get(name, NUMBERS):
            raise ValueError(f"no program writes such a value of `{name}`")
    elif isinstance(value, str):
        if len(value) > TEXT_MAX and name not in _LONG_TEXTS:
            raise ValueError(f"`{name}` has more than {TEXT_MAX:,} characters")
    elif isinstance(value, dict):
        check(value)
    elif isinstance(value, list):
        for item in value:
            _check(name, item)
