"""What a client sent: a schema, with what it references.

In three steps, because the second needs the state and the third takes time: `asked` reads the
request, `resolved` says what it references, `submitted` parses.
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
"""How a request references the latest version; the registry keeps that version's number."""


@dataclass(frozen=True, slots=True)
class Named:
    """A reference as the client wrote it; version None: the latest."""

    name: str
    subject: str
    version: int | None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request with a schema. `id` and `version`: None where the registry gives them."""

    text: str
    references: tuple[Named, ...] = ()
    normalize: bool = False
    id: int | None = None
    version: int | None = None


Compared = dict[tuple[int, Level], list[Incompatibility] | Refusal]


@dataclass(frozen=True, slots=True)
class Submitted:
    """A schema that can be kept, and the text under which it is kept."""

    parsed: Parsed
    canonical: str
    references: tuple[Reference, ...]
    id: int | None
    version: int | None
    compared: Compared = field(default_factory=dict, compare=False)
    """What comparisons with earlier schemas found, by id and level: each is slow and made once,
    however often the decision is made."""

    @property
    def identity(self) -> Identity:
        """What makes it this schema and no other."""
        return self.canonical, self.references


def asked(body: Mapping[str, Any], *, normalize: bool = False) -> Asked:
    """The schema of a request body. Raises a refusal for what this registry does not keep."""
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
    """Whether a request body has no schema, or one of white space."""
    text = body.get("schema")
    return text is None or (isinstance(text, str) and not text.strip())


def resolved(state: RegistryState, asked: Asked) -> tuple[tuple[Reference, ...], tuple[Kept, ...]]:
    """What the schema references. Raises `NotFound`; an import may name deleted versions."""
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
    """The schema, parsed. Raises 42201."""
    try:
        # Readers of what another registry has kept for long already live with its bad defaults.
        parsed = schemas.new(asked.text, needs, check_defaults=asked.id is None)
        text = parsed.canonical(normalize=asked.normalize)
    except SchemaInvalid as error:
        raise invalid_schema(str(error)) from None
    return Submitted(parsed, text, references, asked.id, asked.version)


def submit(state: RegistryState, asked: Asked) -> Submitted:
    """`resolved` and `submitted` at once."""
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
    """Whether UTF-8 can write the text; JSON can name half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(body: Mapping[str, Any], key: str, limit: int) -> int | None:
    """The number; None for null, -1 or 0, which clients send where they have none."""
    value = body.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value > limit:
        raise invalid_schema(f"{key} is no number up to {limit}")
    return value if value > 0 else None
