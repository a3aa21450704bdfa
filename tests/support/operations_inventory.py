"""The Ansible inventory for tests of what an operator does after the installation, such as adding
hosts.

The fleet begins with one server of each kind, and grows later. The intervals in the settings are
short, as in support.fleet_inventory.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

FIRST, SECOND, AUDIT = "server1", "server2", "server3"
HOSTS = (FIRST, SECOND, AUDIT)
TOPIC = "lines"
LINES = "/var/log/lines.log"
BUCKET_MS = 5_000


def inventory(
    version: str,
    wheels: Path,
    *,
    brokers: Sequence[str] = (FIRST,),
    zookeeper: Sequence[str] = (FIRST,),
    agents: Sequence[str] = (AUDIT,),
) -> dict[str, Any]:
    """Returns the operator's inventory. Each broker and each ZooKeeper server has the last digit of
    its host's name as its id."""
    return {
        "all": {
            "vars": {
                "skidway_version": version,
                "skidway_wheels_dir": str(wheels),
                "skidway_insecure_listeners": True,
                "skidway_clusters": {"dc1": {}},
                "skidway_health_retries": 90,
            },
            "children": {
                "zookeeper": {"hosts": {h: {"zookeeper_id": _number(h)} for h in zookeeper}},
                "brokers": {"hosts": {h: {"broker_id": _number(h)} for h in brokers}},
                "registry": {"hosts": {AUDIT: {}}},
                "audit": {"hosts": {AUDIT: {}}, "vars": _AUDIT},
                "agents": {"hosts": {h: {} for h in agents}, "vars": _AGENT},
            },
        }
    }


def _number(host: str) -> int:
    return int(host[-1])


_AUDIT = {
    "audit_settings": {"bucket.ms": BUCKET_MS, "lateness.ms": 5_000, "silence.ms": 8_000},
    "audit_counter_settings": {"bucket.ms": BUCKET_MS, "commit.interval.ms": 200},
}
_AGENT = {
    "agent_sources": [{"topic": TOPIC, "paths": [LINES]}],
    "agent_settings": {
        "audit.bucket.ms": BUCKET_MS,
        "seal.interval.ms": 1_000,
        "audit.interval.ms": 300,
        "heartbeat.interval.ms": 1_000,
        "idle.flush.ms": 500,
    },
}
