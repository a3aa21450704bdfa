"""The steps that both kinds of the demo have in common, and the steps of the quick kind.

The steps are:

    start    starts ZooKeeper, both brokers, registry, audit, counters, agent
    fill     moves the first records. In the quick kind, a first load also starts Spark, and Spark's
             log is then tailed. (For the default kind, see the module `trial`.)
    cut-off  writes down the size of each tailed file; all programs continue to run, as in
             production
    drain    waits until the agent's account (`skidway agent state show`) says what happened to
             every byte up to these sizes. The verdict covers all time buckets (*windows*) of the
             audit up to the bucket of this moment. Then waits until the agent's seals reach the end
             of these buckets plus the lateness that the audit allows for. Then asks for the
             broker's log ends, and waits until the mirror has all records before them
    load     loads all records that are not loaded yet
    verdict  waits until all buckets that the verdict covers are complete, then recounts the rows

Records that come later belong to later buckets, for which the demo does not wait.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from skidway.demo import obstacles, sources, states
from skidway.demo.display import Display
from skidway.demo.outcome import DemoOutcome
from skidway.demo.site import DATACENTER, LOADS_EVERY, OFFLINE, Site
from skidway.demo.summary import shown
from skidway.demo.supervisor import Supervisor, health_of
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.client import LATEST, Client
from skidway.kafka.errors import KafkaError
from skidway.kafka.types import TopicPartition

WITHIN_S = 600.0
"""A step of the demo may take at most this many seconds. The limit is long because the machine may
be busy with other work.
"""
SAY_AGAIN_S = 30.0
"""If a step of the demo has printed nothing for this many seconds, the demo says what it waits
for."""
LOAD_AGAIN_S = 30.0
"""If not all buckets are complete this many seconds after a load, the demo runs a further load."""
SMALL_WITHOUT_SPARK = ("--set", "spark.above.offsets=400000")
"""The options of loads that bring only the remaining records. As in production, such a load runs
without Spark if it is small. The demo's other loads run on Spark, whatever their size."""
HELD_WITHIN_S = 15.0
"""The demo waits so long for the verdict on topics of which the agent cannot read a path."""
RECOUNT_AGAIN_S = 30.0
UNREADABLE_SHOWN = 5
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
Offsets = dict[TopicPartition, int]


# This class has more than 25 methods: one for each step of the demo, in order.
class Demo:
    """The quick demo, and the base class of the default demo. At the end of its `with` block, all
    processes are stopped."""

    def __init__(self, site: Site, display: Display, given: Sequence[str]) -> None:
        self.site, self.display = site, display
        site.logs.mkdir(parents=True, exist_ok=True)
        self.sources = [*self.own_sources(), *sources.given(given)]
        self.outcome = DemoOutcome(has_given=bool(given))
        self._unread_before = sources.unreadable(self.sources)
        self._unreadable = obstacles.UnreadablePaths(self._unread_before)
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
        self.load(*SMALL_WITHOUT_SPARK)
        self.wait_for_verdict()
        self.recount()
        return self.outcome

    def start(self) -> None:
        """Names the files that cannot be read. Starts every program, and waits until the program's
        /health is good."""
        before = self._unread_before
        for path, reason in list(before.items())[:UNREADABLE_SHOWN]:
            self.display.say(
                f"cannot read {shown(path)}: {reason}; so the demo cannot end complete"
            )
        if (more := len(before) - UNREADABLE_SHOWN) > 0:
            self.display.say(f"and cannot read {more:,} further paths")
        self.display.say("starting ZooKeeper, 2 brokers, registry, audit, 2 counters and the agent")
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
        self.until(self._begun, "the first records to be mirrored")
        self.display.say("the first records are in the offline cluster; a load starts Spark")
        self.load()

    def wait_until_interrupted(self) -> None:
        """For --keep: loads again and again, and leaves everything running until Ctrl-C, or until a
        program ends."""
        config = str(self.site.config("loader"))
        self.supervisor.begin(
            "loader", "load", "run", "--every", LOADS_EVERY, "--config", config,
            *SMALL_WITHOUT_SPARK,
        )  # fmt: skip
        self.supervisor.wait_for(lambda: False, "Ctrl-C", float("inf"))

    def cut_off(self) -> None:
        """Writes down the size of every tailed file. Programs go on writing, and the agent goes on
        reading. Asks for the agent's accounts first. Later accounts would not be enough: for a
        compressed file they have only the file id, and they do not say whether a file was truncated
        before the cut-off."""
        self.outcome.take_ledger(self.ledger())
        more = self.further_files()
        self.outcome.note(sources.noted(self.sources, more, self.supervisor.check))
        files = len(self.outcome.files)
        self.display.say(f"cut-off: the sizes of {files} tailed files are written down")

    def further_files(self) -> list[Path]:
        """Returns files that the agent must read even if no pattern matches them."""
        return []

    def drain(self) -> None:
        """Waits until nothing that the verdict covers (bytes up to the cut-off, and time buckets)
        is still on its way to the offline cluster.
        """
        self._until_delivered(
            self._settled,
            "every byte to be acknowledged or set apart",
            lambda: obstacles.unsettled(self.outcome),
        )
        timing = self.site.timing
        # All records of the bytes up to the cut-off have event times before `until_ms`, because the
        # agent has already made these records.
        self.outcome.until_ms = until_ms = bucket_end_ms(time.time(), timing.bucket_ms)
        until = time.strftime("%H:%M:%S UTC", time.gmtime(until_ms / 1000))
        self.display.say(f"every byte is acknowledged; the windows up to {until} are to be judged")
        due_ms = until_ms + timing.lateness_ms
        self._until_delivered(
            self._sealing(due_ms),
            "the agent to seal these windows",
            lambda: obstacles.pending(self.ledger()),
        )
        # The demo asks for the log ends only once, because they rise as long as programs write.
        ends = self.watermarks(DATACENTER, self._topics())
        self.until(lambda: self._mirrored(ends), "the mirror to catch up")
        self.display.say("all of it is mirrored; a load brings the rest to HDFS")

    def load(self, *options: str) -> None:
        """Runs one load to its end. Raises ProgramFailed if the load fails."""
        self.begin_load(*options)
        while not self.load_ended():
            self.supervisor.check()
            self.idle()

    def begin_load(self, *options: str) -> None:
        config = str(self.site.config("loader"))
        self.supervisor.begin_once("loader", "load", "run", "--json", "--config", config, *options)

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
        """Waits until every bucket that is to be judged is complete, or one of them is lost, but
        not longer than `WITHIN_S`, and not longer than `HELD_WITHIN_S` for topics that the agent
        does not seal. If a program wrote a line later than the audit allows for, the line's bucket
        needs a further load.
        """
        self.display.say("the audit judges these windows; then the rows are counted again")
        begin = time.monotonic()
        load_at = time.monotonic() + LOAD_AGAIN_S
        while True:
            self.outcome.report = json.loads(self._audit("report").stdout)
            if self.outcome.counts_balance or self.outcome.has_loss:
                break
            within_s = HELD_WITHIN_S if self.outcome.is_short_of_held else WITHIN_S
            if time.monotonic() > begin + within_s:
                break
            if time.monotonic() > load_at:
                self.load(*SMALL_WITHOUT_SPARK)
                load_at = time.monotonic() + LOAD_AGAIN_S
            self.supervisor.check()
            self.idle()

    def recount(self) -> None:
        """Counts the rows in the output, and compares them with the counts of the tiers. Repeats
        both steps for at most `RECOUNT_AGAIN_S` seconds, because the newest records, which come
        after the cut-off, may become rows a little before the audit learns of them.
        """
        deadline = time.monotonic() + RECOUNT_AGAIN_S
        while True:
            done = self._audit("recount", "--output", self.site.output)
            self.outcome.recount = json.loads(done.stdout)
            self.outcome.recount_agrees = done.returncode == 0
            if self.outcome.recount_agrees or time.monotonic() > deadline:
                break
            self.supervisor.check()
            self.idle()

    def until(
        self, ready: Callable[[], bool], what: str, obstacle: Callable[[], str] = str
    ) -> None:
        """Waits until `ready` returns True, and calls `idle` meanwhile. Says from time to time what
        it waits for, with the words of `obstacle`. Raises the errors of `Supervisor.wait_for`."""

        def is_ready() -> bool:
            if ready():
                return True
            if self.display.silent_s >= SAY_AGAIN_S:
                self.display.say(f"still waiting for {what}{obstacle()}")
            self.idle()
            return False

        self.supervisor.wait_for(is_ready, what, WITHIN_S, obstacle)

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
        """Returns the agent's account: for every file, how many bytes are acknowledged, rejected,
        lost and so on."""
        config = str(self.site.config("agent"))
        done = self.command("agent", "state", "show", "--json", "--config", config)
        return list(json.loads(done.stdout)["files"])

    def agent_health(self) -> dict[str, Any]:
        """Returns what the agent's /health says."""
        return health_of(self.site.health("agent"))

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

    def _until_delivered(
        self, ready: Callable[[], bool], what: str, obstacle: Callable[[], str]
    ) -> None:
        """Waits as `until` does. Notes before each call of `ready` which paths the agent cannot
        read."""

        def is_ready() -> bool:
            self.outcome.unread = self._unreadable.take(self.agent_health(), time.monotonic())
            return ready()

        self.until(is_ready, what, obstacle)

    def _settled(self) -> bool:
        """Asks the agent for its accounts. Returns whether they say what happened to every byte up
        to the cut-off: acknowledged, rejected, filtered, lost or uncertain. Stores these accounts
        in the outcome.
        """
        self.outcome.take_ledger(self.ledger())
        return self.outcome.is_settled

    def _sealing(self, due_ms: int) -> Callable[[], bool]:
        """Returns a function that returns whether the agent has sealed all topics up to `due_ms`.
        The function raises SkidwayError if a line that grows for ever holds a seal back."""
        stuck = obstacles.StuckFiles(time.monotonic())

        def is_sealed() -> bool:
            if self._sealed_until() > due_ms:
                return True
            now_s = time.monotonic()
            if stuck.is_due(now_s):
                stuck.take(self.ledger(), now_s)
            return False

        return is_sealed

    def _sealed_until(self) -> int:
        """The time (ms) up to which the agent has sealed all topics, but for those that it cannot
        seal because it cannot read a path."""
        held = self.outcome.held
        topics = [each["topic"] for each in self.sources if each["topic"] not in held]
        return states.sealed_until(self.site.data("agent"), topics)

    def _begun(self) -> bool:
        """Returns whether the mirror has records. If so, a load has records to read, and so starts
        Spark."""
        topics = [f"{DATACENTER}.{source['topic']}" for source in self.sources]
        return any(self.watermarks(OFFLINE, topics).values())

    def _topics(self) -> list[str]:
        named = [source["topic"] for source in self.sources]
        return [*named, *(f"{topic}.rejected" for topic in named)]

    def _mirrored(self, ends: Offsets) -> bool:
        mirror = self.watermarks(OFFLINE, [f"{DATACENTER}.{topic}" for topic in self._topics()])
        return all(
            mirror.get(TopicPartition(f"{DATACENTER}.{tp.topic}", tp.partition), -1) >= end
            for tp, end in ends.items()
        )

    def _audit(self, verb: str, *options: str) -> subprocess.CompletedProcess[str]:
        config = str(self.site.config("audit"))
        return self.command("audit", verb, "--json", "--config", config, *options, good=(0, 1))


def bucket_end_ms(now_s: float, bucket_ms: int) -> int:
    """Returns the end (ms) of the audit's time bucket that contains the time `now_s`."""
    now_ms = int(now_s * 1000)
    return now_ms - now_ms % bucket_ms + bucket_ms
