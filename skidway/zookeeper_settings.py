"""The settings with which a program reaches ZooKeeper. Kazoo is imported when they are used: the
profile has some of them, and most commands need no ZooKeeper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skidway.settings import setting

if TYPE_CHECKING:
    from skidway.coordination import ZooKeeperConnection, ZooKeeperSecurity


@dataclass(frozen=True, kw_only=True)
class ZooKeeperSecuritySettings:
    """The settings by which a client and ZooKeeper know each other. (Without slots, so that a class
    of settings can also inherit from another one.)"""

    zookeeper_tls: bool = setting(
        "zookeeper.ssl.client.enable", False, help="Whether ZooKeeper's ports speak TLS."
    )
    zookeeper_ca: Path | None = setting(
        "zookeeper.ssl.ca.location",
        None,
        help="PEM file of the authorities of ZooKeeper's certificates; by default the machine's.",
    )
    zookeeper_certificate: Path | None = setting(
        "zookeeper.ssl.certificate.location",
        None,
        help="PEM file of this program's certificate, for a ZooKeeper that asks for one.",
    )
    zookeeper_key: Path | None = setting(
        "zookeeper.ssl.key.location",
        None,
        help="PEM file of that certificate's key, not encrypted; by default in the same file.",
    )
    zookeeper_auth: Path | None = setting(
        "zookeeper.auth.location",
        None,
        help="File with this program's user in ZooKeeper, a line user:password; a second line while"
        " the password is changed. Every node that the program makes belongs to the users of all"
        " lines. Not readable by others.",
    )

    @property
    def zookeeper_security(self) -> ZooKeeperSecurity:
        """These settings. Raises ConfigurationRefused if their files cannot be used."""
        from skidway.coordination import ZooKeeperSecurity

        made = ZooKeeperSecurity(
            self.zookeeper_tls,
            self.zookeeper_ca,
            self.zookeeper_certificate,
            self.zookeeper_key,
            self.zookeeper_auth,
        )
        made.check()
        return made


@dataclass(frozen=True, kw_only=True)
class _Servers:
    zookeeper_connect: str = setting(
        "zookeeper.connect",
        "127.0.0.1:2181",
        help="ZooKeeper's addresses: host:port,... A cluster of brokers has a chroot there "
        "(host:port,.../dc1); the registry has none, because one registry serves all clusters.",
    )


@dataclass(frozen=True, kw_only=True)
class ZooKeeperSettings(ZooKeeperSecuritySettings, _Servers):
    """The settings of every program that is a client of ZooKeeper."""

    @property
    def zookeeper(self) -> ZooKeeperConnection:
        """The connection to this ZooKeeper. Raises ConfigurationRefused if the text is malformed,
        or a file cannot be used."""
        from skidway.coordination import ZooKeeperConnection

        return ZooKeeperConnection(self.zookeeper_connect, security=self.zookeeper_security)
