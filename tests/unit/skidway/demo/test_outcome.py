from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from skidway.demo import sources, summary
from skidway.demo.flow import DemoOutcome
from skidway.demo.kills import Kill
from skidway.demo.writer import Tally

FILE = {
    "path": "/w/a.log", "acknowledged": 90, "rejected": 10, "filtered": 0, "lost": 0,
    "uncertain": 0, "begin": 0,
}  # fmt: skip
GOOD = Kill("agent", "met", "cost", 0, 1.0)


def outcome(**changed: Any) -> DemoOutcome:
    """The outcome of a demo that was complete, but with the given values changed."""
    found: dict[str, Any] = {
        "sizes": {Path("/w/a.log"): 100},
        "ledger": [FILE],
        "report": {"sentence": "All.", "buckets": []},
        "counts_balance": True,
        "recount": {"topics": [{"topic": "dc1.a", "rows": 7}]},
        "recount_agrees": True,
        "written": {"a": Tally(lines=7, bytes=100)},
        "kills": [GOOD],
    }
    return DemoOutcome(**(found | changed))


def test_all_has_to_agree() -> None:
    """A demo is complete if the audit's counts, the recount, the delivered bytes and the number of
    lines agree, and if no kill lost anything."""
    assert outcome().is_complete
    assert outcome(written={}, kills=[]).is_complete


@pytest.mark.parametrize(
    "changed",
    [
        {"counts_balance": False},
        {"recount_agrees": False},
        {"sizes": {Path("/w/a.log"): 101}},
        {"ledger": [FILE | {"acknowledged": 89, "lost": 1}]},
        {"written": {"a": Tally(lines=8)}},
        {"written": {"a": Tally(lines=6)}},
        {"written": {"a": Tally(lines=7), "b": Tally(lines=1)}},
        {"kills": [GOOD, Kill("loader", "met", "cost", 1, 1.0)]},
    ],
)
def test_one_disagreement_spoils_the_verdict(changed: dict[str, Any]) -> None:
    """A demo is incomplete if one row is missing or surplus, if one byte is unaccounted for, if a
    topic has no rows, or if a kill lost something."""
    assert not outcome(**changed).is_complete


def test_what_an_id_before_has_accounted_for_is_accounted_for() -> None:
    """If a file grows after the agent has closed it, the file gets a new id. The bytes before the
    offset at which the new id begins count as accounted for under the old id, even if the agent's
    list of its files no longer has the old id."""
    grown = FILE | {"begin": 100, "acknowledged": 40, "rejected": 0}
    assert outcome(sizes={Path("/w/a.log"): 140}, ledger=[grown]).is_complete
    assert outcome(sizes={Path("/w/a.log"): 140}, ledger=[FILE, grown]).is_complete
    assert not outcome(sizes={Path("/w/a.log"): 141}, ledger=[grown]).is_complete


def test_a_file_is_one_by_whatever_name(tmp_path: Path) -> None:
    """A symbolic link and its target, and two names of the same inode, are read as one file and
    accounted for once."""
    real, link, other = tmp_path / "b.log", tmp_path / "a.log", tmp_path / "c.log"
    real.write_bytes(b"x" * 100)
    link.symlink_to(real)
    other.hardlink_to(real)
    assert sources.tailed([{"paths": [str(tmp_path / "*.log")]}]) == [link]
    assert outcome(sizes={link: 100}, ledger=[FILE | {"path": str(other)}]).is_complete


def test_a_name_that_is_no_utf8_is_found_by_the_ledgers_text(tmp_path: Path) -> None:
    r"""The agent's list of its files has an escaped form of a file name that is not UTF-8. The demo
    finds the file by this form. A name that really contains the four characters `\xff` is not
    mistaken for an escaped name."""
    for name, text in ((b"a\xff.log", r"a\xff.log"), (rb"b\xff.log", r"b\xff.log")):
        path = tmp_path / os.fsdecode(name)
        path.write_bytes(b"x" * 100)
        assert sources.path_of(str(tmp_path / text)) == path
        done = outcome(sizes={path: 100}, ledger=[FILE | {"path": str(tmp_path / text)}])
        assert done.is_complete
        assert summary.bytes_sentence(done).endswith("every byte is accounted for.")
        lost = outcome(sizes={path: 101}, ledger=[FILE | {"path": str(tmp_path / text)}])
        assert f"{text} (+1)" in summary.bytes_sentence(lost).encode().decode()


def test_files_of_earlier_runs_are_not_added_up(tmp_path: Path) -> None:
    """The sum of delivered bytes includes only files that this run of the demo reads. The sum of
    lost bytes includes all files, even those of earlier runs."""
    earlier = FILE | {"path": "/w/z.log", "acknowledged": 5, "lost": 7}
    assert outcome(ledger=[FILE, earlier]).tally == {
        "acknowledged": 90, "rejected": 10, "filtered": 0, "lost": 7, "uncertain": 0,
    }  # fmt: skip


def test_a_torn_line_may_be_a_row_or_a_reject() -> None:
    """A killed writer may leave a torn line (a line that is only partly written), which becomes a
    row or a reject. So one surplus row is not a fault. With two surplus rows the demo is
    incomplete."""
    assert outcome(written={"a": Tally(lines=6, torn=1)}).is_complete
    assert outcome(written={"a": Tally(lines=7, torn=1)}).is_complete
    assert not outcome(written={"a": Tally(lines=5, torn=1)}).is_complete


def test_lines_are_compared_by_topic() -> None:
    """The sentence about lines names each topic in which the number of rows differs from the number
    of lines, and the number of missing or surplus rows."""
    assert "as many rows as lines were written" in summary.lines_sentence(outcome())
    said = summary.lines_sentence(outcome(written={"a": Tally(lines=9)}))
    assert said.endswith("NOT as many as the lines: a -2.")


def test_paths_are_shown_as_one_types_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path below the current directory is shown relative to that directory. Other paths, and
    URLs, are shown unchanged."""
    monkeypatch.chdir(tmp_path)
    assert summary.shown(tmp_path / "skidway-demo" / "hdfs") == "skidway-demo/hdfs"
    assert summary.shown("/usr/bin/python3") == "/usr/bin/python3"
    assert summary.shown("hdfs://namenode:8020/logs") == "hdfs://namenode:8020/logs"
    assert "'skidway-demo/hdfs/dc1.order-logs'" in summary.query("skidway-demo/hdfs", outcome())
