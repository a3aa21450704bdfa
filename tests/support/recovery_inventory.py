"""The Ansible inventory for tests of the failures in the guide (docs/operations.md): a mirrored
cluster, two agents, and a registry with TLS.

The intervals in the settings are short, as in support.fleet_inventory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SOURCE, OFFLINE = "dc1", "off"
APPLICATIONS = ("app1", "app2")
HOSTS = (SOURCE, OFFLINE, *APPLICATIONS)
TOPIC = "nginx"
LINES = "/var/log/lines.log"
OUTPUT = "/srv/lake"
BUCKET_MS = 5_000

Files = Mapping[str, str]


def inventory(
    version: str,
    wheels: Path,
    *,
    registry_files: Files,
    authorities: str,
    user: str,
    agents: Sequence[str] = APPLICATIONS,
) -> dict[str, Any]:
    """The inventory as an operator would write it.

    - registry_files: maps each of the file names registry.pem, registry.key and users to the file's
      content.
    - authorities: the certificates, as PEM, of the certificate authorities that the registry's
      clients trust.
    - user: the clients' user name and password, with a colon between them.
    """
    trust = {"ca.pem": authorities, "user.info": user}
    return {
        "all": {
            "vars": {
                "skidway_version": version,
                "skidway_wheels_dir": str(wheels),
                "skidway_insecure_listeners": True,
                "skidway_clusters": {"dc1": {}, "offline": {"mirrors": ["dc1"]}},
                "skidway_gate_timeout_s": 180,
                "skidway_health_retries": 90,
            },
            "children": {
                "cluster_dc1": {
                    "hosts": dict.fromkeys([SOURCE, *agents]),
                    "vars": {"skidway_cluster": "dc1"},
                },
                "cluster_offline": {
                    "hosts": {OFFLINE: None},
                    "vars": {"skidway_cluster": "offline"},
                },
                "zookeeper": {"hosts": {SOURCE: None}},
                "brokers": {
                    "hosts": {SOURCE: {"broker_id": 1}, OFFLINE: {"broker_id": 2}},
                    "vars": {"broker_settings": {"log.retention.check.interval.ms": 1_000}},
                },
                "registry": {"hosts": {OFFLINE: None}, "vars": _registry(registry_files)},
                "audit": {"hosts": {OFFLINE: None}, "vars": _AUDIT},
                "loaders": {
                    "hosts": {OFFLINE: None},
                    "vars": {
                        "loader_output": OUTPUT,
                        "loader_files": trust,
                        "loader_settings": {
                            "bucket.ms": BUCKET_MS,
                            # Spark runs one task at a time with a small heap, because four hosts
                            # share this machine.
                            "spark.master": "local[1]",
                            **_registry_client("loader"),
                        },
                    },
                },
                "agents": {
                    "hosts": dict.fromkeys(agents),
                    "vars": {
                        "agent_sources": [{"topic": TOPIC, "paths": [LINES]}],
                        "agent_files": trust,
                        "agent_settings": {**_AGENT, **_registry_client("agent")},
                    },
                },
            },
        }
    }


def _registry(files: Files) -> dict[str, Any]:
    return {
        "registry_scheme": "https",
        "registry_files": dict(files),
        "registry_settings": {
            "ssl": {
                "certificate.location": "/etc/skidway/registry/registry.pem",
                "key.location": "/etc/skidway/registry/registry.key",
            },
            "authentication.method": "BASIC",
            "authentication.users.file": "/etc/skidway/registry/users",
        },
    }


def _registry_client(program: str) -> dict[str, str]:
    return {
        "schema.registry.ssl.ca.location": f"/etc/skidway/{program}/ca.pem",
        "schema.registry.basic.auth.user.info.location": f"/etc/skidway/{program}/user.info",
    }


_AUDIT = {
    "audit_settings": {"bucket.ms": BUCKET_MS, "lateness.ms": 5_000, "silence.ms": 8_000},
    "audit_counter_settings": {"bucket.ms": BUCKET_MS, "commit.interval.ms": 200},
}
_AGENT = {
    "audit.bucket.ms": BUCKET_MS,
    "seal.interval.ms": 1_000,
    "audit.interval.ms": 300,
    "heartbeat.interval.ms": 1_000,
    "idle.flush.ms": 500,
}
