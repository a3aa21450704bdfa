"""Our broker as a secured cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from support.brokers import SkidwayBroker
from support.secured_cluster import PRINCIPALS, SecuredCluster


def broker_settings(cluster: SecuredCluster) -> dict[str, str]:
    """Returns the settings of a broker of ours that is this cluster."""
    listeners = f"PLAINTEXT://{cluster.plain},{cluster.listeners}"
    return {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": cluster.protocols,
        "ssl.certificate.location": str(cluster.server.certificate),
        "ssl.key.location": str(cluster.server.key),
        "ssl.ca.location": str(cluster.authority.certificate),
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": PRINCIPALS,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "authorizer.mode": "enforce",
        "super.users": "User:ANONYMOUS",
    }


class SecuredBroker(SecuredCluster):
    """Our broker."""

    def __init__(
        self, folder: Path, zookeeper: str, *, reauthentication_ms: int = 3_600_000, **more: object
    ) -> None:
        super().__init__(folder)
        own = {
            "connections_max_reauth_ms": reauthentication_ms,
            "group_initial_rebalance_delay_ms": 0,
        }
        self.broker = SkidwayBroker(folder, zookeeper, **{**own, **more})
        self.plain = self.broker.address
        self.broker.settings = {
            **self.broker.settings,
            **broker_settings(self),
            **{key.replace("_", "."): value for key, value in more.items()},
        }

    @contextlib.contextmanager
    def running(self) -> Iterator[SecuredBroker]:
        """Runs the broker during the `with` block."""
        self.broker.start()
        try:
            yield self
        finally:
            self.broker.end()
