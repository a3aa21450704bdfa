"""A real Apache Kafka 4.4 as a secured cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from support import jvm
from support.kafka import ApacheKafka
from support.processes import running
from support.secured_cluster import MECHANISMS, PLAIN_USER, PRINCIPALS, SecuredCluster

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


class SecuredKafka(SecuredCluster):
    """Apache Kafka."""

    def __init__(self, folder: Path, *, reauthentication_ms: int = 0) -> None:
        super().__init__(folder)
        self._behind = {
            "listeners": self.listeners,
            "advertised.listeners": self.listeners,
            "listener.security.protocol.map": self.protocols,
        }
        self._settings = self._secured(reauthentication_ms)
        self.kafka = ApacheKafka(folder, options=jvm.BRIEF)
        self.plain = self.kafka.address

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
            "ssl.principal.mapping.rules": PRINCIPALS,
            "listener.name.mutual.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": ",".join(("PLAIN", *MECHANISMS)),
            "listener.name.secured.plain.sasl.jaas.config": (
                "org.apache.kafka.common.security.plain.PlainLoginModule required"
                f' user_{PLAIN_USER}="{PLAIN_USER} secret";'
            ),
        }
        for mechanism in MECHANISMS:
            found[f"listener.name.secured.{mechanism.lower()}.sasl.jaas.config"] = SCRAM
        for mechanism in ("PLAIN", *MECHANISMS):
            prefix = f"listener.name.secured.{mechanism.lower()}"
            found[f"{prefix}.connections.max.reauth.ms"] = str(reauthentication_ms)
        return found
