"""A partition's log loses no flushed batch. The tests run the log's real code on a simulated disk,
which may lose any unsynced bytes in a power loss.

The model is the list of the written batches. After a power loss, each file has its synced bytes and
any part of the bytes after them, unchanged or as zeros. A new file may be missing if its directory
was not synced after the file was created. If a segment has lost bytes, later segments have only
their synced bytes. Any other loss would be damage, and the partition would stop with an error.
Whatever happens, the log contains all flushed batches, the log is a prefix of the written batches,
and a retried batch is stored once.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from skidway.broker.log import partition_log
from skidway.broker.log.config import LogConfig
from skidway.broker.log.files import StorageFailed
from skidway.broker.log.flusher import sync
from skidway.broker.log.partition_log import Flush
from skidway.broker.log.producer_state import OutOfOrderSequence
from support.batches import batch, contents, open_in, put, stored

CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=150)
PRODUCER = 5


class Disk:
    """A simulated disk. Remembers how many bytes of each file, and which names of the directory,
    were synced."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.names: set[str] = set()

    def synced(self, descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.is_dir():
            self.names = {each.name for each in path.iterdir()}
        else:
            status = path.stat()
            self.sizes[status.st_ino] = status.st_size

    def lose_power(self, directory: Path, chance: random.Random) -> None:
        """Changes or removes the unsynced bytes and names, as a power loss may do."""
        lost_before = False
        for path in sorted(directory.iterdir()):
            status = path.stat()
            kept = self.sizes.get(status.st_ino, 0)
            if path.suffix == ".log" and lost_before:
                os.truncate(path, min(kept, status.st_size))
                continue
            kept = min(kept, status.st_size)
            if path.name not in self.names and not kept and chance.random() < 0.5:
                lost_before = lost_before or path.suffix == ".log"
                path.unlink()
                continue
            size = chance.choice((kept, status.st_size, chance.randint(kept, status.st_size)))
            os.truncate(path, size)
            lost_before = lost_before or (path.suffix == ".log" and size < status.st_size)
            if size > kept and chance.random() < 0.3 and not lost_before:
                lost_before = lost_before or path.suffix == ".log"
                with path.open("r+b") as file:
                    file.seek(chance.randint(kept, size))
                    file.write(b"\0" * (size - file.tell()))
            if lost_before and chance.random() < 0.2:
                os.truncate(path, size + chance.randint(0, 200))


class Logs(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 1 << 32))
    def begin(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.root = Path(tempfile.mkdtemp())
        self.directory = self.root / "logs-0"
        self.directory.mkdir()
        self.disk = Disk()
        self.patch = pytest.MonkeyPatch()
        for name in ("fsync", "fdatasync"):
            self.patch.setattr(os, name, self.disk.synced)
        self.log = open_in(self.directory, CONFIG)
        self.disk.names = {each.name for each in self.directory.iterdir()}
        self.flush: Flush | None = None
        self.sequence = 0
        self.sent: list[tuple[int, bytes]] = []
        self.pending: list[tuple[int, bytes]] = []
        self.flushed = 0
        self.recovery_point = 0

    def teardown(self) -> None:
        if hasattr(self, "patch"):
            self.patch.undo()
            shutil.rmtree(self.root)

    @property
    def batches(self) -> list[tuple[int, int]]:
        return [(base, 1) for base, _ in self.sent]

    @rule(size=st.integers(1, 300))
    def append(self, size: int) -> None:
        data = batch(b"x" * size, producer_id=PRODUCER, epoch=0, sequence=self.next_sequence)
        base = put(self.log, bytearray(data))
        assert base == len(self.sent) + len(self.pending)
        self.pending.append((base, bytes(data)))
        self.note_written()

    def note_written(self) -> None:
        """Adds to the model's list `sent` all batches that the log has written. The log also writes
        when it begins a new segment, so it may have written batches before `write` is called.
        """
        written = self.log.written.offset
        self.sent += [each for each in self.pending if each[0] < written]
        self.pending = [each for each in self.pending if each[0] >= written]

    @property
    def next_sequence(self) -> int:
        return len(self.sent) + len(self.pending)

    @rule()
    def write(self) -> None:
        self.log.write()
        self.note_written()
        assert not self.pending

    @rule()
    def roll(self) -> None:
        """Begins a new segment, as retention does."""
        self.log.roll(0)
        self.note_written()

    @precondition(lambda self: self.pending)
    @rule(number=st.sampled_from([errno.ENOSPC, errno.EFBIG]), part=st.integers(0, 300))
    def write_fails(self, number: int, part: int) -> None:
        def fail(descriptor: int, buffers: Any, position: int) -> None:
            os.pwrite(descriptor, b"".join(bytes(each) for each in buffers)[:part], position)
            raise OSError(number, os.strerror(number))

        self.with_writes(fail, self.log.write)
        self.pending = []

    def with_writes(self, write: Callable[..., None], action: Callable[[], None]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(partition_log, "write_all_at", write)
            with pytest.raises(StorageFailed):
                action()

    @precondition(lambda self: self.flush is None)
    @rule()
    def begin_flush(self) -> None:
        self.flush = self.log.begin_flush()

    @precondition(lambda self: self.flush is not None)
    @rule()
    def finish_flush(self) -> None:
        assert self.flush is not None
        sync(self.flush)
        self.log.finish_flush(self.flush)
        self.flushed = self.flush.end.offset
        self.flush = None

    @rule()
    def checkpoint(self) -> None:
        self.recovery_point = self.log.flushed.offset

    @precondition(lambda self: self.sent and not self.pending)
    @rule(back=st.integers(0, 7))
    def retry(self, back: int) -> None:
        """Sends the batch again that was written `back` batches before the last batch. If the
        repeated batch is one of the last five batches, the log must return the batch's first
        offset, and store nothing. The log must refuse an older batch."""
        at = len(self.sent) - 1 - back
        if at < 0:
            return
        base, data = self.sent[at]
        if back < 5:
            assert put(self.log, bytearray(data)) == base
        else:
            with pytest.raises(OutOfOrderSequence):
                put(self.log, bytearray(data))

    @rule(power=st.booleans())
    def crash(self, power: bool) -> None:
        """Simulates a killed process or a power loss, and then opens the log again."""
        self.pending, self.flush = [], None
        del self.log
        if power:
            self.disk.lose_power(self.directory, self.chance)
        self.log = open_in(self.directory, CONFIG, recovery_point=self.recovery_point)
        end = self.log.log_end_offset
        assert self.flushed <= end <= len(self.sent)
        if not power:
            assert end == len(self.sent)
        self.sent = self.sent[:end]
        self.flushed = end

    @precondition(lambda self: self.flush is None and not self.pending)
    @rule()
    def stop_and_start(self) -> None:
        """Stops the log cleanly and starts it again. The log flushes everything when it stops, and
        relies on this flush when it starts."""
        flush = self.log.begin_flush()
        if flush is not None:
            sync(flush)
            self.log.finish_flush(flush)
        self.log.close_cleanly()
        self.flushed = self.recovery_point = len(self.sent)
        del self.log
        self.log = open_in(self.directory, CONFIG, clean=True, recovery_point=self.recovery_point)
        assert self.log.log_end_offset == len(self.sent)

    @invariant()
    def what_is_shown_is_what_was_sent(self) -> None:
        if not hasattr(self, "log"):
            return
        assert contents(self.log) == self.batches[: self.log.flushed.offset]
        assert self.log.flushed.offset >= self.flushed
        assert stored(self.directory)[: len(self.sent)] == self.batches


TestLogs = Logs.TestCase
TestLogs.settings = settings(stateful_step_count=40, phases=(Phase.generate,))
