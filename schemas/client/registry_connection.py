"""How a program reaches a schema registry. All clients of the product are made here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field

from skidway.dataclass import dataclass
from skidway.schemas.client.administration import RegistryAdministration
from skidway.schemas.client.registry_client import RegistryClient
from skidway.schemas.client.security import Security
from skidway.schemas.client.urls import parsed


def no_pause(_seconds: float) -> None:
    """The pause between the rounds of a command for which a person waits."""


@dataclass(frozen=True, slots=True)
class RegistryConnection:
    """How a program reaches a schema registry. urls: one or more URLs, comma-separated."""

    urls: str
    security: Security = field(default_factory=Security)

    def check(self) -> None:
        """Raises ConfigurationRefused if a URL or the credentials are malformed."""
        parsed(self.urls)
        self.security.headers()

    def check_files(self) -> None:
        """Raises ConfigurationRefused if the URLs need TLS, and its files cannot be used."""
        if any(each.scheme == "https" for each in parsed(self.urls)):
            self.security.contexts()

    def client(
        self, *, timeout_s: float = 10, pause: Callable[[float], None] = time.sleep
    ) -> RegistryClient:
        """Returns a client for the requests that programs send. Raises ConfigurationRefused."""
        return RegistryClient(self.urls, timeout_s=timeout_s, pause=pause, security=self.security)

    def administration(self) -> RegistryAdministration:
        """Returns a client for the requests of operators. Raises ConfigurationRefused."""
        return RegistryAdministration(self.urls, security=self.security)
