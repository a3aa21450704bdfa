from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skidway.demo import flow, sources, summary
from skidway.demo.kills import Kill
from skidway.demo.outcome import DemoOutcome, Unread
from skidway.demo.sources import FileSize
from skidway.demo.writer import Tally

FILE = {
    "file": 1, "device": 8, "inode": 1, "born_ns": 5, "acknowledged": 90, "rejected": 10,
    "filtered": 0, "lost": 0, "uncertain": 0, "begin": 0,
}  # fmt: skip
OTHER = FILE | {"file": 2, "inode": 2}
KILL = Kill("agent", "met", "cost", 1.0)
BUCKET = {
    "topic": "a", "bucket": 20_000, "bucket_ms": 10_000, "verdict": "complete", "time": "then",
    "accepted": False, "reasons": [], "places": [{"tier": "hdfs", "count": 7, "repeats": 2}],
}  # fmt: skip
UNTIL_MS = 30_000
NEWER = BUCKET | {"bucket": 30_000, "verdict": "open", "places": [{"tier": "agent", "count": 3}]}


def sized(size_bytes: int, row: dict[str, Any] = FILE) -> FileSize:
    """Returns the `FileSize` of a file with `size_bytes` bytes. `row` is the file's row in the
    agent's list of files."""
    key = (row["device"], row["inode"], row["born_ns"])
    return FileSize(Path(f"/w/{row['inode']}.log"), key, size_bytes, size_bytes)


def row_of(noted: FileSize, **changed: Any) -> dict[str, Any]:
    """Returns the row that the agent's list of files has for this file."""
    device, inode, born_ns = noted.key
    return FILE | {"device": device, "inode": inode, "born_ns": born_ns} | changed


def outcome(**changed: Any) -> DemoOutcome:
    """Returns the outcome of a demo that was complete, but with the given values changed. `ledgers`
    has the lists of files that the agent has given, the oldest list first. `buckets` has the rows
    of the audit's report."""
    ledgers = changed.pop("ledgers", [[FILE]])
    found: dict[str, Any] = {
        "files": [sized(100)],
        "until_ms": UNTIL_MS,
        "report": {"buckets": changed.pop("buckets", [BUCKET])},
        "recount": {"topics": [{"topic": "dc1.a", "rows": 7}]},
        "recount_agrees": True,
        "written": {"a": Tally(lines=7, bytes=100)},
        "kills": [KILL],
    }
    made = DemoOutcome(**(found | changed))
    for ledger in ledgers:
        made.take_ledger(ledger)
    return made


def test_all_has_to_agree() -> None:
    """A demo is complete if the audit's counts, the recount and the number of the writer's lines
    agree."""
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
        {"files": [sized(101)]},
        {"files": [sized(100), sized(1, OTHER)]},
        {"ledgers": [[]]},
        {"written": {"a": Tally(lines=8)}},
        {"written": {"a": Tally(lines=6)}},
        {"written": {"a": Tally(lines=7), "b": Tally(lines=1)}},
    ],
)
def test_one_disagreement_spoils_the_verdict(changed: dict[str, Any]) -> None:
    """A demo is incomplete in each of these cases: a bucket up to the cut-off is not complete, the
    audit's report has no bucket up to the cut-off, the recount does not agree, a row is missing or
    surplus, the agent says nothing of a byte, or a topic has no rows."""
    assert not outcome(**changed).is_complete


def test_what_comes_after_the_cut_off_spoils_nothing() -> None:
    """Programs go on writing after the cut-off. The newer bytes, and the buckets after the cut-off,
    do not change the verdict. The demo's table does not count records of these buckets."""
    grown = FILE | {"acknowledged": 120}
    found = outcome(buckets=[BUCKET, NEWER], ledgers=[[grown]])
    assert found.is_complete
    assert summary.topic_rows(found) == summary.topic_rows(outcome())
    assert summary.audit_sentence(found) == (
        "All 1 buckets of 1 topics up to the cut-off are complete."
    )
    assert summary.bytes_sentence(found) == (
        "100 bytes in 1 files at the cut-off and 30 newer ones; 120 acknowledged, 10 rejected;"
        " every byte is accounted for."
    )


def test_what_the_kills_hit_is_told_and_not_judged() -> None:
    """The sentence of a kill may say that something is missing. It does not change the verdict,
    which is that of the audit, the recount and the number of lines."""
    missing = Kill("broker-dc1", "met", "its log lacks 8 acknowledged records", 1.0)
    assert outcome(kills=[missing]).is_complete


def test_lost_bytes_are_for_the_audit_to_judge() -> None:
    """The demo's sentence about bytes names a file with lost bytes. Whether the loss spoils the
    verdict is for the audit to say, because a person may have accepted it."""
    found = outcome(ledgers=[[FILE | {"acknowledged": 89, "lost": 1}]])
    assert found.is_complete
    assert "NOT accounted for: /w/1.log (+1)" in summary.bytes_sentence(found)
    lost = BUCKET | {"verdict": "lost", "reasons": ["1 byte lost"]}
    assert summary.verdict(outcome(buckets=[lost])) == "NOT complete"


def test_a_file_that_cannot_be_read_is_not_waited_for_and_spoils_the_verdict() -> None:
    """If the agent cannot read a file, the demo waits neither for the file's bytes nor for the seal
    of its topic, but the verdict is that the demo is not complete. This is so even if the audit
    knows no bucket of the topic."""
    found = outcome(files=[sized(100), sized(10, OTHER)])
    assert not found.is_settled
    found.unread = {"/w/2.log": Unread("b", "Permission denied")}
    assert (found.is_settled, found.held) == (True, {"b"})
    assert summary.verdict(found) == "NOT complete"
    for topic, is_held in (("b", True), ("b.rejected", True), ("c", False)):
        short = BUCKET | {"topic": topic, "verdict": "incomplete"}
        found.report = {"buckets": [BUCKET, short]}
        assert found.is_short_of_held == is_held


def test_rejects_are_those_of_the_agent_and_of_the_loader() -> None:
    """The table's column REJECTS counts the lines that the agent rejected, beside their own topic
    and beside the topic of rejects, and the rejects of the loader. It says whose they are."""
    sent = BUCKET | {"places": [{"tier": "hdfs", "count": 7, "rejects": 2}]}
    rejected = BUCKET | {
        "topic": "a.rejected",
        "places": [{"tier": tier, "count": 3} for tier in ("agent", "broker", "hdfs")],
    }
    clean = BUCKET | {"topic": "b"}
    rows = summary.topic_rows(outcome(buckets=[sent, rejected, clean, NEWER]))
    assert {row["topic"]: row["rejects"] for row in rows} == {
        "a": "3 by the agent, 2 by the loader", "a.rejected": "3 by the agent", "b": "0",
    }  # fmt: skip


def test_an_incomplete_bucket_is_named() -> None:
    """The demo's sentence about the audit names the first buckets up to the cut-off that are not
    complete, each with a reason."""
    short = BUCKET | {"topic": "b", "verdict": "incomplete", "reasons": ["hdfs lacks 1", "more"]}
    assert summary.audit_sentence(outcome(buckets=[BUCKET, short, NEWER])) == (
        "1 of 2 buckets of 2 topics up to the cut-off are complete;"
        " b then is incomplete: hdfs lacks 1."
    )


def test_an_accepted_loss_is_named_but_spoils_nothing() -> None:
    """A bucket that is not complete, but that somebody has accepted, counts as good. The exit
    status of the audit's report follows the same rule. The demo's table still names this bucket,
    and so does the demo's sentence about the audit. A loss that nobody has accepted spoils the
    verdict."""
    lost = BUCKET | {"bucket": 10_000, "verdict": "lost", "reasons": ["1 lost, accepted by root"]}
    found = outcome(buckets=[lost | {"accepted": True}, BUCKET])
    assert (summary.verdict(found), found.has_loss) == ("complete or accepted", False)
    assert summary.audit_sentence(found) == (
        "All 2 buckets of 1 topics up to the cut-off are complete or accepted."
        " Accepted: a then is lost: 1 lost, accepted by root."
    )
    assert summary.topic_rows(found)[0]["verdict"] == "lost, accepted"
    found = outcome(buckets=[lost | {"accepted": True}, lost | {"topic": "b"}, BUCKET])
    assert (summary.verdict(found), found.has_loss) == ("NOT complete", True)
    assert summary.audit_sentence(found) == (
        "1 of 3 buckets of 2 topics up to the cut-off are complete;"
        " b then is lost: 1 lost, accepted by root."
        " Accepted: a then is lost: 1 lost, accepted by root."
    )


def test_the_verdict_waits_until_the_bytes_have_their_fates() -> None:
    """Before it judges, the demo waits until the agent has said what happened to every byte up to
    the cut-off. The demo does not wait for bytes that the agent has declared lost, and leaves it to
    the audit to judge them."""
    assert outcome().is_settled
    assert outcome(ledgers=[[FILE | {"acknowledged": 89, "lost": 1}]]).is_settled
    assert not outcome(ledgers=[[FILE | {"acknowledged": 89}]]).is_settled
    assert not outcome(ledgers=[[]]).is_settled


def test_the_last_judged_bucket_has_the_records_of_all_bytes() -> None:
    """At some moment, all bytes up to the cut-off are acknowledged. The demo asks the audit for its
    verdict on all buckets up to the one that contains this moment."""
    assert flow.bucket_end_ms(20.0, 10_000) == flow.bucket_end_ms(29.999, 10_000) == UNTIL_MS
    assert flow.bucket_end_ms(30.0, 10_000) == UNTIL_MS + 10_000


def test_what_an_id_before_has_accounted_for_is_accounted_for() -> None:
    """If a file grows after the agent has closed it, the file gets a new id. The new id begins
    where the old id ended, so all bytes before this position are accounted for. This is so even if
    the agent's list of its files no longer has the old id."""
    grown = FILE | {"file": 2, "begin": 100, "acknowledged": 40, "rejected": 0}
    assert outcome(files=[sized(140)], ledgers=[[grown]]).is_complete
    assert outcome(files=[sized(140)], ledgers=[[FILE, grown]]).is_complete
    assert not outcome(files=[sized(141)], ledgers=[[grown]]).is_complete


def test_bytes_that_were_declared_lost_may_be_read_again() -> None:
    """A run without `--logs` may declare the last bytes of a file lost, and the next run may read
    these bytes again under a new id. Then the demo judges only when the bytes of the new id up to
    the cut-off are accounted for. The demo does not mistake the bytes that count twice for bytes of
    a former content of the file."""
    lost = FILE | {"acknowledged": 79, "rejected": 0, "lost": 21}
    anew = FILE | {"file": 2, "begin": 79, "acknowledged": 0, "rejected": 0}
    for before in ([lost], [lost, anew], [lost, anew | {"acknowledged": 21}]):
        found = outcome(ledgers=[before])
        found.note([sized(100)])
        found.take_ledger([lost, anew | {"acknowledged": 20}])
        assert list(found.unsettled.values()) == [1]
        found.take_ledger([lost, anew | {"acknowledged": 21}])
        assert found.is_settled
        found.take_ledger([lost, anew | {"acknowledged": 31}])
        assert found.newer_bytes == 10


def test_another_file_of_the_same_name_is_not_taken_for_a_file(tmp_path: Path) -> None:
    """A file that is renamed or deleted after the cut-off keeps its own account (the agent's
    numbers of acknowledged, rejected, lost and other bytes). The demo does not use the account of
    another file that has or had the same path."""
    log = tmp_path / "a.log"
    log.write_bytes(b"x" * 99 + b"\n")
    files = sources.noted([{"paths": [str(log)]}], [tmp_path / "away.log"])
    assert [file.size_bytes for file in files] == [100]
    log.rename(tmp_path / "a.log.1")
    log.write_bytes(b"x\n")
    (new,) = sources.noted([{"paths": [str(log)]}])
    found = outcome(ledgers=[[row_of(files[0]), row_of(new, file=2, acknowledged=2)]], files=files)
    assert (found.is_complete, found.newer_bytes) == (True, 0)
    log.unlink()
    assert not outcome(ledgers=[[row_of(new, acknowledged=500)]], files=files).is_settled
    assert outcome(ledgers=[[row_of(files[0])]], files=files).is_complete


def test_another_file_with_the_same_inode_is_not_taken_for_a_file() -> None:
    """If a file was deleted, and a new file got its inode, the account of the new file (the agent's
    numbers of acknowledged, rejected, lost and other bytes) does not count for the deleted file.
    The demo sees that the two files have different creation times. If the file system knows no
    creation times, device and inode decide."""
    assert not outcome(ledgers=[[FILE | {"born_ns": 6, "acknowledged": 500}]]).is_settled
    assert not outcome(ledgers=[[FILE | {"device": 9}]]).is_settled
    unborn = FILE | {"born_ns": None}
    assert outcome(ledgers=[[unborn]], files=[sized(100, unborn)]).is_complete


def test_a_file_that_was_compressed_is_known_by_its_id() -> None:
    """If a file is rotated and compressed after the cut-off, its file id goes on with the inode of
    the compressed file. The demo finds the file's account (the agent's numbers of acknowledged,
    rejected, lost and other bytes) by the file id. If a file was already compressed at the cut-off,
    the demo finds the account by the inode of the compressed file."""
    compressed = FILE | {"inode": 3, "born_ns": 7}
    before = FILE | {"acknowledged": 20}
    assert outcome(ledgers=[[before], [compressed]]).is_complete
    assert not outcome(ledgers=[[before], [compressed | {"acknowledged": 89}]]).is_settled
    both = outcome(ledgers=[[before], [compressed]], files=[sized(100, compressed)])
    assert both.is_complete
    lossy = outcome(ledgers=[[before], [compressed | {"acknowledged": 89, "lost": 1}]])
    assert lossy.tally["lost"] == 1


def test_what_was_delivered_before_a_truncation_does_not_count_after_it() -> None:
    """If a file was truncated and written anew, the bytes of its former content do not make up for
    missing bytes of the new content."""
    anew = FILE | {"file": 2, "acknowledged": 50, "rejected": 0}
    assert not outcome(ledgers=[[FILE, anew]], files=[sized(140)]).is_settled
    assert outcome(ledgers=[[FILE, anew | {"acknowledged": 140}]], files=[sized(140)]).is_settled


def test_what_was_truncated_before_the_cut_off_does_not_count() -> None:
    """If a file was truncated before the cut-off, delivered bytes of its old content do not count,
    even if the agent notices the truncation only later. The agent must deliver the content that the
    file had at the cut-off."""
    anew = FILE | {"file": 2, "acknowledged": 20, "rejected": 0}
    for before, size in (([FILE], 50), ([FILE, anew], 50)):
        found = outcome(ledgers=[before])
        found.note([sized(size)])
        found.take_ledger([FILE])
        assert not found.is_settled
        found.take_ledger([FILE, anew | {"acknowledged": 49}])
        assert not found.is_settled
        found.take_ledger([FILE, anew | {"acknowledged": 50}])
        assert found.is_settled


def test_what_is_truncated_after_the_cut_off_counts() -> None:
    """If a file is truncated after the cut-off, the delivered bytes of its old content still
    count."""
    found = outcome()
    found.note([sized(100)])
    found.take_ledger([FILE, FILE | {"file": 2, "acknowledged": 1, "rejected": 0}])
    assert found.is_settled


def test_files_of_earlier_runs_are_not_added_up() -> None:
    """The demo's sums of bytes include only files that this run of the demo reads. The demo prints
    another sentence about the lost bytes of other files."""
    earlier = OTHER | {"acknowledged": 5, "lost": 7}
    found = outcome(ledgers=[[FILE, earlier]])
    assert found.tally == {
        "acknowledged": 90, "rejected": 10, "filtered": 0, "lost": 0, "uncertain": 0,
    }  # fmt: skip
    assert summary.bytes_sentence(found) == (
        "100 bytes in 1 files at the cut-off; 90 acknowledged, 10 rejected;"
        " every byte is accounted for. Other files, as of earlier runs, have 7 lost bytes."
    )


def test_bytes_that_were_read_again_are_explained() -> None:
    """Bytes that were declared lost, and then read again under a new id, are accounted for. The
    demo's sentence about bytes says how many such bytes there are, because the sentence counts them
    twice. Lost bytes that were not read again stay unaccounted for."""
    lost = FILE | {"acknowledged": 79, "rejected": 0, "lost": 21}
    anew = FILE | {"file": 2, "begin": 79, "acknowledged": 21, "rejected": 0}
    found = outcome(ledgers=[[lost, anew]])
    assert found.is_complete
    assert summary.bytes_sentence(found) == (
        "100 bytes in 1 files at the cut-off; 100 acknowledged, 21 lost (21 of these bytes count"
        " twice: they were declared lost, and then read again); every byte is accounted for."
    )
    part = outcome(ledgers=[[lost, anew | {"begin": 90, "acknowledged": 10}]])
    assert list(part.unaccounted.values()) == [11]


def test_a_torn_line_may_be_a_row_or_a_reject() -> None:
    """A killed writer may leave a torn line (a line that is only partly written), which becomes a
    row or a reject. So one surplus row is not a fault. With two surplus rows the demo is
    incomplete."""
    assert outcome(written={"a": Tally(lines=6, torn=1)}).is_complete
    assert outcome(written={"a": Tally(lines=7, torn=1)}).is_complete
    assert not outcome(written={"a": Tally(lines=5, torn=1)}).is_complete


def test_lines_are_compared_by_topic() -> None:
    """The demo's sentence about lines names each topic in which the number of rows differs from the
    number of lines, and the number of missing or surplus rows."""
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


def test_the_suggested_query_asks_for_the_files_that_the_user_named() -> None:
    """With --logs, the query that the demo suggests reads the rows of the user's files. Without
    --logs, or if these files have no rows, it reads rows of the demo's own files."""
    rows = {"topics": [{"topic": "dc1.app-logs", "rows": 3}]}
    for changed, topic in (
        ({"has_given": True, "recount": rows}, "app-logs"),
        ({"has_given": True}, "order-logs"),
        ({"recount": rows}, "order-logs"),
        ({"recount": rows, "written": {}}, "zookeeper-logs"),
    ):
        for output in ("/w/hdfs", "hdfs://namenode:8020/logs"):
            assert f"{output}/dc1.{topic}'" in summary.query(output, outcome(**changed))
