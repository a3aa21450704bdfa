"""How a client and a broker know each other, and whether strangers can read what they say. The
values are paths, never what the files contain, so they may be shown, and be sent to Spark's tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused
from skidway.kafka.types import PLAINTEXT, SASL_PLAINTEXT, SASL_SSL, SSL

if TYPE_CHECKING:
    from skidway.security.contexts import Contexts
    from skidway.security.sasl import Login

PROTOCOLS: Final = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
NAMES: Final = {
    "security.protocol": "protocol",
    "ssl.ca.location": "ca",
    "ssl.certificate.location": "certificate",
    "ssl.key.location": "key",
    "ssl.crl.location": "crl",
    "ssl.endpoint.identification.algorithm": "checks_name",
    "sasl.mechanism": "mechanism",
    "sasl.username": "username",
    "sasl.password.location": "password",
}
"""The settings' names, those of Kafka and librdkafka, and the fields of KafkaSecurity."""
_PATHS: Final = ("ca", "certificate", "key", "crl", "password")


@dataclass(frozen=True, slots=True)
class KafkaSecurity:
    """protocol: Kafka's `security.protocol`. certificate, key, ca, crl: see TlsFiles. checks_name:
    `https` if the broker's certificate must be for its host, otherwise `none`. mechanism, username,
    password: those of SASL; the password is a file's first line."""

    protocol: str = PLAINTEXT
    certificate: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    crl: Path | None = None
    checks_name: str = "https"
    mechanism: str | None = None
    username: str | None = None
    password: Path | None = None

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> Self:
        """Returns the security with these settings, by Kafka's names (NAMES); an empty text is no
        setting. Raises the errors of `check`."""
        given: dict[str, Any] = {NAMES[name]: text for name, text in texts.items() if text}
        made = cls(**(given | {name: Path(given[name]) for name in _PATHS if name in given}))
        made.check()
        return made

    @property
    def is_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.protocol in (SSL, SASL_SSL)

    @property
    def is_sasl(self) -> bool:
        """Whether the client logs in by SASL."""
        return self.protocol in (SASL_PLAINTEXT, SASL_SSL)

    def check(self) -> None:
        """Raises ConfigurationRefused if a value is wrong or missing, or a file cannot be used."""
        from skidway.security.sasl import MECHANISMS

        if self.protocol not in PROTOCOLS:
            raise ConfigurationRefused(
                f"security.protocol: {self.protocol!r} is none of {', '.join(PROTOCOLS)}"
            )
        if self.checks_name not in ("https", "none"):
            raise ConfigurationRefused(
                f"ssl.endpoint.identification.algorithm: {self.checks_name!r} is neither https nor"
                " none"
            )
        if self.is_sasl and self.mechanism not in MECHANISMS:
            raise ConfigurationRefused(
                f"sasl.mechanism: {self.mechanism!r} is none of {', '.join(MECHANISMS)}"
            )
        if self.is_sasl and (self.username is None or self.password is None):
            raise ConfigurationRefused(
                f"security.protocol is {self.protocol}: sasl.username or sasl.password.location is"
                " missing"
            )
        self.contexts()
        self.login()

    def contexts(self) -> Contexts | None:
        """Returns the TLS contexts of a client; None without TLS. Raises ConfigurationRefused."""
        if not self.is_tls:
            return None
        from skidway.security.contexts import Contexts, TlsFiles, client_context

        files = TlsFiles(self.certificate, self.key, self.ca, self.crl)
        is_checked = self.checks_name == "https"
        return Contexts(lambda: client_context(files, checks_name=is_checked), files)

    def login(self) -> Login | None:
        """Returns the login with the password as the file has it now; None without SASL. Raises
        ConfigurationRefused."""
        if not self.is_sasl:
            return None
        from skidway.security.sasl import Login
        from skidway.security.secret_file import secret_of

        assert self.mechanism is not None
        assert self.username is not None
        assert self.password is not None
        setting = "sasl.password.location"
        secret = secret_of(self.password, setting)
        return Login(self.mechanism, self.username, secret, f"{setting}: {self.password}")


NO_SECURITY: Final = KafkaSecurity()
