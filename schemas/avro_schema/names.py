"""Which types of a writer's schema a reader's schema reads as which, as far as names and kinds say.

Avro compares the names of records, enums and fixed types without their namespaces. So a union may
have several branches whose names fit a writer's type. If one of them has the writer's full name, or
else has it as an alias, only this branch counts, as in Avro Java's reader: the values of the other
branches are something else. The compatibility check and everything that reads use this module, so
that a pair of schemas is compatible if, and only if, its values can be read.
"""

from __future__ import annotations

from collections.abc import Sequence

from skidway.schemas.avro_schema.model import AvroType, Named


def has_name(writer: Named, reader: Named) -> bool:
    """Returns whether the names of the two types are equal apart from their namespaces, or the
    writer's full name is an alias of the reader's type."""
    return _short(writer) == _short(reader) or writer.name in reader.aliases


def candidates(writer: AvroType, branches: Sequence[AvroType]) -> list[int]:
    """Returns the indexes of the branches of a reader's union that may read values of the writer's
    type, the preferred first: the branches of the writer's kind, then those of other kinds."""
    same = [at for at, each in enumerate(branches) if each.kind == writer.kind]
    if not isinstance(writer, Named):
        return [*same, *(at for at, each in enumerate(branches) if each.kind != writer.kind)]
    named = [(at, each) for at in same if isinstance(each := branches[at], Named)]
    return (
        [at for at, each in named if each.name == writer.name]
        or [at for at, each in named if writer.name in each.aliases]
        or [at for at, each in named if _short(each) == _short(writer)]
    )


def _short(avro: Named) -> str:
    return avro.name.rpartition(".")[2]
