"""The settings of all programs: the settings of a demo site, extended by an agent for each host and
by a second datacenter whose broker is Apache Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from skidway.demo.site import Site
from skidway.kafka.types import PLAINTEXT
from skidway.settings.document import yaml_text
from support.pipeline import PATIENT
from torture.faults import HOSTS
from torture.hosts import all_topics, sources
from torture.operator import change

SESSION_MS = 5_000
LATENESS_MS = 10_000
"""The agents' `lateness.ms`: the lines of a lost, unread file may be older than the last seal by at
most this many milliseconds. So a declared loss also affects buckets that ended within this time
before the seal."""
IDLE_FLUSH_MS = 20_000
"""The agent's `idle.flush.ms`: the time after which it sends the last line of a file even if the
line has no line terminator. A writer always writes the second half of a line sooner, even if it
gets no CPU time for a while."""
READ_BACK_WAIT_MS = 60_000
"""The agent's `read.back.wait.ms`. After a restart, the agent reads partitions back to find out
which of its batches arrived. It waits this long for batches that may still be on their way. No
fault of the torture delays a batch for longer."""
PLAIN = {"security.protocol": PLAINTEXT}
"""The setting of clients of Apache Kafka, which never has TLS here."""
OF_DC2 = "|".join(x.removeprefix("dc2.") for x in all_topics() if x.startswith("dc2."))


def write(site: Site, proxies: Mapping[str, int]) -> None:
    """Writes all settings. `proxies` contains the ports of the proxies through which clients reach
    each cluster's brokers."""
    site.write([])
    via = {
        cluster: f"127.0.0.1:{proxies[name]}"
        for cluster, name in (
            ("dc1", "broker-dc1"), ("dc2", "kafka-dc2"), ("offline", "broker-offline"),
        )
    }  # fmt: skip
    for name, cluster in (
        ("agent", "dc1"), ("count-dc1", "dc1"), ("count-offline", "offline"),
        ("loader", "offline"), ("audit", "offline"),
    ):  # fmt: skip
        change(site, name, {"bootstrap.servers": via[cluster]})
    agent, counter, offline = (_read(site, x) for x in ("agent", "count-dc1", "broker-offline"))
    for host, datacenter in HOSTS.items():
        own: dict[str, Any] = {
            "host.name": host,
            "cluster.name": datacenter,
            "bootstrap.servers": via[datacenter],
            **(PLAIN if datacenter == "dc2" else {}),
            "state.dir": str(site.data(f"agent-{host}")),
            "metrics.listener": site.address(f"agent-{host}.metrics"),
            "idle.flush.ms": IDLE_FLUSH_MS,
            "read.back.wait.ms": READ_BACK_WAIT_MS,
            "lateness.ms": LATENESS_MS,
            "sources": _sources(site, host, evolved=False),
        }
        _write(site, f"agent-{host}", agent | PATIENT["agent"] | own)
    kafka = {
        "cluster": "dc2",
        "bootstrap.servers": via["dc2"],
        "topics": [rf"({OF_DC2})(\.rejected)?"],
    }
    counted = {
        "bootstrap.servers": kafka["bootstrap.servers"],
        **PLAIN,
        "cluster.name": "dc2",
        "topics": kafka["topics"],
        "state.dir": str(site.data("count-dc2")),
        "metrics.listener": site.address("count-dc2.metrics"),
    }
    _write(site, "count-dc2", counter | counted)
    mirrored = [offline["mirror.sources"][0] | {"bootstrap.servers": via["dc1"]}, kafka]
    change(site, "broker-offline", {"mirror.sources": mirrored})
    for name in ("broker-dc1", "broker-offline"):
        advertised = f"{site.protocol}://127.0.0.1:{proxies[name]}"
        session = {"zookeeper.session.timeout.ms": SESSION_MS}
        change(site, name, {"advertised.listeners": advertised} | session)
    change(site, "count-offline", {"topics": [r"dc[12]\..*"]})
    loads = {"topics": [r"dc[12]\..*"], "metrics.listener": None}
    change(site, "loader", loads | {"collector.url": site.url("dashboard")})


def logs(site: Site, host: str) -> Path:
    """The folder with the log files of a host."""
    return site.folder / "logs" / host


def evolve(site: Site, name: str, *, evolved: bool) -> None:
    """Sets whether the lines of an agent's sources get one more column, from the agent's next start
    on."""
    host = name.removeprefix("agent-")
    change(site, name, {"sources": _sources(site, host, evolved=evolved)})


def _sources(site: Site, host: str, *, evolved: bool) -> list[dict[str, object]]:
    return sources(host, logs(site, host), site.folder / "schemas", evolved=evolved)


def _read(site: Site, name: str) -> dict[str, Any]:
    return dict(yaml.safe_load(site.config(name).read_text()))


def _write(site: Site, name: str, settings: Mapping[str, Any]) -> None:
    site.config(name).write_text(yaml_text(dict(settings), width=1000))
