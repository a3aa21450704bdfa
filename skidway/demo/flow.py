"""The demo, step by step.

start    ZooKeeper, both brokers, registry, counters, audit, agent
load     a first load, so that there is a Spark log to tail
cut-off  the agent stops; the size of every tailed file is written down; it starts again and
         reads up to there
drain    every byte acknowledged or set apart, mirrored, counted
load     everything that is left
verdict  what the audit says once the last bucket is old enough, and a recount of the files
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skidway.demo.site import DATACENTER, OFFLINE, Site
from skidway.demo.sources import size_to_cut, sources, tailed
from skidway.demo.supervisor import ProgramFailed, Supervisor
from skidway.errors import SkidwayError
from skidway.kafka.client import LATEST, Client
from skidway.kafka.types import TopicPartition

AUDIT_TOPIC = "_skidway_audit"
DRAIN_WITHIN_S = 120.0
VERDICT_WITHIN_S = 90.0
PROGRAMS = (
    ("zookeeper", ("zookeeper", "run")),
    ("broker-dc1", ("broker", "run")),
    ("broker-offline", ("broker", "run")),
    ("registry", ("registry", "run")),
    ("audit", ("audit", "run")),
    ("count-dc1", ("audit", "count")),
    ("count-offline", ("audit", "count")),
)


@dataclass(slots=True)
class Outcome:
    """What the demo found out; the summary prints it."""

    sizes: dict[Path, int] = field(default_factory=dict)
    ledger: list[dict[str, Any]] = field(default_factory=list)
    report: dict[str, Any] = field(default_factory=dict)
    books_balance: bool = False
    recount: dict[str, Any] = field(default_factory=dict)
    recount_agrees: bool = False

    @property
    def unaccounted(self) -> dict[Path, int]:
        """Bytes of the tailed files, up to the cut-off, that the ledger does not account for."""
        done: dict[str, int] = {}
        for file in self.ledger:
            fates = ("acknowledged", "rejected", "filtered")
            done[file["path"]] = done.get(file["path"], 0) + sum(file[fate] for fate in fates)
        left = {path: size - done.get(str(path), 0) for path, size in self.sizes.items()}
        return {path: missing for path, missing in left.items() if missing}

    @property
    def is_complete(self) -> bool:
        """Every tier agrees, both ways of counting agree, every byte is accounted for."""
        return self.books_balance and self.recount_agrees and not self.unaccounted


class Demo:
    """Runs the steps; leaves no process behind when used as a context manager."""

    def __init__(self, site: Site, given: Sequence[str]) -> None:
        self.site = site
        site.logs.mkdir(parents=True, exist_ok=True)
        self._sources = sources(site.logs, site.folder / "etc" / "skidway-log.avsc", given)
        self._supervisor = Supervisor(site.logs)
        self.outcome = Outcome()

    def __enter__(self) -> Demo:
        return self

    def __exit__(self, *_: object) -> None:
        self._supervisor.stop_all()

    def run(self) -> Outcome:
        """All steps."""
        self.start()
        with step("first records in the offline cluster"):
            self._supervisor.wait_for(self._begun, "the first records to be mirrored", 60.0)
        with step("first load (starts Spark)"):
            self._load()
        with step("cut-off: sizes of all tailed files written down"):
            self.cut_off()
        with step("every byte acknowledged, mirrored and counted"):
            self.drain()
        with step("second load"):
            self._load()
        with step("the audit's verdict"):
            self.wait_for_verdict()
        with step("recount from the Parquet files"):
            self.recount()
        return self.outcome

    def start(self) -> None:
        """Every program, each awaited by its /health."""
        self.site.cutoff.unlink(missing_ok=True)
        self.site.write(self._sources)
        for name, command in PROGRAMS:
            with step(f"{name} at {self._where(name)}"):
                self._start(name, command)
        with step(f"agent, tailing {len(tailed(self._sources))} files"):
            self._start("agent", ("agent", "run"))

    def wait_until_interrupted(self) -> None:
        """For --keep: everything goes on until Ctrl-C, or until a program ends."""
        self._supervisor.wait_for(lambda: False, "Ctrl-C", float("inf"))

    def cut_off(self) -> None:
        """Writes down up to where every file is to be read, while the agent stands still."""
        self._supervisor.stop("agent")
        files = tailed(self._sources)
        read = {file["path"]: file["position"] for file in self._ledger()}
        self.outcome.sizes = {
            path: max(size_to_cut(path), read.get(str(path), 0)) for path in files
        }
        self.site.write_cutoff(self.outcome.sizes)
        self.site.write(self._sources, cut_off=True)
        self._start("agent", ("agent", "run"))

    def drain(self) -> None:
        """Waits until nothing is on its way any more."""
        wait = self._supervisor.wait_for
        wait(self._settled, "every byte to be acknowledged or set apart", DRAIN_WITHIN_S)
        wait(self._mirrored, "the mirror to catch up", DRAIN_WITHIN_S)

    def wait_for_verdict(self) -> None:
        """Until every bucket is complete, or it is clear that one will not be."""
        deadline = time.monotonic() + VERDICT_WITHIN_S
        while True:
            done = self._audit("report", "--all")
            self.outcome.report = json.loads(done.stdout)
            self.outcome.books_balance = done.returncode == 0
            if self.outcome.books_balance or time.monotonic() > deadline:
                break
            self._supervisor.check()
            time.sleep(0.5)
        self.outcome.ledger = self._ledger()

    def recount(self) -> None:
        """Counts the rows themselves and compares them with what the tiers said."""
        done = self._audit("recount", "--output", self.site.output)
        self.outcome.recount = json.loads(done.stdout)
        self.outcome.recount_agrees = done.returncode == 0

    def _where(self, name: str) -> str:
        port = {"audit": "dashboard"}.get(name, name)
        port = port if port in self.site.ports else f"{port}.metrics"
        return self.site.address(port)

    def _start(self, name: str, command: Sequence[str]) -> None:
        config = str(self.site.config(name))
        self._supervisor.start(name, *command, "--config", config, health=self.site.health(name))

    def _load(self) -> None:
        config = str(self.site.config("loader"))
        status = self._supervisor.run("loader", "load", "run", "--config", config)
        if status:
            said = self._supervisor.errors("loader").read_text(errors="replace")[-2000:].strip()
            raise ProgramFailed(f"the load ended with status {status}: {said}")

    def _settled(self) -> bool:
        done: dict[str, int] = {}
        for file in self._ledger():
            settled = sum(file[fate] for fate in ("acknowledged", "rejected", "filtered"))
            settled += file["lost"] + file["uncertain"]
            done[file["path"]] = done.get(file["path"], 0) + settled
        return all(done.get(str(path), 0) >= size for path, size in self.outcome.sizes.items())

    def _ledger(self) -> list[dict[str, Any]]:
        config = str(self.site.config("agent"))
        done = self._command("agent", "state", "show", "--json", "--config", config)
        return list(json.loads(done.stdout)["files"])

    def _begun(self) -> bool:
        """Whether there is something to load, so that Spark has to start."""
        topics = [f"{DATACENTER}.{source['topic']}" for source in self._sources]
        return any(self._watermarks(OFFLINE, topics).values())

    def _mirrored(self) -> bool:
        topics = self._topics()
        source = self._watermarks(DATACENTER, topics)
        mirror = self._watermarks(OFFLINE, [f"{DATACENTER}.{topic}" for topic in topics])
        return all(
            mirror.get(TopicPartition(f"{DATACENTER}.{tp.topic}", tp.partition), -1) >= end
            for tp, end in source.items()
            if tp.topic != AUDIT_TOPIC
        )

    def _topics(self) -> list[str]:
        named = [source["topic"] for source in self._sources]
        return [*named, *(f"{topic}.rejected" for topic in named), AUDIT_TOPIC]

    def _watermarks(self, cluster: str, topics: Sequence[str]) -> Mapping[TopicPartition, int]:
        with Client(self.site.address(f"broker-{cluster}")) as client:
            found = client.metadata(topics).topics
            partitions = {
                TopicPartition(name, partition.index): LATEST
                for name, topic in found.items()
                if not topic.error
                for partition in topic.partitions
            }
            return {tp: listed.offset for tp, listed in client.list_offsets(partitions).items()}

    def _audit(self, verb: str, *options: str) -> subprocess.CompletedProcess[str]:
        config = str(self.site.config("audit"))
        return self._command("audit", verb, "--json", "--config", config, *options, good=(0, 1))

    def _command(
        self, *arguments: str, good: Sequence[int] = (0,)
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "skidway.cli", *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode not in good:
            said = done.stderr.strip() or done.stdout.strip()
            raise SkidwayError(f"skidway {' '.join(arguments[:2])} failed: {said}")
        return done


@contextmanager
def step(what: str) -> Iterator[None]:
    """One line a step, with its time, on standard error."""
    begin = time.monotonic()
    sys.stderr.write(f"  ... {what}")
    sys.stderr.flush()
    mark = "failed"
    try:
        yield
        mark = "ok"
    finally:
        took = time.monotonic() - begin
        sys.stderr.write(f"\r  {mark:>6} {what} ({took:.1f} s)\n")
        sys.stderr.flush()
