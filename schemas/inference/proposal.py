"""Turns a shape (the merged types of a log's values) into an Avro schema. The schema accepts the
lines that were read, and as few other lines as possible."""

from __future__ import annotations

from typing import Any, Final

from skidway.schemas.inference.naming import EXTRA, RESERVED, avro_name, avro_names
from skidway.schemas.inference.shapes import INSTANTS, NUMBERS, Shape

_ORDER: Final = ("boolean", *NUMBERS, *INSTANTS, "string", "array", "record")


class Proposal:
    """Makes one schema. Ensures that the names of the record types in the schema are unique.

    `typed`: whether values of the log's format have types. If the values have no types, all values
    are texts, and a field with several guessed types becomes a string.
    """

    def __init__(self, name: str, namespace: str | None, *, typed: bool) -> None:
        self._typed = typed
        self._names: set[str] = set()
        self._root = avro_name(name)
        self._namespace = namespace

    def of(self, shape: Shape, lines: int) -> dict[str, Any]:
        """Returns the schema for a log of `lines` lines. The schema is always a record."""
        made = self._record(shape, self._root, lines, top=True)
        return made if self._namespace is None else {**made, "namespace": self._namespace}

    def _record(self, shape: Shape, name: str, lines: int, *, top: bool = False) -> dict[str, Any]:
        names = avro_names(shape.members, RESERVED | {EXTRA} if top else frozenset())
        fields = []
        for text, each in shape.members.items():
            field: dict[str, Any] = {"name": names[text]}
            is_optional = each.lines < lines or "null" in each.kinds or self._is_sparse(each, shape)
            field["type"] = self._type(
                each, f"{name}_{names[text]}", optional=is_optional, instants=top
            )
            if is_optional:
                field["default"] = None
            if names[text] != text:
                field["doc"] = f"Written as {text!r}."
                field["aliases"] = [text]
            elif not set(each.kinds) - {"null"}:
                field["doc"] = "Always null where the schema was proposed from."
            fields.append(field)
        return {"type": "record", "name": self._free(name), "fields": fields}

    def _is_sparse(self, member: Shape, record: Shape) -> bool:
        """Returns whether some values of the record lack the member. A line may have several values
        of the same record, for example the items of an array. So some values may lack the member
        even if every line has it."""
        return sum(member.kinds.values()) < record.kinds.get("record", 0)

    def _type(self, shape: Shape, name: str, *, optional: bool, instants: bool = False) -> Any:
        """Returns the Avro type of a shape. `instants`: whether texts that are times may get a
        timestamp type (an instant). The agent's json parser turns texts into instants only in the
        top-level fields of a line."""
        kinds = _kinds(shape, instants=instants)
        if not kinds or (len(kinds) > 1 and not self._typed):
            kinds = ["string"]
        made = [self._one(kind, shape, name) for kind in kinds]
        if optional:
            made.insert(0, "null")
        return made[0] if len(made) == 1 else made

    def _one(self, kind: str, shape: Shape, name: str) -> Any:
        if kind in INSTANTS:
            return {"type": "long", "logicalType": kind}
        if kind == "array":
            items = shape.items or Shape()
            optional = "null" in items.kinds
            return {"type": "array", "items": self._type(items, f"{name}_item", optional=optional)}
        if kind == "record":
            return self._object(shape, name)
        return kind

    def _object(self, shape: Shape, name: str) -> Any:
        if not shape.members or shape.is_map:
            values = shape.members.get("", Shape())
            optional = "null" in values.kinds
            inside = self._type(values, f"{name}_value", optional=optional)
            return {"type": "map", "values": inside}
        return self._record(shape, name, shape.lines)

    def _free(self, name: str) -> str:
        made, number = name, 2
        while made in self._names:
            made, number = f"{name}_{number}", number + 1
        self._names.add(made)
        return made


def _kinds(shape: Shape, *, instants: bool) -> list[str]:
    """Returns the types that the schema needs to accept all values of the shape. Several number
    types become the widest of them. Times become one timestamp type if `instants` is true and the
    shape has only times and nulls. Otherwise, times become strings."""
    kinds = {each for each in shape.kinds if each != "null"}
    numbers = [each for each in NUMBERS if each in kinds]
    kinds -= set(numbers[:-1])  # the widest type includes the numbers of the other types
    times = kinds & set(INSTANTS)
    if times:
        kinds -= times
        is_sure = instants and not kinds
        kinds.add(max(times, key=INSTANTS.index) if is_sure else "string")
    return [each for each in _ORDER if each in kinds]
