"""Tests which files the demo finds, and how many of their bytes the agent must deliver."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from skidway.cli.commands import main
from skidway.demo import sources
from skidway.demo.site import DEFAULT_PORTS, Site
from skidway.errors import UsageError

LONG_AGO = 1_000_000_000


def sizes(pattern: Path) -> dict[str, int]:
    return {file.path.name: file.size_bytes for file in sources.noted([{"paths": [str(pattern)]}])}


def test_a_file_is_one_by_whatever_name(tmp_path: Path) -> None:
    """A symbolic link and its target, and two names of the same inode, are one file."""
    real, link = tmp_path / "b.log", tmp_path / "a.log"
    real.write_bytes(b"x\n")
    link.symlink_to(real)
    (tmp_path / "c.log").hardlink_to(real)
    assert sizes(tmp_path / "*.log") == {"a.log": 2}
    assert len(sources.noted([{"paths": [str(link)]}], [real, link])) == 1


def test_links_that_lead_back_to_their_directory_are_not_followed_for_ever(tmp_path: Path) -> None:
    """If two links in a directory lead back to this directory, the pattern ** finds each file
    once."""
    (tmp_path / "a.log").write_bytes(b"x\n")
    (tmp_path / "x").symlink_to(".")
    (tmp_path / "y").symlink_to(".")
    assert sizes(tmp_path / "**" / "*.log") == {"a.log": 2}


def test_the_plain_bytes_of_a_compressed_file_count(tmp_path: Path) -> None:
    """The size of a compressed file is the number of bytes that the agent reads from it after
    decompression. If the compressed file is damaged, only the bytes that can be read count. A plain
    file whose name ends in .gz counts with its own size."""
    data = gzip.compress(b"line\n" * 1000)
    (tmp_path / "a.log.gz").write_bytes(data)
    (tmp_path / "b.log.gz").write_bytes(data[:12])
    (tmp_path / "c.log.gz").write_bytes(b"plain\n")
    found = sizes(tmp_path / "*.gz")
    assert found == {"a.log.gz": 5000, "b.log.gz": 0, "c.log.gz": 6}


def test_a_line_that_still_grows_does_not_count(tmp_path: Path) -> None:
    """If a file was written to lately, only its bytes up to the last line end count. Otherwise all
    its bytes count."""
    for name, data in (("a.log", b"one\ntwo"), ("b.log", b"." * 9), ("c.log", b"")):
        (tmp_path / name).write_bytes(data)
    assert sizes(tmp_path / "*.log") == {"a.log": 4, "b.log": 0, "c.log": 0}
    for path in tmp_path.iterdir():
        os.utime(path, (LONG_AGO, LONG_AGO))
    assert sizes(tmp_path / "*.log") == {"a.log": 7, "b.log": 9, "c.log": 0}


def test_the_last_line_end_is_found_in_front_of_a_long_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last line end in a file is found even if the text after it is longer than the number of
    bytes that the demo reads at a time."""
    monkeypatch.setattr(sources, "READ_BYTES", 4)
    (tmp_path / "a.log").write_bytes(b"one\n" + b"." * 99)
    assert sizes(tmp_path / "a.log") == {"a.log": 4}


def test_a_pattern_that_matches_no_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demo refuses a pattern of --logs that matches no regular file, for example a wrong name,
    a directory, an empty text, or a ~ that no shell has expanded. It also refuses a pattern that is
    not UTF-8."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.log").write_bytes(b"x\n")
    (tmp_path / "b").symlink_to("nowhere")
    sources.check_given(["*.log", str(tmp_path / "a.log")])
    sources.check_given([])
    for pattern in ("b.log", "*.txt", str(tmp_path), "", "~/a.log"):
        with pytest.raises(UsageError, match=r"the pattern matches no regular file$"):
            sources.check_given(["*.log", pattern])
    with pytest.raises(UsageError, match=r"no regular file; .*/b: it is a link that leads nowhere"):
        sources.check_given(["b"])
    with pytest.raises(UsageError, match=r"--logs \\xff: the pattern is not UTF-8"):
        sources.check_given(["\udcff"])


TRACE = "java.lang.NullPointerException: null\n\tat org.apache.Foo.bar(Foo.java:7)\n\nCaused by: x"
ZOOKEEPER = "2026-11-21 08:15:0{},747 [myid:] - ERROR [NIOWorkerThread-2:NIOServerCnxn@374] - odd"
SPARK = "2026-11-21 08:15:0{}.123 WARN [Executor task-1] org.apache.spark.Task - odd"


@pytest.mark.parametrize(("name", "line"), [("zookeeper.log", ZOOKEEPER), ("spark.log", SPARK)])
def test_a_stack_trace_in_an_own_log_is_one_row(
    name: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The logs of ZooKeeper and Spark have stack traces. The demo's agent makes one row of a
    message and its trace, and rejects nothing."""
    site = Site(tmp_path, dict.fromkeys(DEFAULT_PORTS, 1), str(tmp_path / "hdfs"))
    site.write(sources.of_programs(site.logs, tmp_path / "etc" / "own.avsc"))
    log = site.logs / name
    log.write_text(f"{line.format(1)}\n{TRACE}\n{line.format(2)}\n")
    command = ["agent", "test", "--config", str(site.config("agent")), "--json", str(log)]
    assert main(command) == 0
    results = map(json.loads, capsys.readouterr().out.splitlines())
    assert [each["row"]["message"] for each in results] == [f"odd\n{TRACE}", "odd"]
