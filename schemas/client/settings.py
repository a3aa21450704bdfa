"""Settings of programs that use a registry: credentials, and the certificate authorities to trust.
Agent and loader have all of these settings, and also a setting for the registry's URL."""

from __future__ import annotations

from pathlib import Path

from skidway.dataclass import dataclass
from skidway.schemas.client.security import Security
from skidway.schemas.client.urls import parsed
from skidway.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySecuritySettings:
    """Credentials for the registry, and the certificate authorities to trust. The settings have the
    names that Confluent's clients use."""

    schema_registry_user_info: str | None = setting(
        "schema.registry.basic.auth.user.info",
        None,
        help="user:password, for a registry that asks for them. Make the file readable for its "
        "user alone.",
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
    def registry_security(self) -> Security:
        """Returns these settings in the form that the registry's client accepts."""
        return Security(
            self.schema_registry_user_info,
            self.schema_registry_ca,
            self.schema_registry_certificate,
            self.schema_registry_key,
        )

    def check_files(self, urls: str) -> None:
        """Raises ConfigurationRefused if the registry's URLs need TLS, and its files cannot be
        used."""
        if any(each.scheme == "https" for each in parsed(urls)):
            self.registry_security.context()
