"""`skidway load reload` loads hours again from the topic's log. The tests use a real broker and
registry, and one reload runs on a real Spark."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from skidway.audit.output import OutputConnection
from skidway.audit.recount import manifests, recount
from skidway.kafka.client import Client, ConfigChanges
from skidway.loader.state import layout
from skidway.loader.store import StoreConnection
from support.hdfs import Hdfs
from support.processes import eventually
from support.promises import promise
from tests.crash.loader.conftest import HERE, ON_SPARK, START_MS, Loading, fill, identities, lines
from tests.crash.loader.test_load import expired

pytestmark = pytest.mark.java

FIRST = START_MS // layout.HOUR_MS
HOUR_LINES = ((FIRST + 1) * layout.HOUR_MS - START_MS) // 1000
"""The number of the first line in the second hour. The lines' times are one second apart."""


def hours(count: int = 1) -> list[str]:
    """Returns the options of `skidway load reload` that select the first `count` hours with
    lines."""
    return ["--from", layout.hour_text(FIRST), "--to", layout.hour_text(FIRST + count)]


def reloaded(loading: Loading, count: int = 1, *more: str, code: int = 0) -> dict[str, Any]:
    """Runs `skidway load reload` for the first `count` hours with lines. Asserts that its exit
    status is `code`. Returns the JSON document that the command prints."""
    words = [*loading.arguments(verb="reload"), loading.topic, *hours(count), *more]
    done = loading.spark.run(words)
    assert done.returncode == code, done.stderr[-4000:]
    return dict(json.loads(done.stdout))


def faults(output: str) -> list[str]:
    """Runs a recount, which counts the rows in the output's files again. Returns the faults that it
    finds, as sentences."""
    opened = OutputConnection(output).output()
    (topic,) = recount.topics(opened)
    found = recount.recount(opened, manifests.head(opened, topic))
    return [each.sentence for each in found.faults.kept]


def files(loading: Loading, hour: int, pattern: str) -> list[Path]:
    folder = Path(loading.output) / loading.topic / layout.hour_folder(FIRST + hour)
    return sorted(folder.glob(pattern))


def counts(loading: Loading) -> Counter[str]:
    """Returns the sums of the counts that all loads have published for the topic: the numbers of
    records, rejects and repeats.
    """
    total = Counter[str]()
    for delta in loading.cluster.deltas(f"{loading.output}/{loading.topic}"):
        for each in delta.counts:
            total.update(count=each.count, rejects=each.rejects, repeats=each.repeats)
    return total


@promise("5 reload")
def test_lost_files_come_back(loading: Loading) -> None:
    """A reload of an hour (`skidway load reload`) restores files that were deleted or damaged, with
    the same rows as before. This works for files of the newest load, for files of older loads, and
    after a compaction, which has combined small files. Repeated records in the log still do not
    become rows, and further loads succeed."""
    for first in range(0, 3600, 900):
        fill(loading, max(0, first - 100), 1000)
        loading.loaded()
    before, counted = loading.rows(), counts(loading)
    assert identities(before) == lines(3600)
    files(loading, 0, "part-1-0-*")[0].unlink()
    damaged = files(loading, 0, "part-2-1-*")[0]
    damaged.write_bytes(damaged.read_bytes()[:-100])
    assert len(faults(loading.output)) == 2
    loading.way = ON_SPARK
    done = reloaded(loading)
    loading.way = HERE
    assert (done["records"], done["problems"]) == (2 * HOUR_LINES, [])
    assert (loading.rows(), faults(loading.output)) == (before, [])
    assert done["hours"] == [layout.hour_text(FIRST)]
    for each in files(loading, 0, "*.parquet"):
        each.unlink()  # without these files, the next load ends with status 65
    assert loading.run().returncode == 65
    assert reloaded(loading, 2)["problems"] == []
    assert (loading.rows(), faults(loading.output)) == (before, [])
    assert counts(loading) == counted
    compact = [*loading.arguments(verb="compact"), "--until", "0s"]
    assert loading.spark.run(compact).returncode == 0
    for hour in (0, 1):
        for each in files(loading, hour, "*.parquet"):
            each.write_bytes(b"damaged")
    assert reloaded(loading, 2)["problems"] == []
    assert (loading.rows(), faults(loading.output)) == (before, [])
    fill(loading, 3500, 200)
    summary = loading.loaded()
    assert (summary["rows"], summary["repeats"]) == (200, 200)
    assert identities(loading.rows()) == lines(3700)


@promise("5 reload")
def test_rejects_become_rows(loading: Loading) -> None:
    """If records were rejected because the agent's announcement of their file was missing, `skidway
    load reload` turns these records into rows after the announcement has arrived. Afterwards the
    loader's published counts contain the same number of records as before, and fewer rejects.
    Records become rows even if the files of rejects were deleted. Then the reload cannot know how
    many rejects of each bucket become rows. So the published number of rejects stays as it was, and
    a note says so."""
    fill(loading, 0, 500)
    loading.cluster.send(loading.topic, 0, 0, 300, file=3)
    loading.cluster.send(loading.topic, 0, 300, 100, file=4)
    assert loading.loaded("announce.wait.ms=0")["rejects"] == 400
    loading.cluster.announce(loading.topic, 3)
    done = reloaded(loading)
    assert (done["rejects_before"], done["rejects_after"]) == (400, 100)
    assert len(loading.rows()) == 1300
    assert faults(loading.output) == []
    assert counts(loading) == Counter(count=1400, rejects=100)
    for each in loading.state("rejects/*/*/*"):
        each.unlink()
    loading.cluster.announce(loading.topic, 4)
    done = reloaded(loading)
    assert (done["rejects_before"], done["rejects_after"]) == (100, 0)
    assert len(loading.rows()) == 1400
    assert (faults(loading.output), done["problems"]) == ([], [])
    assert counts(loading) == Counter(count=1400, rejects=100)
    (note,) = done["notes"]
    assert note.endswith("the audit's number of rejects of these hours stays as it was")


@promise("5 reload")
@pytest.mark.parametrize("moment", ["staging/*/rows-*", "00000000000000000004.json"])
def test_a_reload_killed_and_begun_again(loading: Loading, moment: str) -> None:
    """If a reload of an hour is killed while its tasks write, or right after its commit, every row
    exists once after the next load, and the next reload succeeds."""
    for at in range(3):
        fill(loading, 1000 * at, 1000)
        loading.loaded()
    program = loading.start_verb("reload", loading.topic, *hours(2))
    eventually(lambda: loading.state(moment) or not program.running)
    program.kill()
    fill(loading, 3000, 100)
    loading.loaded()
    assert identities(loading.rows()) == lines(3100)
    assert faults(loading.output) == []
    assert reloaded(loading, 2)["records"] == 6200
    assert identities(loading.rows()) == lines(3100)
    assert (faults(loading.output), counts(loading)["count"]) == ([], 6200)


@promise("5 reload")
def test_loads_beside_a_reload(loading: Loading) -> None:
    """If loads run at the same time as a reload of an hour, either the reload commits first, or a
    load commits first and the reload begins again. In the end every row exists once."""
    fill(loading, 0, 1000)
    loading.loaded()
    program = loading.start_verb("reload", loading.topic, *hours(2))
    sent = 1000
    while program.running:
        fill(loading, sent, 100)
        sent += 100
        loading.loaded()
    loading.loaded()
    assert identities(loading.rows()) == lines(sent)
    assert faults(loading.output) == []
    # The reload covers only the lines of the first two hours. On a slow machine the test has also
    # sent lines of a third hour.
    in_hours = min(sent, HOUR_LINES + 3600)
    assert reloaded(loading, 2)["records"] == 2 * in_hours
    assert (identities(loading.rows()), faults(loading.output)) == (lines(sent), [])


@promise("5 reload")
def test_a_reload_of_expired_offsets_changes_nothing(loading: Loading) -> None:
    """If the broker has deleted records of an hour, a reload of this hour reports their partition
    and offsets, and changes no file."""
    fill(loading, 0, 1000)
    loading.loaded()
    with Client(loading.cluster.broker) as client:
        changes = ConfigChanges(set={"retention.ms": "1"})
        assert client.alter_configs(loading.topic, changes) is None
        eventually(lambda: expired(client, loading.topic, 1000))
    files(loading, 0, "part-1-0-*")[0].unlink()
    before = tree(loading)
    done = reloaded(loading, code=1)
    assert done["problems"] == [
        f"{loading.topic} partition 0: offsets 0 to 999 are gone from the log, so the records from "
        "offset 0 on cannot be loaded again; nothing is changed"
    ]
    assert tree(loading) == before


def tree(loading: Loading) -> dict[str, int]:
    """Returns every file of the output with its length."""
    return {each.path: each.length for each in StoreConnection(loading.output).store().files("")}


@promise("5 reload")
def test_a_reload_on_hdfs(loading: Loading, hdfs: Hdfs, tmp_path: Path) -> None:
    """On a real HDFS, a reload of an hour restores a deleted file, and a recount of the rows then
    finds no fault."""
    output = f"{hdfs.url}/reloaded"
    on_hdfs = Loading(loading.cluster, loading.spark, loading.topic, output, tmp_path)
    for at in range(2):
        fill(on_hdfs, 500 * at, 500)
        on_hdfs.loaded()
    store = StoreConnection(output).store()
    rows = [each.path for each in store.files(loading.topic) if "/part-1-" in each.path]
    store.delete(rows[0])
    assert len(faults(output)) == 1
    assert reloaded(on_hdfs)["problems"] == []
    found = [
        row
        for entry in store.files(loading.topic)
        for row in pq.read_table(io.BytesIO(store.read(entry.path) or b"")).to_pylist()
    ]
    assert identities(found) == lines(1000)
    assert faults(output) == []
