"""Tests the store in memory and the local store (a directory of this machine): what every store
must do, and the special properties of the local store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from skidway.audit.output import StoreFailed, StoreUnreachable
from skidway.audit.output.hdfs import client
from skidway.errors import ConfigurationRefused
from skidway.loader.store import Modes, Store, StoreConnection
from skidway.loader.store.local import LocalStore
from support.memory_store import MemoryStore
from support.store_contract import StoreContract, put


class TestLocalStore(StoreContract):
    """Tests that the store in a directory of this machine does what every store must do."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return LocalStore(str(tmp_path / "root"))


class TestMemoryStore(StoreContract):
    """Tests that the store in memory, which the model tests use, does what every store must do."""

    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


def test_a_relative_root_is_named_by_its_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative root becomes absolute in the store's URL, so that tasks that run in other
    directories open the same store."""
    monkeypatch.chdir(tmp_path)
    assert StoreConnection("out").store().url == str(tmp_path / "out")
    assert StoreConnection(f"file://{tmp_path}/out").store().url == str(tmp_path / "out")


def test_a_store_that_stays_remembers_few_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store remembers which directories it has created. Even if a process uses the store for days
    and writes to very many directories, the store remembers only a limited number of them."""
    monkeypatch.setattr("skidway.loader.store.local.MADE_KEPT_MAX", 2)
    store = LocalStore(str(tmp_path))
    for number in (1, 2, 3, 4, 5, 1):
        put(store, f"{number}/{uuid4().hex}", b"rows")
        assert len(store._made) <= 2


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/logs",
        "gs://x/y",
        "hdfs://",
        "hdfs://host:1",
        "hdfs://host:port/logs",
        "hdfs://host:65536/logs",
        "hdfs://[::1/logs",
        "hdfs:/host:8020/logs",
        "file:/srv/logs",
        "file://localhost/srv/logs",
        "",
    ],
)
def test_other_stores_are_refused(url: str) -> None:
    """If several processes create a file of the same name, a store must let only one succeed. The
    URL of a store that does not ensure this, or a URL without a path or with a port that is no
    number, is refused as a configuration error."""
    with pytest.raises(ConfigurationRefused, match=r"^output: "):
        StoreConnection(url).store()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("modes", [Modes(), Modes(0o664, 0o775)])
def test_modes_do_not_depend_on_the_umask(tmp_path: Path, umask: int, modes: Modes) -> None:
    """Every file and directory that a store makes has the permissions that it was opened with,
    whatever the umask is. Directories go on passing their group on, if the directory above does."""
    root = tmp_path / "root"
    root.mkdir()
    root.chmod(0o2700)
    before = os.umask(umask)
    try:
        store = StoreConnection(str(root), modes=modes).store()
        put(store, "a/b/file", b"")
        assert store.create_if_absent("_skidway/t/manifest.json", b"{}", "_skidway/scratch")
        assert store.rename("a/b/file", "c/d/file")
        put(store, "old", b"")
        assert store.replace("old", "e/new")
    finally:
        os.umask(before)
    made = [(each.is_dir(), each.stat().st_mode & 0o7777) for each in root.rglob("*")]
    assert {mode for is_directory, mode in made if is_directory} == {modes.directory | 0o2000}
    assert {mode for is_directory, mode in made if not is_directory} == {modes.file}
    assert root.stat().st_mode & 0o7777 == 0o2700


def test_a_move_killed_between_its_steps_leaves_both_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a process is killed during a move, between link and unlink, the complete file has both
    names afterwards."""
    store = LocalStore(str(tmp_path))
    put(store, "source", b"rows")
    monkeypatch.setattr(Path, "unlink", _dies)
    with pytest.raises(_Died):
        store.rename("source", "d/target")
    assert (store.read("source"), store.read("d/target")) == (b"rows", b"rows")


def test_the_target_is_durable_before_the_source_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the store moves a file, it syncs the directory of the new name before it removes the old
    name, so that a power cut cannot remove both names."""
    store = LocalStore(str(tmp_path))
    put(store, "source", b"rows")
    (tmp_path / "d").mkdir()
    synced: list[Path] = []
    monkeypatch.setattr(
        "skidway.loader.store.local.fsync_directory",
        lambda path: synced.append(path) if (tmp_path / "source").exists() else None,
    )
    store.rename("source", "d/target")
    assert tmp_path / "d" in synced


def test_a_file_is_synced_before_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is synced before it is closed, so that everything that a task reports as written is on
    disk."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(descriptor))
    writer = LocalStore(str(tmp_path)).create("file")
    writer.write(b"rows")
    before = len(synced)
    writer.close()
    assert len(synced) == before + 1


def test_the_names_in_a_directory_are_synced_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The method `sync` makes the names of the files in the given directories durable. A commit
    needs this for the files in its staging directory. A directory that does not exist is
    skipped."""
    store = LocalStore(str(tmp_path))
    put(store, "staging/rows", b"rows")
    synced: list[Path] = []
    monkeypatch.setattr("skidway.loader.store.local.fsync_directory", synced.append)
    store.sync(["staging", "no/such"])
    assert synced == [tmp_path / "staging"]


def test_an_output_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    """If a directory of the store cannot be made, the error is one sentence with this directory and
    the reason."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreFailed, match=r"cannot make the directory .*/file: File exists"):
        LocalStore(str(tmp_path / "file" / "root")).create("x")
    with pytest.raises(StoreFailed, match=r"cannot make the directory /proc/x: "):
        LocalStore("/proc/x/y").create_if_absent("z", b"", "scratch")


@pytest.mark.parametrize("below", ["", "/root/deep"])
def test_an_output_that_is_a_file_is_refused(below: str, tmp_path: Path) -> None:
    """An output that is a file, or below a file, is refused as a configuration error that names the
    file."""
    file = tmp_path / "file"
    file.write_bytes(b"")
    for url in (f"{file}{below}", f"file://{file}{below}"):
        with pytest.raises(ConfigurationRefused, match=f"^output: {file} is not a directory$"):
            StoreConnection(url).store()
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "dangling").symlink_to(tmp_path / "not_mounted_yet")
    for link in ("link", "dangling"):
        assert StoreConnection(f"{tmp_path}/{link}{below}").store().names("no/such") == []


def test_files_that_vanish_while_listing_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that another loader moves during a listing is left out of the listing."""
    store = LocalStore(str(tmp_path))
    put(store, "d/a", b"1")
    put(store, "d/b", b"2")

    def walk(path: Path, **_: object) -> Iterator[tuple[str, list[str], list[str]]]:
        yield str(path), [], ["a", "b"]

    (tmp_path / "d/b").unlink()
    monkeypatch.setattr(os, "walk", walk)
    assert [entry.path for entry in store.files("d")] == ["d/a"]


def test_a_directory_that_is_still_written_to_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load deletes the staging directory of another load that lost the race for the same number.
    The deletion succeeds even if a task of the losing load creates a file in the directory
    meanwhile."""
    store = LocalStore(str(tmp_path))
    put(store, "staging/a", b"1")
    rmdir = os.rmdir

    def late(*arguments: Any, **more: Any) -> None:
        monkeypatch.setattr(os, "rmdir", rmdir)
        put(store, "staging/late", b"2")
        rmdir(*arguments, **more)

    monkeypatch.setattr(os, "rmdir", late)
    store.delete("staging")
    assert not (tmp_path / "staging").exists()


class _Died(BaseException):
    pass


def _dies(self: Path, missing_ok: bool = False) -> None:
    raise _Died


class Silent:
    """A fake HDFS client, which cannot resolve the address of the NameNode."""

    def __init__(self, server: str, settings: dict[str, str], directory: str | None) -> None:
        pass

    def get_file_info(self, path: str) -> None:
        raise OSError("failed to lookup address information: Name or service not known\nbacktrace")


def test_a_namenode_that_has_no_address_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a NameNode's address cannot be resolved, the error says that this NameNode is unreachable
    (exit status 3)."""
    monkeypatch.setattr(client, "Client", Silent)
    with pytest.raises(
        StoreUnreachable, match=r"//namenode:8020/logs/_skidway: no connection .* failed to"
    ):
        StoreConnection("hdfs://namenode:8020/logs").store().length("_skidway")
