"""Finds out for `guess` which fields of rows contain what masks recognize as secrets.

`guess` only names the rules: whether the texts are secrets, the reader has to decide. It does not
look for addresses of hosts, because many logs are of no use without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from skidway.agent.shaping.kinds import KINDS

LOOKED_AT_MAX: Final = 200
"""How many rows are looked at."""

_KINDS: Final = tuple(kind for kind in KINDS if kind != "ips")


def rules(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rules for `shape` that mask what the texts in rows contain, one for each field."""
    some = rows[:LOOKED_AT_MAX]
    found = []
    for field in dict.fromkeys(name for row in some for name in row):
        values = [row.get(field) for row in some]
        texts = pa.array([each for each in values if isinstance(each, str)], pa.string())
        kinds = [kind for kind in _KINDS if not KINDS[kind].mask(texts).equals(texts)]
        if kinds:
            found.append(f"mask {field} for {', '.join(kinds)}")
    return found
