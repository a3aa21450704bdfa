"""The inventory of an operator who already has ZooKeeper, Apache Kafka, a registry, HDFS with
Kerberos and Spark.

The inventory has no groups `zookeeper` and `registry`. The agent publishes to the Apache Kafka
cluster `dc1`, and the audit and the loader read from this cluster. The cluster `edge` is one
Skidway broker that uses the operator's ZooKeeper. The intervals are short, as in
support.fleet_inventory.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from support.existing_services import CHROOT, PRINCIPAL, ExistingServices
from support.fleet_inventory import BUCKET_MS

APPLICATION, SERVER, EDGE = "app1", "server", "edge1"
HOSTS = (APPLICATION, SERVER, EDGE)
TOPIC = "lines"
LINES = "/var/log/lines.log"


def inventory(
    version: str, wheels: Path, services: ExistingServices, *, server_address: str, keytab: Path
) -> dict[str, Any]:
    """Returns the inventory as the operator would have written it."""
    return {
        "all": {
            "vars": {
                "skidway_version": version,
                "skidway_wheels_dir": str(wheels),
                "skidway_insecure_listeners": True,
                "skidway_clusters": {
                    "dc1": {"bootstrap_servers": services.kafka.address},
                    "edge": {},
                },
                "skidway_zookeeper_connect": f"{services.zookeeper.address}{CHROOT}",
                "skidway_schema_registry_url": services.registry.url,
                "skidway_gate_timeout_s": 300,
            },
            "children": {
                "brokers": {"hosts": {EDGE: {"broker_id": 1, "skidway_cluster": "edge"}}},
                "audit": {"hosts": {SERVER: {}}, "vars": _AUDIT},
                "loaders": {
                    "hosts": {SERVER: {}},
                    "vars": {
                        "loader_output": services.output,
                        "loader_topics": [TOPIC],
                        "loader_keytab": str(keytab),
                        "loader_settings": {
                            "bucket.ms": BUCKET_MS,
                            "hadoop.conf.dir": "/etc/hadoop/conf",
                            "kerberos.principal": PRINCIPAL,
                            "spark.above.offsets": 0,
                            "spark.master": services.spark.url,
                            "spark.conf": _spark(server_address),
                        },
                    },
                },
                "agents": {"hosts": {APPLICATION: {}}, "vars": _AGENT},
            },
        }
    }


def _spark(driver: str) -> dict[str, str]:
    """Returns the settings for Spark's workers. The workers use the Python of the tests, which has
    the loader's packages. `driver` is the IP address of the driver's host, because the workers
    cannot resolve this host's name."""
    return {
        "spark.pyspark.python": sys.executable,
        "spark.driver.host": driver,
        "spark.executor.memory": "512m",
    }


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
