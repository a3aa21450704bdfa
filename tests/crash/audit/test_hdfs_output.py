"""A recount (a second count of the rows in the loader's files) can read these files from a real
HDFS."""

from __future__ import annotations

import io
import json
from uuid import uuid4

import google_crc32c
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skidway.audit.counts.checksum import record_hash, total
from skidway.audit.output import Output, OutputConnection
from skidway.audit.recount import manifests, recount
from skidway.audit.recount.faults import Kind
from skidway.errors import Unreachable
from skidway.loader.store import Store, StoreConnection
from support.hdfs import Hdfs
from support.processes import free_port
from support.promises import promise

TOPIC = "dc1.logs"
ROWS = 200_000  # so many rows that the recount reads the file in several parts
SOURCE = {"cluster": "dc1", "cluster_id": "cid", "topic": "logs", "topic_id": "tid"}


@pytest.fixture
def url(hdfs: Hdfs) -> str:
    return f"{hdfs.url}/test-{uuid4().hex}"


def _write(store: Store, path: str, content: bytes) -> None:
    writer = store.create(path)
    writer.write(content)
    writer.close()


def _parquet() -> tuple[bytes, int]:
    """Returns a Parquet file with rows as the loader writes them, and the checksum of these
    rows."""
    first = pa.array(range(0, 10 * ROWS, 10), pa.int64())
    columns = {
        "_agent": pa.array([7] * ROWS, pa.int64()),
        "_file_id": pa.array([3] * ROWS, pa.int64()),
        "_offset": first,
        "_length": pa.array([10] * ROWS, pa.int64()),
        "_timestamp": pa.array([1] * ROWS, pa.int64()).cast(pa.timestamp("ms", "UTC")),
    }
    origin = [columns[x].to_numpy() for x in ("_agent", "_file_id", "_offset", "_length")]
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, row_group_size=20_000, compression="none")
    return buffer.getvalue(), total(record_hash(*origin))


def _commit(store: Store, path: str, staged: str, checksum: int, content: bytes = b"") -> None:
    file = {
        "kind": "rows", "path": path, "staged": staged, "rows": ROWS, "checksum": checksum,
        "length": len(content), "crc32c": google_crc32c.value(content),
    }  # fmt: skip
    manifest = {
        "format": 1, "number": 1, "producer": f"{store.url}/{TOPIC}", "source": SOURCE,
        "files": [file], "removed": [], "partitions": [],
        "audit": {"bucket_ms": 60_000, "deltas": []},
    }  # fmt: skip
    _write(store, f"_skidway/{TOPIC}/{1:020}.json", json.dumps(manifest).encode())


def _recount(output: Output) -> recount.Recounted:
    [topic] = recount.topics(output)
    return recount.recount(output, manifests.head(output, topic))


@pytest.mark.java
@pytest.mark.parametrize("moved", [True, False])
def test_rows_on_hdfs_are_counted(url: str, moved: bool) -> None:
    """The recount counts the rows of a committed file, whether or not the file has already been
    moved from the staging directory to its final path."""
    store = StoreConnection(url).store()
    content, checksum = _parquet()
    path, staged = f"{TOPIC}/dt=1970-01-01/a.parquet", f"_skidway/{TOPIC}/staging/1-x/a.parquet"
    _write(store, path if moved else staged, content)
    _commit(store, path, staged, checksum, content)
    found = _recount(OutputConnection(url).output())
    assert (found.rows, found.faults.kept) == (ROWS, [])
    assert sum(sums.count for sums in found.sums.values()) == ROWS


@pytest.mark.java
def test_a_file_that_is_gone_is_named(url: str) -> None:
    """If a file of a committed load is missing, a recount of the output's rows names the file and
    continues. If the output is empty, the recount finds no topics."""
    store = StoreConnection(url).store()
    _commit(store, "gone.parquet", "staged.parquet", 0)
    found = _recount(OutputConnection(url).output())
    assert found.rows == 0
    [fault] = found.faults.kept
    assert (fault.kind, fault.path) == (Kind.GONE, "gone.parquet")
    assert OutputConnection(url).output().read("nothing.json") is None
    assert recount.topics(OutputConnection(f"{url}-empty").output()) == []


@promise("6 recount")
@pytest.mark.java
def test_a_copy_and_a_changed_byte_are_named(url: str) -> None:
    """On HDFS, as in a local directory, a recount of the rows reports a file of rows that no
    manifest of a load lists, and a file in which a byte was changed after the commit."""
    store = StoreConnection(url).store()
    content, checksum = _parquet()
    path = f"{TOPIC}/dt=1970-01-01/hour=00/part-1-0-0.parquet"
    _write(store, path, content)
    _write(store, f"{path}.copy", content)
    _commit(store, path, "staged.parquet", checksum, content)
    assert [x.kind for x in _recount(OutputConnection(url).output()).faults.kept] == [Kind.TWICE]
    store.delete(f"{path}.copy")
    _write(store, path, content[:1000] + bytes([content[1000] ^ 1]) + content[1001:])
    assert [x.kind for x in _recount(OutputConnection(url).output()).faults.kept] == [Kind.DAMAGED]


def test_a_name_node_that_is_not_there_is_one_sentence() -> None:
    """If the NameNode does not answer, a recount of the rows raises Unreachable with one
    sentence."""
    output = OutputConnection(f"hdfs://127.0.0.1:{free_port()}/logs").output()
    with pytest.raises(Unreachable, match="cannot list") as caught:
        recount.topics(output)
    assert "\n" not in str(caught.value)
