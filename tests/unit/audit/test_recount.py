"""Recounting rows, on an output made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from audit import checksum, recount, recount_report
from audit.counts import Counts
from audit.deltas import number_deltas
from audit.evidence import Evidence, Fold
from audit.messages import Range, Sender, Tier
from audit.output import LocalOutput, OutputUnreadable, open_output
from audit.recount import Recounted
from skidway.errors import ConfigurationRefused
from skidway.kafka.columns import Origins
from skidway.kafka.source import Source

LOGS = Source("dc1", "cid", "logs", "tid")
TOPIC = "dc1.logs"
PRODUCER = f"/out/{TOPIC}"
MINUTE = 60_000


def _origins(first: int, count: int) -> Origins:
    positions = (np.arange(count, dtype=np.int64) + first) * 10
    return Origins(np.full(count, 7), np.full(count, 3), positions, np.full(count, 10))


class Output:
    """An output directory, and what hdfs and the agent say of it."""

    def __init__(self, root: Path) -> None:
        self.root, self.loads = root, 0
        self.agent, self.hdfs = Counts(MINUTE), Counts(MINUTE)

    def load(
        self, first: int, count: int, *, kind: str = "rows", moved: bool = True,
        removed: tuple[str, ...] = (), said: int | None = None,
    ) -> str:  # fmt: skip
        """A committed load of one file; `said`: how many records the tiers claim."""
        self.loads += 1
        origins, times = _origins(first, count), np.full(count, 5 * MINUTE + first, np.int64)
        path = f"{TOPIC}/part-{self.loads}.parquet"
        staged = f"_skidway/{TOPIC}/staging/{self.loads}-x/part.parquet"
        self._write(path if moved else staged, origins, times, kind)
        claimed = count if said is None else said
        for counts in (self.agent, self.hdfs):
            counts.add(LOGS, np.full(claimed, times[0]), _origins(first, claimed))
        total = checksum.total(
            checksum.record_hash(origins.agent, origins.file, origins.first, origins.length)
        )
        file = {"kind": kind, "path": path, "staged": staged, "rows": count, "checksum": total}
        self.commit(files=[file], removed=list(removed))
        return path

    def _write(self, path: str, origins: Origins, times: Any, kind: str) -> None:
        columns = {
            "message": pa.array(["x"] * len(times)),
            "_agent": pa.array(origins.agent),
            "_file_id": pa.array(origins.file),
            "_offset": pa.array(origins.first),
            "_length": pa.array(origins.length),
        }
        if kind == "rows":
            columns["_timestamp"] = pa.array(times).cast(pa.timestamp("ms", "UTC"))
        else:
            columns["timestamp_ms"] = pa.array(times)
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), self.root / path)

    def commit(self, **parts: Any) -> None:
        manifest = {
            "format": 1, "number": self.loads, "producer": PRODUCER,
            "source": {"cluster": "dc1", "cluster_id": "cid", "topic": "logs", "topic_id": "tid"},
            "audit": {"bucket_ms": MINUTE},
        } | parts  # fmt: skip
        path = self.root / f"_skidway/{TOPIC}/{self.loads:020}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(manifest))

    def evidence(self) -> Evidence:
        agent = Sender(Tier.AGENT, "dc1", "7", "h", 1)
        hdfs = Sender(Tier.HDFS, "offline", PRODUCER, "h", 1)
        said = number_deltas(agent, 5, 0, self.agent, {}).deltas
        covered = [Range(LOGS, 0, 0, 9)]
        return Fold(
            [*said, *number_deltas(hdfs, 5, 0, self.hdfs, {}, ranges=covered).deltas]
        ).evidence()

    def recount(self) -> Recounted:
        output = LocalOutput(self.root)
        [topic] = recount.topics(output)
        return recount.recount(output, recount.committed(output, topic))

    def compared(self) -> recount_report.Compared:
        found = self.recount()
        return [(found, recount.compare(found, self.evidence(), tuple(Tier)))]


@pytest.fixture
def output(tmp_path: Path) -> Output:
    return Output(tmp_path)


def test_rows_that_are_what_was_counted_agree(output: Output) -> None:
    """Rows and rejects together, over several loads."""
    output.load(0, 100)
    output.load(100, 50)
    output.load(150, 5, kind="rejects")
    compared = output.compared()
    assert recount_report.is_good(compared)
    assert (
        recount_report.sentence(compared) == "The 155 rows of 1 topic are what every tier counted."
    )
    [row] = recount_report.table(compared)
    assert (row["loads"], row["files"], row["rows"], row["verdict"]) == (3, 3, 155, "agrees")


def test_files_that_were_not_moved_into_place_yet_count(output: Output) -> None:
    """The manifest commits them; where they lie is the loader's next step."""
    output.load(0, 10, moved=False)
    assert recount_report.is_good(output.compared())


def test_files_that_a_later_load_took_out_do_not_count(output: Output) -> None:
    """A backfill replaces a file; only the new one belongs to the output."""
    old = output.load(0, 10)
    output.load(0, 10, removed=(old,), said=0)
    assert recount_report.is_good(output.compared())
    assert output.recount().rows == 10


@pytest.mark.parametrize(
    ("rows", "said", "words"),
    [
        (10, 12, "2 of the 12 records that hdfs counted are no rows"),
        (12, 10, "there are 2 more rows than the 10 of hdfs"),
    ],
)
def test_a_row_too_few_or_too_many_is_found(
    output: Output, rows: int, said: int, words: str
) -> None:
    """Although the manifest itself claims what the file has."""
    output.load(0, rows, said=said)
    compared = output.compared()
    assert not recount_report.is_good(compared)
    [topic] = recount_report.document(compared)["topics"]
    assert any(words in reason for reason in topic["why"])
    assert {x["tier"] for x in topic["differences"]} == {"agent", "hdfs"}


def test_a_file_changed_behind_the_manifest_is_found(output: Output) -> None:
    """Rows and checksum of every file are compared with what was committed."""
    path = output.load(0, 10)
    output._write(path, _origins(5, 10), np.full(10, 5 * MINUTE), "rows")
    found = output.recount()
    assert "not the 10 that were committed" in found.problems[0]


def test_a_file_that_is_gone_or_no_parquet_is_named(output: Output) -> None:
    """The rest is still recounted."""
    gone, broken = output.load(0, 10), output.load(10, 10)
    output.load(20, 10)
    (output.root / gone).unlink()
    (output.root / broken).write_bytes(b"not parquet")
    found = output.recount()
    assert (len(found.problems), found.rows) == (2, 10)


def test_a_missing_manifest_is_named(output: Output) -> None:
    """A hole in the chain of loads."""
    output.load(0, 10)
    output.loads += 1
    output.load(10, 10)
    assert "manifest 2 of dc1.logs is missing" in output.recount().problems


def test_a_manifest_that_cannot_be_understood_stops_the_recount(output: Output) -> None:
    """Guessing which files belong would be no second way to the verdict."""
    for parts in ({"format": 2}, {"files": []}):
        output.loads = 1
        output.commit(**parts)
        with pytest.raises(OutputUnreadable):
            output.recount()


def test_nothing_to_recount_is_no_agreement(tmp_path: Path) -> None:
    """An empty directory proves nothing."""
    assert recount.topics(LocalOutput(tmp_path)) == []
    assert not recount_report.is_good([])
    assert "no committed load" in recount_report.sentence([])


@pytest.mark.parametrize("url", ["s3://bucket/x", "/nowhere/at/all"])
def test_an_output_that_cannot_be_is_refused(url: str) -> None:
    """One sentence."""
    with pytest.raises(ConfigurationRefused, match="--output"):
        open_output(url)
