"""Finds the signs that divide the texts of a pattern's groups."""

from __future__ import annotations

import re
from typing import Final

from skidway.agent.values.terminals import COLOUR

_OPERATORS: Final = frozenset(".*+?|^$(){}")
_OPENING: Final = re.compile(r"\((?:\?(?:(P?<\w+>)|[a-zA-Z-]*:|[a-zA-Z-]+(\))))?")


def separators(pattern: str) -> str:
    """Returns the signs, other than letters and digits, that a pattern has outside of its named
    groups, each once. The codes of colours, for which a conversion pattern has places, divide
    nothing."""
    pattern = pattern.replace(COLOUR, "")
    found: set[str] = set()
    is_named: list[bool] = []  # for each group that is open
    is_class, at = False, 0
    while at < len(pattern):
        sign, is_literal = pattern[at], False
        if sign == "\\":
            at, is_literal = at + 1, True
            sign = pattern[at : at + 1]
        elif is_class:
            is_class, is_literal = sign != "]", sign != "]"
        elif sign == "[":
            is_class = True
        elif opening := _OPENING.match(pattern, at):
            at = opening.end() - 1
            if not opening[2]:
                is_named.append(opening[1] is not None)
        elif sign == ")" and is_named:
            is_named.pop()
        else:
            is_literal = sign not in _OPERATORS
        if is_literal and not sign.isalnum() and not any(is_named):
            found.add(sign)
        at += 1
    return "".join(sorted(found))
