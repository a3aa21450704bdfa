"""The Ansible inventory of the fleet in support.fleet. The fleet has two application hosts, and one
host on which all Skidway servers run.

The intervals are short, so that the audit's verdict takes seconds and not minutes. Buckets last 5
s, and each agent sends a seal every second. The lateness is the time after a bucket's end for which
the audit waits for late lines. Here the lateness is a little longer than the time that a line needs
to become a row on one machine. The defaults are buckets of 60 s, seals every 15 s and a lateness of
120 s. With these defaults, every wait for a verdict would take about four minutes.
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
"""The pattern for nginx's access log in the format that Debian configures."""

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
    """Returns the inventory at the beginning of the deployment test. The test changes it later as
    an operator would."""
    return {
        "all": {
            "vars": {
                "skidway_version": version,
                "skidway_wheels_dir": str(wheels),
                "skidway_insecure_listeners": True,
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
    # The loader runs one task at a time with a small heap, because three hosts share this machine.
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
