"""Compares Skidway's agent with rsyslog: each sends a file of log lines to a broker.

Both read the same file. Each sends to a new topic with one partition on the same Skidway broker,
and waits for acknowledgements. Each case has a different kind of lines. In most cases the agent
parses, masks or joins lines; rsyslog then does the same if it can. If it cannot, it sends the lines
unchanged.

In each run, the agent or rsyslog first reads a file of two records. The cost of the program's start
is the CPU time that the program uses until the first of these records has arrived. Then the
benchmark puts the large file into the directory that the program watches. The rate is the number of
this file's records divided by the program's CPU time after its start. (If records have several
lines, rsyslog never sends the last record of a file, because it waits for the first line of the
next record. There are two files. So for both programs a run ends when all but two records have
arrived.) The agent also does the rest of its usual work: it stores what it is about to send (its
intents) and which records were acknowledged (its checkpoints), and sends the counts for the audit.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from bench import agent_lines, rsyslog
from bench.agent_lines import Line
from bench.machine import cpu_seconds, resident_mb
from bench.measure import Row, Table, in_turn
from bench.produce import create
from bench.scale import scaled
from bench.sites import Program, answers, free_port, ours, running, skidway
from skidway.kafka.client import LATEST, Client
from skidway.kafka.types import TopicPartition

RECORDS = scaled(2_000_000, 20_000)
ROUNDS = scaled(3, 1)
WITHIN_S = 300.0

PATTERN = (
    r"(?P<date>\S+) (?P<time>\S+) (?P<pid>\S+) (?P<level>\S+) (?P<component>[^ ]+): (?P<content>.*)"
)
WORDS = "%date:word% %time:word% %pid:word% %level:word% %component:char-to:\\x3a%: %content:rest%"
CELLS = (
    "%date:char-to:,%,%time:char-to:,%,%pid:char-to:,%,%level:char-to:,%,"
    "%component:char-to:,%,%content:rest%"
)
COLUMNS: Final = ["date", "time", "pid", "level", "component", "content"]
REGEX: Final = {"type": "regex", "pattern": PATTERN}
MEMBERS: Final = {
    "time": "string", "level": "string", "component": "string", "pid": "long", "size": "double",
    "message": "string",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """Lines of one kind, and what the programs do with them.

    line: makes one record of the file. end: the bytes that follow each record. source: settings of
    the agent's source. rule: says how rsyslog parses the lines: a rule of liblognorm, or the
    constant JSON if the lines are JSON, or an empty text if rsyslog does not parse them. start: the
    regular expression by which rsyslog recognizes the first line of a record that has several
    lines. share: the number of records, as a fraction of RECORDS.
    """

    line: Line
    source: Mapping[str, Any] = field(default_factory=dict)
    rule: str = ""
    start: str = ""
    end: str = "\n"
    share: float = 1.0

    @property
    def records(self) -> int:
        """The number of records in the file."""
        return int(RECORDS * self.share)

    @property
    def peer(self) -> str:
        """The name of the peer (rsyslog) in the table of results."""
        return "rsyslog, parsed" if self.rule else "rsyslog, unparsed"


CASES: Final[Mapping[str, Case]] = {
    "raw": Case(agent_lines.hdfs),
    "raw, CRLF": Case(agent_lines.hdfs, end="\r\n"),
    "raw, 1 KB": Case(agent_lines.long, share=0.25),
    "six fields": Case(agent_lines.hdfs, {"parser": REGEX}, WORDS),
    "six fields, CRLF": Case(agent_lines.hdfs, {"parser": REGEX}, WORDS, end="\r\n"),
    "json": Case(agent_lines.members, {"parser": {"type": "json"}}, rsyslog.JSON),
    "csv": Case(agent_lines.values, {"parser": {"type": "csv", "columns": COLUMNS}}, CELLS),
    "masked cards": Case(agent_lines.card, {"shape": "mask line for cards"}),
    "stack traces": Case(agent_lines.trace, {"multiline": {"type": "java"}}, start="^[0-9]"),
    "container": Case(agent_lines.contained, {"container": "cri"}),
}


def run() -> Table:
    """Measures records per CPU second, case by case. In each case, agent and rsyslog take turns."""
    rsyslog.provide()
    table = Table("agent: real lines from a file to an acknowledged record")
    starts: dict[str, list[float]] = {"ours": [], "peer": []}
    with tempfile.TemporaryDirectory(prefix="skidway-bench-") as name:
        folder = Path(name)
        with (
            ours(folder) as (address, _, zookeeper),
            registry(folder, zookeeper.address) as schemas,
        ):
            for what, case in CASES.items():
                site = Site(folder, address, schemas, case)
                site.prepare()
                found = in_turn({"ours": site.agent, "peer": site.rsyslog}, ROUNDS)
                rates = {side: tuple(each.rate for each in found[side]) for side in found}
                for side in starts:
                    starts[side] += [each.start_s for each in found[side]]
                unit = "records a CPU second"
                table.add(Row(what, unit, rates["ours"], rates["peer"], case.peer))
    table.add(Row("start-up", "CPU s", tuple(starts["ours"]), tuple(starts["peer"]), "rsyslog"))
    return table


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one run. start_s: CPU seconds until the first record had arrived. rate: records
    per CPU second after the first record.
    """

    start_s: float
    rate: float


@dataclass(frozen=True, slots=True)
class Site:
    """What the runs of one case use: a folder, a broker and a registry. security: settings by which
    the agent speaks with the broker; by default, without TLS at `address`."""

    folder: Path
    address: str
    schemas: str
    case: Case
    security: Mapping[str, str | int] = field(default_factory=dict)

    def prepare(self) -> None:
        """Writes the log files that the runs of the case read."""
        line, count, end = self.case.line, self.case.records, self.case.end
        agent_lines.write(self.folder / "all", line, range(count), end)
        agent_lines.write(self.folder / "first", line, range(count, count + 2), end)
        fields = [{"name": name, "type": kind} for name, kind in MEMBERS.items()]
        schema = {"type": "record", "name": "Members", "fields": fields}
        (self.folder / "members.avsc").write_text(json.dumps(schema))

    def agent(self) -> Run:
        """Runs `skidway agent run` with a new state directory, and returns what was measured."""
        with self._directory("skidway") as (work, topic):
            source = {"topic": topic, "paths": [f"{work}/logs/*.log"], **self.case.source}
            if source.get("parser") == {"type": "json"}:
                source["schema"] = str(self.folder / "members.avsc")
            config = work / "agent.yml"
            settings = {
                "bootstrap.servers": self.address,
                "schema.registry.url": self.schemas,
                "state.dir": str(work / "state"),
                "metrics.listener": f"127.0.0.1:{free_port()}",
                "sources": [source],
                **self.security,
            }
            config.write_text(yaml.safe_dump(settings))
            program = Program(skidway("agent", "run", "--config", str(config)), work / "out")
            program.start()
            try:
                return self._measured(program, work, topic)
            finally:
                program.stop()

    def rsyslog(self) -> Run:
        """Runs rsyslog, and returns what was measured."""
        with self._directory("rsyslog") as (work, topic):
            rule, parsing = self.case.rule, rsyslog.UNPARSED
            if rule:
                parsing = rule if rule == rsyslog.JSON else rsyslog.normalized(rule, work)
            program = rsyslog.program(
                work,
                self.address,
                topic,
                f"{work}/logs/*.log",
                parsing=parsing,
                start=self.case.start,
            )
            program.start()
            try:
                return self._measured(program, work, topic)
            finally:
                program.kill()

    @contextlib.contextmanager
    def _directory(self, who: str) -> Iterator[tuple[Path, str]]:
        topic = f"bench-{who}-{time.time_ns()}"
        create(self.address, topic)
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=f"{who}-") as name:
            logs = Path(name) / "logs"
            logs.mkdir()
            (logs / "first.log").write_bytes((self.folder / "first").read_bytes())
            yield Path(name), topic

    def _measured(self, program: Program, work: Path, topic: str) -> Run:
        begun = self._cpu_when(program, topic, 1)
        (work / "logs" / "all.log").hardlink_to(self.folder / "all")
        ended = self._cpu_when(program, topic, self.case.records)
        memory = resident_mb(program.pid)
        print(f"  {topic}: {begun:.2f} and {ended - begun:.2f} CPU s, {memory:.0f} MB", flush=True)
        return Run(begun, self.case.records / (ended - begun))

    def _cpu_when(self, program: Program, topic: str, records: int) -> float:
        partition = TopicPartition(topic, 0)
        deadline = time.monotonic() + WITHIN_S
        with Client(self.address) as client:
            while client.list_offsets({partition: LATEST})[partition].offset < records:
                if not program.running or time.monotonic() > deadline:
                    said = program.output()[-2000:]
                    raise RuntimeError(f"{topic}: the lines did not arrive\n{said}")
                time.sleep(0.05)
        return cpu_seconds(program.pid)


@contextlib.contextmanager
def registry(folder: Path, zookeeper: str) -> Iterator[str]:
    """Runs a schema registry inside the block, and yields its URL."""
    port, metrics = free_port(), free_port()
    program = Program(
        skidway(
            "registry",
            "run",
            "--set",
            f"listeners=http://127.0.0.1:{port}",
            "--set",
            f"zookeeper.connect={zookeeper}",
            "--set",
            f"metrics.listener=127.0.0.1:{metrics}",
        ),
        folder / "registry.out",
    )
    with running(program, lambda: answers(f"http://127.0.0.1:{metrics}/health")):
        yield f"http://127.0.0.1:{port}"
