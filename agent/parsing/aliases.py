"""Aliases (other names) of a record's fields. A member of a JSON object may have the name of its
field, or one of the field's aliases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skidway.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Aliases:
    """Aliases of a record's fields. names: maps each alias to the field's name. inner: maps the
    name of a field that contains records to the Aliases of these records.
    """

    names: Mapping[str, str]
    inner: Mapping[str, Aliases]


def aliases_of(schema: Any) -> Aliases | None:
    """Returns the aliases of an Avro schema's fields, also of records inside arrays and unions, but
    not inside maps. Of a union, only the first type with aliases counts. Returns None if there are
    no aliases."""
    match schema:
        case list():
            found = [aliases_of(each) for each in schema]
            return next((each for each in found if each is not None), None)
        case {"type": "record", "fields": fields}:
            names = {x: each["name"] for each in fields for x in each.get("aliases", ())}
            of_types = {each["name"]: aliases_of(each["type"]) for each in fields}
            inner = {name: each for name, each in of_types.items() if each is not None}
            return Aliases(names, inner) if names or inner else None
        case {"type": "array", "items": items}:
            return aliases_of(items)
        case {"type": dict() | list() as kind}:
            return aliases_of(kind)
    return None


def renamed(value: Any, aliases: Aliases) -> Any:
    """Returns the value, with each alias replaced by the name of its field. If an object has both
    an alias and the field's name, the member with the alias keeps its name, and so has no field.
    """
    if type(value) is list:
        return [renamed(each, aliases) for each in value]
    if type(value) is not dict:
        return value
    found = dict(value)
    for alias, name in aliases.names.items():
        if alias in found and name not in found:
            found[name] = found.pop(alias)
    for name, inner in aliases.inner.items():
        if name in found:
            found[name] = renamed(found[name], inner)
    return found
