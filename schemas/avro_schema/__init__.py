"""Avro schemas as values, and a strict parser for them.

`parse` turns a JSON text into values of the types in `model`, or refuses the text with one sentence
that names the path of the mistake in the text. The parser is stricter than the libraries that
people use to write schemas, because the registry permanently keeps every schema that it accepts. So
the parser checks names and defaults (`defaults`), and demands that fields and symbols are unique.
It also demands that the branches of a union can be told apart, so that a value belongs to only one
of them. To parse a schema that references other schemas, pass the `named_types` of those schemas to
`parse`.

`names` says which types of a writer's schema are read as which types of a reader's.

If a record contains itself, the values of its schema form a graph with a cycle. To make this cycle,
the parser first makes the record, and sets `Record.fields` afterwards. Code that walks all types
would never end in a cycle; for such code, `recursion` removes the cycles. A schema has at most
`NESTING_MAX` levels, so that no schema can exhaust the stack, and at most `CHARACTERS_MAX`
characters. The tests in tests/conformance/avro compare our parser's verdicts, and the texts that we
write for schemas, with the verdicts and texts of Apache Avro's Java library. These tests also list
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
    type_name,
)
from skidway.schemas.avro_schema.names import candidates, has_name
from skidway.schemas.avro_schema.parser import (
    CHARACTERS_MAX,
    FULL_NAME_MAX,
    NESTING_MAX,
    parse,
)
from skidway.schemas.avro_schema.recursion import Recursive, leading_back, without_circles

__all__ = [
    "CHARACTERS_MAX",
    "FULL_NAME_MAX",
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
    "candidates",
    "default_fault",
    "fullname",
    "has_name",
    "leading_back",
    "logical_type",
    "named_types",
    "namespace_of",
    "parse",
    "type_name",
    "without_circles",
]
