from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from skidway.demo import flow, sources, summary
from skidway.demo.kills import Kill
from skidway.demo.outcome import DemoOutcome, accounts
from skidway.demo.sources import FileSize
from skidway.demo.writer import Tally

FILE = {
    "path": "/w/a.log", "acknowledged": 90, "rejected": 10, "filtered": 0, "lost": 0,
    "uncertain": 0, "begin": 0,
}  # fmt: skip
GOOD = Kill("agent", "met", "cost", 0, 1.0)
BUCKET = {
    "topic": "a", "bucket": 20_000, "bucket_ms": 10_000, "verdict": "complete", "time": "then",
    "reasons": [], "places": [{"tier": "hdfs", "count": 7, "repeats": 2}],
}  # fmt: skip
UNTIL_MS = 30_000
NEWER = BUCKET | {"bucket": 30_000, "verdict": "open", "places": [{"tier": "agent", "count": 3}]}


def sized(path: Path, size_bytes: int) -> FileSize:
    return FileSize(path, sources.file_of(path), size_bytes)


def outcome(**changed: Any) -> DemoOutcome:
    """Returns the outcome of a demo that was complete, but with the given values changed. `sizes`
    has the sizes of files by path, `ledger` the rows in the agent's list of its files, and
    `buckets` the rows of the audit's report."""
    sizes = changed.pop("sizes", {Path("/w/a.log"): 100})
    found: dict[str, Any] = {
        "files": [sized(path, size) for path, size in sizes.items()],
        "accounts": accounts(changed.pop("ledger", [FILE])),
        "until_ms": UNTIL_MS,
        "report": {"buckets": changed.pop("buckets", [BUCKET])},
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
        {"buckets": [BUCKET, BUCKET | {"topic": "b", "verdict": "incomplete"}]},
        {"buckets": [BUCKET | {"verdict": "open"}]},
        {"buckets": [BUCKET | {"bucket": 10_000, "verdict": "lost"}, BUCKET]},
        {"buckets": []},
        {"buckets": [NEWER | {"verdict": "complete"}]},
        {"recount_agrees": False},
        {"sizes": {Path("/w/a.log"): 101}},
        {"sizes": {Path("/w/a.log"): 100, Path("/w/b.log"): 1}},
        {"ledger": [FILE | {"acknowledged": 89, "lost": 1}]},
        {"ledger": [FILE | {"acknowledged": 89, "uncertain": 1}]},
        {"ledger": [FILE | {"acknowledged": 500, "lost": 1}]},
        {"ledger": []},
        {"written": {"a": Tally(lines=8)}},
        {"written": {"a": Tally(lines=6)}},
        {"written": {"a": Tally(lines=7), "b": Tally(lines=1)}},
        {"kills": [GOOD, Kill("loader", "met", "cost", 1, 1.0)]},
    ],
)
def test_one_disagreement_spoils_the_verdict(changed: dict[str, Any]) -> None:
    """A demo is incomplete in each of these cases: a bucket up to the cut-off is not complete,
    there is no such bucket, a row is missing or surplus, a byte is unaccounted for, a topic has no
    rows, or a kill lost something. The bytes that the agent has read after the cut-off do not make
    up for a lost byte."""
    assert not outcome(**changed).is_complete


def test_what_comes_after_the_cut_off_spoils_nothing() -> None:
    """Programs go on writing after the cut-off. Neither these newer bytes nor the buckets after the
    cut-off change the verdict, and the demo's table does not count records of these buckets."""
    grown = FILE | {"acknowledged": 120}
    found = outcome(buckets=[BUCKET, NEWER], ledger=[grown])
    assert found.is_complete
    assert summary.topic_rows(found.judged) == summary.topic_rows([BUCKET])
    assert summary.audit_sentence(found) == (
        "All 1 buckets of 1 topics up to the cut-off are complete."
    )
    assert summary.bytes_sentence(found) == (
        "100 bytes in 1 files at the cut-off and 30 newer ones; 120 acknowledged, 10 rejected;"
        " every byte is accounted for."
    )


def test_an_incomplete_bucket_is_named() -> None:
    """The sentence about the audit names the first buckets up to the cut-off that are not complete,
    each with a reason."""
    short = BUCKET | {"topic": "b", "verdict": "incomplete", "reasons": ["hdfs lacks 1", "more"]}
    assert summary.audit_sentence(outcome(buckets=[BUCKET, short, NEWER])) == (
        "1 of 2 buckets of 2 topics up to the cut-off are complete;"
        " b then is incomplete: hdfs lacks 1."
    )


def test_the_verdict_waits_until_the_bytes_have_their_fates() -> None:
    """Before it judges, the demo waits until the agent has said what happened to every byte up to
    the cut-off. The demo does not wait for bytes that the agent has declared lost, but its verdict
    is then "incomplete"."""
    assert outcome().is_settled
    assert outcome(ledger=[FILE | {"acknowledged": 89, "lost": 1}]).is_settled
    assert not outcome(ledger=[FILE | {"acknowledged": 89}]).is_settled
    assert not outcome(ledger=[]).is_settled


def test_the_last_judged_bucket_has_the_records_of_all_bytes() -> None:
    """At some moment, all bytes up to the cut-off are acknowledged. The demo asks the audit for its
    verdict on all buckets up to the one that contains this moment."""
    assert flow.bucket_end_ms(20.0, 10_000) == flow.bucket_end_ms(29.999, 10_000) == UNTIL_MS
    assert flow.bucket_end_ms(30.0, 10_000) == UNTIL_MS + 10_000


def test_what_an_id_before_has_accounted_for_is_accounted_for() -> None:
    """If a file grows after the agent has closed it, the file gets a new id. The new id begins
    where the old id ended, so all bytes before this position are accounted for. This is so even if
    the agent's list of its files no longer has the old id."""
    grown = FILE | {"begin": 100, "acknowledged": 40, "rejected": 0}
    assert outcome(sizes={Path("/w/a.log"): 140}, ledger=[grown]).is_complete
    assert outcome(sizes={Path("/w/a.log"): 140}, ledger=[FILE, grown]).is_complete
    assert not outcome(sizes={Path("/w/a.log"): 141}, ledger=[grown]).is_complete


def test_a_file_that_is_rotated_or_deleted_keeps_its_size(tmp_path: Path) -> None:
    """If a file is renamed after the cut-off and a new file gets its name, the demo does not take
    the new file's size for the size of the renamed file. A file that was deleted after the cut-off
    is found in the agent's list by its path."""
    log, old = tmp_path / "a.log", tmp_path / "a.log.1"
    log.write_bytes(b"x" * 100)
    files = sources.measured([log, tmp_path / "away.log"])
    assert [file.size_bytes for file in files] == [100]
    log.rename(old)
    log.write_bytes(b"x")
    new = FILE | {"path": str(log), "acknowledged": 1, "rejected": 0}
    found = outcome(ledger=[FILE | {"path": str(old)}, new], files=files)
    assert (found.is_complete, found.newer_bytes) == (True, 0)
    assert not outcome(ledger=[new], files=files).is_settled
    log.unlink()
    assert outcome(ledger=[FILE | {"path": str(log)}], files=files).is_complete


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
