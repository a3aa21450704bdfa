"""Finds the ZooKeeper of the brokers, in which the consumer groups are stored.

A broker lists its settings (DescribeConfigs, KIP-133). Skidway's brokers list `zookeeper.connect`
with its chroot. Brokers of Apache Kafka before 4.0 also list this setting, if they run on
ZooKeeper.
"""

from __future__ import annotations

from typing import Final

from skidway.errors import UsageError
from skidway.kafka.client import Client

ZOOKEEPER_CONNECT: Final = "zookeeper.connect"


def zookeeper_of(client: Client) -> str:
    """Returns the address of ZooKeeper, as host:port[,...][/chroot], from the brokers' settings.
    Raises UsageError if the brokers use no ZooKeeper."""
    found = client.broker_configs().get(ZOOKEEPER_CONNECT)
    if not found:
        raise UsageError(
            f"the brokers of {client.bootstrap} name no ZooKeeper (zookeeper.connect); name "
            "the one for consumer groups"
        )
    return found
