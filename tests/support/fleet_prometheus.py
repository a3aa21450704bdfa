"""Debian's Prometheus on a host of the fleet, and what its HTTP API answers there."""

from __future__ import annotations

import json
import shlex
import urllib.parse
from typing import Any

from support.debian import PROMETHEUS
from support.hosts import Host

API = "http://127.0.0.1:9090/api/v1"
READ = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=20).read().decode())"


class PrometheusOnHost:
    """A Prometheus that already runs on a host before Skidway's Ansible role configures it."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def start(self) -> None:
        """Starts Prometheus, now and at each boot."""
        self._host.run(f"systemctl enable --now {PROMETHEUS}")

    def up(self) -> dict[tuple[str, str], int]:
        """For each target of Skidway (job and instance), 1 if the target answers, or else 0."""
        found = self._get("query", query='up{job=~"skidway-.*"}')["result"]
        return {
            (each["metric"]["job"], each["metric"]["instance"]): int(each["value"][1])
            for each in found
        }

    def targets(self) -> set[str]:
        """The names of the jobs of all Skidway targets that Prometheus scrapes now. The metric `up`
        cannot be used for this, because it keeps the last value of a removed job for five minutes.
        """
        found = self._get("targets", state="active")["activeTargets"]
        jobs = {each["labels"]["job"] for each in found}
        return {each for each in jobs if each.startswith("skidway-")}

    def alerts(self, state: str = "") -> set[tuple[str, str]]:
        """The name and the instance of each alert whose condition holds now. If `state` is
        `pending` or `firing`, returns only the alerts in this state.
        """
        found = [x for x in self._get("alerts")["alerts"] if state in ("", x["state"])]
        return {(x["labels"]["alertname"], x["labels"].get("instance", "")) for x in found}

    def rules_that_fail(self) -> list[str]:
        """The names of the rules that Prometheus cannot evaluate. Raises AssertionError if
        Prometheus has loaded at most 40 rules.
        """
        rules = [rule for group in self._get("rules")["groups"] for rule in group["rules"]]
        assert len(rules) > 40
        return [rule["name"] for rule in rules if rule["health"] != "ok"]

    def _get(self, path: str, **parameters: str) -> Any:
        url = f"{API}/{path}?{urllib.parse.urlencode(parameters)}"
        said = self._host.read(f"python3 -c {shlex.quote(READ)} {shlex.quote(url)}")
        return json.loads(said)["data"]
