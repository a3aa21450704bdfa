"""Counts what the demo's programs should have done, and what they have done.

    Written    the lines in the writer's files, counted without any code of the pipeline
    ledger     what the agent has done with the bytes of each file
    Tiers      how many lines have reached each tier (stage of the pipeline)
    Outcome    what a demo has found out, and whether everything agrees

The verdict covers two things. The *bytes* are those that were in the tailed files at the cut-off.
The *buckets* are the audit's time buckets that ended at or before `Outcome.until_ms`. This moment
is late enough that these buckets contain the records of all these bytes. Programs go on writing,
and the agent goes on reading. So accounts and reports also have newer bytes and buckets, but these
change no verdict and hide no missing byte.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skidway.agent.commands import state
from skidway.agent.files.operating_system import OperatingSystem
from skidway.agent.files.patterns import patterns_of
from skidway.database_reader import open_to_read
from skidway.demo import writer
from skidway.demo.programs import Programs
from skidway.demo.site import DATACENTER, OFFLINE, Site
from skidway.kafka.client import LATEST
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.types import TopicPartition

READ_BYTES = 1 << 20
WAIT_S = 5.0
ASK_TIMEOUT_MS = 5_000
MEASURE_EVERY_S = 0.5
FATES = ("acknowledged", "rejected", "filtered", "lost", "uncertain")
WRITTEN, AGENT, BROKER, MIRROR, COUNTED, ROWS = TIERS = (
    "written", "agent", "broker", "mirror", "counted", "hdfs",
)  # fmt: skip
MIRRORED = tuple(f"{DATACENTER}.{topic}" for topic in writer.TOPICS)

Ledger = Sequence[Mapping[str, Any]]


class Written:
    """Counts what is in the writer's files, of this run and of earlier ones. Reads a rotated file
    only once. If a file is rotated meanwhile, its lines may be missing; the next count has them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rotated: dict[Path, Counter[str]] = {}

    def count(self) -> dict[str, Counter[str]]:
        """Returns the present numbers of `lines`, `torn` lines and `bytes`, by topic. A torn line
        lacks its end, and is not in the number of lines."""
        found: dict[str, Counter[str]] = {topic: Counter() for topic in writer.TOPICS}
        for path in writer.files(self._folder):
            with contextlib.suppress(FileNotFoundError):
                tally = self._rotated.get(path) or _tally(path)
                if path.suffix != ".log":
                    self._rotated[path] = tally
                found[path.parent.name].update(tally)
        return found


def _tally(path: Path) -> Counter[str]:
    lines = torn = size = 0
    with path.open("rb") as file:
        while block := file.read(READ_BYTES):
            lines, size = lines + block.count(b"\n"), size + len(block)
            torn = int(not block.endswith(b"\n"))
    return Counter(lines=lines, torn=torn, bytes=size)


def ledger(site: Site) -> Ledger:
    """Returns the agent's account, as `skidway agent state show` does: for each file id, how many
    bytes have which fate (such as acknowledged or lost), and how many are pending."""
    return list(state.show(site.data("agent"))["files"])


def cut_off(site: Site, patterns: Sequence[str]) -> tuple[Ledger, list[str]]:
    """Returns the agent's account, and the paths of the files that the patterns match and that have
    more bytes than this account knows. The agent has to decompress a file to know its size."""
    files = OperatingSystem().scan(patterns_of(patterns)).found
    now = ledger(site)
    ends = {(x["device"], x["inode"], x["born_ns"]): _position(x) + x["pending"] for x in now}
    sizes = {file.path: (file.size if file.size >= 0 else 1) for file in files}
    return now, [x.path for x in files if sizes[x.path] > ends.get((*x.key, x.born_ns), 0)]


def _position(row: Mapping[str, Any]) -> int:
    """Up to where a row of the ledger says what happened to every byte."""
    return int(row["begin"]) + sum(int(row[fate]) for fate in FATES)


def record_count(kafka: KafkaConnection, topics: Sequence[str]) -> int:
    """Returns the sum of the high watermarks of these topics, as far as they exist. Raises
    Unreachable or KafkaError if the broker does not answer."""
    with kafka.within(ASK_TIMEOUT_MS).client() as client:
        found = client.metadata(topics).topics
        partitions = {
            TopicPartition(name, partition.index): LATEST
            for name, topic in found.items()
            if not topic.error
            for partition in topic.partitions
        }
        return sum(listed.offset for listed in client.list_offsets(partitions).values())


class Tiers:
    """Measures how many of the writer's lines have reached each tier. A tier may have more lines
    than were written, because lines may be sent twice after a kill. The loader drops these
    duplicates. `away` has the tiers whose programs were killed and are not back."""

    def __init__(self, programs: Programs) -> None:
        self.site, self._programs = programs.site, programs
        self.written = Written(self.site.written)
        self.away: set[str] = set()
        self._records = {BROKER: 0, MIRROR: 0}
        self._loaded, self._measured_s = 0, float("-inf")
        self._now: dict[str, int] = {}

    def note_loaded(self) -> None:
        """Asks how much is loaded. To be called after each load."""
        _, status = self._programs.ask("loader", "load", "status")
        self._loaded = sum(x["loaded"] for x in status["partitions"] if x["topic"] in MIRRORED)

    def measure(self) -> dict[str, int]:
        """Returns the number of lines in each tier. The agent counts bytes; the mean length of the
        written lines converts them. An answer counts for `MEASURE_EVERY_S`."""
        if time.monotonic() - self._measured_s < MEASURE_EVERY_S:
            return self._now
        written = sum(self.written.count().values(), Counter[str]())
        self._ask(BROKER, DATACENTER, writer.TOPICS)
        self._ask(MIRROR, OFFLINE, MIRRORED)
        mine = [row for row in ledger(self.site) if row["topic"] in writer.TOPICS]
        settled = sum(row[fate] for row in mine for fate in FATES)
        self._now = {
            WRITTEN: written["lines"],
            AGENT: settled * written["lines"] // max(written["bytes"], 1),
            **self._records,
            COUNTED: self._counted(),
            ROWS: self._loaded,
        }
        self._measured_s = time.monotonic()
        return self._now

    def _ask(self, tier: str, cluster: str, topics: Sequence[str]) -> None:
        if tier not in self.away:
            self._records[tier] = record_count(self.site.kafka(cluster), topics)

    def _counted(self) -> int:
        with closing(open_to_read(self.site.data("count-dc1") / "counter.db", WAIT_S)) as database:
            found = database.execute(
                "SELECT topic, next_offset FROM partitions"
                " JOIN sources ON sources.id = partitions.source"
            )
            return sum(end for topic, end in found if topic in writer.TOPICS)


@dataclass(slots=True)
class Outcome:
    """The results that are printed at the end. `cut` is the agent's account at the cut-off, and
    `ledger` the newest one. `unseen` has the paths of files that the agent has not found yet.
    `written` has what is in the writer's files, and `kills` a sentence for each kill."""

    cut: Ledger = ()
    unseen: Sequence[str] = ()
    ledger: Ledger = ()
    until_ms: int = 0
    report: Mapping[str, Any] = field(default_factory=dict)
    recount: Mapping[str, Any] = field(default_factory=dict)
    recount_agrees: bool = False
    written: Mapping[str, Counter[str]] = field(default_factory=dict)
    kills: Mapping[str, str] = field(default_factory=dict)

    @property
    def unsettled(self) -> dict[str, int]:
        """By path, the number of bytes up to the cut-off for which the agent has not accounted yet.
        Leaves out files for which this number is 0."""
        ends = {row["file"]: (row["path"], _position(row) + row["pending"]) for row in self.cut}
        now = {row["file"]: _position(row) for row in self.ledger}  # the agent forgets done ids
        missing = {path: end - now.get(file, end) for file, (path, end) in ends.items()}
        return {path: count for path, count in missing.items() if count > 0}

    @property
    def tally(self) -> dict[str, int]:
        """The number of bytes for each fate, in the files of the cut-off."""
        files = {row["file"] for row in self.cut}
        rows = [row for row in self.ledger if row["file"] in files]
        return {fate: sum(row[fate] for row in rows) for fate in FATES}

    @property
    def judged(self) -> list[Mapping[str, Any]]:
        """The buckets of the audit's report that ended at or before `until_ms`."""
        buckets = self.report.get("buckets", ())
        return [x for x in buckets if x["bucket"] + x["bucket_ms"] <= self.until_ms]

    @property
    def short(self) -> list[Mapping[str, Any]]:
        """The judged buckets that are not complete."""
        return [x for x in self.judged if x["verdict"] != "complete"]

    @property
    def is_decided(self) -> bool:
        """Whether further loads change nothing: all buckets are complete and the rows agree, or a
        bucket is lost."""
        verdicts = {x["verdict"] for x in self.judged}
        return "lost" in verdicts or (verdicts == {"complete"} and self.recount_agrees)

    @property
    def rows(self) -> dict[str, int]:
        """The number of rows that the recount found for each topic of the datacenter."""
        topics = self.recount.get("topics", ())
        return {x["topic"].removeprefix(f"{DATACENTER}."): x["rows"] for x in topics}

    @property
    def miscounted(self) -> dict[str, int]:
        """The number of rows minus the number of lines that the writer wrote, for each topic in
        which these numbers do not match."""
        rows = self.rows
        surplus = {x: rows.get(x, 0) - tally["lines"] for x, tally in self.written.items()}
        # a torn line (cut off by a kill) may be a row, too
        return {x: n for x, n in surplus.items() if not 0 <= n <= self.written[x]["torn"]}

    @property
    def is_complete(self) -> bool:
        """Whether there are judged buckets, all of them complete, the recount agrees, every line of
        the writer is a row, and the agent has accounted for every byte. Lost bytes are for the
        audit to judge. What the kills hit is told, and judged by nobody."""
        return self.is_decided and not (self.short or self.miscounted or self.unsettled)
