"""Finds the members of JSON objects that `timestamp.fields` names, also inside other objects.

time          the member of the field `time`
meta.time     the member `time` of the object `meta`
@meta.ts      the same, if `@meta` and `ts` are aliases of the fields `meta` and `time`
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa
from pyarrow import types

from skidway.agent.parsing.aliases import Aliases
from skidway.errors import ConfigurationRefused

Path = tuple[str, ...]
"""The names of the members that lead from the line's object to the time."""


def path_of(
    name: str, schema: pa.Schema, removed: Collection[str], aliases: Aliases | None
) -> Path:
    """Returns the path to the member that an entry of `timestamp.fields` names. If the entry has
    aliases of fields, the path has the fields' names in their place. removed: members that need no
    field, because a rule of `shape` removes them. Raises ConfigurationRefused if the schema has no
    such member.
    """
    for parts in ([name], name.split(".")):
        path = _path(parts, aliases)
        kind = schema.field(path[0]).type if path[0] in schema.names else None
        if kind is None and path[0] not in removed:
            continue
        if kind is None or _leads(kind, path[1:]):
            return path
    raise ConfigurationRefused(
        f"timestamp.fields names {name!r}, which is no field of the schema, and no member of one"
    )


def member(value: Any, path: Path) -> Any:
    """Returns the member at a path; None if there is none."""
    for name in path:
        if type(value) is not dict:
            return None
        value = value.get(name)
    return value


def _path(parts: list[str], aliases: Aliases | None) -> Path:
    path = []
    for part in parts:
        name = part if aliases is None else aliases.names.get(part, part)
        path.append(name)
        aliases = None if aliases is None else aliases.inner.get(name)
    return tuple(path)


def _leads(kind: pa.DataType, path: Path) -> bool:
    if not path:
        return True
    if types.is_map(kind):
        return _leads(kind.item_type, path[1:])
    if not types.is_struct(kind) or kind.get_field_index(path[0]) < 0:
        return False
    return _leads(kind.field(path[0]).type, path[1:])
