"""The rules of schema resolution in the Avro 1.12 specification. Each rule is shown by a pair of
schemas, the reader's and the writer's.
"""

from __future__ import annotations

from typing import Any

from support.avro_trees import enum, field, record

A, B = field("a", "int"), field("b", "int", default=0)

RULES: list[tuple[Any, Any, list[tuple[str, str]]]] = [
    (record(A, B), record(A), []),
    (record(A), record(A, B), []),
    (
        record(A, field("b", "int")),
        record(A),
        [("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/1")],
    ),
    (record(field("z", "int", aliases=["a"])), record(A), []),
    (record(field("a", "int", aliases=["a"])), record(A), []),
    (
        record(field("a", "int", aliases=["b"])),
        record(A, field("b", "int")),
        [("READER_FIELD_AMBIGUOUS", "/fields/0")],
    ),
    (record(field("a", "string")), record(A), [("TYPE_MISMATCH", "/fields/0/type")]),
    ("long", "int", []),
    ("double", "long", []),
    ("float", "double", [("TYPE_MISMATCH", "/")]),
    ("int", "long", [("TYPE_MISMATCH", "/")]),
    ("bytes", "string", []),
    ("string", "bytes", []),
    (["null", "int"], "int", []),
    ("int", ["null", "int"], [("TYPE_MISMATCH", "/0")]),
    (["null", "long"], ["null", "int"], []),
    (["null", "int"], ["null", "string"], [("MISSING_UNION_BRANCH", "/1")]),
    (["null", "int"], "string", [("MISSING_UNION_BRANCH", "/")]),
    (enum("A"), enum("A", "B"), [("MISSING_ENUM_SYMBOLS", "/symbols")]),
    (enum("A", default="A"), enum("A", "B"), []),
    (
        {"type": "array", "items": "int"},
        {"type": "array", "items": "string"},
        [("TYPE_MISMATCH", "/items")],
    ),
    ({"type": "map", "values": "long"}, {"type": "map", "values": "int"}, []),
    (
        {"type": "fixed", "name": "F", "size": 2},
        {"type": "fixed", "name": "F", "size": 3},
        [("FIXED_SIZE_MISMATCH", "/size")],
    ),
    (
        {"type": "fixed", "name": "F", "size": 3},
        {"type": "fixed", "name": "F", "size": 2},
        [("FIXED_SIZE_MISMATCH", "/size")],
    ),
    (record(A), record(A, name="S"), [("NAME_MISMATCH", "/name")]),
    (record(A, aliases=["S"]), record(A, name="S"), []),
    (record(A, namespace="n", aliases=["S"]), record(A, name="S", namespace="n"), []),
    (record(A, namespace="m"), record(A, namespace="n"), []),
    (record(field("a", ["null", "R"])), record(field("a", ["null", "R"])), []),
]
"""Each rule has the reader's schema, the writer's schema, and the kind and path of each difference
that makes these schemas incompatible."""
