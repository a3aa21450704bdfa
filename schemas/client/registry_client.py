"""Defines the client with which programs send requests to a registry."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, TypeVar, cast
from urllib.parse import quote

from skidway.schemas.avro_schema import SchemaInvalid
from skidway.schemas.client.answers import (
    AVRO,
    Compatibility,
    Reference,
    Registered,
    Stored,
    compatibility,
    number,
    registered,
    stored,
    submission,
)
from skidway.schemas.client.resolution import Resolver
from skidway.schemas.client.security import Security
from skidway.schemas.client.transport import (
    SCHEMA_UNKNOWN,
    SUBJECT_UNKNOWN,
    HttpTransport,
    RegistryRefused,
    RegistryUnreachable,
    Requests,
    Transport,
)

CACHED_MAX: Final = 1000
FORMAT_UNKNOWN: Final = frozenset({400, 500, 501})
"""The statuses with which registries refuse the query parameter format=resolved if they do not
support this format. Redpanda's registry answers 501, Confluent's before 7.4 answers 500. Other
registries give 500, too, if something else fails; so it counts only if each URL gives it again and
again."""

Value = TypeVar("Value")


class SchemaTexts(Protocol):
    """What decoding needs of a registry's client."""

    def schema(self, schema_id: int, /) -> str:
        """Returns the text of a registered schema. Raises RegistryRefused if the registry has no
        schema with this id, and RegistryUnreachable."""


class RegistryClient:
    """Sends requests to one registry. `urls`: one URL, or several separated by commas. Raises
    `ConfigurationRefused` for bad URLs or bad credentials.

    Every method raises `RegistryUnreachable` or `RegistryRefused` if its request fails, and
    `ConfigurationRefused` if the files for TLS cannot be used.
    """

    def __init__(
        self,
        urls: str,
        *,
        timeout_s: float = 10,
        security: Security | None = None,
        transport: Transport | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._requests = Requests(urls, transport or HttpTransport(timeout_s, security), pause)
        self._resolver = Resolver(self)
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()

    def register(self, subject: str, schema: str, references: Sequence[Reference] = ()) -> int:
        """Returns the id of `schema`. If no version of the subject has this schema, registers it
        first. Asks the registry each time, because the version may have been deleted since."""
        body = submission(schema, references)
        return self._requests.json(
            "POST", versions_of(subject), lambda found: number(found["id"]), body
        )

    def schema(self, schema_id: int) -> str:
        """Returns the schema with this id, as a JSON text that itself declares every type that it
        uses.

        Raises `SchemaInvalid` if the schema's type is not AVRO. Parses the schema only if it has
        references; also raises `SchemaInvalid` if this schema, or a schema that it references,
        cannot be parsed.
        """

        def ask() -> str:
            found = self._requests.json("GET", f"/schemas/ids/{schema_id}", stored)
            _check_type(found.schema_type)
            return self._resolver.inlined(schema_id, found.schema, found.references)

        return self._once(("schema", schema_id), ask)

    def resolved(self, schema_id: int) -> Stored | None:
        """Returns the schema with this id, with the text in which the registry itself has resolved
        the references. Returns None if the registry refuses to resolve references.

        If the result has references, the registry may have ignored the request to resolve them.
        """
        target = f"/schemas/ids/{schema_id}?format=resolved"
        try:
            return self._requests.json("GET", target, stored)
        except RegistryRefused as refused:
            if refused.status in FORMAT_UNKNOWN:
                return None
            raise
        except RegistryUnreachable as unreachable:
            if unreachable.statuses and unreachable.statuses <= FORMAT_UNKNOWN:
                return None
            raise

    def latest(self, subject: str, *, inlined: bool = True) -> Registered:
        """Returns the newest version of the subject, with a text that itself declares every type
        that it uses.

        With `inlined=False`, the version has the text with which it was registered, and its
        references. Raises the same errors as `schema`.
        """
        found = self._requests.json("GET", f"{versions_of(subject)}/latest", registered)
        if inlined:
            _check_type(found.schema_type)
        if not (inlined and found.references):
            return found
        text = self._once(
            ("schema", found.id),
            lambda: self._resolver.inlined(found.id, found.schema, found.references),
        )
        return replace(found, schema=text, references=())

    def version(self, subject: str, version: int, *, deleted: bool = False) -> Registered:
        """Returns the version of the subject with this number. With `deleted`, the version may be
        soft-deleted."""
        target = f"{versions_of(subject)}/{version}{_deleted(deleted)}"
        return self._requests.json("GET", target, registered)

    def lookup(
        self, subject: str, schema: str, references: Sequence[Reference] = ()
    ) -> Registered | None:
        """Returns the version of the subject that has exactly this schema, or None if no version
        has it."""
        body = submission(schema, references)
        try:
            return self._requests.json("POST", f"/subjects/{quoted(subject)}", registered, body)
        except RegistryRefused as refused:
            if refused.error_code in (SUBJECT_UNKNOWN, SCHEMA_UNKNOWN):
                return None
            raise

    def compatible(
        self,
        subject: str,
        schema: str,
        version: int | str | None = "latest",
        references: Sequence[Reference] = (),
    ) -> Compatibility:
        """Returns the registry's verdict on whether `schema` is compatible with this version of the
        subject. With `version=None`, the registry compares the schema with the latest version or
        with all versions, as the subject's compatibility level demands.

        A subject without schemas accepts any schema, unless `version` is a number.
        """
        which = "" if version is None else f"/{version}"
        target = f"/compatibility{versions_of(subject)}{which}?verbose=true"
        return self._requests.json("POST", target, compatibility, submission(schema, references))

    def subjects(self, *, deleted: bool = False) -> list[str]:
        """Returns all subjects. With `deleted`, also returns subjects that have only soft-deleted
        versions."""
        target = f"/subjects{_deleted(deleted)}"
        return self._requests.json("GET", target, lambda found: list(map(str, found)))

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        """Returns the versions of a subject in ascending order. With `deleted`, also returns
        soft-deleted versions."""
        target = f"{versions_of(subject)}{_deleted(deleted)}"
        return self._requests.json("GET", target, lambda found: list(map(number, found)))

    def _once(self, key: Hashable, ask: Callable[[], Value]) -> Value:
        """Returns the answer for the key from the cache. If the cache does not have it, calls
        `ask`, and stores what `ask` returns. Use this method only for answers that never change. If
        the cache is full, it drops the least recently used answers."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return cast("Value", self._kept[key])
        value = ask()
        with self._lock:
            self._kept[key] = value
            if len(self._kept) > CACHED_MAX:
                self._kept.popitem(last=False)
        return value


def subject_of(topic: str) -> str:
    """Returns the subject of a topic's values (Confluent's TopicNameStrategy)."""
    return f"{topic}-value"


def quoted(subject: str) -> str:
    """Returns the subject, percent-encoded, so that it is one segment of a URL's path."""
    return quote(subject, safe="")


def versions_of(subject: str) -> str:
    """Returns the URL path of a subject's versions."""
    return f"/subjects/{quoted(subject)}/versions"


def _check_type(type_: str) -> None:
    # this check is needed because a JSON Schema may look like Avro: {"type": "string"}
    if type_ != AVRO:
        raise SchemaInvalid(f"The schema's type is {type_}, not {AVRO}.")


def _deleted(wanted: bool) -> str:
    return "?deleted=true" if wanted else ""
