"""The fleet of the deployment story (support.fleet): two application hosts, and one server host for
all servers.

The intervals are short, so that the audit's verdict takes seconds and not minutes: buckets of 5 s,
a seal of each agent every second, and a lateness (how late lines may come) that is just longer than
the time in which a line gets from its log file to its row on this machine. With the defaults
(buckets of 60 s, seals every 10 s, lateness of 120 s) every wait for a verdict would be about four
minutes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

APPLICATIONS = ("app1", "app2")
SERVER = "server"
HOSTS = (*APPLICATIONS, SERVER)
OUTPUT = "/srv/lake"
BUCKET_MS = 5_000

COMBINED = (
    r'^(?P<remote>\S+) \S+ (?P<user>\S+) \[(?P<time>[^\]]+)\] "(?P<request>[^"]*)" '
    r'(?P<status>\d+) (?P<bytes>\d+) "(?P<referer>[^"]*)" "(?P<agent>[^"]*)"$'
)
"""The pattern of nginx's access log as Debian configures it."""

SOURCES = [
    {
        "topic": "nginx",
        "paths": ["/var/log/nginx/access.log*"],
        "exclude": ["/var/log/nginx/*.gz"],
        "parser": {"type": "regex", "pattern": COMBINED},
        "timestamp": {"fields": ["time"], "format": "%d/%b/%Y:%H:%M:%S %z"},
    },
    {"topic": "auth", "paths": ["/var/log/auth.log"]},
    {"topic": "journal", "paths": ["/var/log/syslog"]},
]
TOPICS = ("auth", "journal", "nginx")


def inventory(version: str, wheels: Path, agents: tuple[str, ...] = APPLICATIONS) -> dict[str, Any]:
    """The inventory at the beginning; the story changes it as an operator would."""
    return {
        "all": {
            "vars": {
                "skidway_version": version,
                "skidway_wheels_dir": str(wheels),
                "skidway_clusters": {"dc1": {}},
                "skidway_cluster": "dc1",
                "skidway_gate_timeout_s": 300,
            },
            "children": {
                "zookeeper": {"hosts": {SERVER: {}}},
                "brokers": {"hosts": {SERVER: {"broker_id": 1}}},
                "registry": {"hosts": {SERVER: {}}},
                "audit": {"hosts": {SERVER: {}}, "vars": _AUDIT},
                "loaders": {"hosts": {SERVER: {}}, "vars": _LOADER},
                "agents": {"hosts": {name: {} for name in agents}, "vars": _AGENT},
            },
        }
    }


_AUDIT = {
    "audit_settings": {"bucket.ms": BUCKET_MS, "lateness.ms": 5_000, "silence.ms": 8_000},
    "audit_counter_settings": {"bucket.ms": BUCKET_MS, "commit.interval.ms": 200},
}
_LOADER = {
    "loader_output": OUTPUT,
    "loader_topics": list(TOPICS),
    # one task at a time and a small heap: three hosts share this machine
    "loader_settings": {"bucket.ms": BUCKET_MS, "spark.master": "local[1]"},
}
_AGENT = {
    "agent_sources": SOURCES,
    "agent_settings": {
        "audit.bucket.ms": BUCKET_MS,
        "seal.interval.ms": 1_000,
        "audit.interval.ms": 300,
        "heartbeat.interval.ms": 1_000,
        "idle.flush.ms": 500,
    },
    "agent_limits": {"CPUQuota": "50%", "MemoryHigh": "300M", "MemoryMax": "400M", "TasksMax": 64},
}
