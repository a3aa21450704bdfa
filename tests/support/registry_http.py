"""Runs the registry's REST application on a log in memory, and makes requests to it without a
network, also with Skidway's own client."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import SplitResult

from starlette.testclient import TestClient

from skidway.schemas.client import Answer, RegistryAdministration
from skidway.schemas.compatibility import Level
from skidway.schemas.registry.rest import CONTENT_TYPE, application
from skidway.schemas.registry.store import Store
from support.clock import ManualClock
from support.registry_log import MemoryLog, SharedLog


def record(name: str = "R", **fields: Any) -> str:
    """A record schema as JSON text. Each keyword argument makes one field, whose name is the
    keyword. A string is the field's type. An integer is the default of a field of type int. With
    None, the field has the type int and no default."""
    made = [{"name": each, "type": "int"} | _more(given) for each, given in fields.items()]
    return json.dumps({"type": "record", "name": name, "fields": made})


def _more(given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    return {"type": given} if isinstance(given, str) else {"default": given}


def reference(name: str, subject: str, version: int = 1) -> dict[str, Any]:
    """A reference to a schema, in the form in which clients send it."""
    return {"name": name, "subject": subject, "version": version}


class Registry:
    """A client of a registry's REST application, together with the log on which this application
    runs."""

    def __init__(self, shared: SharedLog | None = None, level: Level = Level.BACKWARD) -> None:
        self.log = MemoryLog(shared or SharedLog())
        self.store = Store(self.log, ManualClock(), level)
        self.app = application(self.store)
        self.http = TestClient(self.app, raise_server_exceptions=False)

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """Makes a request. Returns the status and the document of the answer. Raises AssertionError
        if the answer does not have the registry's content type."""
        content = None if body is None else json.dumps(body)
        answer = self.http.request(method, path, content=content, headers=headers)
        assert answer.headers["content-type"] == CONTENT_TYPE, answer.text
        return answer.status_code, answer.json()

    def good(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Makes a request. Returns the document of the answer. Asserts that the answer is not an
        error."""
        status, document = self.ask(method, path, body, headers)
        assert status == 200, document
        return document

    def refused(self, method: str, path: str, body: Any = None) -> tuple[int, int]:
        """Makes a request. Returns the status and the error code of the answer. Asserts that the
        answer is an error in the form that clients expect."""
        status, document = self.ask(method, path, body)
        assert set(document) == {"error_code", "message"}
        assert isinstance(document["message"], str)
        return status, document["error_code"]

    def register(self, subject: str, schema: str, *references: dict[str, Any], **more: Any) -> int:
        """Registers a schema, and returns its id."""
        body = {"schema": schema, "references": [*references], **more}
        return int(self.good("POST", f"/subjects/{subject}/versions", body)["id"])


class InProcess:
    """A `Transport` to a registry that runs in this process. Before each request, the transport
    calls the function `meanwhile` with the request's path and query."""

    def __init__(self, registry: Registry) -> None:
        self._http = registry.http
        self.meanwhile: Callable[[str], None] = lambda target: None

    def send(self, method: str, url: SplitResult, target: str, body: bytes | None) -> Answer:
        """See `Transport`."""
        self.meanwhile(target)
        answer = self._http.request(method, target, content=body)
        return Answer(answer.status_code, answer.content)


def administration(transport: InProcess) -> RegistryAdministration:
    """An administration client that uses this transport, and never pauses before it repeats a
    request."""
    return RegistryAdministration(
        "http://registry:8081", transport=transport, pause=lambda seconds: None
    )
