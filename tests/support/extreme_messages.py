"""Messages of the audit topics in which one field has an extreme value."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from skidway.audit.topic.messages import Message, encode
from skidway.schemas import single_object

INTEGERS: Final = (
    -(1 << 63), -(1 << 62) - 1, -1, 0, 1 << 31, 1 << 60, (1 << 62) - 1, 1 << 62, (1 << 63) - 1,
)  # fmt: skip
TEXTS: Final = ("", "\0", "-1", "07", "\u00b2", "\u0663", str(1 << 63), "9" * 30, "9" * 20_000)


def extremes_of(message: Message) -> Iterator[tuple[str, bytes]]:
    """Yields the message, encoded, for each of its fields and each extreme value: the path of the
    field and the bytes. Leaves out values that its schema cannot encode."""
    name, record = single_object.decode(encode(message))
    for path, value in _leaves(record):
        for extreme in _instead_of(value):
            changed = copy.deepcopy(record)
            parent = changed
            for step in path[:-1]:
                parent = parent[step]
            parent[path[-1]] = extreme
            try:
                yield ".".join(map(str, path)), single_object.encode(name, changed)
            except single_object.MessageInvalid:
                continue


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _leaves(each, (*path, name))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from _leaves(each, (*path, place))
    else:
        yield path, value


def _instead_of(value: Any) -> Sequence[Any]:
    if isinstance(value, int):
        return INTEGERS
    if isinstance(value, str):
        return TEXTS
    if not isinstance(value, bytes) or len(value) % 8:
        return ()
    table = np.frombuffer(value, "<i8")  # the columns of counts or of seals
    return [
        np.concatenate((table[:place], [extreme], table[place + 1 :])).astype("<i8").tobytes()
        for place in range(len(table))
        for extreme in INTEGERS
    ]
