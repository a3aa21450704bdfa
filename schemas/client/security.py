"""Defines the client's credentials, and the certificate authorities that the client trusts. The
client supports HTTP basic authentication and TLS."""

from __future__ import annotations

import base64
from dataclasses import field
from pathlib import Path

from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused
from skidway.security.contexts import Contexts, TlsFiles, client_context


@dataclass(frozen=True, slots=True)
class Security:
    """Credentials and trusted certificate authorities. All fields are optional. `user_info` is
    `user:password`. The other fields are paths of PEM files.

    Without `ca`, the client trusts the certificate authorities of the machine. If a registry asks
    for a certificate (mutual TLS), the client presents `certificate`, and proves with `key` that it
    owns the certificate. The certificate's file may also contain the key.
    """

    user_info: str | None = field(default=None, repr=False)  # keeps the password out of logs
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def headers(self) -> dict[str, str]:
        """Returns the headers that every request to the registry has: one with user and password
        (RFC 7617), or none if no user is set. Raises `ConfigurationRefused`."""
        if self.user_info is None:
            return {}
        if ":" not in self.user_info:
            raise ConfigurationRefused("schema.registry.basic.auth.user.info is not user:password.")
        return {"Authorization": f"Basic {base64.b64encode(self.user_info.encode()).decode()}"}

    def contexts(self) -> Contexts:
        """Returns the TLS contexts for https. Raises `ConfigurationRefused` for files that cannot
        be used."""
        files = TlsFiles(self.certificate, self.key, self.ca)
        try:
            return Contexts(lambda: client_context(files), files)
        except ConfigurationRefused as error:
            raise ConfigurationRefused(f"schema.registry.{error}") from error
