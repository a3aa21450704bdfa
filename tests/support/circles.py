"""A schema (NODE) that contains itself, a Hypothesis strategy for its values, and the JSON text
that each value should become. The expected JSON text is made from the value that Apache's Avro
library decodes.
"""

from __future__ import annotations

import io
import json
import math
from decimal import Decimal
from typing import Any

import avro.io
import avro.schema
import fastavro
from hypothesis import strategies as st

from support.avro import BYTES, DOUBLE, FLOAT, INT, LONG, TEXT

MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
LEVEL = {"type": "enum", "name": "Level", "symbols": ["LOW", "HIGH"]}
TWIN = {
    "type": "record",
    "name": "Twin",
    "fields": [
        {"name": "raw", "type": "bytes"},
        {"name": "node", "type": ["null", "ns.Node"]},
    ],
}
EITHER = ["string", "null", "ns.Node", "bytes"]
NODE: dict[str, Any] = {
    "type": "record",
    "name": "Node",
    "namespace": "ns",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "small", "type": ["null", "int"]},
        {"name": "text", "type": "string"},
        {"name": "level", "type": LEVEL},
        {"name": "half", "type": "float"},
        {"name": "whole", "type": "double"},
        {"name": "money", "type": MONEY},
        {"name": "three", "type": {"type": "fixed", "name": "Three", "size": 3}},
        {"name": "next", "type": ["Node", "null"]},
        {"name": "children", "type": {"type": "array", "items": "Node"}},
        {"name": "named", "type": {"type": "map", "values": ["null", "Node"]}},
        {"name": "either", "type": EITHER},
        {"name": "twin", "type": ["null", TWIN]},
        {"name": "last", "type": "boolean"},
    ],
}
TEXTS = ["next", "children", "named", "either", "twin"]
"""The fields of NODE whose values become JSON texts in Arrow, because their types contain NODE."""


def nodes() -> st.SearchStrategy[dict[str, Any]]:
    """Returns a strategy for values of NODE in the form that fastavro accepts."""
    return st.recursive(_node(st.nothing()), _node, max_leaves=4)


def _node(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    few = {"max_size": 0 if inner.is_empty else 2}
    twins = st.fixed_dictionaries({"raw": BYTES, "node": st.none() | inner})
    return st.fixed_dictionaries(
        {
            "id": LONG,
            "small": st.none() | INT,
            "text": TEXT,
            "level": st.sampled_from(LEVEL["symbols"]),
            "half": FLOAT,
            "whole": DOUBLE,
            "money": st.decimals(-9999999, 9999999, places=2),
            "three": st.binary(min_size=3, max_size=3),
            "next": st.none() | inner,
            "children": st.lists(inner, **few),
            "named": st.dictionaries(TEXT, st.none() | inner, **few),
            "either": st.none()
            | TEXT.map(lambda text: ("string", text))
            | BYTES.map(lambda raw: ("bytes", raw))
            | inner.map(lambda node: ("ns.Node", node)),
            "twin": st.none() | twins,
            "last": st.booleans(),
        }
    )


def datum(schema: Any, value: Any) -> bytes:
    """Returns the datum that fastavro writes for a value."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


def decoded(datum: bytes, writer: Any, reader: Any = None) -> Any:
    """Returns the value that Apache's Avro library decodes from a datum."""
    schemas = [avro.schema.parse(json.dumps(each)) for each in (writer, reader or writer)]
    return avro.io.DatumReader(*schemas).read(avro.io.BinaryDecoder(io.BytesIO(datum)))


def wanted(node: Any) -> dict[str, Any]:
    """Returns the JSON object that the codec should write for a decoded value of NODE."""
    made = {name: plain(value) for name, value in node.items()}
    either = node["either"]
    if either is not None:
        number = 0 if isinstance(either, str) else 2 if isinstance(either, bytes) else 1
        made["either"] = {f"member{number}": plain(either)}
    return made


def plain(value: Any) -> Any:
    """Returns the JSON value that the codec should write for a part of a decoded value of NODE."""
    if isinstance(value, dict):
        is_node = "either" in value
        return wanted(value) if is_node else {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return str(value) if isinstance(value, Decimal) else value
