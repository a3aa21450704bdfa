"""The settings with which a program reaches a schema registry."""

from __future__ import annotations

from pathlib import Path

from skidway.dataclass import dataclass
from skidway.schemas.client.registry_connection import RegistryConnection
from skidway.schemas.client.security import Security
from skidway.schemas.client.urls import SETTING
from skidway.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryClientSettings:
    """The registry's URLs, credentials, and the certificate authorities to trust. The settings have
    the names that Confluent's clients use."""

    schema_registry_url: str = setting(
        SETTING,
        help="The registry's URLs, http://host:port, comma-separated.",
        example="http://127.0.0.1:8081",
    )
    schema_registry_user_info: Path | None = setting(
        "schema.registry.basic.auth.user.info.location",
        None,
        help="File whose first line is user:password, for a registry that asks for them. It is read"
        " for each request.",
    )
    schema_registry_ca: Path | None = setting(
        "schema.registry.ssl.ca.location",
        None,
        help="PEM file of the authorities to trust; by default the machine's own.",
    )
    schema_registry_certificate: Path | None = setting(
        "schema.registry.ssl.certificate.location",
        None,
        help="PEM file of the client's certificate, for a registry that asks for one.",
    )
    schema_registry_key: Path | None = setting(
        "schema.registry.ssl.key.location",
        None,
        help="PEM file of the key of that certificate, not encrypted.",
    )

    @property
    def registry(self) -> RegistryConnection:
        """The connection to this registry."""
        security = Security(
            self.schema_registry_user_info,
            self.schema_registry_ca,
            self.schema_registry_certificate,
            self.schema_registry_key,
        )
        return RegistryConnection(self.schema_registry_url, security)
