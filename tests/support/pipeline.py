"""The whole pipeline as real programs, with an oracle that knows every line.

A `Pipeline` is a demo site (skidway.demo.site) in a folder of the test, its programs under the
test's hand: each can be started, stopped, killed and restarted. `Oracle` writes the lines and
compares what arrived: the rows of the committed Parquet files, as (file, first byte, line).
"""

from __future__ import annotations

import collections
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from skidway.demo.site import DATACENTER, OFFLINE, Site, Timing, free_ports
from skidway.kafka.client import LATEST, Client
from skidway.kafka.types import TopicPartition
from support.processes import Program, answers, eventually, skidway

RAW = {"type": "raw"}
ORDER = (
    "zookeeper", "broker-dc1", "broker-offline", "registry", "agent", "count-dc1", "count-offline", "audit",
)
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


class Pipeline:
    """Every program of a site, by name, and the questions that tests ask of it."""

    def __init__(self, folder: Path, sources: Sequence[Mapping[str, Any]], output: str | None = None) -> None:
        self.site = Site(folder, free_ports(), output or str(folder / "hdfs"), Timing(1_000, 500, 500))
        self.site.write(sources)
        self.programs = {
            name: Program(
                skidway(*command, "--config", str(self.site.config(name))), folder / "log" / f"{name}.json"
            )
            for name, command in COMMANDS.items()
        }
        self._loads = 0

    def start(self, *names: str) -> None:
        """Start these programs (all of them by default) and wait until each is healthy."""
        for name in names or ORDER:
            self.programs[name].start().wait_until(lambda name=name: answers(self.site.health(name)))

    def restart(self, name: str) -> None:
        """Kill -9 and start again."""
        self.programs[name].kill()
        self.start(name)

    def stop(self) -> None:
        """Kill what still runs, the last started first."""
        for name in reversed(ORDER):
            if self.programs[name].running:
                self.programs[name].kill()

    def rewrite(self, sources: Sequence[Mapping[str, Any]]) -> None:
        """New settings of the agent, for its next start."""
        self.site.write(sources)

    def ledger(self) -> list[dict[str, Any]]:
        """Per file what became of its bytes, as `skidway agent state show --json` says."""
        done = self.run("agent", "state", "show", "--json", "--config", str(self.site.config("agent")))
        return list(json.loads(done)["files"])

    def settled(self, sizes: Mapping[Path, int]) -> bool:
        """Whether every byte of these files is acknowledged or set apart."""
        done: collections.Counter[str] = collections.Counter()
        for file in self.ledger():
            done[file["path"]] += file["bytes"] - file["pending"]
        return all(done[str(path)] >= size for path, size in sizes.items())

    def watermarks(self, cluster: str, topics: Sequence[str]) -> dict[TopicPartition, int]:
        """High watermark of every partition of the topics; missing topics are left out."""
        with Client(self.site.address(f"broker-{cluster}")) as client:
            found = client.metadata(list(topics)).topics
            partitions = {
                TopicPartition(name, partition.index): LATEST
                for name, topic in found.items() if not topic.error for partition in topic.partitions
            }
            return {tp: listed.offset for tp, listed in client.list_offsets(partitions).items()}

    def mirrored(self, topics: Sequence[str]) -> bool:
        """Whether the offline cluster has all that dc1 has of these topics."""
        source = self.watermarks(DATACENTER, topics)
        mirror = self.watermarks(OFFLINE, [f"{DATACENTER}.{topic}" for topic in topics])
        return all(
            mirror.get(TopicPartition(f"{DATACENTER}.{tp.topic}", tp.partition)) == offset
            for tp, offset in source.items()
        )

    def drain(self, sizes: Mapping[Path, int], topics: Sequence[str], within_s: float = 60) -> None:
        """Wait until all bytes of the files are settled and mirrored."""
        eventually(lambda: self.settled(sizes), within_s=within_s, every_s=0.3, what="every byte settled")
        wanted = [*topics, "_skidway_audit"]
        eventually(lambda: self.mirrored(wanted), within_s=within_s, every_s=0.2, what="everything mirrored")

    def loader(self) -> Program:
        """A load, not yet started."""
        self._loads += 1
        return Program(
            skidway("load", "run", "--config", str(self.site.config("loader"))),
            self.site.folder / f"load-{self._loads}.out",
        )

    def load(self) -> None:
        """One load to its good end."""
        program = self.loader().start()
        status = program.wait(180)
        assert status == 0, program.output()[-4000:]

    def report(self) -> dict[str, Any]:
        """What `skidway audit report --json` says, from the collector's store."""
        program = Program(
            skidway("audit", "report", "--json", "--config", str(self.site.config("audit"))),
            self.site.folder / "report.json",
        )
        self.site.folder.joinpath("report.json").unlink(missing_ok=True)
        program.start().wait(60)
        return dict(json.loads(program.output()))

    def run(self, *arguments: str) -> str:
        """A command of ours to its good end; what it printed on standard output."""
        from support.processes import run_skidway

        done = run_skidway(*arguments)
        assert done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def rows(self, topic: str) -> pa.Table:
        """All committed rows of a topic of dc1."""
        files = sorted(Path(self.site.output, f"{DATACENTER}.{topic}").rglob("*.parquet"))
        if not files:
            return pa.table({})
        return pa.concat_tables([pq.ParquetFile(file).read() for file in files], promote_options="permissive")


class Oracle:
    """Writes numbered lines and knows every one of them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.lines: list[str] = []

    def write(self, name: str, count: int, *, text: str = "line") -> Path:
        """Append count lines to a file; every line is unique."""
        path = self.folder / name
        with path.open("a") as out:
            for _ in range(count):
                line = f"{text} {len(self.lines):08d} of {name}"
                self.lines.append(line)
                out.write(line + "\n")
        return path

    def sizes(self) -> dict[Path, int]:
        return {path: path.stat().st_size for path in self.folder.iterdir() if path.is_file()}

    def expect_exactly(self, rows: Sequence[str]) -> None:
        """Every line once: none lost, none doubled."""
        wanted, found = collections.Counter(self.lines), collections.Counter(rows)
        lost, extra = wanted - found, found - wanted
        assert not lost, f"{sum(lost.values())} lost of {len(self.lines)}, first {next(iter(lost))!r}"
        assert not extra, f"{sum(extra.values())} doubled or invented, first {next(iter(extra))!r}"


def source(topic: str, folder: Path, pattern: str = "*.log", **settings: Any) -> dict[str, Any]:
    """One raw source of an agent."""
    return {"topic": topic, "paths": [str(folder / pattern)], "parser": RAW, **settings}


def lines_of(table: pa.Table) -> Iterator[str]:
    """The `line` column of raw rows."""
    yield from table.column("line").to_pylist() if table.num_rows else ()
