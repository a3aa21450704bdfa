"""`skidway load run` makes exactly one row of each line, whatever happens. The tests use a real
broker and a real registry. They run loads on a real Spark, and loads in the loader's own
process."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from confluent_kafka import TopicPartition as StockPartition
from confluent_kafka.admin import AdminClient

from skidway.clock import SystemClock
from skidway.kafka.client import EARLIEST, Client, ConfigChanges, NewTopic
from skidway.kafka.types import TopicPartition
from skidway.loader.runs.textfile import LastRun
from skidway.loader.store import StoreConnection
from support.hdfs import Hdfs
from support.processes import Program, eventually, free_port
from support.promises import promise
from tests.crash.loader.conftest import (
    AGENT,
    HERE,
    LENGTH,
    ON_SPARK,
    Cluster,
    Loading,
    SharedSpark,
    counted,
    fill,
    hdfs_identities,
    identities,
    lines,
)

pytestmark = pytest.mark.java


both_ways = pytest.mark.parametrize(
    "way",
    [pytest.param(ON_SPARK, id="spark", marks=pytest.mark.slow), pytest.param(HERE, id="here")],
)
"""Runs a test twice, once with loads on Spark and once with loads in the loader's own process."""


@both_ways
def test_load_by_load(loading: Loading, way: dict[str, str]) -> None:
    """Each load reads the records that no earlier load has read. If a record was sent twice, only
    the first copy becomes a row. The loader publishes its counts. If there are no new records, a
    run of the loader succeeds and writes nothing."""
    loading.way = way
    assert loading.loaded()["rows"] == 0
    fill(loading, 0, 3000)
    assert loading.loaded()["rows"] == 6000
    rows = loading.rows()
    assert identities(rows) == lines(3000)
    assert rows[5]["line"] == "line 5"
    assert (rows[5]["_host"], rows[5]["_file"]) == ("host", "/var/log/app.log")
    fill(loading, 2500, 1000)
    summary = loading.loaded()
    assert (summary["rows"], summary["repeats"]) == (1000, 1000)
    assert identities(loading.rows()) == lines(3500)
    assert loading.loaded()["rows"] == 0
    assert len(loading.state("*.json")) == 2
    assert loading.state("staging/*") == []
    deltas = loading.cluster.deltas(f"{loading.output}/{loading.topic}")
    assert [each.number for each in deltas] == [1, 2]
    assert sum(count.count for each in deltas for count in each.counts) == 7000
    assert sum(count.repeats for each in deltas for count in each.counts) == 1000


@promise("5 slices")
def test_both_ways_give_the_same(loading: Loading) -> None:
    """A load on Spark and a load in the loader's own process write the same rows to the same files.
    They also make the same counts and the same marks. A mark says up to which position a log file
    is loaded."""
    fill(loading, 0, 2500)
    fill(loading, 2000, 1000)
    found = []
    for name, way in (("a", ON_SPARK), ("b", HERE)):
        each = loading.beside(str(Path(loading.output) / name))
        each.way = way | {"slice.records": "700"}
        assert each.loaded()["repeats"] == 1000
        (manifest,) = [json.loads(path.read_text()) for path in each.state("*.json")]
        files = [(x["kind"], x["path"], x["rows"], x["crc32c"]) for x in manifest["files"]]
        audit = manifest["audit"]["deltas"]
        found.append((each.rows(), files, manifest["partitions"], audit))
    assert found[0] == found[1]


@promise("5 real loader")
@pytest.mark.parametrize(
    ("way", "moment"),
    [
        pytest.param(ON_SPARK, "staging/*/rows-*", marks=pytest.mark.slow),
        (HERE, "staging/*/rows-*"),
        pytest.param(HERE, "*.json", marks=pytest.mark.quick),
    ],
    ids=["spark, as its tasks write", "as its tasks write", "after its commit"],
)
def test_killed_and_begun_again(loading: Loading, way: dict[str, str], moment: str) -> None:
    """If a run of the loader is killed while its tasks write or right after its commit, every line
    has one row after the next run. Later runs remove the files that the killed run has left
    behind."""
    loading.way = way
    fill(loading, 0, 4000)
    program = loading.start()
    eventually(lambda: loading.state(moment) or not program.running)
    program.kill()
    loading.loaded()
    assert identities(loading.rows()) == lines(4000)
    fill(loading, 4000, 500)
    loading.loaded()
    assert identities(loading.rows()) == lines(4500)
    left = {path.name.split("-")[0] for path in loading.state("staging/*")}
    committed = {str(int(path.stem)) for path in loading.state("*.json")}
    assert not left & committed
    numbers = [x.number for x in loading.cluster.deltas(f"{loading.output}/{loading.topic}")]
    assert sorted(set(numbers)) == list(range(1, len(committed) + 1))


def expired(client: Client, topic: str, count: int) -> bool:
    """Returns whether the broker has deleted the first `count` records of each partition."""
    ends = {TopicPartition(topic, number): EARLIEST for number in (0, 1)}
    return {each.offset for each in client.list_offsets(ends).values()} == {count}


@promise("4 readers")
def test_what_is_not_loaded_is_held(loading: Loading) -> None:
    """The loader commits the end offsets in the newest manifest as the offsets of its consumer
    group. A manifest is the file by which a load is committed. If a topic's retention.hold names
    this group, the broker keeps expired records until they are loaded, and then deletes them."""
    cluster = loading.cluster
    other = cluster.topic()
    with Client(cluster.broker) as client:
        for topic, hold in ((loading.topic, {"retention.hold": "skidway-loader"}), (other, {})):
            changes = ConfigChanges(set={"retention.ms": "1", **hold})
            assert client.alter_configs(topic, changes) is None
        for first, count in ((0, 500), (500, 100)):
            for topic in (loading.topic, other):
                for partition in (0, 1):
                    cluster.send(topic, partition, first, count)
            # The topic `other` has no retention.hold. If its records are deleted, retention has
            # run, and only retention.hold can have kept the records of the loaded topic.
            eventually(lambda end=first + count: expired(client, other, end))  # type: ignore[misc]
            assert expired(client, loading.topic, first)
            loading.loaded()
            eventually(lambda end=first + count: expired(client, loading.topic, end))  # type: ignore[misc]
    assert identities(loading.rows()) == lines(600)


LIMIT = "max.offsets.per.load=700"


@promise("5 several loads")
def test_a_first_load_is_made_in_several(loading: Loading) -> None:
    """A run of the loader loads all records below the high watermarks that the partitions have when
    the run starts. If these records are more than max.offsets.per.load, the run makes several
    loads, each with its own manifest. Rows, repeats and counts are the same as with a single
    load."""
    fill(loading, 0, 1000)
    fill(loading, 900, 600)
    summary = loading.loaded(LIMIT)
    assert (summary["rows"], summary["repeats"]) == (3000, 200)
    assert identities(loading.rows()) == lines(1500)
    (topic,) = summary["topics"]
    assert topic["loads"] == list(range(1, 6))
    assert [(x["first"], x["end"]) for x in topic["partitions"]] == [(0, 1600), (0, 1600)]
    deltas = loading.cluster.deltas(f"{loading.output}/{loading.topic}")
    assert [each.number for each in deltas] == topic["loads"]
    assert sum(count.count for each in deltas for count in each.counts) == 3000
    assert loading.loaded(LIMIT)["rows"] == 0


@promise("5 several loads")
@pytest.mark.quick
def test_killed_between_the_loads_of_a_run(loading: Loading) -> None:
    """A run of the loader may make several loads. Each load is committed separately. So if the run
    is killed, the next run continues after the last committed load."""
    fill(loading, 0, 2500)
    program = loading.start(LIMIT)
    eventually(lambda: len(loading.state("*.json")) >= 2 or not program.running)
    program.kill()
    loading.loaded(LIMIT)
    assert identities(loading.rows()) == lines(2500)
    assert loading.loaded(LIMIT)["rows"] == 0
    assert loading.state("staging/*") == [], "each start tidies up what the one before left"


@promise("5 race", "5 real loader")
def test_two_at_once(loading: Loading) -> None:
    """If two loaders run at the same time, each range of offsets is committed by only one of them.
    Both loaders succeed, and every line has one row."""
    fill(loading, 0, 3000)
    programs = [loading.start(), loading.start()]
    assert [program.wait(300) for program in programs] == [0, 0]
    assert identities(loading.rows()) == lines(3000)
    assert loading.state("staging/*") == []


@both_ways
def test_an_interrupted_run_commits_nothing(loading: Loading, way: dict[str, str]) -> None:
    """After SIGTERM a run of the loader ends cleanly. If the run was not finished when the signal
    came, it commits nothing, and the next run loads the records."""
    loading.way = way
    fill(loading, 0, 4000)
    program = loading.start()
    eventually(lambda: loading.state("staging/*/rows-*") or not program.running)
    program.signal(signal.SIGTERM)
    assert program.wait() in (0, 1)
    if program.returncode == 1:
        assert "interrupted" in program.output()
        assert loading.state("*.json") == []
    loading.loaded()
    assert identities(loading.rows()) == lines(4000)


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the loader wait at most half a second for missing announcements of files."""
    monkeypatch.setattr("skidway.loader.runs.topic_loads.PATIENCE_S", 0.5)


@promise("5 host and path")
@pytest.mark.quick
@pytest.mark.usefixtures("_impatient")
def test_records_wait_for_the_announcement_of_their_file(loading: Loading) -> None:
    """The loader loads the records of a file only when it knows the file's host and path. It learns
    host and path from an announcement, which is a message of the agent to the audit. No record is
    lost or doubled."""
    fill(loading, 0, 10)
    loading.cluster.send(loading.topic, 0, 0, 10, file=3)
    loading.cluster.send(loading.topic, 0, 10, 10)
    summary = loading.loaded()
    assert identities(loading.rows()) == lines(10)
    assert "not announced yet" in summary["topics"][0]["waiting"][0]
    loading.cluster.announce(loading.topic, 3)
    loading.loaded()
    assert identities(loading.rows()) == sorted([*lines(10, (1, 2, 3)), *lines(20, (1,))[10:]])
    assert loading.state("waiting/*") == []


@promise("5 host and path", "clocks wait")
@pytest.mark.usefixtures("_impatient")
def test_records_that_waited_too_long_are_rejected(loading: Loading) -> None:
    """If a file is still not announced after `announce.wait.ms`, the loader rejects the file's
    records with the reason `not-announced`, and loads the records after them. The rejects have the
    bytes and origins of the records."""
    loading.cluster.send(loading.topic, 0, 0, 5, file=3)
    loading.cluster.send(loading.topic, 0, 0, 5)
    loading.loaded("announce.wait.ms=1")
    summary = loading.loaded("announce.wait.ms=1")
    assert summary["rejects"] == 5
    assert summary["topics"][0]["reject_reasons"] == {"not-announced": 5}
    assert identities(loading.rows()) == lines(5, (1,))
    (file,) = loading.state("rejects/*/*/*")
    rejects = pq.read_table(file).to_pylist()
    assert [each["value"][5:] for each in rejects] == [b"\x0cline %d" % at for at in range(5)]
    assert [(each["_agent"], each["_length"]) for each in rejects] == [(AGENT, LENGTH)] * 5
    assert identities(rejects) == lines(5, (3,))


@promise("1 topic made again")
@pytest.mark.quick
def test_a_topic_made_again_is_not_loaded_over(loading: Loading) -> None:
    """If a topic was deleted and created again, it has another topic id. The loader then prints one
    sentence, and does not change the output."""
    fill(loading, 0, 100)
    loading.loaded()
    before = loading.state("**/*")
    loading.cluster.delete(loading.topic)
    with_the_same_name(loading)
    fill(loading, 0, 50)
    done = loading.run()
    assert done.returncode == 65
    assert "was made again" in done.stderr
    assert loading.state("**/*") == before


def with_the_same_name(loading: Loading) -> None:
    with Client(loading.cluster.broker) as client:
        assert client.create_topics([NewTopic(loading.topic, 2, 1)]) == {loading.topic: None}


@promise("1 restored state")
@pytest.mark.quick
def test_an_older_copy_of_the_output_is_refused(loading: Loading) -> None:
    """If the newest manifest of an output is older than the counts that were published for the
    output, the output is an old copy. The loader refuses an old copy, because the next load would
    get the same number as an earlier load."""
    fill(loading, 0, 10)
    loading.loaded()
    copy = Path(loading.output).with_name("copy")
    shutil.copytree(loading.output, copy)
    fill(loading, 10, 10)
    loading.loaded()
    shutil.rmtree(loading.output)
    copy.rename(loading.output)
    done = loading.run()
    assert done.returncode == 65
    assert "older copy" in done.stderr


class HourBack(SystemClock):
    """A wall clock that is one hour behind."""

    def time_ms(self) -> int:
        return super().time_ms() - 3_600_000


@promise("6 epoch of an output")
def test_an_output_that_was_removed_is_counted_anew(
    loading: Loading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an output is removed, the records that are still in the topic are loaded again. The audit
    then counts exactly the rows that exist, even if the broker has deleted some records and the
    clock is one hour behind. The counts are still right after later loads."""
    fill(loading, 0, 450)
    assert loading.loaded()["rows"] == counted(loading) == 900
    shutil.rmtree(loading.output)
    admin = AdminClient({"bootstrap.servers": loading.cluster.broker})
    for gone in [StockPartition(loading.topic, number, 150) for number in (0, 1)]:
        assert admin.delete_records([gone])[gone].result(300).low_watermark == 150
    monkeypatch.setattr("skidway.loader.runs.run.SystemClock", HourBack)
    accepted = ",".join(f"{loading.topic}/{number}/0-150" for number in (0, 1))
    assert loading.loaded(f"gaps.accepted={accepted}")["rows"] == counted(loading) == 600
    fill(loading, 450, 100)
    assert loading.loaded()["rows"] == 200
    assert counted(loading) == 800
    deltas = loading.cluster.deltas(f"{loading.output}/{loading.topic}")
    assert [(each.sender.epoch, each.number) for each in deltas] == [(1, 1), (2, 1), (2, 2)]


@promise("4 readers compare")
@pytest.mark.quick
def test_a_manifest_that_says_another_batch_is_a_divergence(loading: Loading) -> None:
    """The manifest of a load describes the last batch that was loaded from each partition. If the
    broker has a different batch at the same offsets, the loader reports the partition and loads
    none of the partition's records. The loader still loads the other partition."""
    fill(loading, 0, 10)
    loading.loaded()
    (manifest,) = loading.state("*.json")
    content = json.loads(manifest.read_text())
    content["partitions"][0]["below"]["crc"] ^= 1
    manifest.write_text(json.dumps(content))
    fill(loading, 10, 10)
    done = loading.run()
    assert done.returncode == 1
    assert "partition 0 has diverged" in done.stderr
    assert identities(loading.rows()) == sorted([*lines(10, (1,)), *lines(20, (2,))])


def contents(loading: Loading) -> dict[Path, bytes]:
    """Returns every file of the output with its bytes."""
    return {path: path.read_bytes() for path in Path(loading.output).rglob("*") if path.is_file()}


def test_plan_and_status(loading: Loading) -> None:
    """`skidway load plan` prints what a run would load, and does not create the output. `skidway
    load status` prints what is loaded, and changes no file of the output."""
    fill(loading, 0, 1500)
    planned = json.loads(loading.spark.run(loading.arguments(verb="plan")).stdout)
    slices = -(-1500 // int(loading.way["slice.records"]))
    assert [(x["first"], x["end"], x["slices"]) for x in planned] == [(0, 1500, slices)] * 2
    assert not Path(loading.output).exists()
    loading.loaded()
    before = contents(loading)
    status = json.loads(loading.spark.run(loading.arguments(verb="status")).stdout)
    assert contents(loading) == before
    loaded = [(row["load"], row["loaded"], row["rows"]) for row in status["partitions"]]
    assert loaded == [(1, 1500, 3000)] * 2
    assert status["runs"] == []


@pytest.mark.parametrize(
    ("setting", "code", "sentence"),
    [
        ("schema.registry.url=http://127.0.0.1:{port}", 3, "registry"),
        ("output=s3://bucket/logs", 78, "no other store is supported"),
        ("output=/proc/nothing", 1, "cannot make the directory /proc/nothing: "),
        ("topics=gone", 1, "the topic gone does not exist"),
        ("topcs=x", 78, "topics"),
    ],
)
def test_what_is_missing_is_one_sentence(
    loading: Loading, setting: str, code: int, sentence: str
) -> None:
    """If the registry does not answer, a topic does not exist, or a setting is wrong, a run of the
    loader fails. It prints one sentence without a traceback, and exits with the status for this
    kind of error."""
    loading.cluster.send(loading.topic, 0, 0, 3)
    done = loading.run(setting.format(port=free_port()))
    assert done.returncode == code, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_the_last_run_is_left_for_prometheus(loading: Loading, tmp_path: Path) -> None:
    """After each run the loader writes a metrics file for Prometheus. The file shows whether the
    run succeeded, and after a failed run still shows the time of the last success."""
    loading.cluster.send(loading.topic, 0, 0, 3)
    file = tmp_path / "skidway_load.prom"
    loading.loaded(f"metrics.textfile={file}")
    good = LastRun.read(file)
    assert (good.status, good.loads, good.rows, good.success) == (0, 1, 3, good.end)
    assert loading.run(f"metrics.textfile={file}", "topics=gone").returncode == 1
    bad = LastRun.read(file)
    assert (bad.status, bad.rows, bad.success) == (1, 0, good.end)
    assert bad.start is not None
    assert good.end is not None
    assert bad.start > good.end


@pytest.fixture(scope="module", autouse=True)
def without_a_broker(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Program]:
    """Starts a loader whose setting bootstrap.servers names an address at which no broker listens.
    The run gives up after half a minute; meanwhile other tests run."""
    folder = tmp_path_factory.mktemp("alone")
    alone = Cluster(f"127.0.0.1:{free_port()}", cluster.registry)
    program = Loading(alone, SharedSpark(folder), "logs", str(folder / "out"), folder).start()
    yield program
    program.kill()  # the program still runs if no test waited for its end


def test_no_broker_is_one_sentence(without_a_broker: Program) -> None:
    """If no broker answers, the loader ends with one sentence and the exit status for an
    unreachable service."""
    assert without_a_broker.wait(300) == 3
    assert "no broker" in without_a_broker.output()
    assert "Traceback" not in without_a_broker.output()


@promise("5 real loader")
@both_ways
def test_into_hdfs(loading: Loading, way: dict[str, str], hdfs: Hdfs, tmp_path: Path) -> None:
    """On a real HDFS every line has one row after several loads, although a run was killed and a
    record was sent twice."""
    loading.way = way
    on_hdfs = loading.beside(f"{hdfs.url}/logs/{tmp_path.name}")
    store = StoreConnection(on_hdfs.output).store()
    fill(on_hdfs, 0, 2000)
    program = on_hdfs.start()
    staging = f"_skidway/{loading.topic}/staging"
    eventually(lambda: any(store.files(staging)) or not program.running)
    program.kill()
    on_hdfs.loaded()
    fill(on_hdfs, 1900, 200)
    summary = on_hdfs.loaded()
    assert (summary["rows"], summary["repeats"]) == (200, 200)
    assert hdfs_identities(on_hdfs) == lines(2100)
