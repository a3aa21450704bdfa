"""Defines the client's credentials, and the certificate authorities that the client trusts. The
client supports HTTP basic authentication and TLS."""

from __future__ import annotations

import base64
import ssl
from dataclasses import field
from pathlib import Path

from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused


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

    def context(self) -> ssl.SSLContext:
        """Returns the TLS context for https. Raises `ConfigurationRefused` for files that cannot be
        used."""
        try:
            context = ssl.create_default_context(cafile=None if self.ca is None else str(self.ca))
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key, password=_refuse_password)
        except (OSError, ssl.SSLError) as error:
            files = ", ".join(str(f) for f in (self.ca, self.certificate, self.key) if f)
            raise ConfigurationRefused(
                f"The files for TLS cannot be used ({files}): {error.strerror or error}."
            ) from error
        return context


def _refuse_password() -> str:
    """Raises an error. OpenSSL calls this function if the key is encrypted; without this function,
    OpenSSL would ask for a password on the terminal."""
    raise ConfigurationRefused("ssl.key.location: the key is encrypted; give one that is not.")
