"""A small site on which incidents happen, with the commands of its operator."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from skidway.audit.evidence.ledger import DATABASE
from skidway.audit.topic.program_status import KIND
from skidway.demo.site import DATACENTER
from support.pipeline import Oracle, Pipeline, source
from support.processes import call_skidway, eventually

HOST = "incidents.example"
"""The `host.name` of all programs of the site, which is not the kernel's name for this host."""
NUMBERED = {"type": "regex", "pattern": r"line (?P<number>\d+) .*"}
TOPICS: dict[str, dict[str, Any]] = {
    "killed-agent": {},
    "late-load": {},
    "deleted-log": {},
    "rejected-lines": {"parser": NUMBERED},
    "stopped-mirror": {},
    "no-registry": {},
    "bad-schema": {"parser": NUMBERED},
    "full-disk": {},
    "unreadable-log": {},
    "lost-partition": {},
    "doubled-rows": {},
    "wrong-pattern": {"parser": {"type": "regex", "pattern": r"(?P<level>[A-Z]+): (?P<text>.*)"}},
}
SOON: Mapping[str, Mapping[str, Any]] = {
    "audit": {"silence.ms": 8_000},
    "count-dc1": {"heartbeat.interval.ms": 1_000, "metadata.max.age.ms": 500},
    "count-offline": {"heartbeat.interval.ms": 1_000, "metadata.max.age.ms": 500},
    "loader": {"spark.above.offsets": 1_000_000, "metrics.listener": None},
}
"""Settings with which a program counts as silent after some seconds."""
NAMED = ("agent", "audit", "broker-dc1", "broker-offline", "count-dc1", "count-offline", "loader")
SERVICES = [
    ["agent", "run"], ["audit", "count"], ["audit", "run"], ["broker", "run"],
    ["registry", "run"], ["zookeeper", "run"],
]  # fmt: skip


class Incidents:
    """The site on which all incidents happen, and methods that run the commands of an operator."""

    def __init__(self, folder: Path, settings: Mapping[str, Mapping[str, Any]] = SOON) -> None:
        self.folder = folder
        named = {x: {"host.name": HOST, **settings.get(x, {})} for x in NAMED}
        self.pipeline = Pipeline(folder, self.sources(), settings={**settings, **named})
        audit = self.pipeline.site.config("audit")
        self.without_loads = audit.with_name("audit-without-loads.yml")
        settings = yaml.safe_load(audit.read_text()) | {"tiers": ["agent", "broker", "mirror"]}
        self.without_loads.write_text(yaml.safe_dump(settings))

    def sources(self) -> list[dict[str, Any]]:
        return [source(topic, self.folder / topic, **parts) for topic, parts in TOPICS.items()]

    def rewrite(self) -> None:
        """Writes the agent's configuration again, from TOPICS. The agent reads the new
        configuration at its next start."""
        self.pipeline.rewrite(self.sources())

    def config(self, program: str) -> Path:
        return self.pipeline.site.config(program)

    def log(self, topic: str) -> Oracle:
        return Oracle(self.folder / topic)

    def settle(self, log: Oracle) -> None:
        """Waits until every byte of the log is acknowledged, rejected, lost or uncertain."""
        eventually(
            lambda: self.pipeline.settled_bytes(log.folder) >= log.bytes,
            what=f"{log.folder.name} is settled",
        )

    def wait_host(self) -> None:
        """Waits until the audit knows this host, and how its agent was started. Lines may arrive
        before their agent has told either."""
        eventually(
            lambda: (
                HOST in {host["host"] for host in self.asked("hosts")["hosts"]}
                and self._agent_has_told_its_start()
            ),
            every_s=0.2,
            what="the audit knows the host",
        )

    def _agent_has_told_its_start(self) -> bool:
        path = self.pipeline.site.data("audit") / DATABASE
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as store:
            told = store.execute("SELECT producer FROM notes WHERE kind = ?", (KIND,))
            return any(producer.isdigit() for (producer,) in told)  # an agent's is a number

    def wait_rejects(self, topic: str) -> None:
        """Waits until the offline cluster has the topic's rejected lines. The commands of this site
        ask the offline cluster."""
        self.pipeline.wait_mirrored([f"{topic}.rejected"])

    def why(self, topic: str, *options: str, loads: bool = False) -> dict[str, Any]:
        """Returns the JSON document that `skidway audit why` prints about a topic of dc1. For
        `loads`, see `asked`."""
        health = ["--agent-health", self.pipeline.site.health("agent")]
        collector = ["--collector", self.pipeline.site.url("dashboard")]
        registry = ["--registry", self.pipeline.site.url("registry")]
        named = [f"{DATACENTER}.{topic}", *options]
        return self.asked("why", *health, *collector, *registry, *named, loads=loads)

    def asked(self, verb: str, *options: str, loads: bool = False) -> dict[str, Any]:
        """Returns the JSON document that a subcommand of `skidway audit` prints, with its exit
        status as the member `status`. If `loads` is true, the audit also expects the counts of the
        tier hdfs."""
        config = self.pipeline.site.config("audit") if loads else self.without_loads
        done = call_skidway("audit", verb, "--json", "--config", str(config), *options)
        if done.returncode == 2:
            # the command exits with 2 while the audit does not know the topic yet
            return {"buckets": [], "others": 0, "status": 2}
        assert done.returncode in (0, 1), done.stdout
        document: dict[str, Any] = json.loads(done.stdout)
        return document | {"status": done.returncode}

    def cause(
        self, topic: str, cause: str, *, tier: str | None = None, offsets: int = 0, **options: Any
    ) -> dict[str, Any]:
        """Waits until `why` names this cause. Returns the cause's entry in the JSON document, with
        its bucket as the member `of`. If `tier` is given, only a cause in this tier counts.
        `offsets` is the least number of offsets that the entry must contain."""
        seen: list[Any] = []

        def named() -> dict[str, Any] | None:
            document = self.why(topic, **options)
            seen[:] = [document]
            for bucket in document["buckets"]:
                for each in bucket["causes"]:
                    found = sum(x["end"] - x["first"] for x in each["offsets"])
                    is_meant = each["cause"] == cause and tier in (None, each["tier"])
                    if is_meant and found >= offsets:
                        return {**each, "of": bucket}
            return None

        try:
            found = eventually(named, every_s=0.2)
        except AssertionError as error:
            raise AssertionError(json.dumps(seen, indent=1)) from error
        assert isinstance(found, dict)
        return found

    def healed(self, topic: str, **options: Any) -> None:
        """Waits until every bucket of the topic, including the newest, is complete or accepted."""
        seen: list[Any] = []

        def well() -> bool:
            seen[:] = [self.why(topic, **options)]
            whole = ("report", "--all", "--topic", f"{DATACENTER}.{topic}")
            return not seen[0]["buckets"] and self.asked(*whole, **options)["status"] == 0

        try:
            eventually(well, every_s=0.2)
        except AssertionError as error:
            raise AssertionError(json.dumps(seen, indent=1)) from error

    def run(self, command: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """Runs a command as `why` printed it, in a shell that finds `skidway`. If the command
        starts a program of the site, the test starts it, as its own child process."""
        assert command["host"] in ("", HOST, "127.0.0.1"), command
        if (name := self.started_by(command)) is not None:
            if not self.pipeline.is_up(name):
                self.pipeline.start(name)
            return subprocess.CompletedProcess(command["line"], 0, "", "")
        return subprocess.run(
            command["line"], shell=True, capture_output=True, text=True, timeout=120, check=False,
            env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        )  # fmt: skip

    def started_by(self, command: dict[str, str]) -> str | None:
        """Returns the program of the site that the command starts; None if it starts none."""
        words = shlex.split(command["line"])
        if words[-4:-2] in SERVICES and words[-2] == "--config":
            configs = {str(self.pipeline.site.config(x)): x for x in self.pipeline.programs}
            return configs[words[-1]]
        return None

    def first_shown(self, topic: str) -> dict[str, Any]:
        """Returns the causes that the first page, `why` without and with a topic, and the report
        show first."""
        page = json.loads(read(self.pipeline.site.url("dashboard") + "/index.json"))
        return {
            "page": [x["cause"] for x in page["causes"]][:1],
            "why": [x["cause"] for x in self.asked("why")["causes"]][:1],
            "why topic": [x["cause"] for x in self.why(topic)["causes"]][:1],
            "report": [x["cause"] for x in self.asked("report")["causes"]][:1],
        }

    def shows_first(self, topic: str, cause: str | None) -> dict[str, str]:
        """Waits until all of them show this cause first. Returns its next command, as the report
        prints it."""
        wanted = [] if cause is None else [cause]
        seen: list[Any] = []

        def is_first() -> bool:
            with contextlib.suppress(urllib.error.URLError):  # the page may not be served yet
                seen[:] = [self.first_shown(topic)]
            return bool(seen) and all(x == wanted for x in seen[0].values())

        try:
            eventually(is_first, every_s=0.5)
        except AssertionError as error:
            raise AssertionError(json.dumps(seen)) from error
        return self._next()

    def starts_next(self, program: str) -> dict[str, str]:
        """Waits until the report's next command is the one that starts this program, as soon as an
        attempt to connect has been refused. Returns the command."""
        eventually(lambda: self.started_by(self._next()) == program, every_s=0.5)
        return self._next()

    def _next(self) -> dict[str, str]:
        found = self.asked("report")["causes"]
        return dict(found[0]["command"]) if found else {}


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())
