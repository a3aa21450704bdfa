"""The settings with which a program reaches a Kafka cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from skidway.errors import ConfigurationRefused, UsageError
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.security import KafkaSecurity
from skidway.kafka.types import PLAINTEXT
from skidway.settings import setting


@dataclass(frozen=True, kw_only=True)
class KafkaSecuritySettings:
    """The settings by which a client and the brokers of a cluster know each other. (Without slots,
    so that a class of settings can also inherit from another one.)"""

    security_protocol: str = setting(
        "security.protocol",
        PLAINTEXT,
        help="How to speak with the brokers: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
    )
    ssl_ca: Path | None = setting(
        "ssl.ca.location",
        None,
        help="PEM file of the authorities of the brokers' certificates; by default the machine's.",
    )
    ssl_certificate: Path | None = setting(
        "ssl.certificate.location",
        None,
        help="PEM file of this program's certificate, for brokers that ask for one.",
    )
    ssl_key: Path | None = setting(
        "ssl.key.location",
        None,
        help="PEM file of that certificate's key, not encrypted; by default in the same file.",
    )
    ssl_crl: Path | None = setting(
        "ssl.crl.location", None, help="PEM file of the authorities' lists of revoked certificates."
    )
    ssl_checked_name: Literal["https", "none"] = setting(
        "ssl.endpoint.identification.algorithm",
        "https",
        help="https: a broker's certificate must be for its host; none: it need not.",
    )
    sasl_mechanism: str | None = setting(
        "sasl.mechanism", None, help="PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."
    )
    sasl_username: str | None = setting("sasl.username", None, help="Who this program logs in as.")
    sasl_password: Path | None = setting(
        "sasl.password.location",
        None,
        help="File whose first line is the password. It is read for each connection.",
    )

    @property
    def security(self) -> KafkaSecurity:
        """These settings. Raises ConfigurationRefused if they are wrong, or their files cannot be
        used."""
        made = KafkaSecurity(
            protocol=self.security_protocol.upper(),
            ca=self.ssl_ca,
            certificate=self.ssl_certificate,
            key=self.ssl_key,
            crl=self.ssl_crl,
            checks_name=self.ssl_checked_name,
            mechanism=self.sasl_mechanism,
            username=self.sasl_username,
            password=self.sasl_password,
        )
        made.check()
        return made


@dataclass(frozen=True, kw_only=True)
class _Brokers:
    bootstrap_servers: str = setting(
        "bootstrap.servers",
        help="Brokers to begin with: host:port, comma-separated.",
        example="127.0.0.1:9092",
    )


@dataclass(frozen=True, kw_only=True)
class KafkaSettings(KafkaSecuritySettings, _Brokers):
    """The settings of every program that is a client of a cluster."""

    CLIENT_ID: ClassVar[str] = "skidway"

    @property
    def kafka(self) -> KafkaConnection:
        """The connection to these brokers. Raises ConfigurationRefused if an address is malformed,
        and the errors of `security`."""
        connection = KafkaConnection(self.bootstrap_servers, self.CLIENT_ID, security=self.security)
        try:
            _ = connection.addresses
        except UsageError as error:
            raise ConfigurationRefused(str(error)) from error
        return connection
