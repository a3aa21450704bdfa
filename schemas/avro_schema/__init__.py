"""Avro schemas as values, and a strict parser for them.

`parse` turns a JSON text into values of the types in `model`, or refuses the text with one sentence
that gives the place of the mistake. The parser is stricter than the libraries that people use to
write schemas, because the registry keeps for ever every schema that it accepts. So names and
defaults (`defaults`) are checked, fields and symbols must be unique, and no two branches of a union
may look the same to a reader. A schema that references other schemas is parsed with the
`named_types` of those schemas.

If a named type refers to itself, the values form a graph with a cycle, so `Record.fields` is filled
after the record is made. `recursion` removes the cycles, for code that must walk all types and come
to an end. A schema has at most `NESTING_MAX` levels, so that no schema can exhaust the stack, and
at most `CHARACTERS_MAX` characters. tests/conformance/avro compares our parser's verdicts, and the
texts in which we write schemas, with those of Apache Avro's Java library. These tests also list
where our parser is stricter, and why.
"""

from skidway.schemas.avro_schema.defaults import DefaultCheck, default_fault
from skidway.schemas.avro_schema.model import (
    PRIMITIVES,
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
    SchemaInvalid,
    Union,
    fullname,
    logical_type,
    named_types,
    namespace_of,
)
from skidway.schemas.avro_schema.parser import CHARACTERS_MAX, NESTING_MAX, parse
from skidway.schemas.avro_schema.recursion import Recursive, leading_back, without_circles

__all__ = [
    "CHARACTERS_MAX",
    "NESTING_MAX",
    "PRIMITIVES",
    "TYPES",
    "Array",
    "AvroType",
    "DefaultCheck",
    "Enum",
    "Field",
    "Fixed",
    "Map",
    "Named",
    "Primitive",
    "Record",
    "Recursive",
    "SchemaInvalid",
    "Union",
    "default_fault",
    "fullname",
    "leading_back",
    "logical_type",
    "named_types",
    "namespace_of",
    "parse",
    "without_circles",
]
