"""Tests the recount, which counts the rows in an output's files again, and compares them with what
the tiers counted. It reports *differences*, which are buckets whose rows do not agree with the
counts, and *faults*, for example missing, surplus and damaged files, or damaged manifests. Each
test makes its output without a loader."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skidway.audit.commands import options, publication
from skidway.audit.counts import checksum
from skidway.audit.counts.counts import Counts
from skidway.audit.counts.deltas import number_deltas
from skidway.audit.evidence.evidence import FOREVER, Evidence
from skidway.audit.evidence.ledger import DATABASE, Ledger
from skidway.audit.output import FileEntry, OutputConnection, StoreFailed
from skidway.audit.output.local import LocalOutput
from skidway.audit.recount import manifests, recount
from skidway.audit.recount.faults import HOUR_MS, Fault, Kind, Whereabouts, by_manifest, by_name
from skidway.audit.recount.manifests import Committed, ManifestUnreadable
from skidway.audit.recount.recount import Recounted
from skidway.audit.reports import recount_report
from skidway.audit.topic.messages import Delta, Range, Sender, Tier, decode, encode
from skidway.audit.topic.recount_result import RecountResult
from skidway.cli.commands import main
from skidway.errors import ConfigurationRefused
from skidway.kafka.columns import Origins
from support.audit_senders import LOGS, OTHER
from support.fold import Fold
from support.promises import promise

TOPIC = "dc1.logs"
PRODUCER = f"/out/{TOPIC}"
MINUTE = 60_000
HOUR = "dt=1970-01-01/hour=00"


def _origins(first: int, count: int) -> Origins:
    positions = (np.arange(count, dtype=np.int64) + first) * 10
    return Origins(np.full(count, 7), np.full(count, 3), positions, np.full(count, 10))


class Output:
    """An output directory, with the counts that the tiers hdfs and agent report for its records."""

    def __init__(self, root: Path) -> None:
        self.root, self.loads = root, 0
        self.agent, self.hdfs = Counts(MINUTE), Counts(MINUTE)

    def load(
        self, first: int, count: int, *, kind: str = "rows", moved: bool = True,
        said: int | None = None, hour: int = 0,
    ) -> str:  # fmt: skip
        """Makes a committed load of one file with `count` rows (or rejects, as `kind` says), and
        returns the file's final path. If `moved` is false, the file is still in the staging
        directory. `said` is how many records the tiers report: by default, as many as the file
        has."""
        self.loads += 1
        begin = hour * HOUR_MS + 5 * MINUTE
        origins, times = _origins(first, count), np.full(count, begin + first, np.int64)
        folder, name = {
            "rows": (TOPIC, "part"), "rejects": (f"_skidway/{TOPIC}/rejects", "reject"),
        }[kind]  # fmt: skip
        there = f"dt=1970-01-01/hour={hour:02}"
        path = f"{folder}/{there}/{name}-{self.loads}-0-{first}.parquet"
        staged = f"_skidway/{TOPIC}/staging/{self.loads}-x/part.parquet"
        self.put(path if moved else staged, _parquet(origins, times, kind))
        claimed = count if said is None else said
        for counts in (self.agent, self.hdfs):
            counts.add(LOGS, np.full(claimed, times[0]), _origins(first, claimed))
        counted = {"agent": 7, "bucket": begin}
        self.commit(
            files=[_named(_parquet(origins, times, kind), kind, path, staged)],
            partitions=[{"partition": 0, "first": first, "end": first + count}],
            audit={"bucket_ms": MINUTE, "deltas": [{"counts": [counted]}]},
        )
        return path

    def rewrite(self, *removed: str, moved: bool = True, deleted: bool = True) -> str:
        """Makes a committed load that replaces the files `removed`, all of one hour, by one file
        with the same rows. Returns the new file's final path. If `moved` is false, the new file is
        still in the staging directory. If `deleted` is false, the replaced files are still
        there."""
        self.loads += 1
        rows = pa.concat_tables([pq.read_table(self.root / path) for path in removed])
        path = f"{Path(removed[0]).parent}/rows-{self.loads}-0.parquet"
        staged = f"_skidway/{TOPIC}/staging/{self.loads}-x/rows.parquet"
        data = _bytes_of(rows)
        self.put(path if moved else staged, data)
        self.commit(files=[_named(data, "rows", path, staged)], removed=removed)
        for each in removed if deleted else ():
            (self.root / each).unlink()
        return path

    def put(self, path: str, data: bytes) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(data)

    def commit(self, **parts: Any) -> None:
        manifest = {
            "format": 1, "number": self.loads, "producer": PRODUCER, "partitions": [], "files": [],
            "source": {"cluster": "dc1", "cluster_id": "cid", "topic": "logs", "topic_id": "tid"},
            "audit": {"bucket_ms": MINUTE, "deltas": []}, "removed": [],
        } | parts  # fmt: skip
        path = f"_skidway/{TOPIC}/{self.loads:020}.json"
        self.put(path, json.dumps(manifest).encode())

    def messages(self) -> list[Delta]:
        agent = Sender(Tier.AGENT, "dc1", "7", "h", 1)
        hdfs = Sender(Tier.HDFS, "offline", PRODUCER, "h", 1)
        covered = [Range(LOGS, 0, 0, 9)]
        return [
            *number_deltas(agent, 5, 0, self.agent, {}).deltas,
            *number_deltas(hdfs, 5, 0, self.hdfs, {}, ranges=covered).deltas,
        ]

    def evidence(self) -> Evidence:
        return Fold(self.messages()).evidence()

    def recount(self, output: Any = None, since_ms: int | None = None) -> Recounted:
        output = output or LocalOutput(str(self.root))
        [topic] = recount.topics(output)
        return recount.recount(output, manifests.head(output, topic), since_ms)

    def compared(self) -> recount_report.Compared:
        found = self.recount()
        return [(found, recount.compare(found, self.evidence(), tuple(Tier)))]


def _parquet(origins: Origins, times: Any, kind: str = "rows") -> bytes:
    count = len(times)
    columns = {
        "message": pa.array([f"line {x}" for x in origins.first.tolist()]),
        "_agent": pa.array(origins.agent),
        "_file_id": pa.array(origins.file),
        "_offset": pa.array(origins.first),
        "_length": pa.array(origins.length),
        "_partition": pa.array(np.zeros(count, np.int32)),
        "_kafka_offset": pa.array(origins.first // 10),
    }
    if kind == "rows":
        columns["_timestamp"] = pa.array(times).cast(pa.timestamp("ms", "UTC"))
    else:
        columns["timestamp_ms"] = pa.array(times)
    return _bytes_of(pa.table(columns))


def _bytes_of(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="none", use_dictionary=False)
    return buffer.getvalue()


def _named(data: bytes, kind: str, path: str, staged: str) -> dict[str, Any]:
    """Returns the entry of a manifest for a file with the bytes `data`. `staged` is the file's path
    in the staging directory."""
    rows = pq.read_table(io.BytesIO(data))
    origin = (rows[name].to_numpy() for name in ("_agent", "_file_id", "_offset", "_length"))
    return {
        "kind": kind, "path": path, "staged": staged, "rows": len(rows), "length": len(data),
        "checksum": checksum.total(checksum.record_hash(*origin)),
        "crc32c": google_crc32c.value(data),
    }  # fmt: skip


@pytest.fixture
def output(tmp_path: Path) -> Output:
    return Output(tmp_path)


@promise("6 two ways")
def test_rows_that_are_what_was_counted_agree(output: Output) -> None:
    """A recount is good if the rows and rejects of all loads agree with what the tiers counted."""
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


@promise("6 two ways")
@promise("6 checksum")
def test_rows_are_compared_with_narrow_checksums(output: Output) -> None:
    """A recount also compares the rows with counts whose checksums the store has made narrow (cut
    to 24 bits). Such a checksum still shows that a row was made from another record, even if the
    numbers of records and bytes are equal."""
    output.load(0, 10)
    ledger = Ledger()
    ledger.take(map(encode, output.messages()))
    ledger.narrow([(LOGS, (5 * MINUTE, MINUTE))])
    found = output.recount()
    assert recount.compare(found, ledger.evidence(), tuple(Tier)) == []
    for key, sums in found.sums.items():
        found.sums[key] = replace(sums, checksum=sums.checksum + 1)
    different = recount.compare(found, ledger.evidence(), tuple(Tier))
    assert {x.reason for x in different} == {
        "as many rows as hdfs counted, but not of the same records",
        "as many rows as agent counted, but not of the same records",
    }
    ledger.close()


def test_files_that_were_not_moved_into_place_yet_count(output: Output) -> None:
    """A load first writes its files into the staging directory, and moves them to their final paths
    after the commit. Files that are still in the staging directory are recounted too if a manifest
    has committed them."""
    output.load(0, 10, moved=False)
    assert recount_report.is_good(output.compared())


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
    """If a file has fewer or more rows than the tiers counted, the recount finds the difference,
    even if the manifest agrees with the file."""
    output.load(0, rows, said=said)
    compared = output.compared()
    assert not recount_report.is_good(compared)
    [topic] = recount_report.document(compared)["topics"]
    assert any(words in reason for reason in topic["why"])
    assert {x["tier"] for x in topic["differences"]} == {"agent", "hdfs"}


@promise("6 two ways")
def test_lines_that_are_not_loaded_yet_are_no_difference(output: Output) -> None:
    """The recount reports no difference if agents have counted lines that are not loaded yet. It
    reports a difference if a bucket has fewer rows than the tier hdfs has counted, even if the
    counts of the agents and of the tier hdfs are equal."""
    output.load(0, 10)
    later = (np.full(5, 5 * MINUTE), _origins(10, 5)), (np.full(5, 9 * MINUTE), _origins(15, 5))
    for times, origins in later:  # the output has rows in the first bucket, but none in the second
        output.agent.add(LOGS, times, origins)
    assert recount_report.is_good(output.compared())
    output.hdfs.add(LOGS, *later[1])
    [(_, differences)] = output.compared()
    assert {(x.bucket[0], x.tier) for x in differences} == {
        (9 * MINUTE, Tier.HDFS), (9 * MINUTE, Tier.AGENT)
    }  # fmt: skip
    output.hdfs.add(LOGS, np.full(8, 5 * MINUTE), _origins(20, 8))
    [(_, differences)] = output.compared()
    assert (5 * MINUTE, Tier.AGENT) in {(x.bucket[0], x.tier) for x in differences}


def the_fault(found: Recounted) -> Fault:
    [fault] = found.faults.kept
    return fault


PLACE = Whereabouts("1970-01-01T00", (7,), 0, 0, 10)
"""What the recount reports about the rows of the file that `output.load(0, 10)` makes: their hour,
their agents, their partition, and the range of their offsets."""


def test_a_file_changed_behind_the_manifest_is_found(output: Output) -> None:
    """If a file was replaced by another file with the same number of rows, the recount notices
    this, because the manifest contains the checksum of the original file's bytes."""
    path = output.load(0, 10)
    output.put(path, _parquet(_origins(5, 10), np.full(10, 5 * MINUTE)))
    fault = the_fault(output.recount())
    assert (fault.kind, fault.path, fault.place) == (Kind.DAMAGED, path, PLACE)
    assert (
        "it had 10 rows of load 1 (hour 1970-01-01T00, agent 7, partition 0, offsets 0 to 9)"
        in fault.sentence
    )


@promise("6 recount")
def test_a_changed_byte_of_any_column_is_found(output: Output) -> None:
    """The recount finds a changed byte in any column, even in a column that is not part of the
    rows' origin."""
    path = output.load(0, 10)
    data = (output.root / path).read_bytes()
    output.put(path, data.replace(b"line 50", b"line 5O"))
    found = output.recount()
    assert (the_fault(found).kind, found.rows) == (Kind.DAMAGED, 10)
    assert "has other bytes than those that were committed (CRC-32C" in the_fault(found).sentence


def test_a_file_of_another_length_is_found(output: Output) -> None:
    """The recount reports a file that is too short, with its length and the length in the
    manifest."""
    path = output.load(0, 10)
    data = (output.root / path).read_bytes()
    output.put(path, data[:-1])
    fault = the_fault(output.recount())
    assert f"has {len(data) - 1} bytes instead of {len(data)}" in fault.sentence


def test_rows_that_the_loader_itself_wrote_wrongly_are_found(output: Output) -> None:
    """The loader may have written wrong rows into a file, and the checksum of this wrong file into
    the manifest. The recount still finds the wrong rows, because the manifest also has the
    checksum of the records that belong in the file."""
    path = output.load(0, 10)
    other = _parquet(_origins(5, 10), np.full(10, 5 * MINUTE))
    manifest = output.root / f"_skidway/{TOPIC}/{1:020}.json"
    content = json.loads(manifest.read_text())
    content["files"][0] |= {"length": len(other), "crc32c": google_crc32c.value(other)}
    manifest.write_text(json.dumps(content))
    output.put(path, other)
    assert the_fault(output.recount()).kind is Kind.OTHER_ROWS


def test_every_column_is_read(output: Output) -> None:
    """The recount reads every column, so a committed file with one unreadable column is a fault."""
    path = output.load(0, 10)
    data = (output.root / path).read_bytes()
    broken = data.replace(b"\x07\0\0\0line 50", b"\xff\xff\xff\x7fline 50")
    assert broken != data
    manifest = output.root / f"_skidway/{TOPIC}/{1:020}.json"
    content = json.loads(manifest.read_text())
    content["files"][0]["crc32c"] = google_crc32c.value(broken)
    manifest.write_text(json.dumps(content))
    output.put(path, broken)
    assert the_fault(output.recount()).kind is Kind.UNREADABLE


@promise("6 recount")
def test_a_file_that_is_gone_or_no_parquet_is_named(output: Output) -> None:
    """The recount reports a file that is missing or that is not a Parquet file, whichever load it
    belongs to. It still recounts all other files."""
    gone, broken = output.load(0, 10), output.load(10, 10)
    output.load(20, 10)
    (output.root / gone).unlink()
    output.put(broken, b"not parquet")
    found = output.recount()
    assert [(x.kind, x.path, x.place.hour, x.place.first) for x in found.faults.kept] == [
        (Kind.GONE, gone, "1970-01-01T00", 0),
        (Kind.DAMAGED, broken, "1970-01-01T00", 10),
    ]
    assert found.rows == 10
    assert f"{gone} is gone, with 10 rows of load 1 (hour" in found.faults.kept[0].sentence


@promise("6 recount")
def test_a_file_beside_those_of_the_manifests_is_named(output: Output) -> None:
    """A file that is in no manifest is a fault, because programs that read the directory also read
    this file."""
    output.load(0, 10)
    path = f"{TOPIC}/{HOUR}/other.parquet"
    output.put(path, _parquet(_origins(30, 5), np.full(5, 5 * MINUTE)))
    compared = output.compared()
    assert not recount_report.is_good(compared)
    [topic] = recount_report.document(compared)["topics"]
    assert topic["faults"] == [
        {
            "kind": "unnamed", "path": path, "hour": "1970-01-01T00", "agents": [7],
            "partition": 0, "first": 30, "end": 35,
            "reason": f"{path} is named by no manifest, but who reads the directory takes it "
            "(hour 1970-01-01T00, agent 7, partition 0, offsets 30 to 34)",
        }
    ]  # fmt: skip
    [line] = recount_report.faults(compared)
    assert line == topic["faults"][0]["reason"]


def test_the_command_says_it_by_status_line_and_document(
    output: Output, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    """`skidway audit recount` ends with status 0 if everything is as committed. Otherwise it ends
    with status 1 and prints a line for each faulty file."""
    path = output.load(0, 10)
    store = tmp_path_factory.mktemp("store")
    ledger = Ledger(store / DATABASE)
    ledger.take(map(encode, output.messages()))
    ledger.close()
    command = ["audit", "recount", "--store", str(store), "--output", str(output.root)]
    assert main(command) == 0
    output.put(f"{TOPIC}/{HOUR}/copy.parquet", (output.root / path).read_bytes())
    assert main(command) == 1
    assert f"\n{TOPIC}/{HOUR}/copy.parquet is named by no manifest; it" in capsys.readouterr().out
    assert main([*command, "--json"]) == 1
    [topic] = json.loads(capsys.readouterr().out)["topics"]
    assert (topic["verdict"], topic["rows"], topic["more_faults"]) == ("differs", 10, 0)
    assert [fault["kind"] for fault in topic["faults"]] == ["twice"]
    assert main([*command, "--topic", "logs"]) == 1
    assert main([*command, "--topic", "other"]) == 2


@promise("6 recount")
@pytest.mark.parametrize("folder", [f"{TOPIC}/{HOUR}", f"{TOPIC}/dt=1970-01-02/hour=00"])
def test_a_file_that_was_copied_is_named_with_its_original(output: Output, folder: str) -> None:
    """If somebody copied a file, into the directory of the same hour or of another hour, the output
    has the file's rows twice. The recount reports the copy and the original."""
    path = output.load(0, 10)
    output.put(f"{folder}/copy.parquet", (output.root / path).read_bytes())
    fault = the_fault(output.recount())
    assert (fault.kind, fault.path) == (Kind.TWICE, f"{folder}/copy.parquet")
    assert f"it is a copy of {path}, whose 10 rows are there twice" in fault.sentence


def test_a_file_of_the_same_length_is_no_copy(output: Output) -> None:
    """The recount does not call a file a copy only because it has the same length as another file.
    Otherwise an operator might move the supposed copy away, and its rows would be lost."""
    path = output.load(0, 10)
    data = bytearray((output.root / path).read_bytes())
    data[len(data) // 2] ^= 1
    output.put(f"{TOPIC}/{HOUR}/other.parquet", bytes(data))
    assert the_fault(output.recount()).kind is Kind.UNNAMED


def test_an_output_is_held_against_its_newest_epoch(output: Output) -> None:
    """The recount compares an output with the counts of the newest epoch, which replace the counts
    of older epochs."""
    output.load(0, 10)
    *_, hdfs = output.messages()
    removed = replace(hdfs, sender=replace(hdfs.sender, epoch=1), counts=())
    said = [*output.messages()[:-1], removed, replace(hdfs, sender=replace(hdfs.sender, epoch=2))]
    found = output.recount()
    assert recount.compare(found, Fold(said).evidence(), (Tier.HDFS,)) == []


def test_a_topic_of_which_nothing_is_left_is_named(
    output: Output, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    """The recount reports a topic whose rows and manifests are gone. It also reports the topic if
    the topic's directory still has files with rows, but with names that no loader gives to files.
    It does not report the topic if the output is retired. In each case, it reports nothing about
    another topic of the output, whose rows agree with the counts."""
    path = output.load(0, 10)
    store = tmp_path_factory.mktemp("store")
    ledger = Ledger(store / DATABASE)
    messages = [_of_output(each, output.root) for each in output.messages()]
    for name in (TOPIC, f"_skidway/{TOPIC}"):
        shutil.copytree(output.root / name, output.root / name.replace(TOPIC, "dc1.other"))
    [manifest] = (output.root / "_skidway/dc1.other").glob("*.json")
    text = manifest.read_text().replace(PRODUCER, f"{output.root}/dc1.other")
    text = text.replace(TOPIC, "dc1.other").replace('"tid"', '"oid"')
    manifest.write_text(text.replace('"topic": "logs"', '"topic": "other"'))
    ledger.take(map(encode, [*messages, *map(_of_other_topic, messages)]))
    ledger.close()
    data = (output.root / path).read_bytes()
    shutil.rmtree(output.root / TOPIC)
    shutil.rmtree(output.root / "_skidway" / TOPIC)
    command = ["audit", "recount", "--store", str(store), "--output", str(output.root)]
    assert main(command) == 1
    printed = capsys.readouterr().out
    assert f"no manifest of {TOPIC} is there" in printed
    assert "no manifest of dc1.other" not in printed
    output.put(f"{TOPIC}/rows1.parquet", data)
    assert main([*command, "--topic", "logs"]) == 1
    assert "rows1.parquet" in capsys.readouterr().out
    assert main([*command, "--json"]) == 1
    named = json.loads(capsys.readouterr().out)["topics"]
    found = {x["topic"]: (bool(x["faults"]), x["differences"]) for x in named}
    assert found.pop("dc1.other") == (False, [])
    assert [(topic, has_faults) for topic, (has_faults, _) in found.items()] == [(TOPIC, True)]
    assert main([*command, "--topic", "nothing"]) == 2
    config = store / "audit.yml"
    config.write_text(
        f"bootstrap.servers: 127.0.0.1:1\nstore.dir: {store}\n"
        f"retired.places: ['hdfs {output.root}/{TOPIC}']\n"
    )
    shutil.rmtree(output.root / TOPIC)
    capsys.readouterr()
    assert main([*command, "--config", str(config)]) == 0
    printed = capsys.readouterr().out
    assert TOPIC not in printed
    assert "The 10 rows of 1 topic are what every tier counted." in printed


def test_what_has_no_manifest_is_told_to_the_audit_by_who_counted_it(output: Output) -> None:
    """If a topic has no manifests, the recount learns from the audit's counts that the topic was
    loaded, and into which output. Its result names this output, even if the topic has counts only
    for hours before the recounted hours."""
    output.load(0, 10)
    ledger = Ledger()
    ledger.take(encode(_of_output(each, output.root)) for each in output.messages())
    shutil.rmtree(output.root / "_skidway" / TOPIC)
    evidence = ledger.evidence((FOREVER[1] - 1, FOREVER[1]))
    rows = OutputConnection(str(output.root)).output()
    [found] = recount.expected(rows, [manifests.head(rows, TOPIC)], evidence).values()
    assert found == Committed(TOPIC, LOGS, f"{output.root}/{TOPIC}")
    shutil.rmtree(output.root / TOPIC)
    assert recount.expected(rows, [], evidence) == {TOPIC: found}


def _of_output(message: Delta, root: Path) -> Delta:
    """Returns a loader's message with the loader of the output at `root` as the sender. Returns an
    agent's message unchanged."""
    if message.sender.tier is not Tier.HDFS:
        return message
    return replace(message, sender=replace(message.sender, producer=f"{root}/{TOPIC}"))


def _of_other_topic(message: Delta) -> Delta:
    """Returns a message that has the same counts as the given one, but of the topic `dc1.other`. If
    an agent sent the given message, the result is the agent's next message. If a loader sent it,
    the result is the first message of the loader of `dc1.other`."""
    sender, is_agent = message.sender, message.sender.tier is Tier.AGENT
    return replace(
        message,
        sender=replace(sender, producer=sender.producer.replace(TOPIC, "dc1.other")),
        number=message.number + is_agent,
        counts=tuple(replace(x, source=OTHER) for x in message.counts),
        ranges=tuple(replace(x, source=OTHER) for x in message.ranges),
    )


def test_rows_behind_a_link_to_a_directory_are_found(output: Output, tmp_path: Path) -> None:
    """If a symbolic link in the output leads to a directory, the recount finds the rows in this
    directory, because programs that read the output follow the link. It does not follow a link to
    the directory that contains the link."""
    path = output.load(0, 10)
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere" / "hour=05"
    elsewhere.mkdir(parents=True)
    (elsewhere / "copy.parquet").write_bytes((output.root / path).read_bytes())
    (output.root / TOPIC / "dt=2026-11-21").symlink_to(elsewhere.parent)
    (output.root / TOPIC / "round").symlink_to(output.root / TOPIC)
    fault = the_fault(output.recount())
    assert (fault.kind, fault.path) == (Kind.TWICE, f"{TOPIC}/dt=2026-11-21/hour=05/copy.parquet")


def test_a_name_that_is_no_text_is_named(output: Output) -> None:
    """If a file's name is not valid UTF-8, the recount reports the name with escaped bytes, and
    continues."""
    output.load(0, 10)
    (output.root / TOPIC / os.fsdecode(b"\xff.parquet")).write_bytes(b"rows")
    fault = the_fault(output.recount())
    assert fault.path == f"{TOPIC}/\\xff.parquet"


def test_a_copy_among_the_rejects_is_named(output: Output) -> None:
    """The recount reports a copied file of rejects in the same way as a copied file of rows."""
    path = output.load(0, 10, kind="rejects")
    output.put(f"{path}.again", (output.root / path).read_bytes())
    assert the_fault(output.recount()).kind is Kind.TWICE


def test_a_file_that_two_loads_name_is_named(output: Output) -> None:
    """A file that two manifests name is a fault, because the file can have the rows of only one of
    the two loads."""
    path = output.load(0, 10)
    [file] = json.loads((output.root / f"_skidway/{TOPIC}/{1:020}.json").read_text())["files"]
    output.loads += 1
    output.commit(files=[file])
    assert the_fault(output.recount()).sentence == f"{path} is named by load 1 and by load 2"


@pytest.mark.parametrize("name", ["_SUCCESS", ".part.crc", ".hive-staging/x", "x._COPYING_"])
def test_what_readers_pass_over_is_no_fault(output: Output, name: str) -> None:
    """A file is not a fault if Spark and Hive ignore it because of its name."""
    output.load(0, 10)
    output.put(f"{TOPIC}/{HOUR}/{name}", b"x")
    assert recount_report.is_good(output.compared())


def test_what_a_loader_is_staging_is_no_fault(output: Output) -> None:
    """Files in staging (the directory into which tasks write files before a load is committed) are
    not a fault if their load has no manifest yet."""
    output.load(0, 10)
    output.put(f"_skidway/{TOPIC}/staging/2-y/part.parquet", b"half")
    assert recount_report.is_good(output.compared())


class Moving(LocalOutput):
    """An output that a loader changes just before the recount lists or opens files."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        self.before_files: Callable[[], object] | None = None
        self.before_open: Callable[[], object] | None = None
        self.before_rows: Callable[[], object] | None = None

    def files(self, path: str) -> Iterator[FileEntry]:
        if path == TOPIC and self.before_files is not None:
            self.before_files()
        return super().files(path)

    def open(self, path: str) -> IO[bytes] | None:
        if "staging" in path and self.before_open is not None:
            self.before_open()
        if path.startswith(TOPIC) and self.before_rows is not None:
            act, self.before_rows = self.before_rows, None
            act()
        return super().open(path)


@promise("6 recount")
def test_a_load_that_is_committed_meanwhile_is_no_fault(output: Output) -> None:
    """It is not a fault if a load is committed after the recount has read the manifests and before
    the recount lists the files."""
    output.load(0, 10)
    moving = Moving(output.root)
    moving.before_files = lambda: output.load(10, 10)
    found = output.recount(moving)
    assert (found.faults.kept, found.loads, found.rows) == ([], 1, 10)


def test_what_is_loaded_meanwhile_is_no_difference(output: Output) -> None:
    """If a load commits rows of a bucket while the recount runs, the recount does not judge this
    bucket. It judges all other buckets, and leaves this bucket to the next recount."""
    output.load(0, 10)
    output.load(20, 10, hour=3, said=11)
    found = output.recount()
    output.load(40, 10)
    assert {x.bucket[0] for x in recount.compare(found, output.evidence(), tuple(Tier))} == {
        5 * MINUTE, 3 * HOUR_MS + 5 * MINUTE
    }  # fmt: skip
    since = recount.loaded_since(LocalOutput(str(output.root)), found)
    differences = recount.compare(found, output.evidence(), tuple(Tier), since)
    assert {x.bucket[0] for x in differences} == {3 * HOUR_MS + 5 * MINUTE}


@promise("6 recount")
def test_a_file_that_is_moved_meanwhile_is_no_fault(output: Output) -> None:
    """The recount looks for a committed file first at the file's final path and then in the staging
    directory, where the file was before the loader moved it. If a loader moves the file to the
    final path between these two steps, the recount looks at the final path again and finds the
    file."""
    path = output.load(0, 10, moved=False)

    def move() -> None:
        (output.root / path).parent.mkdir(parents=True)
        (output.root / f"_skidway/{TOPIC}/staging/1-x/part.parquet").rename(output.root / path)

    moving = Moving(output.root)
    moving.before_open = move
    found = output.recount(moving)
    assert (found.faults.kept, found.rows) == ([], 10)


@promise("6 recount")
def test_a_file_that_a_later_load_removed_is_not_counted(output: Output) -> None:
    """If a load has rewritten rows into new files and removed the old files, the rows count once,
    and it is no fault that the old files are gone."""
    first, second = output.load(0, 10), output.load(10, 10)
    again = output.rewrite(first, second)
    output.load(20, 5)
    compared = output.compared()
    assert recount_report.is_good(compared)
    [row] = recount_report.table(compared)
    assert (row["loads"], row["files"], row["rows"]) == (4, 2, 25)
    output.rewrite(again)
    assert recount_report.is_good(output.compared())


def test_a_removed_file_that_is_there_does_not_hide_a_lost_replacement(output: Output) -> None:
    """A load has replaced a file by a new file with the same rows. If the new file is lost, the
    recount reports this loss, even if the replaced file still exists: the rows in the replaced file
    do not count. The recount also reports that the replaced file still exists."""
    path = output.load(0, 10)
    (output.root / output.rewrite(path, deleted=False)).unlink()
    found = output.recount()
    assert (found.rows, [fault.kind for fault in found.faults.kept]) == (0, [Kind.TWICE, Kind.GONE])


def test_a_load_can_only_remove_what_belongs_to_the_output(output: Output) -> None:
    """A manifest may remove only files that earlier manifests added and that no earlier manifest
    removed. So it may not remove a file that it adds itself. If a manifest removes any other file,
    the recount reports the file and the loads whose manifests removed it."""
    path = output.load(0, 10)
    again = output.rewrite(path)
    output.loads += 1
    output.commit(removed=[path])
    own = output.load(10, 5)
    manifest = output.root / f"_skidway/{TOPIC}/{output.loads:020}.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"removed": [own]}))
    found = output.recount()
    assert {fault.kind for fault in found.faults.kept} == {Kind.REMOVAL}
    assert [(fault.path, fault.sentence) for fault in found.faults.kept] == [
        (path, f"load 3 removes {path}, which load 2 has removed already"),
        (own, f"load 4 removes {own}, which no earlier manifest adds"),
    ]
    assert (found.rows, found.files) == (15, 2)
    assert (output.root / again).exists()


def test_a_removed_file_that_a_load_adds_again_is_named(output: Output) -> None:
    """If a manifest adds a file that an earlier manifest removed, the recount reports a fault,
    because a loader that finishes the removal may delete the file at any time."""
    path = output.load(0, 10)
    [file] = json.loads((output.root / f"_skidway/{TOPIC}/{1:020}.json").read_text())["files"]
    output.rewrite(path)
    output.loads += 1
    output.commit(files=[file])
    assert the_fault(output.recount()).sentence == f"{path} is named by load 1 and by load 3"


@promise("6 recount")
def test_a_removed_file_that_is_still_there_is_named(output: Output) -> None:
    """If a manifest removes a file, but the file is still in the directory, the recount reports a
    fault, because programs that read the directory get the file's rows twice. The report names the
    file, the load that removed it, and the partition and offsets of its rows."""
    path = output.load(0, 10)
    output.rewrite(path, deleted=False)
    found = output.recount()
    fault = the_fault(found)
    assert (fault.kind, fault.path, fault.place, found.rows) == (Kind.TWICE, path, PLACE, 10)
    assert fault.what == (
        f"load 2 removed {path}, but the file is still there; its rows are there twice for who "
        "reads the directory"
    )


@promise("6 recount")
def test_a_removal_that_is_not_finished_is_no_fault(output: Output) -> None:
    """While a load still has files in the staging directory, the files that its manifest removes
    may still exist. The recount reports no fault then, because the next load will finish the
    removal. If only other loads have files in the staging directory, it reports a fault."""
    path = output.load(0, 10)
    output.rewrite(path, moved=False, deleted=False)
    found = output.recount()
    assert (found.faults.kept, found.rows) == ([], 10)
    staged = output.root / f"_skidway/{TOPIC}/staging/2-x/rows.parquet"
    staged.rename(output.root / f"{TOPIC}/{HOUR}/rows-2-0.parquet")
    output.load(10, 10, moved=False)
    assert the_fault(output.recount()).path == path


def test_a_removed_file_that_vanishes_meanwhile_is_no_fault(output: Output) -> None:
    """If a file that a manifest removes is in the listing of the output, but is gone when the
    recount opens it, the recount reports no fault."""
    path = output.load(0, 10)
    output.rewrite(path, deleted=False)
    moving = Moving(output.root)
    moving.before_rows = (output.root / path).unlink
    found = output.recount(moving)
    assert (found.faults.kept, found.rows) == ([], 10)


def test_a_move_that_ends_during_the_looks_is_no_fault(output: Output) -> None:
    """A load that replaces a file deletes the old file before it moves its last new file out of the
    staging directory. So while a new file is in the staging directory, it is no fault that the old
    file still exists. The recount lists the old file, then looks into the staging directory, and
    then looks for the old file again. If the load finishes after the listing, the recount finds no
    new file in the staging directory, but also no old file, and reports no fault."""
    path = output.load(0, 10)
    new = output.root / output.rewrite(path, moved=False, deleted=False)
    staged = output.root / f"_skidway/{TOPIC}/staging/2-x/rows.parquet"

    class Finishing(LocalOutput):
        def length(self, path_of_staged: str) -> int | None:
            (output.root / path).unlink(missing_ok=True)
            if staged.exists():
                staged.rename(new)
            return super().length(path_of_staged)

    found = output.recount(Finishing(str(output.root)))
    assert (found.faults.kept, found.rows) == ([], 10)


def test_a_removed_file_that_cannot_be_opened_is_named(output: Output) -> None:
    """If a file that a manifest removes is still there, the recount reports the file, even if it
    cannot open it. About the file's rows it then reports only what the file's name says."""
    path = output.load(0, 10)
    output.rewrite(path, deleted=False)

    def refuse() -> None:
        raise StoreFailed("refused")

    moving = Moving(output.root)
    moving.before_rows = refuse
    fault = the_fault(output.recount(moving))
    assert (fault.kind, fault.place) == (Kind.TWICE, Whereabouts("1970-01-01T00", partition=0))


def test_a_copy_of_a_removed_file_is_named_with_its_original(output: Output) -> None:
    """A load has replaced a file by a new file with the same rows, but somebody has kept a copy of
    the replaced file. The recount reports this copy, because its rows are also in the new file."""
    path = output.load(0, 10)
    output.put(f"{TOPIC}/{HOUR}/copy.parquet", (output.root / path).read_bytes())
    output.rewrite(path)
    fault = the_fault(output.recount())
    assert (fault.kind, fault.path) == (Kind.TWICE, f"{TOPIC}/{HOUR}/copy.parquet")


def _everything(found: Recounted, output: Output) -> set[int]:
    """Returns the start times of the buckets in which the recounted rows differ from the counts
    that at least one tier reports in `output`."""
    differences = recount.compare(found, output.evidence(), tuple(Tier))
    return {each.bucket[0] for each in differences}


@promise("6 recount")
@pytest.mark.parametrize("hook", ["before_files", "before_rows"])
def test_a_file_that_is_removed_meanwhile_leaves_its_hour_to_the_next_recount(
    output: Output, hook: str
) -> None:
    """If a load removes files before the recount has read them, the recount reports no fault. It
    leaves the hour of these files out, and judges the counts of all other hours."""
    paths = [output.load(0, 10), output.load(10, 10)]
    output.load(20, 10, hour=3, said=11)
    for counts in (output.agent, output.hdfs):  # the tiers counted a line that has no row
        other = Origins(*(np.full(1, value) for value in (8, 3, 0, 10)))
        counts.add(LOGS, np.full(1, 7 * MINUTE), other)
    moving = Moving(output.root)
    setattr(moving, hook, lambda: output.rewrite(*paths))
    found = output.recount(moving)
    assert (found.faults.kept, found.loads, found.unjudged) == ([], 3, {0})
    assert _everything(found, output) == {3 * HOUR_MS + 5 * MINUTE}
    found = output.recount()
    assert found.unjudged == set()
    assert _everything(found, output) == {7 * MINUTE, 3 * HOUR_MS + 5 * MINUTE}


def test_a_file_that_is_removed_while_it_is_read_is_no_fault(output: Output) -> None:
    """If the recount cannot read a file because a load removes it at the same time, the recount
    reports no fault. It leaves the file's hour to the next recount."""
    path = output.load(0, 10)

    def remove() -> None:
        output.rewrite(path)
        raise StoreFailed("the file is gone")

    moving = Moving(output.root)
    moving.before_rows = remove
    found = output.recount(moving)
    assert (found.faults.kept, found.unjudged, _everything(found, output)) == ([], {0}, set())


def test_a_file_that_no_later_load_removes_is_gone(output: Output) -> None:
    """If somebody deleted a file by hand, the recount reports the file as gone, and compares the
    counts of the file's hour. It does both even if a load removes other files at the same time."""
    gone, path = output.load(0, 10), output.load(10, 10, hour=2)
    (output.root / gone).unlink()
    moving = Moving(output.root)
    moving.before_rows = lambda: output.rewrite(path)
    found = output.recount(moving)
    assert (the_fault(found).kind, the_fault(found).path) == (Kind.GONE, gone)
    assert found.unjudged == {2 * HOUR_MS}
    assert _everything(found, output) == {5 * MINUTE}


def test_damage_is_named_although_a_later_load_removes_the_file(output: Output) -> None:
    """If a file's bytes differ from the committed bytes, the recount reports a fault, even if a
    load removes the file at the same time. The load may have copied the wrong bytes."""
    path = output.load(0, 10)
    data = (output.root / path).read_bytes()
    output.put(path, data.replace(b"line 50", b"line 5O"))
    moving = Moving(output.root)
    moving.before_rows = lambda: output.rewrite(path, deleted=False)
    assert the_fault(output.recount(moving)).kind is Kind.DAMAGED


@pytest.mark.parametrize(
    ("size", "judged", "left"),
    [
        (MINUTE, {59 * MINUTE, 120 * MINUTE}, {60 * MINUTE, 119 * MINUTE}),
        (90 * MINUTE, {180 * MINUTE}, {0, 90 * MINUTE}),
    ],
)
def test_every_bucket_that_overlaps_an_hour_is_left_with_it(
    size: int, judged: set[int], left: set[int]
) -> None:
    """If an hour cannot be judged, the recount does not judge the buckets that overlap this hour,
    whatever the size of the buckets is. It judges all other buckets."""
    counts = Counts(size)
    for begin in judged | left:
        counts.add(LOGS, np.full(1, begin), _origins(begin, 1))
    found = Recounted(Committed(TOPIC, LOGS, PRODUCER))
    found.sums = {(key, size): sums for key, sums in counts.items()}
    nothing = Fold([]).evidence()
    differences = recount.compare(found, nothing, tuple(Tier))
    assert {each.bucket[0] for each in differences} == judged | left
    found.leave(f"{TOPIC}/dt=1970-01-01/hour=01/part-1-0-0.parquet")
    differences = recount.compare(found, nothing, tuple(Tier))
    assert {each.bucket[0] for each in differences} == judged


def test_the_command_leaves_an_hour_whose_files_are_removed_meanwhile(
    output: Output, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`skidway audit recount` ends with status 0 even if a load removes or adds files while the
    command runs."""
    path = output.load(0, 10)
    store = tmp_path_factory.mktemp("store")
    ledger = Ledger(store / DATABASE)
    ledger.take(map(encode, output.messages()))
    ledger.close()
    moving = Moving(output.root)
    moving.before_rows = lambda: output.rewrite(path)
    monkeypatch.setattr(OutputConnection, "output", lambda _: moving)
    assert main(["audit", "recount", "--store", str(store), "--output", str(output.root)]) == 0
    assert not (output.root / path).exists()


def test_rewritten_rows_without_any_manifest_are_named(output: Output) -> None:
    """If a topic has only files of rewritten rows and no manifests, the recount still counts the
    topic, and reports the missing manifests."""
    path = output.rewrite(output.load(0, 10))
    shutil.rmtree(output.root / "_skidway")
    found = output.recount()
    assert [fault.path for fault in found.faults.kept] == [f"_skidway/{TOPIC}", path]
    assert found.faults.kept[1].place == PLACE  # as the file's rows say


def test_the_name_of_a_file_of_rewritten_rows_shows_only_the_hour(output: Output) -> None:
    """A file of rewritten rows may have rows of several partitions. So its name and its entry in
    the manifest give its hour, but no partition and no offsets."""
    path = output.rewrite(output.load(0, 10))
    hour = Whereabouts("1970-01-01T00")
    assert by_name(path) == hour
    manifest = manifests.read(LocalOutput(str(output.root)), TOPIC, 2)
    assert by_manifest(path, manifest) == hour
    (output.root / path).unlink()
    assert the_fault(output.recount()).sentence == (
        f"{path} is gone, with 10 rows of load 2 (hour 1970-01-01T00)"
    )


def test_side_files_are_checked_like_rows(output: Output) -> None:
    """The recount checks side files, which a load commits beside its rows, in the same way as files
    of rows. Some side files contain marks (the positions by which the loader recognizes repeats).
    Without correct marks, the next load would drop lines or write them twice."""
    output.load(0, 10)
    output.loads += 1
    side = f"_skidway/{TOPIC}/marks/{2:020}.parquet"
    file = {
        "kind": "marks", "path": side, "staged": "x", "rows": 1, "checksum": 0, "length": 5,
        "crc32c": google_crc32c.value(b"marks"),
    }  # fmt: skip
    output.commit(files=[file])
    assert the_fault(output.recount()).kind is Kind.GONE
    output.put(side, b"marks")
    assert output.recount().faults.kept == []
    output.put(side, b"other")
    assert the_fault(output.recount()).kind is Kind.DAMAGED


def test_rows_without_any_manifest_are_named(output: Output) -> None:
    """If the manifests of a topic are gone but a file of rows is left, the recount reports the
    missing manifests and this file as faults."""
    path = output.load(0, 10)
    shutil.rmtree(output.root / "_skidway")
    found = output.recount()
    assert [fault.path for fault in found.faults.kept] == [f"_skidway/{TOPIC}", path]
    assert not recount_report.is_good([(found, recount.compare(found, output.evidence(), []))])


def test_other_folders_beside_the_topics_are_left_alone(output: Output) -> None:
    """The recount ignores folders in the output that are not folders of topics, whatever they
    contain."""
    output.load(0, 10)
    output.put("reports/dt=2026-01-01/summary.csv", b"x")
    assert recount_report.is_good(output.compared())


def test_of_very_many_faults_the_first_are_named(
    output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If there are very many faults, the recount lists only those that it finds first, and counts
    the others, so that it does not need too much memory."""
    monkeypatch.setattr("skidway.audit.recount.faults.FAULTS_MAX", 3)
    for first in range(5):
        (output.root / output.load(first, 1)).unlink()
    found = output.recount()
    assert (len(found.faults.kept), found.faults.more) == (3, 2)
    assert list(found.faults.sentences())[-1] == "2 more faults of this kind or another"


def test_a_missing_manifest_is_named(output: Output) -> None:
    """The recount reports missing manifests, both a single one and several consecutive ones."""
    output.load(0, 10)
    output.loads += 1
    output.load(10, 10)
    assert list(output.recount().faults.sentences()) == ["manifest 2 of dc1.logs is missing"]
    output.loads += 2
    output.load(20, 10)
    [_, wide] = output.recount().faults.sentences()
    assert wide == "manifests 4 to 5 of dc1.logs are missing"


def test_a_manifest_that_cannot_be_understood_stops_the_recount(output: Output) -> None:
    """A manifest that cannot be understood stops the recount, because the recount must not guess
    which files belong to the output."""
    for parts in (
        {"format": 2}, {"number": 2}, {"files": None}, {"files": [{}]}, {"source": {}},
        {"removed": "path"}, {"removed": [7]}, {"removed": None},
    ):  # fmt: skip
        output.loads = 1
        output.commit(**parts)
        with pytest.raises(ManifestUnreadable):
            output.recount()


def test_nothing_to_recount_is_no_agreement(tmp_path: Path) -> None:
    """The result of a recount of an empty directory is not good, because nothing was compared."""
    assert recount.topics(LocalOutput(str(tmp_path))) == []
    assert not recount_report.is_good([])
    assert "no committed load" in recount_report.sentence([])


@pytest.mark.parametrize("url", ["s3://bucket/x", "/nowhere/at/all"])
def test_an_output_that_cannot_be_is_refused(url: str) -> None:
    """The recount refuses, with one sentence, a URL that cannot be the URL of an output."""
    with pytest.raises(ConfigurationRefused, match="--output"):
        OutputConnection(url).output()


def test_the_hours_since_a_moment_are_counted_alone(output: Output) -> None:
    """If the caller gives a start time, the recount reads only files of hours from this time on. It
    lists older files but does not read them. So a nightly recount reads the rows of one day only.
    """
    old, new = output.load(0, 100), output.load(100, 50, hour=2)
    (output.root / old).write_bytes(b"x" * (output.root / old).stat().st_size)
    found = output.recount(since_ms=2 * HOUR_MS)
    assert (found.rows, found.files, list(found.faults.sentences())) == (50, 2, [])
    ledger = Ledger()
    ledger.take(map(encode, output.messages()))
    evidence = ledger.evidence((2 * HOUR_MS, 1 << 62))
    assert recount.compare(found, evidence, tuple(Tier)) == []
    (output.root / old).unlink()
    (output.root / new).write_bytes(b"y")
    found = output.recount(since_ms=2 * HOUR_MS)
    assert [fault.kind for fault in found.faults.kept] == [Kind.DAMAGED]


def test_what_was_found_comes_as_a_message(output: Output) -> None:
    """The result of a recount becomes a message for the collector. The message contains the first
    few differences and faults, as sentences."""
    output.load(0, 100)
    [good] = recount_report.results(output.compared(), "hd1", "/out", None, 5)
    assert (good.is_good, good.source, good.rows, good.reasons) == (True, LOGS, 100, ())
    path = output.load(100, 50)
    (output.root / path).unlink()
    [bad] = recount_report.results(output.compared(), "hd1", "/out", HOUR_MS, 6)
    assert not bad.is_good
    assert (bad.faults, bad.differences) == (1, 2)
    assert bad.reasons[0].startswith(f"{path} is gone, with 50 rows of load 2")
    for result in (good, bad):
        assert decode(encode(result)) == result


def test_the_collector_is_told_what_a_night_s_recount_found(
    output: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A nightly recount sends the collector one message for each topic. The message contains the
    event time from which on rows were recounted."""
    output.load(0, 100)
    output.load(100, 50, hour=2)
    store = tmp_path / "store"
    store.mkdir()
    ledger = Ledger(store / DATABASE)
    ledger.take(map(encode, output.messages()))
    ledger.close()
    (tmp_path / "loader.yml").write_text("host.name: hd1.example\n")
    monkeypatch.setattr(options, "DIRECTORY", tmp_path)
    said: list[bytes] = []
    monkeypatch.setattr(publication, "say", lambda args, settings, values, *_: said.extend(values))
    given = ["--store", str(store), "--output", str(output.root)]
    assert main(["audit", "recount", *given, "--since", "1970-01-01T02:30:00Z", "--tell"]) == 0
    [result] = map(decode, said)
    assert isinstance(result, RecountResult)
    assert (result.since_ms, result.rows, result.output) == (2 * HOUR_MS, 50, str(output.root))
    assert result.host == "hd1.example", "as the loader that is installed here names its host"
    assert result.is_good


def test_a_file_of_a_reload_shows_no_offsets() -> None:
    """A load that only replaced files has read no records of the topic. If its manifest has counts,
    these only correct earlier counts. So this manifest does not tell the recount which offsets and
    agents the rows in the load's files came from.
    """
    path = f"{TOPIC}/dt=1970-01-01/hour=00/part-3-1-20.parquet"
    manifest = {"removed": ["x"], "audit": {}, "partitions": [{"partition": 1, "end": 90}]}
    assert by_manifest(path, manifest) == Whereabouts("1970-01-01T00", partition=1)
