"""Makes random Avro schemas, and changes them at random. All names come from a short list, so names
often collide. The changes are small, so that a schema and its changed version are often compatible.

Every schema is made with its own `random.Random`, so that the same seed always gives the same
schema. Hypothesis draws the seeds.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from hypothesis import strategies as st

from skidway.schemas.avro_schema import PRIMITIVES, SchemaInvalid, parse

NAMESPACES = (None, None, "n", "m.k")
SYMBOLS = "ABCD"
LOGICAL: list[Any] = [
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "int", "logicalType": "date"},
    {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
    {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 4},
    {"type": "string", "logicalType": "uuid"},
    {"type": "string", "logicalType": "no-such"},
    {"type": "int", "logicalType": "timestamp-millis"},
]
DEFAULTS: dict[str, list[Any]] = {
    "null": [None],
    "boolean": [True, False],
    "int": [0, -7],
    "long": [0, 2**40],
    "float": [0, 1.5],
    "double": [1, -2.25, 12345678.5],
    "bytes": ["", "\u00ff"],
    "string": ["", 'é"\n'],
    "array": [[]],
    "map": [{}],
    "record": [{}],
    "enum": ["A"],
    "fixed": ["x", "xy"],
}


class Maker:
    """Makes one random schema."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._declared: list[str] = []

    def schema(self) -> Any:
        """Returns a schema as JSON. The schema may be invalid, because names may collide."""
        if self.random.random() < 0.7:
            return self._record(0)
        return self._type(0)

    def type(self) -> Any:
        """Returns a random type of limited depth."""
        return self._type(2)

    def _type(self, depth: int) -> Any:
        roll = self.random.random()
        if depth > 3 or roll < 0.4:
            return self.random.choice(PRIMITIVES)
        makers: list[Callable[[int], Any]] = [
            self._record, self._record, self._enum, self._fixed, self._array, self._map,
            self._union, self._union, self._logical, self._again,
        ]  # fmt: skip
        return self.random.choice(makers)(depth + 1)

    def _again(self, depth: int) -> Any:
        return self.random.choice(self._declared) if self._declared else self._type(depth)

    def _logical(self, _: int) -> Any:
        return dict(self.random.choice(LOGICAL))

    def _array(self, depth: int) -> Any:
        return {"type": "array", "items": self._type(depth), **self._some(p=1)}

    def _map(self, depth: int) -> Any:
        return {"type": "map", "values": self._type(depth)}

    def _union(self, depth: int) -> Any:
        branches = [self._type(depth) for _ in range(self.random.randint(1, 3))]
        flat = [each for each in branches if not isinstance(each, list)]
        if self.random.random() < 0.6 and "null" not in flat:
            flat.insert(0, "null")
        return flat or ["null"]

    def _enum(self, _: int) -> Any:
        symbols = self.random.sample(SYMBOLS, self.random.randint(1, 3))
        named = self._named("enum", "EG", symbols=symbols)
        return named | self._some(default=self.random.choice(symbols))

    def _fixed(self, _: int) -> Any:
        return self._named("fixed", "FH", size=self.random.randint(1, 2))

    def _record(self, depth: int) -> Any:
        made = self._named("record", "RSTUV", fields=[])
        names = self.random.sample("abcd", self.random.randint(0, 3))
        made["fields"] = [self._field(name, depth) for name in names]
        return made

    def _field(self, name: str, depth: int) -> Any:
        made: dict[str, Any] = {"name": name, "type": self._type(depth + 1)}
        if self.random.random() < 0.4:
            made["default"] = self.random.choice(DEFAULTS.get(_kind(made["type"]), [None]))
        made |= self._some(doc="D") | self._some(aliases=[self.random.choice("abcdz")])
        return (
            made | self._some(order=self.random.choice(["ignore", "descending"])) | self._some(p={})
        )

    def _named(self, kind: str, names: str, **more: Any) -> dict[str, Any]:
        made: dict[str, Any] = {"type": kind, "name": self.random.choice(names), **more}
        namespace = self.random.choice(NAMESPACES)
        if namespace is not None:
            made["namespace"] = namespace
        alias = self.random.choice(names)
        made |= self._some(aliases=[self.random.choice([alias, f"n.{alias}", f"m.k.{alias}"])])
        self._declared.append(f"{namespace}.{made['name']}" if namespace else made["name"])
        return made | self._some(doc="words")

    def _some(self, **attribute: Any) -> dict[str, Any]:
        return attribute if self.random.random() < 0.15 else {}


def made(random: Random) -> Any:
    """Returns a valid schema as JSON."""
    while True:
        schema = Maker(random).schema()
        if is_valid(schema):
            return schema


def changed(schema: Any, random: Random, most: int = 2) -> Any:
    """Returns a valid schema that differs from the given schema by at most `most` changes. Returns
    the given schema if no attempt at a change gave another valid schema."""
    found = schema
    for _ in range(random.randint(1, most)):
        for _ in range(20):
            candidate = copy.deepcopy(found)
            candidate = _change(candidate, random)
            if candidate != found and is_valid(candidate):
                found = candidate
                break
    return found


def is_valid(schema: Any) -> bool:
    """Returns whether Skidway's parser accepts the schema."""
    try:
        parse(schema)
    except SchemaInvalid:
        return False
    return True


def schemas() -> st.SearchStrategy[Any]:
    """Returns a Hypothesis strategy for valid schemas."""
    return st.integers(0, 2**32).map(lambda seed: made(Random(seed)))


def mutated(schema: Any) -> st.SearchStrategy[Any]:
    """Returns a Hypothesis strategy for valid schemas that differ from the given schema by one or a
    few changes."""
    return st.integers(0, 2**32).map(lambda seed: changed(schema, Random(seed)))


def _kind(avro: Any) -> str:
    if isinstance(avro, list):
        return _kind(avro[0]) if avro else "null"
    return _kind(avro["type"]) if isinstance(avro, dict) else str(avro)


Slot = tuple[Any, Any]
"""The dict or list that contains a type, and the type's key or index in this dict or list."""


def _slots(holder: Any, key: Any) -> Iterator[Slot]:
    yield holder, key
    value = holder[key]
    if isinstance(value, list):
        for at in range(len(value)):
            yield from _slots(value, at)
    elif isinstance(value, dict):
        for inside in ("items", "values"):
            if inside in value:
                yield from _slots(value, inside)
        for field in value.get("fields", []):
            yield from _slots(field, "type")


def _change(schema: Any, random: Random) -> Any:
    root = [schema]
    holder, key = random.choice([*_slots(root, 0)])
    avro = holder[key]
    if random.random() < 0.25 or not isinstance(avro, dict | list):
        _replace(holder, key, random)
    elif isinstance(avro, list):
        _change_union(avro, random)
    elif avro["type"] in ("record", "enum", "fixed"):
        _change_named(avro, random)
    else:
        _replace(holder, key, random)
    return root[0]


def _replace(holder: Any, key: Any, random: Random) -> None:
    avro = holder[key]
    if random.random() < 0.4:
        holder[key] = ["null", *(avro if isinstance(avro, list) else [avro])]
    else:
        holder[key] = random.choice([*PRIMITIVES, Maker(random).type()])


def _change_union(union: list[Any], random: Random) -> None:
    if union and random.random() < 0.5:
        union.pop(random.randrange(len(union)))
    else:
        union.insert(
            random.randint(0, len(union)), random.choice([*PRIMITIVES, Maker(random).type()])
        )


def _change_named(avro: dict[str, Any], random: Random) -> None:
    if random.random() < 0.2:
        attribute = random.choice(["name", "namespace", "aliases"])
        letters = {"record": "RSTUV", "enum": "EG", "fixed": "FH"}[avro["type"]]
        value = (
            random.choice(letters) if attribute != "namespace" else random.choice(["n", "m.k", ""])
        )
        avro[attribute] = [value] if attribute == "aliases" else value
    elif avro["type"] == "fixed":
        avro["size"] = random.randint(1, 3)
    elif avro["type"] == "enum":
        avro["symbols"] = random.sample(SYMBOLS, random.randint(1, 3))
        avro.pop("default", None)
        if random.random() < 0.3:
            avro["default"] = random.choice(avro["symbols"])
    else:
        _change_fields(avro["fields"], random)


def _change_fields(fields: list[dict[str, Any]], random: Random) -> None:
    roll = random.random()
    if roll < 0.4 or not fields:
        avro = random.choice([*PRIMITIVES, ["null", "int"], Maker(random).type()])
        more = (
            {"default": random.choice(DEFAULTS[kind])} if (kind := _kind(avro)) in DEFAULTS else {}
        )
        field = {"name": random.choice("abcde"), "type": avro}
        fields.insert(
            random.randint(0, len(fields)), field | (more if random.random() < 0.6 else {})
        )
        return
    field = random.choice(fields)
    if roll < 0.6:
        fields.remove(field)
    elif roll < 0.7:
        random.shuffle(fields)
    elif roll < 0.8:
        former, field["name"] = field["name"], random.choice("abcde")
        if random.random() < 0.6:
            field["aliases"] = [former]
    elif roll < 0.9:
        field.pop("default", None)
    else:
        field["default"] = random.choice(DEFAULTS.get(_kind(field["type"]), [None]))


def text(schema: Any) -> str:
    """Returns the JSON text of a schema."""
    return json.dumps(schema)


JUNK: list[Any] = [
    None, True, 0, -1, 1.5, 10**12, "", "a-b", "é", "int", "R", "n.R", ".R", "n..R", "1a", "record",
    [], {}, ["int"], ["null", "null"], ["A", "A"], {"type": "int"}, {"a": 1}, {"name": "x"},
]  # fmt: skip
KEYS = [
    "type", "name", "namespace", "fields", "symbols", "size", "items", "values", "default", "doc",
    "aliases", "order", "logicalType", "other",
]  # fmt: skip


def broken(schema: Any, random: Random) -> Any:
    """Returns the schema with one or two random changes. The changed schema may be invalid."""
    root = [copy.deepcopy(schema)]
    for _ in range(random.randint(1, 2)):
        holder, key = random.choice([*_nodes(root)])
        if isinstance(holder, dict) and random.random() < 0.3:
            if random.random() < 0.5:
                del holder[key]
            else:
                holder[random.choice(KEYS)] = random.choice(JUNK)
        elif isinstance(holder, list) and holder is not root and random.random() < 0.3:
            holder.insert(key, copy.deepcopy(holder[key]))
        else:
            holder[key] = copy.deepcopy(random.choice(JUNK))
    return root[0]


def _nodes(holder: Any) -> Iterator[Slot]:
    """Yields, for every value in a JSON document, the dict or list that contains the value, and the
    value's key or index in it.
    """
    keys = list(holder) if isinstance(holder, dict) else range(len(holder))
    for key in keys:
        yield holder, key
        if isinstance(holder[key], dict | list):
            yield from _nodes(holder[key])
