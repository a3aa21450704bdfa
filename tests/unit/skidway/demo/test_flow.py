"""The steps of the demo after the cut-off. All programs run on, so files, logs and reports grow
while the demo waits."""

from __future__ import annotations

import errno
import io
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from skidway.demo import flow, obstacles, sources, summary
from skidway.demo.display import Display
from skidway.demo.flow import Demo, Offsets
from skidway.demo.outcome import Unread
from skidway.demo.site import DATACENTER, OFFLINE, Site
from skidway.demo.supervisor import ProgramFailed, Stopped
from skidway.kafka.types import TopicPartition

LINE = b"a line\n"
TOPIC = "app-logs"


class Scripted(Demo):
    """A demo without programs. Its methods answer as if a busy log grew all the time: the log's end
    moves on, and the mirror follows. `sealed_ms` has the agent's next answers about its seals.
    `reports` and `recounts` have the audit's next answers."""

    def __init__(self, folder: Path) -> None:
        log = folder / "app.log"
        log.write_bytes(LINE)
        site = Site(folder, {}, str(folder / "hdfs"))
        super().__init__(site, Display(io.StringIO()), [str(log)])
        self.log = log
        self.asked: list[str] = []
        self.health: dict[str, Any] = {}
        self.mirrored = 0
        self.sealed_ms: list[int] = []
        self.reports: list[str] = []
        self.recounts: list[int] = []

    def own_sources(self) -> list[dict[str, Any]]:
        return []

    def ledger(self) -> list[dict[str, Any]]:
        with self.log.open("ab") as file:
            file.write(LINE)
        done = 3 * len(LINE) * (self.asked.count("agent") // 2)
        self.asked.append("agent")
        fates = {"rejected": 0, "filtered": 0, "lost": 0, "uncertain": 0, "begin": 0}
        (noted,) = sources.noted(self.sources)
        device, inode, born_ns = noted.key
        key = {"file": 1, "device": device, "inode": inode, "born_ns": born_ns}
        return [{"acknowledged": done, **key, **fates}]

    def agent_health(self) -> dict[str, Any]:
        return self.health

    def watermarks(self, cluster: str, topics: Sequence[str]) -> Offsets:
        self.asked.append(cluster)
        if cluster == DATACENTER:
            return {TopicPartition(TOPIC, 0): 3}
        self.mirrored += 1
        return {TopicPartition(f"{DATACENTER}.{TOPIC}", 0): self.mirrored}

    def _sealed_until(self) -> int:
        self.asked.append("seal")
        return self.sealed_ms.pop(0)

    def _audit(self, verb: str, *options: str) -> subprocess.CompletedProcess[str]:
        self.asked.append(verb)
        if verb == "recount":
            return subprocess.CompletedProcess((), self.recounts.pop(0), '{"topics": []}', "")
        verdict = self.reports.pop(0)
        bucket = {"topic": TOPIC, "bucket": 0, "bucket_ms": 10, "verdict": verdict}
        bucket["accepted"] = False
        newer = bucket | {"bucket": 10, "verdict": "open"}
        return subprocess.CompletedProcess((), 1, json.dumps({"buckets": [bucket, newer]}), "")

    def load(self, *options: str) -> None:
        self.asked.append("load")


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    monkeypatch.setattr(Demo, "idle", lambda _: None)
    found = Scripted(tmp_path)
    with found:
        yield found


def test_a_busy_log_does_not_keep_the_demo_from_ending(demo: Scripted) -> None:
    """After the cut-off, the demo waits until the agent has accounted for the bytes that the files
    had at the cut-off. Then it waits until the agent has sent a seal with a time that is late
    enough for a verdict on the last bucket: the bucket's end plus the lateness. Last, it asks the
    datacenter's brokers once for their offsets, and waits until the mirror has reached these
    offsets, however fast the logs grow."""
    demo.cut_off()
    timing = demo.site.timing
    due_ms = flow.bucket_end_ms(time.time(), timing.bucket_ms) + timing.lateness_ms
    demo.sealed_ms = [0, due_ms - timing.lateness_ms, due_ms + 2 * timing.bucket_ms]
    demo.drain()
    assert demo.asked == ["agent"] * 3 + ["seal"] * 3 + [DATACENTER] + [OFFLINE] * 3
    assert demo.outcome.files[0].size_bytes == 2 * len(LINE)
    assert demo.outcome.newer_bytes == len(LINE)
    assert not demo.outcome.unaccounted


def test_a_file_that_the_agent_cannot_read_keeps_no_verdict_back(
    demo: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the agent cannot read a file, the demo waits neither for its bytes nor for a seal of
    its topic, and ends with the verdict on what the audit knows."""
    monkeypatch.setattr(obstacles, "UNREADABLE_FOR_S", 0.0)
    monkeypatch.setattr(flow, "HELD_WITHIN_S", 0.0)
    monkeypatch.setattr(Scripted, "_sealed_until", Demo._sealed_until)
    monkeypatch.setattr(flow.states, "sealed_until", lambda _, topics: 0 if topics else 1 << 62)
    demo.health = {"unreadable": {TOPIC: {str(demo.log): "Permission denied"}}}
    demo.cut_off()
    demo.drain()
    demo.outcome.until_ms = 10
    demo.reports = ["incomplete"]
    demo.wait_for_verdict()
    assert demo.outcome.unread == {str(demo.log): Unread(TOPIC, "Permission denied")}
    assert summary.verdict(demo.outcome) == "NOT complete"


def test_what_cannot_be_read_is_said_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of --logs that cannot be read is named with the reason before the demo starts its
    programs."""
    log = tmp_path / "secret.log"
    log.write_bytes(LINE)

    def refuse(path: str, *_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(sources.os, "open", refuse)
    out = io.StringIO()
    site = Site(tmp_path, {}, str(tmp_path / "hdfs"))
    with Demo(site, Display(out, lambda: 0.0), [str(log)]) as demo:
        monkeypatch.setattr(Site, "write", lambda *_: pytest.fail("nothing was said"))
        with pytest.raises(pytest.fail.Exception):
            demo.start()
    assert out.getvalue().startswith(f"0:00  cannot read {log}: Permission denied")


def test_with_keep_loads_go_on(demo: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    """While --keep leaves everything running, a loader loads again and again. So newer buckets
    become complete, too."""
    begun: list[tuple[str, ...]] = []
    monkeypatch.setattr(demo.supervisor, "begin", lambda *arguments: begun.append(arguments))
    monkeypatch.setattr(demo.supervisor, "_signals", [2])
    with pytest.raises(Stopped):
        demo.wait_until_interrupted()
    assert [each[:5] for each in begun] == [("loader", "load", "run", "--every", "10s")]


def test_a_file_that_is_waited_for_in_vain_is_named(
    demo: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the agent never accounts for a file, the demo's error names the file."""
    monkeypatch.setattr(flow, "WITHIN_S", 0.0)
    demo.cut_off()
    demo.asked.clear()
    with pytest.raises(ProgramFailed, match=r"in vain for every byte.* bytes of .*app\.log; logs"):
        demo.drain()


def test_a_long_wait_says_what_it_waits_for(demo: Scripted) -> None:
    """If nothing was printed for half a minute, the demo prints what it waits for, and the file for
    whose bytes it waits."""
    out, now_s = io.StringIO(), 0.0
    demo.display = Display(out, lambda: now_s)

    def ready() -> bool:
        nonlocal now_s
        now_s += 20.0
        return now_s > 80.0

    demo.until(ready, "every byte", lambda: ": 3 bytes of /w/a.log")
    words = "still waiting for every byte: 3 bytes of /w/a.log"
    assert out.getvalue() == f"0:40  {words}\n1:20  {words}\n"


def test_a_line_that_was_written_late_is_loaded(
    demo: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line may be written so late that it is not yet loaded when the demo asks for the verdict on
    the line's bucket. The demo then runs another load, which makes the bucket complete. The demo
    does not wait for newer buckets."""
    monkeypatch.setattr(flow, "LOAD_AGAIN_S", 0.0)
    demo.outcome.until_ms = 10
    demo.reports = ["incomplete", "complete"]
    demo.wait_for_verdict()
    assert demo.asked == ["report", "load", "report"]
    assert demo.outcome.counts_balance


def test_a_bucket_that_stays_incomplete_ends_the_wait(
    demo: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a bucket never becomes complete, the demo ends, and its verdict is not complete."""
    monkeypatch.setattr(flow, "WITHIN_S", 0.0)
    demo.outcome.until_ms = 10
    demo.reports = ["incomplete"]
    demo.wait_for_verdict()
    assert not demo.outcome.counts_balance


def test_a_lost_bucket_ends_the_wait_at_once(demo: Scripted) -> None:
    """If the agent declared lines lost, their bucket never becomes complete. The demo does not wait
    for it, and its verdict is not complete."""
    demo.outcome.until_ms = 10
    demo.reports = ["incomplete", "lost"]
    demo.wait_for_verdict()
    assert demo.asked == ["report", "report"]
    assert not demo.outcome.counts_balance


def test_rows_of_which_the_audit_has_not_heard_yet_are_counted_again(
    demo: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent's counts of the newest rows may reach the audit after the rows were loaded. So the
    demo repeats a recount that differs. If the recount still differs after a time limit, the demo's
    outcome says that the recount does not agree."""
    demo.recounts = [1, 0]
    demo.recount()
    assert (demo.asked, demo.outcome.recount_agrees) == (["recount"] * 2, True)
    monkeypatch.setattr(flow, "RECOUNT_AGAIN_S", 0.0)
    demo.recounts = [1]
    demo.recount()
    assert not demo.outcome.recount_agrees
