"""Reads one request: the names in its path, its query and its body."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from starlette.requests import Request

from skidway.schemas.registry.kept import ID_MAX
from skidway.schemas.registry.refusals import (
    invalid_version,
    malformed,
    schema_not_found,
)
from skidway.schemas.registry.rest.headers import check_headers

VERSION_MAX: Final = 2**31 - 1
EVERY_PREFIX: Final = ":*:"
ACCEPTS_UNKNOWN: Final = (
    "confluent-accept-unknown-properties",
    "x-confluent-accept-unknown-properties",
)


@dataclass(frozen=True, slots=True)
class Call:
    """One request. The names in its path are decoded. `body` is {} for all methods except POST and
    PUT.

    `accepts_unknown` says whether the client accepts answers with keys on which older clients would
    fail.
    """

    names: Mapping[str, str]
    query: Mapping[str, str]
    body: dict[str, Any]
    accepts_unknown: bool = False

    def flag(self, name: str) -> bool:
        """Returns whether a boolean query parameter is true."""
        return self.query.get(name, "").lower() in ("true", "1")

    @property
    def subject(self) -> str:
        """Returns the subject in the path."""
        return self.names["subject"]

    @property
    def subject_or_all(self) -> str | None:
        """Returns the subject in the path, or None if the path means all subjects."""
        return self.names.get("subject")

    @property
    def version(self) -> int | None:
        """Returns the version in the path, or None for the latest version. Raises the refusal with
        code 42202 for a text that is no version."""
        text = self.names["version"]
        if text in ("latest", "-1"):
            return None
        number = _number(text)
        if number is None or not 1 <= number <= VERSION_MAX:
            raise invalid_version(text)
        return number

    @property
    def schema_id(self) -> int:
        """Returns the schema id in the path. Raises the refusal with code 40403 for a text that
        cannot be an id."""
        number = _number(self.names["id"])
        if number is None or number > ID_MAX:
            raise schema_not_found(self.names["id"])
        return number

    @property
    def prefix(self) -> str:
        """Returns the prefix in the query. A client that sends a prefix asks only for the subjects
        whose names begin with it."""
        prefix = self.query.get("subjectPrefix", "")
        return "" if prefix == EVERY_PREFIX else prefix

    def page(self, found: list[Any]) -> list[Any]:
        """Returns the part of `found` that the query parameters `offset` and `limit` select. A
        limit below 1 means no limit."""
        offset, limit = max(self._integer("offset", 0), 0), self._integer("limit", -1)
        return found[offset : None if limit < 1 else offset + limit]

    def _integer(self, name: str, default: int) -> int:
        try:
            return int(self.query.get(name, default))
        except ValueError:
            raise malformed(f"{name} is no number") from None


def read_call(request: Request, body: bytes) -> Call:
    """Reads a request with its body, which has arrived. Raises a refusal if the request is
    malformed, or if its headers are not allowed."""
    check_headers(request.method, request.headers)
    try:
        names = {key: unquote(value, errors="strict") for key, value in request.path_params.items()}
    except UnicodeDecodeError:
        raise malformed("The path is not UTF-8") from None
    accepts = any(request.headers.get(name, "").lower() == "true" for name in ACCEPTS_UNKNOWN)
    return Call(names, request.query_params, _parsed(request.method, body), accepts)


def _parsed(method: str, body: bytes) -> dict[str, Any]:
    if method not in ("POST", "PUT"):
        return {}
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        raise malformed("The request body is no JSON") from None
    if not isinstance(parsed, dict):
        raise malformed("The request body is no JSON object")
    return parsed


def _number(text: str) -> int | None:
    good = text.isascii() and text.isdigit() and len(text) <= 10
    return int(text) if good else None
