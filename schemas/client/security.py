"""Defines the client's credentials, and the certificate authorities that the client trusts. The
client supports HTTP basic authentication and TLS."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path
from typing import Final

from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused
from skidway.schemas.client.urls import USER_INFO
from skidway.security.contexts import Contexts, TlsFiles, client_context
from skidway.security.secret_file import secret_of
from skidway.security.tls_reasons import setting_of_client, tls_reason

PREFIX: Final = "schema.registry."
"""Before the names of the settings of TLS."""


@dataclass(frozen=True, slots=True)
class Security:
    """Credentials and trusted certificate authorities. All fields are optional, and are paths.
    `user_info`: a file whose first line is `user:password`. The others: PEM files.

    Without `ca`, the client trusts the certificate authorities of the machine. If a registry asks
    for a certificate (mutual TLS), the client presents `certificate`, and proves with `key` that it
    owns the certificate. The certificate's file may also contain the key.
    """

    user_info: Path | None = None
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def headers(self) -> dict[str, str]:
        """Returns the headers that every request to the registry has: one with user and password
        (RFC 7617) as the file has them now, or none if no file is set. Raises
        `ConfigurationRefused`."""
        if self.user_info is None:
            return {}
        user_info = secret_of(self.user_info, USER_INFO)
        if ":" not in user_info:
            raise ConfigurationRefused(f"{USER_INFO}: {self.user_info} is not user:password.")
        return {"Authorization": f"Basic {base64.b64encode(user_info.encode()).decode()}"}

    def contexts(self) -> Contexts:
        """Returns the TLS contexts for https. Raises `ConfigurationRefused` for files that cannot
        be used."""
        files = TlsFiles(self.certificate, self.key, self.ca)
        try:
            return Contexts(lambda: client_context(files), files)
        except ConfigurationRefused as error:
            raise ConfigurationRefused(f"{PREFIX}{error}") from error

    def tls_reason(self, error: ssl.SSLError) -> str:
        """Returns why a registry and this client do not accept each other, with the setting that
        may be wrong."""
        place = setting_of_client(error, self.ca, self.certificate)
        return f"{tls_reason(error)} ({PREFIX}{place})" if place else tls_reason(error)
