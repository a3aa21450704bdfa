"""Makes the steps of a format of times."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from skidway.agent.parsing.times import directives, zones
from skidway.agent.parsing.times.directives import MONTHS, WEEKDAYS, number, padded
from skidway.agent.parsing.times.scan import Step
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused


@dataclass(frozen=True, slots=True)
class Epoch:
    """A format that counts units of time since 1970. a_second: how many units a second has. digits:
    the most digits that a number may have.
    """

    a_second: int
    digits: int


EPOCHS: Final = {
    "epoch": Epoch(1, 15),
    "epoch_ms": Epoch(1_000, 15),
    "epoch_us": Epoch(1_000_000, 18),
    "epoch_ns": Epoch(1_000_000_000, 19),
}
"""By name: the formats of times that are written as numbers."""


def steps_of(format: str) -> list[Step]:
    """Returns the steps that read a format. Raises ConfigurationRefused."""
    if format in EPOCHS:
        return []
    if format == "rfc3339":
        return [
            *_steps("%Y-%m-%d"),
            directives.separator,
            *_steps("%H:%M:%S"),
            directives.optional_fraction,
            zones.optional_offset,
        ]
    steps = _steps(format)
    names = {format[i + 1] for i in range(len(format) - 1) if format[i] == "%"}
    if not ({"m", "d"} <= names or {"b", "d"} <= names or {"B", "d"} <= names or "j" in names):
        raise ConfigurationRefused(
            f"timestamp.format {format!r} names no day: it needs %d with %m, %b or %B, or %j"
        )
    if "I" in names and "p" not in names:
        raise ConfigurationRefused(f"timestamp.format {format!r} has %I without %p")
    return steps


def _steps(format: str) -> list[Step]:
    steps: list[Step] = []
    at = 0
    before = ""
    while at < len(format):
        char = format[at]
        before, name_before = "", before
        if char == "%":
            before = format[at + 1 : at + 2]
            following = format[at + 3 : at + 4] if format.startswith("%", at + 2) else ""
            is_touched = name_before in _DIGITS or following in _DIGITS
            exact = _EXACT.get(before) if is_touched else None
            steps.append(exact or _directive(format, at))
            at += 2
        elif char.isspace():
            at += len(format[at:]) - len(format[at:].lstrip())
            if not format.startswith("%p", at):  # the step of %p reads the blanks before it
                steps.append(directives.blanks)
        elif char.isascii():
            steps.append(directives.literal(ord(char)))
            at += 1
        else:
            raise ConfigurationRefused(f"timestamp.format {format!r} has {char!r}, not ASCII")
    return steps


def _directive(format: str, at: int) -> Step:
    name = format[at + 1 : at + 2]
    if name == "b":
        return _MONTH if format[at + 2 : at + 3] == "." else _MONTH_AND_DOT
    if name not in _DIRECTIVES:
        known = " ".join(f"%{each}" for each in sorted([*_DIRECTIVES, "b"], key=str.lower))
        hint = "; %z reads names of zones, too" if name == "Z" else ""
        raise ConfigurationRefused(
            f"timestamp.format {format!r} has %{name}; known are {known}{hint}"
        )
    return _DIRECTIVES[name]


_MONTH: Final = directives.short_month(dot=False)
_MONTH_AND_DOT: Final = directives.short_month(dot=True)
_NUMBERS: Final[dict[str, Callable[..., Step]]] = {
    "m": partial(number, "month", 2, 1, 12),
    "d": partial(padded, "day", 1, 31),
    "j": partial(number, "day_of_year", 3, 1, 366),
    "H": partial(padded, "hour", 0, 23),
    "I": partial(padded, "hour12", 1, 12),
    "M": partial(number, "minute", 2, 0, 59),
    "S": partial(number, "second", 2, 0, 60),
}
_DIGITS: Final = frozenset([*_NUMBERS, "Y", "y", "f"])
_EXACT: Final = {name: make(exact=True) for name, make in _NUMBERS.items()}
"""The steps of numbers that touch another number. Without its leading zeros, nobody could say where
such a number ends."""
_DIRECTIVES: Final[dict[str, Step]] = {
    **{name: make() for name, make in _NUMBERS.items()},
    "Y": number("year", 4, 1, 9999, exact=True),
    "y": directives.short_year,
    "f": directives.fraction,
    "p": directives.half_day,
    "z": zones.named_zone,
    "a": directives.name("weekday", WEEKDAYS, whole=False),
    "A": directives.name("weekday", WEEKDAYS, whole=True),
    "B": directives.name("month", MONTHS, whole=True),
    "%": directives.literal(ord("%")),
}
