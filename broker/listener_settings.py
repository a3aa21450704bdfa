"""The settings of the broker's listeners: their addresses, their protocols and their TLS. They have
the names of Kafka's settings, and of librdkafka's where Kafka knows Java's key stores only.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from skidway.broker.access.logins import SESSION_MS_MIN, Logins
from skidway.broker.catalog import Endpoint
from skidway.broker.network.listener_tls import ListenerTls
from skidway.errors import ConfigurationRefused
from skidway.insecure_listeners import insecure_listeners_setting, reachable, refuse
from skidway.kafka.types import PLAINTEXT, SASL_SSL, SSL
from skidway.security.contexts import ClientAuth, TlsFiles
from skidway.security.principals import PrincipalRules
from skidway.security.sasl import MECHANISMS, SCRAM
from skidway.settings import setting
from skidway.zookeeper_settings import ZooKeeperSettings

_INT_MAX: Final = (1 << 31) - 1
_WILDCARDS: Final = ("", "0.0.0.0", "::")  # noqa: S104 - used only in comparisons, never to bind
_WITH_TLS: Final = (SSL, SASL_SSL)
_ENDPOINT: Final = re.compile(r"([\w.-]+)://(.*):([0-9]{1,5})", re.ASCII)


def parse_endpoint(text: str, key: str, protocols: Mapping[str, str] | None = None) -> Endpoint:
    """Parses "LISTENER://host:port". protocols: of each listener; for others, the name is the
    protocol. Port 0 means any free port. Raises ConfigurationRefused, which names `key`."""
    found = _ENDPOINT.fullmatch(text.strip())
    if found is None or int(found[3]) > 65535:
        raise ConfigurationRefused(f"{key}: {text!r} is not LISTENER://host:port")
    name = found[1].upper()
    protocol = (protocols or {}).get(name, name)
    if protocol not in (PLAINTEXT, *_WITH_TLS):
        raise ConfigurationRefused(
            f"{key}: {text!r}: the protocol {protocol} is not offered. Name the listener"
            f" {PLAINTEXT}, {SSL} or {SASL_SSL}, or give its protocol in"
            " listener.security.protocol.map"
        )
    return Endpoint(name, protocol, found[2].strip("[]"), int(found[3]))


@dataclass(frozen=True, kw_only=True)
class ListenerSettings(ZooKeeperSettings):
    """The part of the broker's settings that is about listeners."""

    listeners: list[str] = setting(
        "listeners",
        ["PLAINTEXT://127.0.0.1:9092"],
        help="Addresses to listen on: PLAINTEXT://host:port, SSL://host:port,"
        " SASL_SSL://host:port.",
        at_least=1,
    )
    advertised_listeners: list[str] = setting(
        "advertised.listeners",
        [],
        help="Address to which clients of each listener are told to connect; default: its own.",
    )
    listener_protocols: list[str] = setting(
        "listener.security.protocol.map",
        [],
        help="LISTENER:PROTOCOL for each listener whose name is not its protocol.",
    )
    certificate: Path | None = setting(
        "ssl.certificate.location",
        None,
        help="PEM file with the certificate of listeners with TLS, and its chain. Like the other"
        " files of ssl.*, read again when it changes.",
    )
    key: Path | None = setting(
        "ssl.key.location",
        None,
        help="PEM file of the certificate's key, not encrypted; by default the certificate's file"
        " has the key.",
    )
    ca: Path | None = setting(
        "ssl.ca.location",
        None,
        help="PEM file of the authorities whose client certificates are accepted.",
    )
    crl: Path | None = setting(
        "ssl.crl.location",
        None,
        help="PEM file with the revocation list of each of these authorities.",
    )
    client_auth: ClientAuth = setting(
        "ssl.client.auth",
        "none",
        help="Whether clients of SSL listeners are asked for a certificate, and must have one.",
    )
    principal_rules: str = setting(
        "ssl.principal.mapping.rules",
        "DEFAULT",
        help="How a client's principal is made from the name in its certificate.",
    )
    sasl_mechanisms: list[str] = setting(
        "sasl.enabled.mechanisms",
        list(SCRAM),
        help="How clients of SASL_SSL listeners may log in: SCRAM-SHA-256, SCRAM-SHA-512, PLAIN.",
        at_least=1,
    )
    reauthentication_ms_max: int = setting(
        "connections.max.reauth.ms",
        3_600_000,
        help="Time after which clients have to log in again; 0 = never.",
        at_least=0,
        at_most=_INT_MAX,
    )
    failed_authentication_delay_ms: int = setting(
        "connection.failed.authentication.delay.ms",
        100,
        help="Time after which a failed login is answered.",
        at_least=0,
        at_most=10_000,
    )
    login_bytes_max: int = setting(
        "sasl.server.max.receive.size",
        524_288,
        help="Largest request of a client that has not logged in.",
        at_least=1024,
        at_most=_INT_MAX,
    )
    insecure_listeners: bool = insecure_listeners_setting()

    @property
    def protocols(self) -> dict[str, str]:
        """The protocols of listeners whose name is not their protocol. Raises
        ConfigurationRefused."""
        found = {}
        for text in self.listener_protocols:
            name, colon, protocol = text.strip().upper().partition(":")
            if not name or not colon:
                raise ConfigurationRefused(
                    f"listener.security.protocol.map: {text!r} is not LISTENER:PROTOCOL"
                )
            found[name] = protocol
        return found

    def endpoints(self) -> list[Endpoint]:
        """Returns the addresses on which the broker listens. Raises ConfigurationRefused."""
        return self._parsed("listeners", self.listeners)

    def advertised(self, ports: Sequence[int]) -> tuple[Endpoint, ...]:
        """Returns for each listener the address for its clients: that of advertised.listeners, or
        else its own, the first if it has several. If it has no host, clients get this machine's
        name. If its host is `localhost`, they get 127.0.0.1, because for `localhost` they may try
        ::1, on which the broker does not listen. ports: those that the listeners have bound.
        """
        told = {each.listener: each for each in self._told()}
        found: dict[str, Endpoint] = {}
        for own, port in zip(self.endpoints(), ports, strict=True):
            if own.listener in found:
                continue
            given = told.get(own.listener)
            if given is not None:
                found[own.listener] = replace(given, port=given.port or port)
                continue
            host = "127.0.0.1" if own.host == "localhost" else own.host or socket.gethostname()
            found[own.listener] = replace(own, host=host, port=port)
        return tuple(found.values())

    def insecure(self) -> list[str]:
        """Returns the listeners that other hosts can reach without authentication. Raises
        ConfigurationRefused as `endpoints` does."""
        return reachable(
            (text, each.host)
            for text, each in zip(self.listeners, self.endpoints(), strict=True)
            if each.protocol == PLAINTEXT
            or (each.protocol == SSL and self.client_auth != "required")
        )

    def tls(self) -> dict[str, ListenerTls]:
        """Reads the files for TLS of each protocol that has it and is in use. (As in Kafka, clients
        that log in are not asked for a certificate.) Raises ConfigurationRefused."""
        files = TlsFiles(self.certificate, self.key, self.ca, self.crl)
        rules = PrincipalRules(self.principal_rules)
        used = {each.protocol for each in self.endpoints()}
        return {
            each: ListenerTls(files, self.client_auth if each == SSL else "none", rules)
            for each in _WITH_TLS
            if each in used
        }

    def logins(self) -> Logins:
        """Returns how clients of SASL_SSL listeners may log in. Raises ConfigurationRefused."""
        for each in self.sasl_mechanisms:
            if each not in MECHANISMS:
                raise ConfigurationRefused(
                    f"sasl.enabled.mechanisms: {each!r} is not one of {', '.join(MECHANISMS)}"
                )
        if 0 < self.reauthentication_ms_max < SESSION_MS_MIN:
            raise ConfigurationRefused(
                f"connections.max.reauth.ms must be 0 or at least {SESSION_MS_MIN}"
            )
        return Logins(self.sasl_mechanisms, self.reauthentication_ms_max)

    def check_listeners(self) -> None:
        """Raises ConfigurationRefused."""
        own = self.endpoints()
        told = {each.listener for each in self._told()}
        if unknown := sorted(told - {each.listener for each in own}):
            raise ConfigurationRefused(
                f"advertised.listeners: {unknown[0]} is not the name of one of the listeners"
            )
        for each in own:
            if each.listener not in told and each.host in _WILDCARDS:
                raise ConfigurationRefused(
                    "advertised.listeners must name the address for clients of"
                    f" {each.listener}, because this listener binds to every address"
                )
        self.tls()
        self.logins()
        refuse(self.insecure(), allowed=self.insecure_listeners)

    def _told(self) -> list[Endpoint]:
        found = self._parsed("advertised.listeners", self.advertised_listeners)
        if len({each.listener for each in found}) != len(found):
            raise ConfigurationRefused("advertised.listeners names a listener twice")
        return found

    def _parsed(self, key: str, texts: Sequence[str]) -> list[Endpoint]:
        protocols = self.protocols
        return [parse_endpoint(each, key, protocols) for each in texts]
