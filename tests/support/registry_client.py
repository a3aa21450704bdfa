"""Our registry client, directly on the registry's REST application, without a network."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import SplitResult

from skidway.schemas.client import Answer, RegistryAdministration
from support.registry_http import Registry


class InProcess:
    """A `Transport` to an application in this process. `meanwhile` runs before each request, with
    its target."""

    def __init__(self, registry: Registry) -> None:
        self._http = registry.http
        self.meanwhile: Callable[[str], None] = lambda target: None

    def send(self, method: str, url: SplitResult, target: str, body: bytes | None) -> Answer:
        """See `Transport`."""
        self.meanwhile(target)
        answer = self._http.request(method, target, content=body)
        return Answer(answer.status_code, answer.content)


def administration(transport: InProcess) -> RegistryAdministration:
    """A client over this transport that never waits."""
    return RegistryAdministration(
        "http://registry:8081", transport=transport, pause=lambda seconds: None
    )
