"""Defines the settings of `skidway registry run`. A setting that Confluent's registry also has
keeps Confluent's name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from skidway.errors import ConfigurationRefused
from skidway.http.hosts import allowed_hosts_setting
from skidway.http.listeners import Listener
from skidway.insecure_listeners import insecure_listeners_setting, reachable, refuse
from skidway.schemas.registry.passwords import Users
from skidway.security.contexts import ClientAuth, Contexts, TlsFiles, server_context
from skidway.settings import setting
from skidway.telemetry import host_and_port
from skidway.zookeeper_settings import ZooKeeperSettings

LevelName = Literal[
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySettings(ZooKeeperSettings):
    """The registry's settings. `check` reads the files that the settings name."""

    listeners: list[str] = setting(
        "listeners",
        ["http://127.0.0.1:8081"],
        help="Where clients connect: http://host:port or https://host:port, both at once if you "
        "like; 0.0.0.0 is every address.",
    )
    insecure_listeners: bool = insecure_listeners_setting()
    level: LevelName = setting(
        "schema.compatibility.level",
        "BACKWARD",
        help="The compatibility level that holds until the REST API sets one.",
    )
    mode_mutability: bool = setting(
        "mode.mutability", True, help="Whether the REST API may change modes."
    )
    metrics_listener: str = setting(
        "metrics.listener", "127.0.0.1:9103", help="Where /metrics and /health are answered."
    )
    allowed_hosts: list[str] = allowed_hosts_setting()
    authentication: Literal["NONE", "BASIC"] = setting(
        "authentication.method",
        "NONE",
        help="BASIC: clients send user and password (basic.auth.user.info), with every request, so "
        "only https is accepted then, or http on loopback.",
    )
    realm: str = setting(
        "authentication.realm", "skidway", help="Shown to people who are asked for a password."
    )
    users_file: Path | None = setting(
        "authentication.users.file",
        None,
        help="Users for BASIC, one per line, as `skidway registry hash-password` prints them. Read "
        "again when it changes.",
    )
    certificate: Path | None = setting(
        "ssl.certificate.location",
        None,
        help="PEM file with the certificate for https and its chain (named as in Confluent's "
        "clients; its registry has ssl.keystore.location). Read again when it changes.",
    )
    key: Path | None = setting(
        "ssl.key.location",
        None,
        help="PEM file of the certificate's key, not encrypted; by default the certificate's file "
        "has the key.",
    )
    ca: Path | None = setting(
        "ssl.ca.location",
        None,
        help="PEM file of the authorities whose client certificates are accepted (in Confluent's "
        "registry ssl.truststore.location).",
    )
    crl: Path | None = setting(
        "ssl.crl.location", None, help="PEM file of the authorities' lists of revoked certificates."
    )
    client_certificates: Literal["NONE", "REQUESTED", "REQUIRED"] = setting(
        "ssl.client.authentication",
        "NONE",
        help="Whether https clients are asked for a certificate: NONE, REQUESTED, REQUIRED.",
    )

    @property
    def addresses(self) -> list[Listener]:
        """Returns the addresses in the setting `listeners`. Raises `ConfigurationRefused`."""
        return [Listener.of(each) for each in self.listeners]

    @property
    def tls(self) -> Contexts | None:
        """Returns the contexts for https, or None without https. Raises `ConfigurationRefused`."""
        if not any(each.is_tls for each in self.addresses):
            return None
        files = TlsFiles(self.certificate, self.key, self.ca, self.crl)
        clients = cast("ClientAuth", self.client_certificates.lower())
        return Contexts(lambda: server_context(files, clients), files)

    @property
    def users(self) -> Users | None:
        """Returns the users who may use the registry, or None if everybody may use it. Raises
        `ConfigurationRefused`."""
        if self.authentication == "NONE":
            return None
        if self.users_file is None:
            raise ConfigurationRefused(
                "authentication.method is BASIC: authentication.users.file is missing."
            )
        return Users(self.users_file)

    def check(self) -> None:
        """Raises `ConfigurationRefused` for invalid addresses, and for files that cannot be
        used."""
        if not self.listeners:
            raise ConfigurationRefused("listeners: at least one is needed.")
        _ = self.zookeeper
        host_and_port(self.metrics_listener, key="metrics.listener")
        if self.authentication == "BASIC":
            self._check_passwords_are_encrypted()
        _ = self.tls, self.users
        refuse(self.insecure(), allowed=self.insecure_listeners)

    def insecure(self) -> list[str]:
        """Returns the listeners that other hosts can reach without authentication. Raises
        `ConfigurationRefused`."""
        if self.authentication != "NONE":
            return []
        return self._reachable(with_tls=self.client_certificates != "REQUIRED")

    def _check_passwords_are_encrypted(self) -> None:
        for text in self._reachable(with_tls=False):
            raise ConfigurationRefused(
                f"listeners: {text} would carry the passwords of authentication.method BASIC"
                " unencrypted; use https there, or an address of loopback behind a proxy with TLS."
            )

    def _reachable(self, *, with_tls: bool) -> list[str]:
        listeners = zip(self.listeners, self.addresses, strict=True)
        return reachable(
            (text, each.host) for text, each in listeners if with_tls or not each.is_tls
        )
