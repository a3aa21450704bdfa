"""Confluent's REST API over the store, as an ASGI application.

What stock clients need beyond the documentation, and gets lost easily:

- every answer, whatever the route, is JSON with the registry's content type; every error an object
  with `error_code` and `message` (serializers probe routes and read those)
- subjects come percent-encoded and may contain `/`: routes match the path as it was sent
- booleans in queries come as `true`, `True` or `1`; unknown query parameters are ignored; a limit
  of -1 is none; `-1` is also a name for the latest version
- answers hold the documented keys only: strict clients break on others
- GET of a level says `compatibilityLevel`, PUT says `compatibility`
"""

from __future__ import annotations

import asyncio
import http
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

from prometheus_client import Counter, Histogram
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from schemas.compatibility import Level
from schemas.registry import decisions
from schemas.registry.refusals import (
    Refusal,
    body_too_large,
    body_too_slow,
    invalid_version,
    malformed,
    mode_not_found,
    not_permitted,
    schema_not_found,
)
from schemas.registry.state import State, Version
from schemas.registry.store import Store
from skidway import log
from skidway.errors import SkidwayError

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
BODY_BYTES_MAX: Final = 4 << 20
"""Enough for the largest schema that the store takes, with every quote escaped."""
BODY_WITHIN_S: Final = 30.0
"""A client that never ends its body would hold one of the program's few connections for ever."""
VERSION_MAX: Final = 2**31 - 1
EVERY_PREFIX: Final = ":*:"

_log = log.get(__name__)
_requests = Counter("skidway_schemas_requests", "Requests answered.", ["method", "route", "status"])
_seconds = Histogram("skidway_schemas_request_seconds", "Time to answer.", ["method", "route"])


@dataclass(frozen=True, slots=True)
class Call:
    """One request: names in its path (decoded), its query, and its JSON body ({} for none)."""

    names: Mapping[str, str]
    query: Mapping[str, str]
    body: dict[str, Any]

    def flag(self, name: str) -> bool:
        """Whether a boolean query parameter says yes."""
        return self.query.get(name, "").lower() in ("true", "1")

    @property
    def subject(self) -> str:
        """The subject in the path."""
        return self.names["subject"]

    @property
    def version(self) -> int | None:
        """The version in the path; None: the latest. Raises 42202."""
        text = self.names["version"]
        if text in ("latest", "-1"):
            return None
        good = text.isascii() and text.isdigit() and len(text) <= 10
        if not good or not 1 <= int(text) <= VERSION_MAX:
            raise invalid_version(text)
        return int(text)

    @property
    def schema_id(self) -> int:
        """The schema id in the path. Raises 40403 for what cannot be one."""
        text = self.names["id"]
        if not (text.isascii() and text.isdigit() and len(text) <= 10):
            raise schema_not_found(text)
        return int(text)

    def page(self, found: list[Any]) -> list[Any]:
        """The part of a list that `offset` and `limit` ask for."""
        offset, limit = self._number("offset", 0), self._number("limit", -1)
        end = None if limit < 0 else max(offset, 0) + limit
        return found[max(offset, 0) : end]

    def _number(self, name: str, default: int) -> int:
        try:
            return int(self.query.get(name, default))
        except ValueError:
            raise malformed(f"{name} is no number") from None


class Api:
    """One method per route: what it answers. Called on worker threads; raises refusals."""

    def __init__(self, store: Store, default_level: Level) -> None:
        self._store = store
        self._default = default_level

    def subjects(self, call: Call) -> Any:
        """GET /subjects"""
        prefix = call.query.get("subjectPrefix", "")
        names = self._store.read(partial(_subject_names, call=call))
        wanted = "" if prefix == EVERY_PREFIX else prefix
        return call.page([each for each in names if each.startswith(wanted)])

    def lookup(self, call: Call) -> Any:
        """POST /subjects/{subject}"""
        schema, deleted = decisions.submitted(call.body), call.flag("deleted")

        def question(state: State) -> Any:
            found = decisions.lookup(state, call.subject, schema, deleted=deleted)
            return _described(state, call.subject, found)

        return self._store.read(question)

    def delete_subject(self, call: Call) -> Any:
        """DELETE /subjects/{subject}"""
        permanent = call.flag("permanent")
        return self._store.write(
            lambda state: decisions.delete_subject(state, call.subject, permanent=permanent)
        )

    def versions(self, call: Call) -> Any:
        """GET /subjects/{subject}/versions"""
        found = self._store.read(
            lambda state: state.versions(call.subject, deleted=call.flag("deleted"))
        )
        return call.page([each.version for each in found])

    def register(self, call: Call) -> Any:
        """POST /subjects/{subject}/versions"""
        decisions.refuse_import(call.body)
        schema = decisions.submitted(call.body)
        schema_id = self._store.write(
            lambda state: decisions.register(state, call.subject, schema, self._default)
        )
        return {"id": schema_id}

    def version(self, call: Call) -> Any:
        """GET /subjects/{subject}/versions/{version}"""
        version, deleted = call.version, call.flag("deleted")

        def question(state: State) -> Any:
            found = state.version(call.subject, version, deleted=deleted)
            return _described(state, call.subject, found)

        return self._store.read(question)

    def version_schema(self, call: Call) -> Any:
        """GET /subjects/{subject}/versions/{version}/schema"""
        return json.loads(self.version(call)["schema"])

    def referenced_by(self, call: Call) -> Any:
        """GET /subjects/{subject}/versions/{version}/referencedby"""
        self.version(call)
        return []

    def delete_version(self, call: Call) -> Any:
        """DELETE /subjects/{subject}/versions/{version}"""
        version, permanent = call.version, call.flag("permanent")
        return self._store.write(
            lambda state: decisions.delete_version(
                state, call.subject, version, permanent=permanent
            )
        )

    def schemas(self, call: Call) -> Any:
        """GET /schemas"""
        found: list[Any] = self._store.read(partial(_all_versions, call=call))
        return call.page(found)

    def schema(self, call: Call) -> Any:
        """GET /schemas/ids/{id}"""

        def question(state: State) -> Any:
            answer: dict[str, Any] = {"schema": state.schema(call.schema_id)}
            return answer | ({"maxId": state.last_id} if call.flag("fetchMaxId") else {})

        return self._store.read(question)

    def schema_text(self, call: Call) -> Any:
        """GET /schemas/ids/{id}/schema"""
        return json.loads(self.schema(call)["schema"])

    def schema_subjects(self, call: Call) -> Any:
        """GET /schemas/ids/{id}/subjects"""
        uses = self._uses(call)
        return call.page(sorted({subject for subject, _ in uses}))

    def schema_versions(self, call: Call) -> Any:
        """GET /schemas/ids/{id}/versions"""
        uses = self._uses(call)
        return call.page([{"subject": subject, "version": version} for subject, version in uses])

    def compatibility(self, call: Call) -> Any:
        """POST /compatibility/subjects/{subject}/versions/{version}"""
        return self._compatibility(call, call.version or "latest")

    def compatibility_all(self, call: Call) -> Any:
        """POST /compatibility/subjects/{subject}/versions"""
        return self._compatibility(call, "all")

    def global_level(self, _: Call) -> Any:
        """GET /config"""
        return self._store.read(
            lambda state: {"compatibilityLevel": state.levels.get(None, self._default).value}
        )

    def level(self, call: Call) -> Any:
        """GET /config/{subject}"""

        def question(state: State) -> Any:
            if call.flag("defaultToGlobal"):
                found = decisions.effective_level(state, call.subject, self._default)
            else:
                found = state.level(call.subject)
            return {"compatibilityLevel": found.value}

        return self._store.read(question)

    def set_level(self, call: Call) -> Any:
        """PUT /config and /config/{subject}"""
        subject = call.names.get("subject")
        return self._store.write(lambda state: decisions.set_level(state, subject, call.body))

    def reset_level(self, call: Call) -> Any:
        """DELETE /config and /config/{subject}"""
        subject = call.names.get("subject")
        return self._store.write(lambda state: decisions.reset_level(state, subject, self._default))

    def mode(self, call: Call) -> Any:
        """GET /mode and /mode/{subject}"""
        subject = call.names.get("subject")
        if subject is not None and not call.flag("defaultToGlobal"):
            raise mode_not_found(subject)
        return {"mode": "READWRITE"}

    def set_mode(self, _: Call) -> Any:
        """PUT and DELETE /mode and /mode/{subject}"""
        raise not_permitted("This registry has one mode, READWRITE")

    def types(self, _: Call) -> Any:
        """GET /schemas/types"""
        return ["AVRO"]

    def contexts(self, _: Call) -> Any:
        """GET /contexts"""
        return ["."]

    def cluster(self, _: Call) -> Any:
        """GET /v1/metadata/id"""
        return {"id": "", "scope": {"path": [], "clusters": {"schema-registry-cluster": "skidway"}}}

    def root(self, _: Call) -> Any:
        """GET /"""
        return {}

    def _uses(self, call: Call) -> list[tuple[str, int]]:
        schema_id, deleted = call.schema_id, call.flag("deleted")
        return self._store.read(lambda state: state.uses(schema_id, deleted=deleted))

    def _compatibility(self, call: Call, version: int | str) -> Any:
        schema = decisions.submitted(call.body)
        messages = self._store.read(
            lambda state: decisions.compatibility(
                state, call.subject, schema, version, self._default
            )
        )
        answer: dict[str, Any] = {"is_compatible": not messages}
        return answer | ({"messages": messages} if call.flag("verbose") else {})


def application(store: Store, default_level: Level) -> ASGIApp:
    """The registry's ASGI application."""
    api = Api(store, default_level)
    app = Starlette(
        routes=[
            Route(path, partial(_answered, handler, path), methods=[method])
            for method, path, handler in _routes(api)
        ],
        exception_handlers={
            HTTPException: _http_error,
            SkidwayError: _skidway_error,
            Exception: _unexpected,
        },
    )
    app.router.redirect_slashes = False
    return _RawPath(app)


Handler = Callable[[Call], Any]


def _routes(api: Api) -> list[tuple[str, str, Handler]]:
    versions = "/subjects/{subject}/versions"
    return [
        ("GET", "/", api.root),
        ("GET", "/subjects", api.subjects),
        ("POST", "/subjects/{subject}", api.lookup),
        ("DELETE", "/subjects/{subject}", api.delete_subject),
        ("GET", versions, api.versions),
        ("POST", versions, api.register),
        ("GET", f"{versions}/{{version}}", api.version),
        ("DELETE", f"{versions}/{{version}}", api.delete_version),
        ("GET", f"{versions}/{{version}}/schema", api.version_schema),
        ("GET", f"{versions}/{{version}}/referencedby", api.referenced_by),
        ("GET", "/schemas", api.schemas),
        ("GET", "/schemas/types", api.types),
        ("GET", "/schemas/ids/{id}", api.schema),
        ("GET", "/schemas/ids/{id}/schema", api.schema_text),
        ("GET", "/schemas/ids/{id}/subjects", api.schema_subjects),
        ("GET", "/schemas/ids/{id}/versions", api.schema_versions),
        ("POST", f"/compatibility{versions}", api.compatibility_all),
        ("POST", f"/compatibility{versions}/{{version}}", api.compatibility),
        ("GET", "/config", api.global_level),
        ("PUT", "/config", api.set_level),
        ("DELETE", "/config", api.reset_level),
        ("GET", "/config/{subject}", api.level),
        ("PUT", "/config/{subject}", api.set_level),
        ("DELETE", "/config/{subject}", api.reset_level),
        ("GET", "/mode", api.mode),
        ("PUT", "/mode", api.set_mode),
        ("DELETE", "/mode", api.set_mode),
        ("GET", "/mode/{subject}", api.mode),
        ("PUT", "/mode/{subject}", api.set_mode),
        ("DELETE", "/mode/{subject}", api.set_mode),
        ("GET", "/contexts", api.contexts),
        ("GET", "/v1/metadata/id", api.cluster),
    ]


class _RawPath:
    """Gives Starlette the path as it was sent, so that %2F in a subject is no separator."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = scope["raw_path"].decode("latin-1").partition("?")[0]
            scope = {**scope, "path": path.rstrip("/") or "/"}
        await self._app(scope, receive, send)


async def _answered(handler: Handler, route: str, request: Request) -> Response:
    begin = time.perf_counter()
    status = 500
    try:
        call = await _call(request)
        response = _response(200, await run_in_threadpool(handler, call))
        status = 200
    except Refusal as refusal:
        status = refusal.status
        raise
    finally:
        _requests.labels(request.method, route, status).inc()
        _seconds.labels(request.method, route).observe(time.perf_counter() - begin)
    return response


async def _call(request: Request) -> Call:
    try:
        names = {key: unquote(value, errors="strict") for key, value in request.path_params.items()}
    except UnicodeDecodeError:
        raise malformed("The path is not UTF-8") from None
    return Call(names, request.query_params, await _body(request))


async def _body(request: Request) -> dict[str, Any]:
    if request.method not in ("POST", "PUT"):
        return {}
    try:
        async with asyncio.timeout(BODY_WITHIN_S):
            content = await _content(request)
    except TimeoutError:
        raise body_too_slow(BODY_WITHIN_S) from None
    except ClientDisconnect:
        raise malformed("The request body ends too early") from None
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise malformed("The request body is no JSON") from None
    if not isinstance(body, dict):
        raise malformed("The request body is no JSON object")
    return body


async def _content(request: Request) -> bytes:
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > BODY_BYTES_MAX:
            raise body_too_large(BODY_BYTES_MAX)
    return bytes(content)


def _response(status: int, document: Any) -> Response:
    content = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(content, status, media_type=CONTENT_TYPE)


def _error(status: int, error_code: int, message: str) -> Response:
    # Refused texts are quoted in messages; half a character of one must not break the answer.
    sound = message.encode("utf-8", "replace").decode()
    return _response(status, {"error_code": error_code, "message": sound})


async def _http_error(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return _error(status, status, f"HTTP {status} {http.HTTPStatus(status).phrase}")


async def _skidway_error(_: Request, error: Exception) -> Response:
    if isinstance(error, Refusal):
        return _error(error.status, error.error_code, str(error))
    _log.error("registry_request_failed", reason=str(error))
    return _error(500, 50001, str(error))


async def _unexpected(_: Request, error: Exception) -> Response:
    _log.error("registry_request_failed", exc=error)
    return _error(500, 500, "HTTP 500 Internal Server Error")


def _described(state: State, subject: str, found: Version) -> dict[str, Any]:
    return {
        "subject": subject,
        "version": found.version,
        "id": found.id,
        "schema": state.schema(found.id),
    }


def _subject_names(state: State, call: Call) -> list[str]:
    only = call.flag("deletedOnly") or call.flag("deleted_only")
    return state.subject_names(deleted=only or call.flag("deleted"), live=not only)


def _all_versions(state: State, call: Call) -> list[dict[str, Any]]:
    prefix = call.query.get("subjectPrefix", "")
    wanted, deleted = "" if prefix == EVERY_PREFIX else prefix, call.flag("deleted")
    found = []
    for name in state.subject_names(deleted=deleted):
        if name.startswith(wanted):
            versions = state.versions(name, deleted=deleted)
            chosen = versions[-1:] if call.flag("latestOnly") else versions
            found += [_described(state, name, each) for each in chosen]
    return found
