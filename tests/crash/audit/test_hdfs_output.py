"""The loader's output on a real HDFS, as a recount reads it."""

from __future__ import annotations

import io
import json
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from audit import recount
from audit.checksum import record_hash, total
from audit.output import Output, OutputUnreadable, open_output
from loader.store import Store, open_store
from skidway.errors import Unreachable
from support.hdfs import Hdfs
from support.processes import free_port

TOPIC = "dc1.logs"
ROWS = 200_000  # several pieces of a file
SOURCE = {"cluster": "dc1", "cluster_id": "cid", "topic": "logs", "topic_id": "tid"}


@pytest.fixture
def url(hdfs: Hdfs) -> str:
    return f"{hdfs.url}/test-{uuid4().hex}"


def _write(store: Store, path: str, content: bytes) -> None:
    writer = store.create(path)
    writer.write(content)
    writer.close()


def _parquet() -> tuple[bytes, int]:
    """Rows as the loader writes them, and their checksum."""
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


def _commit(store: Store, path: str, staged: str, checksum: int) -> None:
    file = {"kind": "rows", "path": path, "staged": staged, "rows": ROWS, "checksum": checksum}
    manifest = {
        "format": 1, "number": 1, "producer": f"{store.url}/{TOPIC}", "source": SOURCE,
        "files": [file], "removed": [], "audit": {"bucket_ms": 60_000},
    }  # fmt: skip
    _write(store, f"_skidway/{TOPIC}/{1:020}.json", json.dumps(manifest).encode())


def _recount(output: Output) -> recount.Recounted:
    [topic] = recount.topics(output)
    return recount.recount(output, recount.committed(output, topic))


@pytest.mark.crash
@pytest.mark.java
@pytest.mark.parametrize("moved", [True, False])
def test_rows_on_hdfs_are_counted(url: str, moved: bool) -> None:
    """Where the file is in place, and where the loader ended before it moved it."""
    store = open_store(url)
    content, checksum = _parquet()
    path, staged = f"{TOPIC}/dt=1970-01-01/a.parquet", f"_skidway/{TOPIC}/staging/1-x/a.parquet"
    _write(store, path if moved else staged, content)
    _commit(store, path, staged, checksum)
    found = _recount(open_output(url))
    assert (found.rows, found.problems) == (ROWS, [])
    assert sum(sums.count for sums in found.sums.values()) == ROWS


@pytest.mark.crash
@pytest.mark.java
def test_a_file_that_is_gone_is_named(url: str) -> None:
    """The recount goes on and says which; an empty output has no topics."""
    store = open_store(url)
    _commit(store, "gone.parquet", "staged.parquet", 0)
    found = _recount(open_output(url))
    assert found.rows == 0
    [problem] = found.problems
    assert "gone.parquet cannot be read" in problem
    with pytest.raises(OutputUnreadable, match=r"nothing\.json is not there"):
        open_output(url).read("nothing.json")
    assert recount.topics(open_output(f"{url}-empty")) == []


@pytest.mark.crash
def test_a_name_node_that_is_not_there_is_one_sentence() -> None:
    """With the exit status of what is unreachable."""
    output = open_output(f"hdfs://127.0.0.1:{free_port()}/logs")
    with pytest.raises(Unreachable, match="cannot read") as caught:
        recount.topics(output)
    assert "\n" not in str(caught.value)
