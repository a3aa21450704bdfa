"""Checks whether the log files of the fleet's hosts, the rows and the audit's verdict agree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from support.fleet import Fleet
from support.fleet_inventory import TOPICS
from support.processes import eventually

LOGS = {"auth": "/var/log/auth.log", "journal": "/var/log/syslog"}


def loaded_to_the_end(fleet: Fleet) -> None:
    """Runs a load. Asserts that the rows of the topics `auth` and `journal` are the lines of the
    log files, and that the audit calls the buckets of all topics complete.
    """
    written = {
        (topic, host.name): int(host.read(f"wc -l <{path}"))
        for host in fleet.applications
        for topic, path in LOGS.items()
    }
    moment = fleet.wait_for_verdict()
    fleet.load()
    rows = fleet.rows()
    for host in fleet.applications:
        for topic, path in LOGS.items():
            found = rows[topic][host.name]
            assert len(found) >= written[topic, host.name]
            assert found == host.run(f"head -n {len(found)} {path}").stdout.split("\n")[:-1]
    until_ms = fleet.milliseconds(moment)
    eventually(lambda: not _unfinished(fleet, until_ms), within_s=180, what="complete")


def _unfinished(fleet: Fleet, until_ms: int) -> list[str]:
    """Returns the buckets (time windows) up to `until_ms` that are incomplete for at least one
    host. Raises AssertionError if the report lacks a topic or a host.
    """
    past = [each for each in fleet.report("report")["buckets"] if each["bucket"] <= until_ms]
    judged = [(each, agent) for each in past for agent in each["agents"]]
    assert {(each["topic"], agent["host"]) for each, agent in judged} >= {
        (topic, host.name) for topic in TOPICS for host in fleet.applications
    }
    return [
        f"{each['topic']} {each['time']} {agent['host']}: {agent['reasons']}"
        for each, agent in judged
        if agent["verdict"] != "complete"
    ]


def pressed_once(fleet: Fleet, name: str, last: Mapping[str, int]) -> None:
    """Asserts that each request GET /NAME/1, GET /NAME/2 and so on, where NAME is `name`, is
    exactly one row. `last` contains the number of each host's last request."""
    rows = fleet.rows()["nginx"]
    for host in fleet.applications:
        assert _numbers(rows[host.name], name) == list(range(1, last[host.name] + 1))


def _numbers(requests: Sequence[str], name: str) -> list[int]:
    """Returns the N of all requests for a path /NAME/N, sorted."""
    found = (re.fullmatch(rf"GET /{name}/(\d+) HTTP/1.1", each) for each in requests)
    return sorted(int(each[1]) for each in found if each)
