"""The settings of `skidway zookeeper run`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skidway.errors import ConfigurationRefused
from skidway.http.hosts import allowed_hosts_setting
from skidway.insecure_listeners import insecure_listeners_setting, reachable, refuse
from skidway.security.contexts import TlsFiles
from skidway.settings import setting
from skidway.zookeeper.tls import ServerTls


@dataclass(frozen=True, slots=True, kw_only=True)
class ZookeeperSettings:
    """Settings of `skidway zookeeper run`, under ZooKeeper's own names."""

    data_dir: Path = setting(
        "dataDir",
        help="Directory of snapshots and transaction logs; made if missing.",
        example="/var/lib/skidway/zookeeper",
    )
    data_log_dir: Path | None = setting(
        "dataLogDir", None, help="Directory of the transaction logs, if not dataDir."
    )
    client_port: int = setting(
        "clientPort", 2181, help="Port for clients.", at_least=1, at_most=65535
    )
    client_port_address: str = setting(
        "clientPortAddress", "127.0.0.1", help="Address to listen on; 0.0.0.0 is all of them."
    )
    secure_client_port: int | None = setting(
        "secureClientPort",
        None,
        help="Port for clients with TLS; otherwise there is none.",
        at_least=1,
        at_most=65535,
    )
    secure_client_port_address: str = setting(
        "secureClientPortAddress",
        "127.0.0.1",
        help="Address of secureClientPort; 0.0.0.0 is all of them.",
    )
    ssl_quorum: bool = setting(
        "sslQuorum",
        False,
        help="Whether the servers of the ensemble speak TLS with each other; each shows its"
        " certificate.",
    )
    certificate: Path | None = setting(
        "ssl.certificate.location",
        None,
        help="PEM file with the certificate of secureClientPort and sslQuorum, and its chain. Like"
        " the other files of ssl.*, read again when it changes.",
    )
    key: Path | None = setting(
        "ssl.key.location",
        None,
        help="PEM file of the certificate's key, PKCS #8, not encrypted; by default the"
        " certificate's file has the key.",
    )
    ca: Path | None = setting(
        "ssl.ca.location",
        None,
        help="PEM file of the authorities whose certificates clients, with ssl.client.auth, and the"
        " other servers of the ensemble may have.",
    )
    client_auth: Literal["none", "required"] = setting(
        "ssl.client.auth",
        "none",
        help="Whether clients of secureClientPort must show a certificate.",
    )
    enforce_auth: bool = setting(
        "enforce.auth.enabled",
        False,
        help="Whether clients must name a user (scheme digest), so that no program makes nodes that"
        " are open to everybody. ZooKeeper takes every name and password.",
    )
    insecure_listeners: bool = insecure_listeners_setting()
    tick_time_ms: int = setting(
        "tickTime",
        2000,
        help="ZooKeeper's unit of time in ms; sessions last 2 to 20 ticks.",
        at_least=100,
        at_most=60_000,
    )
    max_client_connections: int = setting(
        "maxClientCnxns",
        200,
        help="Connections from one address; 0 is no limit.",
        at_least=0,
    )
    snapshots_kept: int = setting(
        "autopurge.snapRetainCount", 3, help="Snapshots that are kept.", at_least=3
    )
    purge_interval_h: int = setting(
        "autopurge.purgeInterval",
        24,
        help="Hours between purges of old snapshots and logs; 0 never purges.",
        at_least=0,
    )
    init_limit: int = setting(
        "initLimit", 10, help="Ticks that a follower may take to connect and sync.", at_least=1
    )
    sync_limit: int = setting(
        "syncLimit", 5, help="Ticks that a follower may fall behind.", at_least=1
    )
    servers: dict[str, str] = setting(
        "server",
        {},
        help="Ensemble: server.N: host:port:port, the same on every member; none: a single server.",
    )
    my_id: int | None = setting(
        "myid", None, help="This server's N in an ensemble.", at_least=1, at_most=255
    )
    heap_mb: int = setting(
        "jvm.heap.mb", 128, help="Largest heap of the JVM in MiB.", at_least=64, at_most=65_536
    )
    log_file: Path | None = setting(
        "log.file",
        None,
        help="File for ZooKeeper's own log, text lines; otherwise standard output.",
    )
    log_file_mb: int = setting(
        "log.file.mb",
        64,
        help="Size in MiB at which log.file is rolled; five are kept.",
        at_least=1,
    )
    metrics_listener: str = setting(
        "metrics.listener", "127.0.0.1:9106", help="host:port of /metrics and /health."
    )
    allowed_hosts: list[str] = allowed_hosts_setting()

    def check(self) -> None:
        """Raises ConfigurationRefused for a listener that `insecure_listeners` must allow, if the
        settings of TLS contradict each other, and if `servers` is set and has no server with number
        `myid`."""
        if self.servers and str(self.my_id) not in self.servers:
            raise ConfigurationRefused(
                f"myid must be one of {', '.join(sorted(self.servers))}, the N of the server.N keys"
            )
        if self.is_tls and self.certificate is None:
            raise ConfigurationRefused("ssl.certificate.location is missing.")
        if self.ssl_quorum and (self.ca is None or not self.servers):
            missing = "ssl.ca.location" if self.ca is None else "server.N"
            raise ConfigurationRefused(f"sslQuorum is true: {missing} is missing.")
        if self.client_auth == "required" and self.ca is None:
            raise ConfigurationRefused("ssl.client.auth is required: ssl.ca.location is missing.")
        if self.secure_client_port == self.client_port:
            raise ConfigurationRefused("secureClientPort must be another port than clientPort")
        refuse(self.insecure(), allowed=self.insecure_listeners)

    def insecure(self) -> list[str]:
        """Returns the addresses for clients, and for the other servers of the ensemble, that other
        hosts can reach without authentication. ZooKeeper listens on its own address in `servers`
        for them. A port with TLS authenticates if it asks for certificates. `enforce.auth.enabled`
        does not: a stranger invents a user."""
        own = self.servers.get(str(self.my_id), "")
        clients = f"{self.client_port_address}:{self.client_port}"
        listeners = [(f"clientPortAddress {clients}", self.client_port_address)]
        if self.secure_client_port is not None and self.client_auth == "none":
            secure = f"{self.secure_client_port_address}:{self.secure_client_port}"
            listeners.append((f"secureClientPort {secure}", self.secure_client_port_address))
        if own and not self.ssl_quorum:
            host = own[1:].partition("]")[0] if own.startswith("[") else own.partition(":")[0]
            listeners.append((f"server.{self.my_id} {own}", host))
        return reachable(listeners)

    @property
    def is_tls(self) -> bool:
        """Whether the server speaks TLS."""
        return self.secure_client_port is not None or self.ssl_quorum

    def tls(self) -> ServerTls | None:
        """Returns the certificate files; None without TLS. Raises ConfigurationRefused if they
        cannot be used."""
        if not self.is_tls:
            return None
        given = TlsFiles(self.certificate, self.key, self.ca)
        return ServerTls(self.data_dir, given, self.client_auth)
