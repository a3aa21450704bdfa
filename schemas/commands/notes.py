"""What `check` and `register` say on standard error about a schema that may be registered, but that
readers will not take as its author may expect."""

from __future__ import annotations

import sys
from typing import Final

from skidway.schemas.avro_schema import AvroType, SchemaInvalid
from skidway.schemas.client import RegistryAdministration, RegistryRefused
from skidway.schemas.client.resolution import Resolver
from skidway.schemas.commands.verdict import Asked, Version
from skidway.schemas.differences import differences
from skidway.schemas.logical_types import ignored
from skidway.schemas.second_opinion import second_opinion

LINES_MAX: Final = 20


def say_notes(asked: Asked, compared: tuple[AvroType, AvroType] | None = None) -> None:
    """Prints a line for each note. compared: the version before the schema, and the schema; None if
    nothing is compared."""
    lines = ignored(asked.text)
    if compared is not None:
        lines += [str(each) for each in differences(*compared) if each.note is not None]
    refusal = None if asked.takes else second_opinion(asked.text)
    if refusal is not None:
        lines.append(f"Apache Avro's Python library does not read it: {refusal}")
    for line in lines[:LINES_MAX]:
        print(f"{asked.subject}: {line}", file=sys.stderr)
    if len(lines) > LINES_MAX:
        print(f"{asked.subject}: and {len(lines) - LINES_MAX} more", file=sys.stderr)


def compared(
    client: RegistryAdministration, asked: Asked, version: Version
) -> tuple[AvroType, AvroType] | None:
    """Returns the types of the version with which `check` compares a schema (the latest, if it
    compares several), and of the schema. Returns None if the subject has no version, or if a
    reference cannot be resolved."""
    resolver = Resolver(client)
    try:
        if isinstance(version, int):
            old = client.version(asked.subject, version)
        else:
            old = client.latest(asked.subject)
        return resolver.of(old), resolver.parsed(asked.text, asked.takes)
    except (RegistryRefused, SchemaInvalid):
        return None
