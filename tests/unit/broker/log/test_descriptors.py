from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from skidway.broker.log import descriptors, segment
from skidway.broker.log.config import LogConfig
from skidway.broker.log.descriptors import OpenSegments
from skidway.broker.log.files import StorageFailed
from support.batches import append, batch, contents, flush, open_in, put


class Holder:
    def __init__(self) -> None:
        self.released = 0

    def let_go(self) -> None:
        self.released += 1


def test_the_oldest_lets_go() -> None:
    """When too many segments are open, the file of the segment that was opened first is closed.
    Segments that are closed or deleted do not count as open."""
    opened = OpenSegments(2)
    holders = [Holder() for _ in range(4)]
    for holder in holders[:3]:
        opened.opened(holder)
    assert [holder.released for holder in holders] == [1, 0, 0, 0]
    opened.closed(holders[1])
    opened.opened(holders[3])
    assert [holder.released for holder in holders] == [1, 0, 0, 0]
    holders.clear()
    del holder
    assert len(opened) == 0


def test_a_log_works_with_one_descriptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if only one segment may be open at a time, every batch can be read, because the log
    opens a segment whenever it reads from the segment."""
    monkeypatch.setattr(descriptors, "OPEN", OpenSegments(1))
    log = open_in(tmp_path, LogConfig(segment_bytes=150))
    for number in range(6):
        append(log, batch(b"%d" % number * 60))
        flush(log)
    assert contents(log) == [(number, 1) for number in range(6)]
    assert sum(each.is_open for each in log.segments) == 1


def test_no_descriptor_left_refuses_and_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If no file descriptor is left for a write, the write is refused and changes nothing. The next
    write with a free descriptor succeeds."""
    log = open_in(tmp_path)
    append(log, batch(b"a"))
    put(log, batch(b"b"))
    log.active.let_go()

    def none_left(path: Path, _flags: int) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(segment, "OpenFile", none_left)
        with pytest.raises(StorageFailed) as caught:
            log.write()
    assert caught.value.is_passing
    assert append(log, batch(b"c")) == 1


def test_the_limit_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker raises its limit of file descriptors as far as the machine allows. Segments may
    use half of the descriptors, and clients may use the other half."""
    limits = [(1024, 4096)]
    monkeypatch.setattr(descriptors, "OPEN", OpenSegments(1))
    monkeypatch.setattr(descriptors.resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(descriptors.resource, "setrlimit", lambda _, limit: limits.append(limit))
    descriptors.raise_limit()
    assert limits[-1] == (4096, 4096)
    assert descriptors.OPEN.limit == 2048
    descriptors.raise_limit()
    assert len(limits) == 2
