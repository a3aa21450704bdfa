"""The writer writes a file to HDFS even if some DataNodes do not answer. The HDFS client is a
fake."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import pytest

from skidway.audit.output import StoreFailed, StoreUnreachable
from skidway.audit.output.hdfs.answer import Answers
from skidway.loader.store import hdfs_writer
from skidway.loader.store.hdfs_writer import BEGINNINGS_MAX, WRITE_BYTES, HdfsWriter

REFUSED = OSError("Connection refused (os error 111)")
QUOTA = RuntimeError('RPCError("a.DSQuotaExceededException", "The DiskSpace quota is exceeded")')


class File:
    """A file of the fake HDFS client. Each write takes the next of the given errors and fails with
    it. If this error is None, or if no error is left, the write succeeds."""

    def __init__(self, errors: Iterator[Exception | None]) -> None:
        self._errors = errors
        self.content, self.closed = b"", False

    def write(self, data: bytes) -> int:
        error = next(self._errors, None)
        if error is not None:
            raise error
        self.content += data
        return len(data)

    def hsync(self) -> None: ...

    def close(self) -> None:
        self.closed = True


class Made:
    """Creates the files of a writer, and keeps them in `files`. HDFS would have only the last of
    these files, because each one overwrites the one before."""

    def __init__(self, *errors: Exception | None) -> None:
        self._errors = iter(errors)
        self.files: list[File] = []

    def __call__(self) -> Any:
        self.files.append(File(self._errors))
        return self.files[-1]


def test_a_file_begins_again_where_its_data_node_does_not_answer() -> None:
    """The NameNode may choose a dead DataNode for a new file. The loader's writer then begins the
    file again, so that the file has all bytes exactly once."""
    made = Made(REFUSED, REFUSED)
    writer = HdfsWriter("hdfs://nn/f", made, Answers())
    writer.write(b"one")
    writer.write(b"two")
    writer.close()
    assert [each.content for each in made.files] == [b"", b"", b"onetwo"]
    assert made.files[-1].closed


def test_a_file_that_never_begins_is_given_up() -> None:
    """If no DataNode answers, the loader's writer gives up after a limited number of attempts. It
    does not begin a file again if the NameNode refuses the bytes. It does not begin a large file
    again either, because it no longer has the first part of the file in memory."""
    made = Made(*[REFUSED] * 100)
    writer = HdfsWriter("hdfs://nn/f", made, Answers())
    writer.write(b"one")
    with pytest.raises(StoreUnreachable, match="Connection refused"):
        writer.close()
    assert len(made.files) == BEGINNINGS_MAX
    made = Made(QUOTA)
    writer = HdfsWriter("hdfs://nn/f", made, Answers())
    writer.write(b"one")
    with pytest.raises(StoreFailed, match="quota"):
        writer.close()
    assert len(made.files) == 1
    made = Made(None, REFUSED)
    writer = HdfsWriter("hdfs://nn/f", made, Answers())
    writer.write(bytes(WRITE_BYTES))
    writer.write(b"more")
    with pytest.raises(StoreUnreachable):
        writer.close()
    assert len(made.files) == 1


def test_a_file_begins_again_after_the_name_node_was_away_for_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the NameNode does not answer while a file begins again, the loader's writer waits and
    tries again. It gives up at once if the NameNode refuses the file."""
    pauses: list[float] = []
    monkeypatch.setattr("skidway.loader.store.hdfs_writer.time.sleep", pauses.append)
    made = Made(REFUSED)
    answers: list[Exception | None] = [None, REFUSED, REFUSED, None]

    def create() -> Any:
        error = answers.pop(0)
        if error is not None:
            raise error
        return made()

    writer = HdfsWriter("hdfs://nn/f", create, Answers())
    writer.write(b"one")
    writer.close()
    assert [each.content for each in made.files] == [b"", b"one"]
    assert pauses == [hdfs_writer.CREATION_PAUSE_S] * 2
    made, answers = Made(REFUSED), [None, QUOTA]
    writer = HdfsWriter("hdfs://nn/f", create, Answers())
    writer.write(b"one")
    with pytest.raises(StoreFailed, match="quota"):
        writer.close()
    assert (answers, len(pauses)) == ([], 2)


class Stuck(File):
    """A file whose hsync does not return while the test runs."""

    ended = Event()

    def hsync(self) -> None:
        self.ended.wait(60)


def test_a_file_begins_again_where_its_sync_does_not_return(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If a later DataNode in the write pipeline is dead, the client's hsync never returns. If the
    file is small, the writer begins it again. If the file is large, the writer gives up with an
    error."""
    monkeypatch.setattr(hdfs_writer, "SYNC_S", 0.01)
    monkeypatch.setattr(hdfs_writer, "LARGE_SYNC_S", 0.01)
    files = [Stuck(iter(())), Stuck(iter(())), File(iter(()))]
    writer = HdfsWriter("hdfs://nn/f", iter(files).__next__, Answers())  # type: ignore[arg-type]
    writer.write(b"one")
    writer.close()
    assert (files[-1].content, [each.closed for each in files]) == (b"one", [False, False, True])
    writer = HdfsWriter("hdfs://nn/f", iter(files).__next__, Answers())  # type: ignore[arg-type]
    writer.write(bytes(WRITE_BYTES))
    with pytest.raises(StoreUnreachable, match="no answer"):
        writer.close()
    Stuck.ended.set()


def test_how_long_a_writer_waits_for_syncs_is_bounded() -> None:
    """The loader's writer waits for each hsync only for a certain time. After every three hsyncs
    that did not return, it doubles this time, up to a limit. Attempts that fail at once, because a
    DataNode refuses the connection, do not make the wait longer."""
    waits: list[float] = []

    class Never(Answers):
        def get(self, call: Callable[[], Any], within_s: float | None = None) -> Any:
            if within_s is None:
                return call()
            waits.append(within_s)
            raise TimeoutError("no answer")

    writer = HdfsWriter("hdfs://nn/f", Made(REFUSED, REFUSED), Never())
    writer.write(b"one")
    with pytest.raises(StoreUnreachable, match="no answer"):
        writer.close()
    assert waits[:15] == [each for each in (3.0, 6.0, 12.0, 24.0, 48.0) for _ in range(3)]
    assert (len(waits), set(waits[15:])) == (BEGINNINGS_MAX - 2, {60.0})
