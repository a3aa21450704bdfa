"""Reads the schema that a client sent, with the schemas that it references.

There are three steps: `asked` reads the request, `resolved` finds the schemas that the sent schema
references, and `submitted` parses the sent schema. The steps are separate because only `resolved`
needs the registry's state, and only `submitted` is slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from skidway.schemas.avro_schema import SchemaInvalid
from skidway.schemas.compatibility import Incompatibility, Level
from skidway.schemas.registry.kept import ID_MAX, Identity, Kept, Reference
from skidway.schemas.registry.parsed import NEEDED_MAX, Parsed, ParsedSchemas
from skidway.schemas.registry.refusals import Refusal, invalid_schema
from skidway.schemas.registry.state import RegistryState

VERSION_MAX: Final = 2**31 - 1
LATEST: Final = -1
"""If a reference in a request has this number as its version, it is a reference to the latest
version. The registry stores the number of that version instead."""


@dataclass(frozen=True, slots=True)
class Named:
    """A reference as the client sent it. If `version` is None, it is a reference to the latest
    version."""

    name: str
    subject: str
    version: int | None


@dataclass(frozen=True, slots=True)
class Asked:
    """The schema in a request, not parsed yet. `id` and `version` are None if the registry assigns
    them."""

    text: str
    references: tuple[Named, ...] = ()
    normalize: bool = False
    id: int | None = None
    version: int | None = None


Compared = dict[tuple[int, Level], list[Incompatibility] | Refusal]


@dataclass(frozen=True, slots=True)
class Submitted:
    """A parsed schema that the registry can store, and the text that it would store."""

    parsed: Parsed
    canonical: str
    references: tuple[Reference, ...]
    id: int | None
    version: int | None
    compared: Compared = field(default_factory=dict, compare=False)
    """The results of comparisons with earlier schemas. The key of a result is the earlier schema's
    id and the compatibility level. A comparison is slow, so the registry makes it only once, even
    if it makes the decision several times."""

    @property
    def identity(self) -> Identity:
        """Returns the value that identifies the schema: its canonical text and its references."""
        return self.canonical, self.references


def asked(body: Mapping[str, Any], *, normalize: bool = False) -> Asked:
    """Returns the schema in a request body, with the references, the id and the version number that
    the body gives for it. Raises a refusal if the body has no schema, or contains something that
    this registry does not store, for example metadata."""
    kind = body.get("schemaType") or "AVRO"
    if kind != "AVRO":
        raise invalid_schema(f"schema type {kind} is not supported; this registry takes AVRO")
    if body.get("metadata") or body.get("ruleSet"):
        raise invalid_schema("metadata and rules are not supported")
    text = body.get("schema")
    if not isinstance(text, str) or not text.strip():
        raise invalid_schema("the request has no schema")
    references = _references(body.get("references"))
    if normalize:
        references = sorted(set(references), key=lambda each: (each.name, each.subject))
    return Asked(
        text,
        tuple(references),
        normalize,
        _number(body, "id", ID_MAX),
        _number(body, "version", VERSION_MAX),
    )


def is_empty(body: Mapping[str, Any]) -> bool:
    """Returns whether a request body has no schema, or a schema of only white space."""
    text = body.get("schema")
    return text is None or (isinstance(text, str) and not text.strip())


def resolved(state: RegistryState, asked: Asked) -> tuple[tuple[Reference, ...], tuple[Kept, ...]]:
    """Returns the references of the sent schema, and the schemas to which they refer. Only an
    imported schema may reference deleted versions. Raises `NotFound`."""
    references = tuple(
        state.reference(each.name, each.subject, each.version, deleted=asked.id is not None)
        for each in asked.references
    )
    return references, state.needs(references)


def submitted(
    schemas: ParsedSchemas,
    asked: Asked,
    references: tuple[Reference, ...],
    needs: Iterable[Kept],
) -> Submitted:
    """Returns the schema that a client sent, parsed. If the schema is invalid, raises the refusal
    with code 42201."""
    try:
        # An imported schema (one with an id) may have invalid defaults, because programs already
        # use this schema.
        parsed = schemas.new(asked.text, needs, check_defaults=asked.id is None)
        text = parsed.canonical(normalize=asked.normalize)
    except SchemaInvalid as error:
        raise invalid_schema(str(error)) from None
    return Submitted(parsed, text, references, asked.id, asked.version)


def submit(state: RegistryState, asked: Asked) -> Submitted:
    """Calls `resolved` and then `submitted`."""
    return submitted(state.parsed, asked, *resolved(state, asked))


def _references(given: Any) -> list[Named]:
    if given is None:
        return []
    if not isinstance(given, list) or len(given) > NEEDED_MAX:
        raise invalid_schema(f"references is no list of at most {NEEDED_MAX} references")
    return [_reference(each) for each in given]


def _reference(given: Any) -> Named:
    try:
        name, subject, version = given["name"], given["subject"], given["version"]
    except (KeyError, TypeError):
        raise invalid_schema("a reference has no name, subject and version") from None
    texts = isinstance(name, str) and isinstance(subject, str)
    if texts and not _is_writable(name + subject):
        raise invalid_schema("a reference has a character that cannot be written as UTF-8")
    is_number = isinstance(version, int) and not isinstance(version, bool)
    if not texts or not is_number or not (version == LATEST or 0 < version <= VERSION_MAX):
        raise invalid_schema("a reference has two texts, name and subject, and a version from 1 on")
    return Named(name, subject, None if version == LATEST else version)


def _is_writable(text: str) -> bool:
    """Returns whether UTF-8 can encode the text. UTF-8 cannot encode half of a surrogate pair,
    which a JSON text may contain."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(body: Mapping[str, Any], key: str, limit: int) -> int | None:
    """Returns the number under `key` in a request body. Returns None for null and for numbers below
    1, because clients send null, 0 or -1 if they have no number."""
    value = body.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value > limit:
        raise invalid_schema(f"{key} is no number up to {limit}")
    return value if value > 0 else None
