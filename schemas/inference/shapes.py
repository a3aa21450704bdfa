"""Defines a shape: the types of the values that one field has in all lines of a log.

A shape does not store values. It stores the types of the values, the number of lines that have the
field, and, for objects and arrays, the shapes of the values inside. A `Budget` limits the number of
shapes.
"""

from __future__ import annotations

import re
from dataclasses import field
from datetime import datetime
from typing import Any, Final

from skidway.dataclass import dataclass

SHAPES_MAX: Final = 10_000
"""Inference stores the types of at most this many fields (one `Shape` for each field) of a log. It
does not look at the values of further fields, and only counts these values."""
MEMBERS_MAX: Final = 200
"""A proposed record has at most this many fields, unless it is the record of whole lines. If the
objects in one field of the log have more different field names than this, they become a map,
because so many names are probably data and not names of fields."""
NAME_CHARACTERS_MAX: Final = 200

_LONG_MAX: Final = 2**63 - 1
_WHOLE = re.compile(r"(?:0|-?[1-9]\d{0,18})\Z", re.ASCII)
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d{0,17})\.\d{1,17}(?:[eE][+-]?\d{1,2})?\Z", re.ASCII)
_RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,6})?(?:[Zz]|[+-]\d\d:\d\d)\Z", re.ASCII
)
NUMBERS: Final = ("long", "double")
INSTANTS: Final = ("timestamp-millis", "timestamp-micros")


@dataclass(slots=True)
class Budget:
    """Limits the number of shapes (types of the values of one field) that one inference makes.
    `left` is how many shapes the inference may still make."""

    left: int = SHAPES_MAX
    refused: int = 0
    """How many values got no shape, because the limit of shapes was already reached, or because
    their name is too long or cannot be encoded."""

    def take(self) -> bool:
        """Takes one shape from the budget. Returns False if the budget has no shape left."""
        if self.left:
            self.left -= 1
            return True
        self.refused += 1
        return False


@dataclass(slots=True)
class Shape:
    """The types of the values that one field has in all lines of a log. (The items of an array and
    the values of a map have one common shape.) `kinds`: the number of values of each type; `null`
    is a type, too."""

    lines: int = 0
    """Number of lines that have the field."""
    kinds: dict[str, int] = field(default_factory=dict)
    members: dict[str, Shape] = field(default_factory=dict)
    is_map: bool = False
    """Whether the objects of this shape are maps, so that the names in the objects are data and not
    names of fields. If this is true, `members` has one entry with the name "": the common shape of
    all values of the maps."""
    items: Shape | None = None
    is_root: bool = False
    """Whether this shape describes whole lines of the log (and not the values of a field). Whole
    lines are always records, never maps."""
    _last_line: int = -1

    def add(self, value: Any, line: int, budget: Budget, *, typed: bool) -> None:
        """Adds the type of one value to this shape. `line` is the number of the line that has the
        value."""
        if line != self._last_line:
            self._last_line = line
            self.lines += 1
        kind = kind_of(value) if typed or not isinstance(value, str) else kind_of_text(value)
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if kind == "record":
            self._add_members(value, line, budget, typed=typed)
        elif kind == "array":
            for each in value:
                if self.items is None:
                    if not budget.take():
                        break
                    self.items = Shape()
                self.items.add(each, line, budget, typed=typed)

    def merge(self, other: Shape) -> None:
        """Merges the shape of another field into this shape. A line may have both fields, so the
        sum of the two numbers of lines could count a line twice. Therefore the result gets the
        larger of the two numbers, although the true number may be higher."""
        self.lines = max(self.lines, other.lines)
        for kind, count in other.kinds.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + count
        for name, shape in other.members.items():
            if self.is_map or other.is_map:
                self._as_map()
                name = ""
            if name in self.members:
                self.members[name].merge(shape)
            else:
                self.members[name] = shape
        if other.items is not None:
            if self.items is None:
                self.items = other.items
            else:
                self.items.merge(other.items)

    def _add_members(
        self, value: dict[str, Any], line: int, budget: Budget, *, typed: bool
    ) -> None:
        for name, each in value.items():
            if len(name) > NAME_CHARACTERS_MAX or not _is_utf8(name):
                budget.refused += 1
                continue
            key = "" if self.is_map else name
            if key not in self.members:
                if len(self.members) >= MEMBERS_MAX and not self.is_root:
                    self._as_map()
                    key = ""
                elif not budget.take():
                    continue
                else:
                    self.members[key] = Shape()
            self.members[key].add(each, line, budget, typed=typed)

    def _as_map(self) -> None:
        """Turns the objects of this shape into maps. The names of the objects' fields then count as
        data, and all values of these fields have one common shape."""
        if self.is_map:
            return
        merged = Shape()
        for each in self.members.values():
            merged.merge(each)
        self.members, self.is_map = {"": merged}, True


def kind_of(value: Any) -> str:
    """Returns the type of a JSON value. The type is `double` for a whole number that is too large
    for a long.

    The type is never `int`, because counters may become too large for an int, and because Avro
    encodes int and long in the same bytes.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "long" if -_LONG_MAX - 1 <= value <= _LONG_MAX else "double"
    if isinstance(value, float):
        return "double"
    if isinstance(value, str):
        return instant(value) or "string"
    return "array" if isinstance(value, list) else "record"


def kind_of_text(value: str) -> str:
    """Returns the type that a text stands for, such as `long` for `17`. In case of doubt, for
    example for `007`, the type is a string."""
    if _WHOLE.match(value):
        kind = kind_of(int(value))
        return "string" if kind == "double" else kind
    if _DECIMAL.match(value):
        return "double"
    if value in ("true", "false"):
        return "boolean"
    return instant(value) or "string"


def instant(value: str) -> str | None:
    """Returns the logical type for a text that is a time with its zone as in RFC 3339. Returns None
    for any other text."""
    found = _RFC_3339.match(value)
    if found is None:
        return None
    try:
        datetime.fromisoformat(value.upper())
    except ValueError:
        return None
    return INSTANTS[len(found[1] or "") > 4]


def _is_utf8(name: str) -> bool:
    """Returns whether the name can be encoded in UTF-8. A name in JSON may contain half of a
    surrogate pair, which cannot be encoded."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
