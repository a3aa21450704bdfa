"""The steps that both kinds of the demo have in common, and the steps of the quick kind.

The steps are:

    start    starts ZooKeeper, both brokers, registry, audit, counters, agent
    fill     moves the first records. In the quick kind, a first load also starts Spark, and Spark's
             log is then tailed. (For the default kind, see the module `trial`.)
    cut-off  writes down the size up to which each file counts; the agent reads no further
    drain    waits until the agent's account (`skidway agent state show`) says what happened to
             every byte (see `DONE` and `UNDONE`), and the mirror has caught up
    load     loads all records that are not loaded yet
    verdict  waits until the audit has judged its newest time bucket, then recounts the rows
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skidway.demo import sources
from skidway.demo.display import Display
from skidway.demo.kills import Kill
from skidway.demo.site import DATACENTER, OFFLINE, Site
from skidway.demo.supervisor import Supervisor
from skidway.demo.tiers import Tiers
from skidway.demo.writer import Tally
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.client import LATEST, Client
from skidway.kafka.errors import KafkaError
from skidway.kafka.types import TopicPartition

WITHIN_S = 600.0
"""A step may take at most this many seconds. The limit is long because the machine may be busy with
other work.
"""
ASK_TIMEOUT_MS = 5_000
PROGRAMS = (
    ("zookeeper", ("zookeeper", "run")),
    ("broker-dc1", ("broker", "run")),
    ("broker-offline", ("broker", "run")),
    ("registry", ("registry", "run")),
    ("audit", ("audit", "run")),
    ("count-dc1", ("audit", "count")),
    ("count-offline", ("audit", "count")),
    ("agent", ("agent", "run")),
)
COMMANDS = dict(PROGRAMS)
DONE = ("acknowledged", "rejected", "filtered")
UNDONE = ("lost", "uncertain")

Offsets = dict[TopicPartition, int]


@dataclass(slots=True)
class DemoOutcome:
    """The results that the summary prints. `written` has the writer's own counts of lines, torn
    lines and bytes, by topic."""

    sizes: dict[Path, int] = field(default_factory=dict)
    ledger: list[dict[str, Any]] = field(default_factory=list)
    report: dict[str, Any] = field(default_factory=dict)
    counts_balance: bool = False
    recount: dict[str, Any] = field(default_factory=dict)
    recount_agrees: bool = False
    written: dict[str, Tally] = field(default_factory=dict)
    kills: list[Kill] = field(default_factory=list)
    loads: list[dict[str, Any]] = field(default_factory=list)
    tiers: Tiers = field(default_factory=Tiers)

    @property
    def tally(self) -> dict[str, int]:
        """The number of bytes for each fate. A fate says what happened to a byte (see `DONE` and
        `UNDONE`). Lost and uncertain bytes are counted in all files. Bytes with other fates are
        counted only in the files that were tailed in this run."""
        tailed = {sources.file_of(path) for path in self.sizes}
        done = dict.fromkeys((*DONE, *UNDONE), 0)
        for row in self.ledger:
            is_tailed = sources.file_of(sources.path_of(row["path"])) in tailed
            for fate in (*DONE, *UNDONE) if is_tailed else UNDONE:
                done[fate] += row[fate]
        return done

    @property
    def unaccounted(self) -> dict[Path, int]:
        """For each tailed file, the number of bytes up to the cut-off whose fate the agent has not
        recorded. Leaves out files for which this number is 0.
        """
        done = settled(self.ledger, DONE)
        left = {
            path: size - done.get(sources.file_of(path), 0) for path, size in self.sizes.items()
        }
        return {path: missing for path, missing in left.items() if missing}

    @property
    def rows(self) -> dict[str, int]:
        """The number of rows that the recount found for each topic. In the offline cluster, topics
        have names with the prefix `dc1.`. The keys are the names without this prefix.
        """
        return {
            each["topic"].removeprefix(f"{DATACENTER}."): each["rows"]
            for each in self.recount.get("topics", ())
        }

    @property
    def miscounted(self) -> dict[str, int]:
        """The number of rows minus the number of lines that the writer wrote, for each topic in
        which these numbers do not match."""
        rows = self.rows
        found = {}
        for topic, tally in self.written.items():
            surplus = rows.get(topic, 0) - tally.lines
            if not 0 <= surplus <= tally.torn:  # a torn line (cut off by a kill) may be a row, too
                found[topic] = surplus
        return found

    @property
    def is_complete(self) -> bool:
        """Whether the counts of all tiers and of the recount are the same, the agent has recorded
        the fate of every byte, every line is a row, and nothing was lost because of a kill.
        """
        return (
            self.counts_balance
            and self.recount_agrees
            and not self.unaccounted
            and not self.miscounted
            and not any(kill.lost for kill in self.kills)
        )


def settled(
    ledger: Sequence[Mapping[str, Any]], fates: Sequence[str]
) -> dict[sources.FileKey, int]:
    """Returns for each file the number of bytes whose fate is one of `fates`. A fate says what
    happened to a byte, for example "acknowledged" or "lost". `ledger` is the agent's account. It
    may have several file ids for one file, and each id begins at its own position in the file. The
    bytes before the lowest of these positions also count, because they got their fates under ids
    that are no longer in the account.
    """
    done: dict[sources.FileKey, int] = {}
    begins: dict[sources.FileKey, int] = {}
    for row in ledger:
        file = sources.file_of(sources.path_of(row["path"]))
        done[file] = done.get(file, 0) + sum(row[fate] for fate in fates)
        begins[file] = min(begins.get(file, row["begin"]), row["begin"])
    return {file: count + begins[file] for file, count in done.items()}


# This class has more than 25 methods: one for each step of the demo, in order.
class Demo:
    """The quick demo, and the base class of the default demo. At the end of its `with` block, all
    processes are stopped."""

    def __init__(self, site: Site, display: Display, given: Sequence[str]) -> None:
        self.site, self.display = site, display
        site.logs.mkdir(parents=True, exist_ok=True)
        self.sources = [*self.own_sources(), *sources.given(given)]
        self.outcome = DemoOutcome()
        self.supervisor = Supervisor(site.logs)

    def __enter__(self) -> Demo:
        return self

    def __exit__(self, *_: object) -> None:
        self.supervisor.close()

    def own_sources(self) -> list[dict[str, Any]]:
        """Returns the sources to tail besides the files named with --logs."""
        return sources.of_programs(self.site.logs, self.site.folder / "etc" / "skidway-log.avsc")

    def run(self) -> DemoOutcome:
        """Does all steps."""
        self.start()
        self.fill()
        self.cut_off()
        self.drain()
        self.load()
        self.wait_for_verdict()
        self.recount()
        return self.outcome

    def start(self) -> None:
        """Starts every program, and waits until the program's /health is good."""
        self.display.say("starting ZooKeeper, 2 brokers, registry, audit, 2 counters and the agent")
        self.site.cutoff.unlink(missing_ok=True)
        self.site.write(self.sources)
        for name, _ in PROGRAMS:
            if self.display.is_terminal:
                self.display.state([f"  {name} ..."])
            self.start_program(name)
        self.display.state([])
        self.display.say(f"all are healthy; watch them at {self.site.url('dashboard')}")

    def fill(self) -> None:
        """Moves the first records through the pipeline. In the quick demo the records come from the
        programs' own logs. The first load starts Spark, and the lines of Spark's log then become
        further records."""
        self.supervisor.wait_for(self._begun, "the first records to be mirrored", WITHIN_S)
        self.display.say("the first records are in the offline cluster; a load starts Spark")
        self.load()

    def wait_until_interrupted(self) -> None:
        """For --keep: leaves everything running until Ctrl-C, or until a program ends."""
        self.supervisor.wait_for(lambda: False, "Ctrl-C", float("inf"))

    def cut_off(self) -> None:
        """Stops the agent. Writes down for every file the size up to which the agent is to read the
        file."""
        self.supervisor.stop("agent")
        read = {sources.path_of(file["path"]): file["position"] for file in self.ledger()}
        self.outcome.sizes = {
            path: max(sources.size_to_cut(path), read.get(path, 0)) for path in self.tailed()
        }
        self._cut_at(self.outcome.sizes)
        files = len(self.outcome.sizes)
        self.display.say(f"cut-off: the sizes of {files} tailed files are written down")

    def tailed(self) -> list[Path]:
        """Returns every file that the agent is to read."""
        return sources.tailed(self.sources)

    def drain(self) -> None:
        """Waits until the agent's account says what happened to every byte, and the mirror has
        caught up.
        """
        wait = self.supervisor.wait_for
        wait(self.is_settled, "every byte to be acknowledged or set apart", WITHIN_S)
        wait(self._mirrored, "the mirror to catch up", WITHIN_S)
        self.display.say("every byte is acknowledged and mirrored; a load brings the rest to HDFS")

    def load(self) -> None:
        """Runs one load to its end. Raises ProgramFailed if the load fails."""
        self.begin_load()
        while not self.load_ended():
            self.supervisor.check()
            self.idle()

    def begin_load(self) -> None:
        config = str(self.site.config("loader"))
        self.supervisor.begin_once("loader", "load", "run", "--json", "--config", config)

    def load_ended(self) -> bool:
        """Returns whether the load that `begin_load` started has ended. Raises ProgramFailed if the
        load failed."""
        status = self.supervisor.ended("loader")
        if status is None:
            return False
        if status:
            raise self.supervisor.failed("loader", status)
        document = json.loads(self.supervisor.output("loader").read_text())
        self.outcome.loads.append(document)
        rows, seconds = document["rows"], document["seconds"]
        self.display.say(f"a load has committed {rows:,} rows in {seconds:.1f} s")
        return True

    def idle(self) -> None:
        """Called again and again while the demo waits: sleeps for 0.1 s."""
        time.sleep(0.1)

    def wait_for_verdict(self) -> None:
        """Waits until every bucket of the audit's report is complete, but not longer than
        `WITHIN_S`."""
        self.display.say("the audit waits for its newest window; then the rows are counted again")
        deadline = time.monotonic() + WITHIN_S
        while True:
            done = self._audit("report", "--all")
            self.outcome.report = report = json.loads(done.stdout)
            complete = report["by_verdict"]["complete"]
            self.outcome.counts_balance = 0 < complete == report["buckets_judged"]
            if self.outcome.counts_balance or time.monotonic() > deadline:
                break
            self.supervisor.check()
            self.idle()
        self.outcome.ledger = self.ledger()

    def recount(self) -> None:
        """Counts the rows in the output, and compares them with the counts of the tiers."""
        done = self._audit("recount", "--output", self.site.output)
        self.outcome.recount = json.loads(done.stdout)
        self.outcome.recount_agrees = done.returncode == 0

    def begin_program(self, name: str) -> None:
        config = str(self.site.config(name))
        self.supervisor.begin(name, *COMMANDS[name], "--config", config)

    def start_program(self, name: str) -> None:
        config = str(self.site.config(name))
        health = self.site.health(name)
        self.supervisor.start(name, *COMMANDS[name], "--config", config, health=health)

    def watermarks(self, cluster: str, topics: Sequence[str]) -> Offsets:
        """Returns the high watermarks of the existing partitions of these topics.

        Raises Unreachable or KafkaError when the broker does not answer. Raises ProgramFailed when
        a program has ended.
        """
        try:
            return self._watermarks(cluster, topics)
        except (Unreachable, KafkaError):
            self.supervisor.check()
            raise

    def ledger(self) -> list[dict[str, Any]]:
        """Returns the agent's account: for every file, how many of its bytes have each fate."""
        config = str(self.site.config("agent"))
        done = self.command("agent", "state", "show", "--json", "--config", config)
        return list(json.loads(done.stdout)["files"])

    def command(
        self, *arguments: str, good: Sequence[int] = (0,)
    ) -> subprocess.CompletedProcess[str]:
        """Runs a `skidway` command, and returns its exit status and output. Raises SkidwayError if
        the exit status is not in `good`.
        """
        done = self.supervisor.ask(*arguments)
        if done.returncode not in good:
            said = done.stderr.strip() or done.stdout.strip()
            raise SkidwayError(f"skidway {' '.join(arguments[:2])} failed: {said}")
        return done

    def _cut_at(self, sizes: Mapping[Path, int]) -> None:
        self.site.write_cutoff(sizes)
        self.site.write(self.sources, cut_off=True)
        self.start_program("agent")

    def _watermarks(self, cluster: str, topics: Sequence[str]) -> Offsets:
        address = self.site.address(f"broker-{cluster}")
        with Client(address, request_timeout_ms=ASK_TIMEOUT_MS) as client:
            found = client.metadata(topics).topics
            partitions = {
                TopicPartition(name, partition.index): LATEST
                for name, topic in found.items()
                if not topic.error
                for partition in topic.partitions
            }
            return {tp: listed.offset for tp, listed in client.list_offsets(partitions).items()}

    def is_settled(self) -> bool:
        """Returns whether the agent's account says what happened to every byte up to the cut-off:
        acknowledged, rejected, filtered, lost or uncertain.
        """
        done = settled(self.ledger(), (*DONE, *UNDONE))
        wanted = self.outcome.sizes.items()
        return all(done.get(sources.file_of(path), 0) >= size for path, size in wanted)

    def _begun(self) -> bool:
        """Returns whether the mirror has records. If so, a load has records to read, and so starts
        Spark."""
        topics = [f"{DATACENTER}.{source['topic']}" for source in self.sources]
        return any(self.watermarks(OFFLINE, topics).values())

    def _mirrored(self) -> bool:
        named = [source["topic"] for source in self.sources]
        topics = [*named, *(f"{topic}.rejected" for topic in named)]
        source = self.watermarks(DATACENTER, topics)
        mirror = self.watermarks(OFFLINE, [f"{DATACENTER}.{topic}" for topic in topics])
        return all(
            mirror.get(TopicPartition(f"{DATACENTER}.{tp.topic}", tp.partition), -1) >= end
            for tp, end in source.items()
        )

    def _audit(self, verb: str, *options: str) -> subprocess.CompletedProcess[str]:
        config = str(self.site.config("audit"))
        return self.command("audit", verb, "--json", "--config", config, *options, good=(0, 1))
