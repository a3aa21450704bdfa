"""A real Apache Kafka 4.4 that companies would let in: TLS, logins by SASL, and an authorizer that
denies whatever is not allowed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from skidway.kafka.client import Client, NewTopic
from support import jvm
from support.certificates import Authority, Pair
from support.kafka import ApacheKafka
from support.processes import free_port, running

LISTENERS = ("SECURED", "MUTUAL")
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
PLAIN_USER = "plain-user"
_MECHANISMS = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}


class SecuredKafka:
    """An Apache Kafka with three listeners: one of its own on which everybody may do everything,
    one with SASL_SSL, and one with mutual TLS.

    plain: the address of the first. address, mutual: those of the others. authority: signs the
    certificates of both sides.
    """

    def __init__(self, folder: Path, *, reauthentication_ms: int = 0) -> None:
        self._folder = folder
        self.authority = Authority(folder)
        self.server = self.authority.sign("kafka")
        ports = {name: free_port() for name in LISTENERS}
        addresses = ",".join(f"{name}://localhost:{port}" for name, port in ports.items())
        self._behind = {
            "listeners": addresses,
            "advertised.listeners": addresses,
            "listener.security.protocol.map": "SECURED:SASL_SSL,MUTUAL:SSL",
        }
        self._settings = self._secured(reauthentication_ms)
        self.kafka = ApacheKafka(folder, options=jvm.BRIEF)
        self.plain = self.kafka.address
        self.address, self.mutual = (f"localhost:{ports[name]}" for name in LISTENERS)

    @contextlib.contextmanager
    def running(self) -> Iterator[SecuredKafka]:
        """Runs Kafka during the `with` block."""
        self.kafka.format(more=self._settings, behind=self._behind)
        with running(self.kafka.program, self.kafka.ready):
            yield self

    def _secured(self, reauthentication_ms: int) -> dict[str, str]:
        keys = self._folder / "kafka-keystore.pem"
        keys.write_bytes(self.server.key.read_bytes() + self.server.certificate.read_bytes())
        found = {
            "inter.broker.listener.name": "PLAINTEXT",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(keys),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/",
            "listener.name.mutual.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": ",".join(("PLAIN", *_MECHANISMS)),
            "listener.name.secured.plain.sasl.jaas.config": (
                "org.apache.kafka.common.security.plain.PlainLoginModule required"
                f' user_{PLAIN_USER}="{PLAIN_USER} secret";'
            ),
        }
        for mechanism in _MECHANISMS:
            prefix = f"listener.name.secured.{mechanism.lower()}"
            found[f"{prefix}.sasl.jaas.config"] = SCRAM
            found[f"{prefix}.connections.max.reauth.ms"] = str(reauthentication_ms)
        return found

    # what administrators do

    def create_topic(self, name: str, partitions: int = 2) -> None:
        """Creates a topic."""
        with Client(self.plain) as client:
            assert client.create_topics([NewTopic(name, partitions, 1)]) == {name: None}

    def add_user(self, name: str, mechanism: str = "SCRAM-SHA-512", password: str = "") -> Path:
        """Gives a user a password, and returns the file with it."""
        secret = password or f"{name} secret"
        info = ScramCredentialInfo(_MECHANISMS[mechanism], 4096)
        change = UserScramCredentialUpsertion(name, info, secret.encode())
        client = self._client()
        for future in client.alter_user_scram_credentials([change]).values():
            future.result()
        return self.write_password(name, secret)

    def write_password(self, name: str, secret: str) -> Path:
        """Writes the file from which a client reads a password."""
        path = self._folder / f"{name}.password"
        path.write_text(f"{secret}\n")
        return path

    def allow(
        self, name: str, operations: Sequence[str], *, topics: Sequence[str] = (),
        prefixes: Sequence[str] = (), groups: Sequence[str] = (), on_cluster: bool = False,
    ) -> None:  # fmt: skip
        """Allows a user operations, in Kafka's words, on resources."""
        patterns, kinds = ResourcePatternType, ResourceType
        resources: list[tuple[Any, str, Any]] = [
            *((kinds.TOPIC, each, patterns.LITERAL) for each in topics),
            *((kinds.TOPIC, each, patterns.PREFIXED) for each in prefixes),
            *((kinds.GROUP, each, patterns.LITERAL) for each in groups),
        ]
        if on_cluster:
            resources.append((kinds.BROKER, "kafka-cluster", patterns.LITERAL))
        bindings = [
            AclBinding(
                kind, resource, pattern, f"User:{name}", "*",
                getattr(AclOperation, operation), AclPermissionType.ALLOW,
            )
            for kind, resource, pattern in resources
            for operation in operations
        ]  # fmt: skip
        client = self._client()
        for future in client.create_acls(bindings).values():
            future.result()

    def _client(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.plain})

    # what clients are configured with

    def login(self, name: str, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """Returns the settings of a client that logs in as this user, who has a password."""
        return {
            "bootstrap.servers": self.address,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.authority.certificate),
            "sasl.mechanism": mechanism,
            "sasl.username": name,
            "sasl.password.location": str(self._folder / f"{name}.password"),
        }

    def certified(self, name: str, pair: Pair | None = None) -> dict[str, str]:
        """Returns the settings of a client with a certificate of this name."""
        return self.authority.client(self.mutual, pair or self.authority.sign(name))
