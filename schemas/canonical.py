"""The text under which a schema is kept: Avro Java's own order of attributes, without white space.

Two texts with the same canonical form are the same schema to the registry. Unlike Avro's Parsing
Canonical Form it keeps doc, aliases, defaults and properties, because schemas that differ in these
are different schemas (a default decides what a reader sees).
"""

from __future__ import annotations

import json
from typing import Any

from schemas.avro_schema import (
    TYPES,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Union,
    namespace_of,
)


def canonical(avro: AvroType) -> str:
    """The canonical JSON text of a schema."""
    return json.dumps(_json(avro, None, set()), separators=(",", ":"), ensure_ascii=False)


def _json(avro: AvroType, namespace: str | None, declared: set[str]) -> Any:
    if isinstance(avro, Primitive):
        return {"type": avro.kind, **avro.properties} if avro.properties else avro.kind
    if isinstance(avro, Union):
        return [_json(branch, namespace, declared) for branch in avro.branches]
    if isinstance(avro, Array):
        items = _json(avro.items, namespace, declared)
        return {"type": "array", "items": items, **avro.properties}
    if isinstance(avro, Map):
        values = _json(avro.values, namespace, declared)
        return {"type": "map", "values": values, **avro.properties}
    return _named(avro, namespace, declared)


def _named(avro: Named, namespace: str | None, declared: set[str]) -> Any:
    own, short = namespace_of(avro.name), avro.name.rpartition(".")[2]
    if avro.name in declared:  # the bare name `int` is the primitive, whatever the namespace
        return short if own == namespace and short not in TYPES else avro.name
    declared.add(avro.name)
    kind = "error" if isinstance(avro, Record) and avro.is_error else avro.kind
    made: dict[str, Any] = {"type": kind, "name": short}
    if own != namespace:
        made["namespace"] = own or ""
    if avro.doc is not None:
        made["doc"] = avro.doc
    made |= _content(avro, own, declared)
    made |= avro.properties
    if avro.aliases:
        made["aliases"] = [_relative(alias, own) for alias in avro.aliases]
    return made


def _content(avro: Named, own: str | None, declared: set[str]) -> dict[str, Any]:
    if isinstance(avro, Record):
        return {"fields": [_field(each, own, declared) for each in avro.fields]}
    if isinstance(avro, Fixed):
        return {"size": avro.size}
    return _enum_content(avro)


def _enum_content(avro: Enum) -> dict[str, Any]:
    made: dict[str, Any] = {"symbols": list(avro.symbols)}
    if avro.default is not None:
        made["default"] = avro.default
    return made


def _field(field: Field, namespace: str | None, declared: set[str]) -> dict[str, Any]:
    made: dict[str, Any] = {"name": field.name, "type": _json(field.type, namespace, declared)}
    if field.doc is not None:
        made["doc"] = field.doc
    if field.has_default:
        made["default"] = field.default
    if field.order != "ascending":
        made["order"] = field.order
    if field.aliases:
        made["aliases"] = list(field.aliases)
    return {**made, **field.properties}


def _relative(alias: str, own: str | None) -> str:
    return alias.rpartition(".")[2] if namespace_of(alias) == own else alias
