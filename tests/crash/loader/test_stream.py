"""A stream from a topic into files on a real Spark loses and doubles no record if its driver is
killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skidway.kafka.client import Client
from support import spark_script
from support.processes import eventually
from support.promises import promise
from tests.crash.loader.conftest import Loading

pytestmark = pytest.mark.java

LIMIT = 100
STREAM = """
import json, sys
from pyspark.sql import SparkSession
import skidway
settings, broker, topic, folder, ends = sys.argv[1:]
spark = SparkSession.builder.config(map=json.loads(settings)).getOrCreate()
skidway.register(spark)
options = {"kafka.bootstrap.servers": broker, "subscribe": topic, "maxOffsetsPerTrigger": "100"}
writer = (
    spark.readStream.format("skidway").options(**options).load().writeStream.format("parquet")
    .option("checkpointLocation", f"{folder}/checkpoint")
)
if ends == "ends":
    writer = writer.trigger(availableNow=True)
query = writer.start(f"{folder}/rows")
query.awaitTermination()
rows = spark.read.parquet(f"{folder}/rows").select("_partition", "_kafka_offset").collect()
print(json.dumps(sorted(map(list, rows))))
spark.stop()
"""


class Stream:
    """A Spark stream from the topic into Parquet files. Each start continues from the same Spark
    checkpoint."""

    def __init__(self, loading: Loading, folder: Path) -> None:
        self._loading, self._folder = loading, folder
        self.checkpoint = folder / "checkpoint"

    def numbers(self, kind: str) -> set[int]:
        """Returns the numbers of the batches in the checkpoint's directory `kind`. The directory
        `offsets` contains the planned batches, and `commits` contains the finished batches."""
        folder = self.checkpoint / kind
        return {int(each.name) for each in folder.glob("[0-9]*")} if folder.exists() else set()

    def positions(self, number: int) -> dict[str, Any]:
        """Returns the end of batch `number`: the offset at which it ends in each partition."""
        text = (self.checkpoint / "offsets" / str(number)).read_text()
        found: dict[str, Any] = json.loads(text.splitlines()[-1])[self._loading.topic]
        return found

    def kill_when(self, condition: Callable[[], bool]) -> None:
        """Runs the stream until the condition is true, and then kills its driver and its JVM."""
        process = self._start("on")
        try:
            eventually(lambda: condition() or dead(process), every_s=0.02)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def run_to_the_end(self) -> list[tuple[int, int]]:
        """Runs the stream until it has read all records that exist. Returns the partition and
        offset of every row that it has ever written."""
        process = self._start("ends")
        out, err = process.communicate(timeout=spark_script.ENDS_WITHIN_S)
        assert process.returncode == 0, err[-6000:]
        return [(row[0], row[1]) for row in json.loads(out.strip().splitlines()[-1])]

    def _start(self, ends: str) -> subprocess.Popen[str]:
        return spark_script.start(
            STREAM, self._loading.cluster.broker, self._loading.topic, str(self._folder), ends,
            folder=self._folder,
        )  # fmt: skip


def dead(process: subprocess.Popen[str]) -> bool:
    if process.poll() is not None:
        raise AssertionError(process.communicate()[1][-6000:])
    return False


@promise("5 stream")
def test_a_killed_stream_writes_each_record_once(loading: Loading, tmp_path: Path) -> None:
    """A stream into files begins at the log end when it is first started. Each record that is sent
    after this start is written exactly once, even if the stream is killed twice. A batch
    exceeds the limit of records by at most one record for each partition. The test kills the stream
    after the stream has planned its first batch, and within a later batch. Meanwhile records and a
    partition are added."""
    cluster, topic, stream = loading.cluster, loading.topic, Stream(loading, tmp_path)
    for partition in (0, 1):
        cluster.send(topic, partition, 0, 10)
    stream.kill_when(lambda: 0 in stream.numbers("offsets"))
    for partition in (0, 1):
        cluster.send(topic, partition, 10, 150)
    with Client(cluster.broker) as client:
        assert client.create_partitions({topic: 3}) == {topic: None}
        while len(client.metadata([topic]).topics[topic].partitions) < 3:
            client.pause(0.05)
    cluster.send(topic, 2, 0, 50)
    stream.kill_when(lambda: is_within_a_batch(stream, 2))
    found = stream.run_to_the_end()
    assert found == [(p, n) for p in (0, 1) for n in range(10, 160)] + [(2, n) for n in range(50)]
    for number in sorted(stream.numbers("offsets")):
        end = stream.positions(number)
        sizes = [end[p] - end["from"].get(p, 0) for p in end if p.isdigit()]
        assert sum(sizes) <= LIMIT + 3


def is_within_a_batch(stream: Stream, least: int) -> bool:
    """Returns whether a batch with the number `least` or a higher number is planned but not
    done."""
    planned = stream.numbers("offsets")
    return any(each >= least for each in planned - stream.numbers("commits"))
