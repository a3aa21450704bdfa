"""Skidway's own registry client with a transport that calls the registry's REST application in the
same process, without a network."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import SplitResult

from skidway.schemas.client import Answer, RegistryAdministration
from support.registry_http import Registry


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
