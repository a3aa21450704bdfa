"""Runs the whole pipeline as real programs. An `Oracle` writes log lines and remembers each line.

A `Pipeline` is a demo site (skidway.demo.site) in a folder of the test. It has methods that start,
stop, kill and restart each program. Clients reach the datacenter's broker through `proxy`, which
can delay and lose their traffic as a network does. At the end, the oracle compares its lines with
the rows of the committed Parquet files.
"""

from __future__ import annotations

import collections
import itertools
import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from skidway.agent.commands import state as ledger
from skidway.agent.state.database import DATABASE
from skidway.demo.site import DATACENTER, DEFAULT_PORTS, OFFLINE, Site, Timing
from skidway.errors import StateRefused
from skidway.kafka.client import LATEST
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.types import TopicPartition
from skidway.loader.store import StoreConnection
from support.processes import (
    WITHIN_S,
    Program,
    answers,
    call_skidway,
    eventually,
    free_port,
    skidway,
)
from support.proxy import Proxy

RAW = {"type": "raw"}
AUDIT_TOPIC = "_skidway_audit"
PROXY = "proxy-dc1"
TOGETHER = (
    ("zookeeper",),
    ("broker-dc1", "broker-offline"),
    ("registry", "count-dc1", "count-offline", "audit"),
    ("agent",),
)
"""Groups of programs, in the order in which they start. The programs of a group start at the same
time, because none of them needs another one of the group."""
ORDER = tuple(name for names in TOGETHER for name in names)
COMMANDS: Mapping[str, Sequence[str]] = {
    "zookeeper": ("zookeeper", "run"),
    "broker-dc1": ("broker", "run"),
    "broker-offline": ("broker", "run"),
    "registry": ("registry", "run"),
    "agent": ("agent", "run"),
    "count-dc1": ("audit", "count"),
    "count-offline": ("audit", "count"),
    "audit": ("audit", "run"),
}
LOAD_WITHIN_S = 900.0
Settings = Mapping[str, Any]
PATIENT: Mapping[str, Settings] = {
    "agent": {
        "idle.flush.ms": 500,
        "close.rotated.ms": 2_000,
        "reconcile.interval.ms": 1_000,
    },
    "broker-dc1": {"zookeeper.session.timeout.ms": 5_000},
    "loader": {"metrics.listener": None, "spark.above.offsets": 1_000_000},
}
"""The settings that every test's pipeline has, by program. The intervals are much shorter than
those in production. Loads need no Spark, unless they get the options ON_SPARK."""
ON_SPARK = ("--set", "spark.above.offsets=0")


class Pipeline:
    """All programs of a site, by name, with methods for tests.

    `settings` contains, by program, the settings that differ from those of the demo site.
    `elsewhere` names the programs that this pipeline does not start, because the test runs
    something else in their place, and maps each name to the port of this replacement.
    """

    def __init__(
        self,
        folder: Path,
        sources: Sequence[Settings],
        *,
        output: str | None = None,
        settings: Mapping[str, Settings] | None = None,
        elsewhere: Mapping[str, int] | None = None,
    ) -> None:
        found = {name: free_port() for name in (*DEFAULT_PORTS, PROXY)} | dict(elsewhere or {})
        timing = Timing(1_000, lateness_ms=500, seal_interval_ms=1_000, count_interval_ms=500)
        self.site = Site(folder, found, output or str(folder / "hdfs"), timing)
        self.proxy = Proxy(found[PROXY], found["broker-dc1"])
        self.settings = {
            name: dict(PATIENT.get(name, {})) | dict((settings or {}).get(name, {}))
            for name in {*PATIENT, *(settings or {}), "broker-dc1"}
        }
        advertised = f"PLAINTEXT://127.0.0.1:{found[PROXY]}"
        self.settings["broker-dc1"]["advertised.listeners"] = advertised
        self.rewrite(sources)
        self.programs = {
            name: Program(
                skidway(*command, "--config", str(self.site.config(name))),
                self.site.logs / f"{name}.json",
            )
            for name, command in COMMANDS.items()
            if name not in (elsewhere or {})
        }
        self._loads = 0

    # --- programs ---------------------------------------------------------------------------------

    def start(self, *names: str) -> None:
        """Starts the given programs, or by default all programs, and waits until each program is
        healthy."""
        if not names:
            self.proxy.start()
        for group in TOGETHER:
            started = [x for x in group if x in self.programs and x in (names or ORDER)]
            for name in started:
                self.programs[name].start()
            for name in started:
                self.wait_healthy(name)

    def wait_healthy(self, name: str) -> None:
        self.programs[name].wait_until(lambda: answers(self.site.health(name)))

    def revive(self) -> None:
        """Starts each program that is not running, and ends all faults that were injected into the
        proxy."""
        self.proxy.clear()
        if down := [name for name in self.programs if not self.is_up(name)]:
            self.start(*down)

    def is_up(self, name: str) -> bool:
        return self.programs[name].running

    def kill(self, name: str) -> None:
        """Kills a program with kill -9."""
        self.programs[name].kill()

    def restart(self, name: str) -> None:
        """Kills a program with kill -9, and starts it again."""
        self.kill(name)
        self.start(name)

    def stop(self) -> None:
        """Kills the programs that still run, in the reverse order of their start. Does not wait for
        a clean stop."""
        for name in reversed(ORDER):
            if name in self.programs and self.is_up(name):
                self.kill(name)
        self.proxy.stop()

    def rewrite(self, sources: Sequence[Settings]) -> None:
        """Writes the settings of all programs. The agent's settings contain the given sources. A
        program uses its new settings from its next start on."""
        self.site.write(sources)
        for name, changed in self.settings.items():
            path = self.site.config(name)
            path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changed, width=1000))

    # --- agent and brokers ------------------------------------------------------------------------

    def ledger(self) -> list[dict[str, Any]]:
        """Returns, for each log file, what happened to the file's bytes, as `skidway agent state
        show` prints it."""
        try:
            return list(ledger.show(self.site.data("agent"))["files"])
        except StateRefused:
            return []  # the agent has no state yet

    def settled_bytes(self, folder: Path) -> int:
        """Returns the number of bytes in the log files of a folder that the agent has accounted
        for. These bytes are acknowledged, rejected, left out by a rule, lost or uncertain."""
        below = f"{folder}/"
        return sum(
            file["bytes"] - file["pending"]
            for file in self.ledger()
            if file["announced_path"].startswith(below)
        )

    def promised_bytes(self, folder: Path) -> int:
        """Returns the number of bytes in the log files of a folder that the agent has accounted for
        (see `settled_bytes`) or has promised to send in a durable intent."""
        path = self.site.data("agent") / DATABASE
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as state:
            found = state.execute(
                'SELECT max(position, (SELECT coalesce(max("end"), 0) FROM intents'
                " WHERE intents.file = files.file)) FROM files WHERE path LIKE ?",
                (f"{folder}/%",),
            )
            return sum(end for (end,) in found)

    def watermarks(self, cluster: str, topics: Sequence[str]) -> dict[TopicPartition, int]:
        """Returns the high watermark of every partition of the topics. Leaves out topics that do
        not exist."""
        return watermarks(self.site.kafka(cluster), topics)

    def mirrored(self, topics: Sequence[str]) -> bool:
        """Returns whether the offline cluster has all records that dc1 has in these topics."""
        source = self.watermarks(DATACENTER, topics)
        mirror = self.watermarks(OFFLINE, [f"{DATACENTER}.{topic}" for topic in topics])
        return all(
            mirror.get(TopicPartition(f"{DATACENTER}.{tp.topic}", tp.partition), -1) >= offset
            for tp, offset in source.items()
        )

    def wait_mirrored(self, topics: Sequence[str], within_s: float = WITHIN_S) -> None:
        eventually(lambda: self.mirrored(topics), within_s=within_s, every_s=0.2, what="mirrored")

    # --- loader and audit -------------------------------------------------------------------------

    def loader(self, topics: Sequence[str], *options: str) -> Program:
        """Returns the program that loads topics of dc1. The program is not started yet, and will
        print its report as JSON."""
        self._loads += 1
        names = ", ".join(f'"{DATACENTER}.{topic}"' for topic in topics)
        return Program(
            skidway(
                "load", "run", "--json", "--config", str(self.site.config("loader")),
                "--set", f"topics=[{names}]", *options,
            ),
            self.site.folder / f"load-{self._loads}.out",
            session=True,
        )  # fmt: skip

    def load(self, topics: Sequence[str], *options: str) -> dict[str, dict[str, Any]]:
        """Runs one load, which must succeed. Returns the load's report: an entry for each topic, by
        the topic's name in dc1."""
        program = self.loader(topics, *options).start()
        status = program.wait(LOAD_WITHIN_S)
        assert status == 0, program.output()[-4000:]
        return report_of(program)

    def audit(self, verb: str, *options: str) -> dict[str, Any]:
        """Runs a verb of `skidway audit`, such as `report` or `recount`, and returns its JSON
        document."""
        done = call_skidway(
            "audit", verb, "--json", "--config", str(self.site.config("audit")), *options
        )
        assert done.returncode in (0, 1), f"{done.stdout}\n{done.stderr}"
        return dict(json.loads(done.stdout))

    def run(self, *arguments: str) -> str:
        """Runs a `skidway` command, which must succeed. Returns its standard output."""
        done = call_skidway(*arguments)
        assert done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def rows(self, topic: str, output: str | None = None) -> pa.Table:
        """Returns all committed rows of a topic of dc1. Finds the Parquet files by listing the
        directories, not by the manifests."""
        return self.rows_of(f"{DATACENTER}.{topic}", output)

    def rows_of(self, name: str, output: str | None = None) -> pa.Table:
        """Returns the same of a topic by the name that the loader knows."""
        tables = [
            pq.ParquetFile(file).read() for file in parquet_files(output or self.site.output, name)
        ]
        return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})


def watermarks(kafka: KafkaConnection, topics: Sequence[str]) -> dict[TopicPartition, int]:
    """Returns the high watermark of every partition of the topics in a cluster. Leaves out topics
    that do not exist."""
    with kafka.client() as client:
        found = client.metadata(list(topics)).topics
        partitions = {
            TopicPartition(name, partition.index): LATEST
            for name, topic in found.items()
            if not topic.error
            for partition in topic.partitions
        }
        listed = client.list_offsets(partitions) if partitions else {}
        return {tp: each.offset for tp, each in listed.items()}


def parquet_files(output: str, folder: str) -> list[Any]:
    """Returns the Parquet files below a folder of an output, in a form that pyarrow can open."""
    if not output.startswith("hdfs://"):
        return sorted(Path(output, folder).rglob("*.parquet"))
    store = StoreConnection(output).store()
    paths = [entry.path for entry in store.files(folder) if entry.path.endswith(".parquet")]
    return [pa.BufferReader(store.read(path)) for path in paths]


def report_of(program: Program) -> dict[str, dict[str, Any]]:
    """Returns the report of a finished load: an entry for each topic, by the topic's name in
    dc1."""
    lines = program.output().splitlines()
    begin = max(at for at, line in enumerate(lines) if line == "{")
    document = json.loads(
        "\n".join(itertools.takewhile(lambda line: line != "}", lines[begin:])) + "}"
    )
    return {each["topic"].removeprefix(f"{DATACENTER}."): each for each in document["topics"]}


class Oracle:
    """Writes numbered lines to log files in a folder, and remembers every line."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.lines: list[str] = []
        self.bytes = 0
        self._lock = threading.Lock()

    def write(self, name: str, count: int, *, text: str = "line") -> Path:
        """Appends `count` lines to a file. Every line is unique."""
        where = f"{self.folder.name}/{name}"
        lines = [f"{text} {len(self.lines) + at:08d} of {where}" for at in range(count)]
        return self.append(name, lines)

    def append(self, name: str, lines: Sequence[str]) -> Path:
        """Appends whole lines in one write, so that no reader sees half a line."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self.put(path, "".join(f"{line}\n" for line in lines))
        self.lines += lines
        return path

    def put(self, path: Path, text: str) -> None:
        """Appends a text to a file, but does not add the text's lines to `lines`. A test that calls
        `expect_exactly` must add them itself."""
        data = text.encode()
        with self._lock, path.open("ab", buffering=0) as out:
            assert out.write(data) == len(data)
            self.bytes += len(data)

    def expect_exactly(self, rows: Sequence[str]) -> None:
        """Asserts that the rows are exactly the remembered lines, each of them once."""
        wanted, found = collections.Counter(self.lines), collections.Counter(rows)
        lost, extra = wanted - found, found - wanted
        what = f"of {len(self.lines)} lines"
        assert not lost, f"{sum(lost.values())} {what} lost, first {min(lost)!r}"
        assert not extra, f"{sum(extra.values())} {what} doubled or invented, first {min(extra)!r}"


class Writer:
    """An application that continuously writes lines during the `with` block."""

    def __init__(
        self, oracle: Oracle, name: str, *, lines: int = 10, every_s: float = 0.004
    ) -> None:
        self._oracle, self._name, self._lines, self._every_s = oracle, name, lines, every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            self._oracle.write(self._name, self._lines)


def source(topic: str, folder: Path, pattern: str = "*.log", **settings: Any) -> dict[str, Any]:
    """Returns the settings of one source of an agent. The default parser is the raw parser."""
    return {"topic": topic, "paths": [str(folder / pattern)], "parser": RAW, **settings}


def lines_of(table: pa.Table) -> Iterator[str]:
    """Yields the values of the column `line`, which has the whole line if the source's parser is
    the raw parser."""
    yield from table.column("line").to_pylist() if table.num_rows else ()
