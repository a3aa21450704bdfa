"""Proposes, for `guess`, a schema for JSON lines that the agent can fill.

`skidway schemas infer` proposes a schema that accepts all values. If the values of a member have
several types, that command proposes a union, which the agent cannot fill. So the schema of this
module gives such a field the type of most values, and `_extra` takes the other values. Inside
objects and arrays, too, the type is that of most values; if a line has another type there, `_extra`
takes the line's whole member. The schema always has `_extra`, because later lines may have members
that no line has yet. `_extra` also takes rare members whose names differ only in numbers or ids,
because each new number would need a new column.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from skidway.schemas.inference.formats import JSON
from skidway.schemas.inference.inference import infer
from skidway.schemas.inference.naming import EXTRA, EXTRA_FIELD

FAMILY_LEAST: Final = 3
FAMILY_SHARE_MAX: Final = 0.5
"""If at least this share of the lines has a member, the member is a column, whatever its name is
(for example, `p50`, `p95` and `p99`)."""

_ID: Final = re.compile(
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|(?<![0-9a-zA-Z])[0-9a-fA-F]{16,}|[0-9]+"
)
_TYPES: Final = {
    bool: "boolean", int: "long", float: "double", str: "string", list: "array", dict: "record",
}  # fmt: skip
_OBJECTS: Final = ("record", "map")


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """A proposed Avro schema. document: the schema as a JSON document. mixed: the places (see
    module misfits) whose values have several types. numbered: the members that have no field,
    because their names contain numbers or ids.
    """

    document: dict[str, Any]
    mixed: tuple[str, ...] = ()
    numbered: tuple[str, ...] = ()

    def field_of(self, member: str) -> str:
        """Returns the name of the field that takes a JSON member. If the two names differ, the
        field has the member's name as an alias."""
        fields = self.document["fields"]
        named = (each["name"] for each in fields if member in each.get("aliases", ()))
        return next(named, member)

    def with_optional(self, member: str) -> JsonSchema:
        """Returns the schema after making the field of a member nullable, because later lines may
        lack the member. member: its name, or the path to it, such as `a.time`."""
        return replace(self, document=_with_optional(self.document, member.split(".")))

    def with_fields(self, fields: Sequence[tuple[str, object, object]]) -> str:
        """Returns the schema as text, after adding these fields, each given as name, type and
        default."""
        names = {each["name"] for each in self.document["fields"]}
        further = [
            {"name": name, "type": kind, "default": default}
            for name, kind, default in fields
            if name not in names
        ]
        whole = self.document | {"fields": [*self.document["fields"], *further]}
        return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def proposed(lines: Sequence[bytes], name: str) -> JsonSchema:
    """Returns the schema for those lines that are JSON objects; other lines do not change the
    schema. name: the name of the schema's record."""
    found = infer(iter(lines), name=name, kind=JSON)
    objects = _Objects(lines)
    shares = {each.place: each.share for each in found.fields}
    numbered = _numbered(shares)
    fields, mixed = [], list[str]()
    for each in found.schema["fields"]:
        text = _member_of(each)
        if text in numbered or text == EXTRA:
            continue
        if not any(map(_is_mixed, _types_in(each["type"]))):
            fields.append(each)
            continue
        kind = _kind_of_most(each["type"], objects.values_of(text), text, mixed)
        if kind is not None:
            nullable = kind if isinstance(kind, list) else ["null", kind]
            fields.append(each | {"type": nullable, "default": None})
    whole = found.schema | {"fields": [*fields, EXTRA_FIELD]}
    return JsonSchema(whole, tuple(mixed), tuple(numbered))


def _numbered(shares: Mapping[str, float]) -> list[str]:
    """Returns the members whose names differ only in numbers or ids, such as `user_123` and
    `user_124`, if there are at least FAMILY_LEAST of them and each is in few lines. shares: for
    each member, the share of the lines that have it.
    """
    families: dict[str, list[str]] = {}
    for name, share in shares.items():
        family = _ID.sub("#", name)
        if family != name and "." not in name and share < FAMILY_SHARE_MAX:
            families.setdefault(family, []).append(name)
    return [name for own in families.values() if len(own) >= FAMILY_LEAST for name in own]


class _Objects:
    """The objects of JSON lines. Decodes the lines when values are first needed."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines
        self._objects: list[dict[str, Any]] | None = None

    def values_of(self, name: str) -> list[Any]:
        if self._objects is None:
            self._objects = list(_objects(self._lines))
        return _values_of(self._objects, name)


def _kind_of_most(kind: Any, values: Sequence[Any], place: str, mixed: list[str]) -> Any:
    """Returns a type without unions (but for those of a type and null), which most of the values
    have; None if there are no values. kind: the type that was inferred for the values, perhaps a
    union or with unions inside. If it has no union, returns it unchanged. place: where the values
    are. Appends to `mixed` the places of the unions.
    """
    if not any(map(_is_mixed, _types_in(kind))):
        return kind
    branches = [each for each in (kind if isinstance(kind, list) else [kind]) if each != "null"]
    if len(branches) > 1:
        mixed.append(place)
    found = branches[0] if len(branches) == 1 else _branch(branches, _name_of_most(values))
    match found:
        case {"type": "record", "fields": fields}:
            objects = [each for each in values if isinstance(each, dict)]
            inner = []
            for each in fields:
                name = _member_of(each)
                own = _values_of(objects, name)
                inner.append((each, _kind_of_most(each["type"], own, f"{place}.{name}", mixed)))
            known = [each | {"type": own} for each, own in inner if own is not None]
            found = found | {"fields": known} if known else None
        case {"type": "map", "values": of}:
            inside = [x for each in values if isinstance(each, dict) for x in each.values()]
            own = _kind_of_most(of, inside, f"{place}{{}}", mixed)
            found = None if own is None else found | {"values": own}
        case {"type": "array", "items": of}:
            inside = [x for each in values if isinstance(each, list) for x in each]
            own = _kind_of_most(of, inside, f"{place}[]", mixed)
            found = None if own is None else found | {"items": own}
    return ["null", found] if found is not None and "null" in kind else found


def _with_optional(record: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Returns a record's type in which the fields on a path are nullable."""
    fields = []
    for each in record["fields"]:
        if path and _member_of(each) == path[0]:
            kinds = each["type"] if isinstance(each["type"], list) else ["null", each["type"]]
            inner = [
                _with_optional(kind, path[1:])
                if isinstance(kind, dict) and "fields" in kind
                else kind
                for kind in kinds
            ]
            each = each | {"type": inner, "default": None}
        fields.append(each)
    return {**record, "fields": fields}


def _name_of_most(values: Sequence[Any]) -> str | None:
    """Returns the name of the type that most of the values have; None if there are no values."""
    kinds = Counter(_TYPES[type(value)] for value in values if value is not None)
    if kinds["long"] and kinds["double"]:
        kinds["double"] += kinds.pop("long")
    return max(kinds, key=lambda kind: kinds[kind], default=None)


def _branch(branches: Sequence[Any], name: str | None) -> Any:
    """Returns the branch of a union that has the type `name`. If `name` is `record` or `array`,
    returns the definition of this type, or None if there is none. Any other `name`, such as
    `long`, is an Avro type itself, and is returned unchanged. This type need not be in the union: a
    union that has `double` never has `long`, too.
    """
    names = _OBJECTS if name == "record" else (name,)
    found = (each for each in branches if isinstance(each, dict) and each["type"] in names)
    return next(found, None) if name in ("record", "array") else name


def _member_of(field: Mapping[str, Any]) -> str:
    return str(field.get("aliases", [field["name"]])[0])


def _values_of(objects: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    return [each[name] for each in objects if each.get(name) is not None]


def _objects(lines: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _types_in(kind: Any) -> Iterator[Any]:
    yield kind
    match kind:
        case list():
            for branch in kind:
                yield from _types_in(branch)
        case {"type": "record", "fields": fields}:
            for each in fields:
                yield from _types_in(each["type"])
        case {"type": "array", "items": inner} | {"type": "map", "values": inner}:
            yield from _types_in(inner)


def _is_mixed(kind: Any) -> bool:
    return isinstance(kind, list) and len([branch for branch in kind if branch != "null"]) > 1
