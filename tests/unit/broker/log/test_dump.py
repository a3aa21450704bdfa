from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from skidway.broker.log import dump
from skidway.broker.log.config import LogConfig
from skidway.broker.log.dump import DumpedBatch, NoBatch
from skidway.cli.commands import main
from skidway.errors import UsageError
from skidway.kafka.codecs import BY_NUMBER, GZIP, NONE, SNAPPY, codec_of
from support.batches import NOW_MS, append, batch, flush, open_in


def written(directory: Path, **config: int) -> Path:
    """Writes a log with three batches of two records each into the given directory. Returns the
    path of the file of the log's first segment."""
    directory.mkdir(exist_ok=True)
    log = open_in(directory, LogConfig(**config))
    for number in range(3):
        values = (b"value-%d" % number, b"\xff")
        append(
            log,
            batch(*values, codec=BY_NUMBER[number], producer_id=3, epoch=0, sequence=2 * number),
        )
    flush(log)
    return log.segments[0].path


def test_batches_are_shown_as_they_lie(tmp_path: Path) -> None:
    """`broker dump-log` shows the batches in the order of the file. For each batch it shows the
    position, the base offset, the producer, the codec, whether the CRC is right, and the
    records."""
    path = written(tmp_path)
    found = list(dump.batches(path))
    assert all(isinstance(each, DumpedBatch) and each.crc_ok for each in found)
    headers = [each.header for each in found if isinstance(each, DumpedBatch)]
    assert [header.base_offset for header in headers] == [0, 2, 4]
    assert [(h.producer_id, h.producer_epoch, h.base_sequence) for h in headers] == [
        (3, 0, sequence) for sequence in (0, 2, 4)
    ]
    first, second, third = [header.size_bytes for header in headers]
    assert [each.position for each in found] == [0, first, first + second]
    assert first + second + third == path.stat().st_size
    assert [codec_of(header) for header in headers] == [NONE, GZIP, SNAPPY]
    records = [record for each in found if isinstance(each, DumpedBatch)
               for record in dump.records(each)]  # fmt: skip
    assert [record.offset for record in records] == list(range(6))
    assert (records[2].value, records[2].timestamp, records[2].key) == (b"value-1", NOW_MS, None)


def test_what_is_no_batch_is_named(tmp_path: Path) -> None:
    """`broker dump-log` reports bytes that are not a batch, for example half a batch at the end, or
    random bytes. It shows the position and size of these bytes, and why they are not a batch."""
    path = written(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[:-5])
    *_, last = dump.batches(path)
    assert isinstance(last, NoBatch)
    assert "are left" in last.reason
    path.write_bytes(data + b"\0" * 100)
    *good, last = dump.batches(path)
    assert len(good) == 3
    assert isinstance(last, NoBatch)
    assert (last.position, last.size_bytes) == (len(data), 100)


def test_the_command_says_that_all_is_good(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`broker dump-log` on a directory without damage prints every segment, in the order of the
    offsets, and exits with status 0."""
    written(tmp_path, segment_bytes=150)
    assert main(["broker", "dump-log", str(tmp_path), "--records"]) == 0
    said = capsys.readouterr().out
    shown = [line for line in said.splitlines() if line.endswith(".log")]
    assert shown == [f"{tmp_path}/{base:020}.log" for base in (0, 2, 4)]
    assert re.findall(r"3/0#\d|value-\d", said) == [
        "3/0#0", "value-0", "3/0#2", "value-1", "3/0#4", "value-2",
    ]  # fmt: skip
    assert said.endswith("good: offsets 0 to 5, every CRC is right\n")


def test_the_command_names_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If a CRC is wrong, `broker dump-log` prints the position and exits with status 1. With
    `--json`, it prints a line for each batch, and a line for each range of bytes that is no valid
    batch."""
    path = written(tmp_path)
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)
    assert main(["broker", "dump-log", str(path), "--json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["crc_ok"] for line in lines[:-1]] == [False, True, True]
    assert lines[-1] == {"fault": f"{path.name}: the CRC at position 0 is wrong"}
    assert lines[1]["producer_id"] == 3
    assert lines[1]["codec"] == "gzip"


def test_offsets_that_are_missing_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`broker dump-log` reports missing offsets between segments, but not as damage, because the
    log of a mirror may have gaps."""
    written(tmp_path, segment_bytes=150)
    sorted(tmp_path.glob("*.log"))[1].unlink()
    assert main(["broker", "dump-log", str(tmp_path)]) == 0
    assert "offset 4 follows 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing", "there is no file or directory"),
        ("empty", "holds no segments"),
        ("logs", "it has the partitions logs-0"),
        ("00000000000000000000.index", "is an index"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, name: str, words: str) -> None:
    """`broker dump-log` refuses a path that is not a log, with one sentence that says why. For an
    index, or a directory of several partitions, the sentence also says which path to use
    instead."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "logs" / "logs-0").mkdir(parents=True)
    (tmp_path / "00000000000000000000.index").touch()
    with pytest.raises(UsageError, match=words):
        dump.segment_files(tmp_path / name)
