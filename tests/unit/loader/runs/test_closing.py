"""Tests when a run drops the marks and the names of log files that agents have closed. A mark is
the position up to which a file is loaded. A name is the file's host and path. The fence of a topic
is the set of high watermarks that loads must reach before marks and names are dropped."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from skidway.audit.topic.field_bounds import NUMBERS
from skidway.audit.topic.messages import Announcement, Delta, Seal, Sender, Tier
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.errors import Unreachable
from skidway.kafka import columns
from skidway.kafka.columns import Origins
from skidway.loader.state.closures import GRACE_MS, SETTLED_MS
from skidway.loader.state.tables import Tables, read_tables
from support.extreme_messages import extremes_of
from support.loading import SOURCE, START_MS, datum
from support.memory_loading import AGENT, DATA, LENGTH, MemoryLoading
from support.promises import promise

FIRST, SECOND = (AGENT, 1), (AGENT, 2)


@pytest.fixture
def loading() -> MemoryLoading:
    """Returns a topic with ten lines of a log file. The agent has closed this file, and has
    announced a second file."""
    loading = MemoryLoading()
    loading.write(10)
    loading.say(
        announcement(1, length=10 * LENGTH),
        announcement(2),
    )
    return loading


def announcement(file: int, **more: Any) -> Announcement:
    known: Any = ("host", f"/log/{file}", 1, file, b"", 0, SOURCE)
    return Announcement(0, AGENT, file, *known, **more)


def seal(number: int = 9, time_ms: int = GRACE_MS, offset: int = 9) -> Seal:
    sender = Sender(Tier.AGENT, "dc1", str(AGENT), "host", 1)
    return Seal(sender, number, time_ms, (SealedTopic(SOURCE, time_ms, 1, ((0, offset),)),))


def write(loading: MemoryLoading, file: int, *numbers: int) -> None:
    """Appends a batch to the topic, with one record for each of the lines `numbers` of a file."""
    full, first = np.ones(len(numbers), np.int64), np.array(numbers, np.int64) * LENGTH
    values = pa.array([datum(f"line {number}") for number in numbers], pa.binary())
    origins = Origins(full * AGENT, full * file, first, full * LENGTH)
    batch = columns.encode(values, full * START_MS, origins=origins)
    loading.cluster.log(DATA).append(batch)


def tables(loading: MemoryLoading, number: int) -> Tables:
    return read_tables(loading.store, loading.manifest(number))


def drop(loading: MemoryLoading) -> Tables:
    """Runs three loads. The first load reads the message that the file was closed. The second load
    reads the seal that follows this message. A seal is an agent's message that all lines up to a
    time are acknowledged. The third load drops the marks of the closed file. Returns the tables
    after the third load."""
    loading.run()
    loading.say(seal())
    loading.clock.advance(SETTLED_MS / 1000)
    write(loading, 2, 0, 1)
    loading.run(until=11)
    loading.run()
    return tables(loading, 3)


@promise("5 closed files")
def test_marks_and_names_of_a_closed_file_go(loading: MemoryLoading) -> None:
    """A seal is an agent's message that all lines up to a time are acknowledged. The loader reads
    the message that a file was closed, and then a seal of the agent. The loader then stores the
    partitions' high watermarks as a fence. The load that reaches the fence drops the marks and the
    name of the closed file. An open file keeps both."""
    last = drop(loading)
    before = tables(loading, 2)
    assert before.marks[0].keys() == before.locations.keys() == {FIRST, SECOND}
    assert last.marks[0].keys() == last.locations.keys() == {SECOND}
    assert not last.closures.files
    assert len(loading.rows()) == 12


@promise("5 closed files")
def test_without_a_seal_nothing_goes(loading: MemoryLoading) -> None:
    """A seal is an agent's message that all lines up to a time are acknowledged. As long as no seal
    of the agent follows the message that a file was closed, the loader drops nothing, however much
    time passes."""
    loading.run()
    for number in range(3):
        loading.clock.advance(86_400)
        write(loading, 2, number)
        loading.run()
    assert tables(loading, 4).marks[0].keys() == {FIRST, SECOND}


@promise("5 closed files")
def test_a_late_repeat_before_the_fence_is_a_repeat(loading: MemoryLoading) -> None:
    """After the agent has closed a file, a load reads the agent's next seal. The high watermark at
    this moment is the fence. A repeated line of the closed file may lie between the last offset of
    this load and the fence. The next load still recognizes this line as a repeat."""
    loading.run()
    loading.say(seal())
    loading.clock.advance(SETTLED_MS / 1000)
    write(loading, 2, 0)
    write(loading, 1, 9)
    loading.run(until=11)
    loading.run()
    assert len(loading.rows()) == 11
    assert sum(each.repeats for delta in loading.deltas() for each in delta.counts) == 1


@promise("5 closed files")
def test_a_late_repeat_behind_an_open_transaction_is_a_repeat(loading: MemoryLoading) -> None:
    """The fence is the high watermark, not the last stable offset up to which a load reads. So a
    load that comes after the end of an open transaction still recognizes a repeated line of a
    closed file that stands behind the transaction."""
    log = loading.cluster.log(DATA)
    loading.run()
    loading.say(seal())
    loading.clock.advance(SETTLED_MS / 1000)
    write(loading, 2, 0)
    write(loading, 1, 9)
    log.stable = 11
    loading.run(until=11)
    log.stable = None
    loading.run()
    assert len(loading.rows()) == 11
    assert sum(each.repeats for delta in loading.deltas() for each in delta.counts) == 1


@promise("5 closed files")
def test_a_record_after_all_counts(loading: MemoryLoading) -> None:
    """Some time after a log file was closed, the loader forgets the file. If a line of the file
    comes even later, the line is not dropped silently. The load waits for an announcement of the
    file (a message with its host and path). If none comes within the waiting time, the line becomes
    a reject. The loader counts the reject, so the audit reports one record too many."""
    drop(loading)
    write(loading, 1, 9)
    outcome = loading.run()
    assert [stop.waiting_for for stop in outcome.waiting] == [FIRST]
    loading.run(announce_wait_ms=0)
    assert len(loading.rows()) == 12
    counts = [each for delta in loading.deltas() for each in delta.counts]
    assert sum(each.count for each in counts) == 13
    assert sum(each.rejects for each in counts) == 1


@promise("5 closed files")
def test_messages_that_the_topic_has_heard_bring_no_name_back(loading: MemoryLoading) -> None:
    """For each topic, the loader has a position in the audit topic. If another topic of the run has
    a lower position, the loader reads announcements (messages with a file's host and path) again.
    This does not bring back the name of a closed file that the loader has already dropped."""
    drop(loading)
    write(loading, 2, 2)
    with patch("skidway.loader.runs.run._lowest", lambda _: {}):
        loading.run()
    assert tables(loading, 4).locations.keys() == {SECOND}
    assert not tables(loading, 4).closures.files


def test_a_leader_that_does_not_answer_keeps_marks(
    loading: MemoryLoading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loader drops the marks of closed files after loads have reached certain high watermarks
    (the fence). If a partition's leader does not report its high watermark, the load is committed
    nevertheless. The marks of closed files stay until a later load has learned and reached the high
    watermarks."""
    away = {DATA: Unreachable("away")}
    with monkeypatch.context() as patched:
        patched.setattr(loading.client, "list_offsets_now", lambda *_: ({}, away), raising=False)
        loading.run()
        loading.say(seal())
        loading.clock.advance(SETTLED_MS / 1000)
        write(loading, 2, 0)
        loading.run()
    assert not tables(loading, 2).closures.is_fenced
    assert FIRST in tables(loading, 2).marks[0]
    write(loading, 2, 1)
    loading.run()
    assert FIRST not in tables(loading, 3).marks[0]


def test_no_value_of_a_message_stops_a_load(loading: MemoryLoading) -> None:
    """Anybody may write to the audit topic. Whatever value a field of a closure, a seal or a
    loader's message has, loads go on, and store what they have read."""
    output = Delta(Sender(Tier.HDFS, "offline", "/other/logs", "host", 1), 1, 0)
    said = [announcement(3, length=5), seal(8, 0, offset=1), output]
    loading.say(*(value for x in said for _, value in extremes_of(x)))
    for number in range(3):
        write(loading, 2, number)
        loading.run()
        loading.clock.advance(SETTLED_MS / 1000)
    last = tables(loading, 3).closures
    assert max(each.named for each in last.fence.values()) == NUMBERS.stop
    assert (AGENT, 3) in last.files
