"""Turns a registry's JSON documents into values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from skidway.dataclass import dataclass

AVRO: Final = "AVRO"
NUMBER_MAX: Final = (1 << 31) - 1
EXTRA: Final = ("metadata", "ruleSet", "schemaTags")
"""Further keys that the registry's JSON document of a version may have (for Confluent's data
contracts). The client does not change their values."""


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """A schema's reference to a schema of another subject: the name that the referring schema uses,
    the other subject, and the version in that subject."""

    name: str
    subject: str
    version: int

    def document(self) -> dict[str, Any]:
        """Returns the reference as the JSON object that the REST API uses."""
        return {"name": self.name, "subject": self.subject, "version": self.version}


@dataclass(frozen=True, slots=True)
class Stored:
    """The schema of an id: its text, the references that the text needs, and the schema's type."""

    schema: str
    references: tuple[Reference, ...] = ()
    schema_type: str = AVRO


@dataclass(frozen=True, slots=True)
class Registered:
    """One version of a subject."""

    subject: str
    version: int
    id: int
    schema: str
    references: tuple[Reference, ...] = ()
    schema_type: str = AVRO
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Compatibility:
    """The registry's verdict: whether a schema is compatible, and if it is not, the reasons."""

    ok: bool
    messages: list[str]


def submission(
    schema: str, references: Sequence[Reference] = (), schema_type: str = AVRO
) -> dict[str, Any]:
    """Returns the body of a request that submits a schema. Leaves out the type AVRO and an empty
    list of references, because the registry assumes these values if they are missing."""
    body: dict[str, Any] = {"schema": schema}
    if schema_type != AVRO:
        body["schemaType"] = schema_type
    if references:
        body["references"] = [each.document() for each in references]
    return body


def stored(answer: Any) -> Stored:
    """Returns the schema that the registry's JSON document of an id describes. Raises
    AttributeError, KeyError, TypeError or ValueError if the document does not have the form of a
    schema."""
    return Stored(
        str(answer["schema"]), references_of(answer.get("references") or ()), type_of(answer)
    )


def registered(answer: Any) -> Registered:
    """Returns the version that the registry's JSON document describes. Raises KeyError, TypeError
    or ValueError if the document does not have the form of a version."""
    return Registered(
        str(answer["subject"]),
        number(answer["version"]),
        number(answer["id"]),
        str(answer["schema"]),
        references_of(answer.get("references") or ()),
        type_of(answer),
        {name: answer[name] for name in EXTRA if answer.get(name)},
    )


def number(value: Any) -> int:
    """Returns the value, which must be an id or the number of a version. Raises ValueError if it is
    not."""
    if type(value) is not int or not 0 <= value <= NUMBER_MAX:
        raise ValueError(f"{value!r} is no id or version")
    return value


def references_of(answer: Any) -> tuple[Reference, ...]:
    """Returns the references in the registry's JSON document of a version. Raises the same errors
    as `registered`."""
    return tuple(
        Reference(str(each["name"]), str(each["subject"]), number(each["version"]))
        for each in answer
    )


def type_of(answer: Any) -> str:
    """Returns the schema's type in the registry's JSON document of a version, or AVRO if the
    document has no type. Raises AttributeError if the document is no JSON object."""
    return str(answer.get("schemaType") or AVRO)


def compatibility(answer: Any) -> Compatibility:
    """Returns the verdict in the registry's answer to a compatibility check. Raises AttributeError,
    KeyError or TypeError if the answer does not have the form of a verdict."""
    messages = [str(each) for each in answer.get("messages") or ()]
    return Compatibility(bool(answer["is_compatible"]), messages)
