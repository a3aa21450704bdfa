"""Tests of the behaviour that every kind of the loader's store (local files, HDFS ...) promises.
The test class of each kind inherits these tests, and provides the fixture `store`."""

from __future__ import annotations

import io
import threading

from skidway.audit.output import FileEntry
from skidway.loader.store import Store


def put(store: Store, path: str, data: bytes) -> None:
    """Writes a new file with this content and closes it."""
    writer = store.create(path)
    writer.write(data)
    writer.close()


class StoreContract:
    """Tests of the fixture `store`, which is a store with an empty root."""

    def test_a_file_holds_what_was_written(self, store: Store) -> None:
        """A closed file has all bytes that were written, whatever the sizes of the writes were."""
        writer = store.create("a/b/file")
        writer.write(b"one")
        writer.write(memoryview(b"two"))
        writer.close()
        assert store.length("a/b/file") == 6
        assert store.read("a/b/file") == b"onetwo"

    def test_an_empty_file_is_there(self, store: Store) -> None:
        """An empty file has length 0, and a missing file has no length."""
        put(store, "empty", b"")
        assert (store.length("empty"), store.read("empty")) == (0, b"")

    def test_what_is_not_there_is_none(self, store: Store) -> None:
        """A missing file is read as None, and a missing directory is listed as empty. Neither is an
        error."""
        assert store.length("no/such") is None
        assert store.read("no/such") is None
        assert store.open("no/such") is None
        assert list(store.files("no")) == []
        assert store.names("no") == []
        store.delete("no/such")

    def test_large_files(self, store: Store) -> None:
        """A large file that was written in many steps has all its bytes when it is read."""
        pieces = [bytes([index]) * 1_000_003 for index in range(12)]
        writer = store.create("large")
        for piece in pieces:
            writer.write(piece)
        writer.close()
        assert store.read("large") == b"".join(pieces)

    def test_a_file_is_read_in_pieces(self, store: Store) -> None:
        """An open file can be read from any position, because Parquet files are read in this way.
        Opening a missing file returns None."""
        put(store, "d/file", b"0123456789")
        opened = store.open("d/file")
        assert opened is not None
        with opened:
            assert (opened.read(4), opened.tell()) == (b"0123", 4)
            assert opened.seek(-3, io.SEEK_END) == 7
            assert (opened.read(), opened.read()) == (b"789", b"")
        assert store.open("d/none") is None

    def test_writing_again_replaces(self, store: Store) -> None:
        """Writing a file replaces an older file of the same name, and does not append to it."""
        put(store, "file", b"a long leftover")
        put(store, "file", b"new")
        assert store.read("file") == b"new"

    def test_a_name_is_taken_once(self, store: Store) -> None:
        """The second `create_if_absent` with the same name returns False and changes nothing. No
        temporary file is left."""
        assert store.create_if_absent("dir/name", b"first", "scratch")
        assert not store.create_if_absent("dir/name", b"second", "scratch")
        assert store.read("dir/name") == b"first"
        assert store.names("dir") == ["name"]

    def test_of_many_at_once_one_takes_the_name(self, store: Store) -> None:
        """If several callers create the same name at the same time, exactly one succeeds, and the
        file has the content that this caller wrote."""
        took: list[int] = []
        start = threading.Barrier(4)

        def attempt(number: int) -> None:
            start.wait()
            if store.create_if_absent("once", str(number).encode(), f"scratch/{number}"):
                took.append(number)

        threads = [threading.Thread(target=attempt, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(took) == 1
        assert store.read("once") == str(took[0]).encode()

    def test_a_move_makes_directories_and_leaves_nothing(self, store: Store) -> None:
        """After `rename`, the file exists only at the target path. Missing directories of the
        target are created."""
        put(store, "staging/x", b"rows")
        assert store.rename("staging/x", "t/dt=2026-01-01/hour=00/part")
        assert store.length("staging/x") is None
        assert store.read("t/dt=2026-01-01/hour=00/part") == b"rows"

    def test_a_move_never_overwrites(self, store: Store) -> None:
        """`rename` refuses a target path at which a file exists, and both files stay unchanged."""
        put(store, "source", b"new")
        put(store, "target", b"old")
        assert not store.rename("source", "target")
        assert (store.read("source"), store.read("target")) == (b"new", b"old")

    def test_a_replacement_overwrites(self, store: Store) -> None:
        """After `replace`, the source file exists only at the target path, in place of the file
        that was there. If the source file is missing, the target file stays unchanged."""
        put(store, "staging/new", b"new")
        assert store.replace("staging/new", "topic/file")
        put(store, "staging/newer", b"newer")
        assert store.replace("staging/newer", "topic/file")
        assert not store.replace("staging/newer", "topic/file")
        assert store.length("staging/newer") is None
        assert store.read("topic/file") == b"newer"

    def test_a_move_of_nothing_is_refused(self, store: Store) -> None:
        """`rename` of a missing file returns False and creates nothing. The caller must then find
        out where the file is."""
        assert not store.rename("gone", "target")
        assert store.length("target") is None

    def test_listings(self, store: Store) -> None:
        """`files` lists all files below a directory, with their lengths and with their paths from
        the root. `names` lists only the names directly in the directory."""
        put(store, "d/b/2", b"22")
        put(store, "d/a/1", b"1")
        put(store, "d/0", b"")
        put(store, "elsewhere", b"x")
        found = sorted(store.files("d"), key=lambda entry: entry.path)
        assert found == [FileEntry("d/0", 0), FileEntry("d/a/1", 1), FileEntry("d/b/2", 2)]
        assert store.names("d") == ["0", "a", "b"]

    def test_deleting_a_directory_takes_all_in_it(self, store: Store) -> None:
        """`delete` removes a file, or a directory with everything below it, and nothing else."""
        put(store, "d/a/1", b"1")
        put(store, "d/2", b"2")
        put(store, "dd", b"3")
        store.delete("d/2")
        assert store.length("d/2") is None
        store.delete("d")
        assert list(store.files("d")) == []
        assert store.read("dd") == b"3"

    def test_sync_of_a_directory(self, store: Store) -> None:
        """`sync` makes the names in a directory durable. It raises no error, even if the directory
        is missing."""
        put(store, "d/file", b"1")
        store.sync(["d", "no/such"])
        assert store.length("d/file") == 1

    def test_an_abandoned_file_harms_nobody(self, store: Store) -> None:
        """If a writer calls `abandon` when its file is only half written, a file of the same name
        can be written afterwards."""
        writer = store.create("file")
        writer.write(b"half")
        writer.abandon()
        put(store, "file", b"whole")
        assert store.read("file") == b"whole"
