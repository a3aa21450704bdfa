"""The setting with which a program reaches ZooKeeper."""

from __future__ import annotations

from dataclasses import dataclass

from skidway.coordination import ZooKeeperConnection
from skidway.settings import setting


@dataclass(frozen=True, kw_only=True)
class ZooKeeperSettings:
    """The settings of every program that is a client of ZooKeeper. (Without slots, so that a class
    of settings can also inherit from another one.)"""

    zookeeper_connect: str = setting(
        "zookeeper.connect",
        "127.0.0.1:2181",
        help="ZooKeeper's addresses: host:port,... A cluster of brokers has a chroot there "
        "(host:port,.../dc1); the registry has none, because one registry serves all clusters.",
    )

    @property
    def zookeeper(self) -> ZooKeeperConnection:
        """The connection to this ZooKeeper. Raises ConfigurationRefused if the text is
        malformed."""
        return ZooKeeperConnection(self.zookeeper_connect)
