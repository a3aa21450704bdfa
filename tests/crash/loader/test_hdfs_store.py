"""A store on HDFS, with a real NameNode and a real DataNode, fulfils the contract for all stores in
support.store_contract."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from hdfs_native import Client

from skidway.errors import SkidwayError, Unreachable
from skidway.loader.store import Modes, Store, StoreConnection
from support.hdfs import Hdfs
from support.processes import free_port
from support.store_contract import StoreContract
from tests.crash.loader.conftest import Loading, fill, hdfs_identities, lines

pytestmark = pytest.mark.java


class TestHdfsStore(StoreContract):
    """The store is a folder on HDFS that only this test uses."""

    @pytest.fixture
    def store(self, hdfs: Hdfs) -> Store:
        return StoreConnection(f"{hdfs.url}/test-{uuid4().hex}").store()

    def test_its_url_names_server_and_folder(self, hdfs: Hdfs) -> None:
        """A store's URL names the server and the folder, so that tasks on other machines can open
        the same folder."""
        assert StoreConnection(f"{hdfs.url}/logs/").store().url == f"{hdfs.url}/logs"


def modes(client: Any, folder: str) -> tuple[set[int], set[int]]:
    """Returns the permissions of all files, and those of all directories, from `folder` on."""
    files, directories = set(), {client.get_file_info(folder).permission}
    for each in client.list_status(folder, recursive=True):
        (directories if each.isdir else files).add(each.permission)
    return files, directories


@pytest.mark.parametrize("given", [Modes(), Modes(0o644, 0o755), Modes(0o600, 0o700)])
def test_what_a_load_makes_has_its_modes(loading: Loading, hdfs: Hdfs, given: Modes) -> None:
    """Everything that loads make on HDFS (rows, manifests, tables, directories, in folders that
    others made too) has the permissions of the settings, whoever calls: by default nobody outside
    of the group can read it."""
    folder = f"/others/{uuid4().hex}"
    client = Client(hdfs.url)
    client.mkdirs(folder, 0o777, create_parent=True)
    on_hdfs = loading.beside(f"{hdfs.url}{folder}/logs")
    fill(on_hdfs, 0, 300)
    words = [f"output.file.mode={given.file:04o}", f"output.directory.mode={given.directory:o}"]
    on_hdfs.loaded(*(words if given != Modes() else []))
    assert modes(client, f"{folder}/logs") == ({given.file}, {given.directory})
    assert hdfs_identities(on_hdfs) == lines(300)


def test_in_safe_mode_nothing_is_written(hdfs: Hdfs) -> None:
    """If HDFS is in safe mode, a write raises Unreachable with one sentence that mentions the safe
    mode, and writes nothing. After safe mode has ended, writes succeed."""
    store = StoreConnection(f"{hdfs.url}/safe-{uuid4().hex}").store()
    with hdfs.safe_mode():
        for write in (
            lambda: store.create("rows.parquet").close(),
            lambda: store.create_if_absent("manifest.json", b"{}", "scratch"),
        ):
            with pytest.raises(Unreachable, match="safe mode") as caught:
                write()
            assert "\n" not in str(caught.value)
        assert store.read("manifest.json") is None
    assert store.create_if_absent("manifest.json", b"{}", "scratch")


def test_a_name_node_that_is_not_there(nobody: Future[int | None]) -> None:
    """If no NameNode answers, an operation raises Unreachable with one sentence."""
    with pytest.raises(SkidwayError) as caught:
        nobody.result(300)
    assert isinstance(caught.value, Unreachable)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module", autouse=True)
def nobody() -> Iterator[Future[int | None]]:
    """Starts an operation on a store without a NameNode. The operation gives up after 20 s;
    meanwhile other tests run."""
    store = StoreConnection(f"hdfs://127.0.0.1:{free_port()}/logs").store()
    with ThreadPoolExecutor(1) as thread:
        yield thread.submit(store.length, "file")
