"""A cluster that companies would let in: TLS, logins by SASL, and an authorizer that denies what is
not allowed. `secured_kafka` makes one of Apache Kafka, `secured_broker` one of our broker."""

from __future__ import annotations

from collections.abc import Sequence
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
from support.certificates import Authority, Pair
from support.processes import free_port

LISTENERS = ("SECURED", "MUTUAL")
PLAIN_USER = "plain-user"
"""The user who may log in by PLAIN. The password is the name and ` secret`."""
PRINCIPALS = "RULE:^CN=([^,]+).*$/$1/"
MECHANISMS = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}


class SecuredCluster:
    """A cluster with three listeners: one of its own, at `plain`, on which everybody may do
    everything, one with SASL_SSL (`address`), and one with mutual TLS (`mutual`).

    authority: signs the certificates of both sides. server: the broker's certificate.
    """

    plain: str

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.authority = Authority(folder)
        self.server = self.authority.sign("kafka")
        ports = {name: free_port() for name in LISTENERS}
        self.listeners = ",".join(f"{name}://localhost:{port}" for name, port in ports.items())
        self.protocols = "SECURED:SASL_SSL,MUTUAL:SSL"
        self.address, self.mutual = (f"localhost:{ports[name]}" for name in LISTENERS)

    # what administrators do

    def create_topic(self, name: str, partitions: int = 2) -> None:
        """Creates a topic."""
        with Client(self.plain) as client:
            assert client.create_topics([NewTopic(name, partitions, 1)]) == {name: None}

    def add_user(self, name: str, mechanism: str = "SCRAM-SHA-512", password: str = "") -> Path:
        """Gives a user a password, and returns the file with it."""
        secret = password or f"{name} secret"
        info = ScramCredentialInfo(MECHANISMS[mechanism], 4096)
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


def port_of(address: str) -> int:
    """Returns the port of an address."""
    return int(address.rpartition(":")[2])
