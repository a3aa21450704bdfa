"""Tests streams of topics in memory. The tests call the stream reader as Spark's engine does."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import MagicMock, patch

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from skidway.errors import SkidwayError
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.types import TopicPartition
from skidway.loader.datasource.losses import DataLost
from support.loading import START_MS, Record
from support.memory_kafka import MemoryLog
from support.memory_query import Queried
from support.promises import promise


def record(number: int, time_ms: int = START_MS) -> Record:
    return Record(first=10 * number, time_ms=time_ms)


def line(number: int) -> str:
    return f"7/1/{10 * number}+10"


def stream(queried: Queried, **options: str) -> Any:
    source = queried.source(**options)
    return source.streamReader(source.schema())


def batch(queried: Queried, reader: Any, start: Any, end: Any) -> list[str]:
    """Returns the lines of the batch from `start` to `end`. Both positions are first written as
    JSON and read again, as Spark does with its checkpoint."""
    start, end = json.loads(json.dumps([start, end]))
    return [
        row["line"] for part in reader.partitions(start, end) for row in queried.read(reader, part)
    ]


def test_a_new_stream_begins_at_the_end(queried: Queried) -> None:
    """Without further options a stream returns the records that are written after the stream's
    start, each exactly once."""
    queried.send(record(0))
    reader = stream(queried)
    initial = reader.initialOffset()
    start = reader.latestOffset(initial, ReadAllAvailable())
    assert batch(queried, reader, initial, start) == []
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    assert reader.partitions(start, start) == []
    queried.send(record(1))
    queried.send(record(2), partition=1)
    assert reader.initialOffset() == initial
    end = reader.latestOffset(start, ReadAllAvailable())
    topic_id = queried.cluster.topics["logs"].topic_id.hex
    assert end == {"logs": {"id": topic_id, "0": 2, "1": 1, "from": {"0": 1, "1": 0}}}
    assert batch(queried, reader, start, end) == [line(1), line(2)]
    assert reader.reportLatestOffset() == {"logs": {"id": topic_id, "0": 2, "1": 1}}


def test_a_stream_may_begin_earlier(queried: Queried) -> None:
    """`startingOffsets` and `startingTimestamp` set where a new stream begins. With
    `startingTimestamp` the stream never returns rows with an earlier time, even if these rows come
    later in the log."""
    queried.send(record(0, START_MS))
    queried.send(record(1, START_MS + 9), record(2, START_MS + 3))
    for options, lines in (
        ({"startingOffsets": "earliest"}, [line(0), line(1), line(2)]),
        ({"startingOffsets": '{"logs": {"0": 2, "1": -1}}'}, [line(2)]),
        ({"startingTimestamp": str(START_MS + 5)}, [line(1)]),
    ):
        reader = stream(queried, **options)
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadAllAvailable())
        assert batch(queried, reader, start, end) == lines


def test_a_limit_bounds_each_batch(queried: Queried) -> None:
    """`maxOffsetsPerTrigger` limits each batch, and the stream reaches the end after several
    batches. If Spark asks for everything that is available (`ReadAllAvailable`), there is no
    limit."""
    queried.send(*map(record, range(5)))
    reader = stream(queried, maxOffsetsPerTrigger="2", startingOffsets="earliest")
    assert reader.getDefaultReadLimit() == ReadMaxRows(2)
    assert stream(queried).getDefaultReadLimit() == ReadAllAvailable()
    at, found = reader.initialOffset(), []
    while (end := reader.latestOffset(at, ReadMaxRows(2))) != at:
        found.append(batch(queried, reader, at, end))
        at = end
    assert found == [[line(0), line(1)], [line(2), line(3)], [line(4)]]
    everything = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert everything["logs"]["0"] == 5


@promise("5 stream")
def test_a_batch_that_is_repeated_is_the_same_batch(queried: Queried) -> None:
    """After a restart Spark asks again for the batch that is in Spark's checkpoint. A new reader
    returns the same rows for this batch, even if records and partitions have been added since."""
    queried.send(*map(record, range(3)))
    first = stream(queried, startingOffsets="earliest")
    start = first.initialOffset()
    end = first.latestOffset(start, ReadMaxRows(2))
    before = batch(queried, first, start, end)
    queried.send(record(9), partition=1)
    queried.cluster.topics["logs"].logs.append(MemoryLog())
    queried.send(record(10), partition=2)
    second = stream(queried, startingOffsets="earliest")
    assert batch(queried, second, start, end) == before == [line(0), line(1)]
    rest = second.latestOffset(end, ReadAllAvailable())
    assert batch(queried, second, end, rest) == [line(2), line(9), line(10)]


@promise("5 stream")
def test_the_first_batch_that_is_repeated_is_the_same_batch(queried: Queried) -> None:
    """If a stream is killed in its first batch, Spark asks for the initial positions again. If the
    stream begins at `latest`, and records came meanwhile, these positions are now larger. The
    repeated batch nevertheless has the same rows."""
    start = stream(queried).initialOffset()
    queried.send(record(1))
    end = stream(queried).latestOffset(start, ReadAllAvailable())
    queried.send(record(2))
    again = stream(queried)
    later = again.initialOffset()
    assert batch(queried, again, later, end) == [line(1)]
    assert batch(queried, again, later, start) == []
    rest = again.latestOffset(end, ReadAllAvailable())
    assert batch(queried, again, end, rest) == [line(2)]


@promise("5 query", "1 topic made again")
def test_a_stream_stops_at_a_topic_made_again(queried: Queried) -> None:
    """If a stream's topic is deleted, the stream fails. It also fails if the topic is then created
    again, however many records the new topic has. With `failOnDataLoss` false the stream reads the
    new topic."""
    queried.send(record(0))
    reader = stream(queried, startingOffsets="earliest")
    lenient = stream(queried, startingOffsets="earliest", failOnDataLoss="false")
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    queried.cluster.create("logs", 2)
    queried.send(record(7), record(8))
    with pytest.raises(DataLost, match="the topic logs was deleted and made again"):
        reader.latestOffset(start, ReadAllAvailable())
    end = lenient.latestOffset(start, ReadAllAvailable())
    assert batch(queried, lenient, start, end) == [line(7), line(8)]
    queried.cluster.create("logs", 2)
    with pytest.raises(DataLost, match="the topic logs was deleted before this batch was read"):
        batch(queried, reader, start, end)
    assert batch(queried, lenient, start, end) == []
    del queried.cluster.topics["logs"]
    with pytest.raises(DataLost, match="the topic logs was deleted"):
        reader.latestOffset(start, ReadAllAvailable())
    assert lenient.latestOffset(start, ReadAllAvailable()) == {}


@promise("5 query")
def test_a_stream_stops_at_expired_offsets(queried: Queried) -> None:
    """If records expire before a stream has read them, the stream fails. With `failOnDataLoss`
    false it continues to read at the beginning of the log."""
    queried.send(record(0))
    reader = stream(queried)
    lenient = stream(queried, failOnDataLoss="false")
    start = reader.initialOffset()
    for number in (1, 2, 3):
        queried.send(record(number))
    queried.cluster.log(TopicPartition("logs", 0)).expire(3)
    end = reader.latestOffset(start, ReadAllAvailable())
    with pytest.raises(DataLost, match="logs partition 0: offsets 1 to 2 have expired"):
        batch(queried, reader, start, end)
    assert batch(queried, lenient, start, end) == [line(3)]


def test_a_stream_that_takes_what_is_available_ends(queried: Queried) -> None:
    """With the trigger AvailableNow a stream ends at the high watermarks that the partitions had at
    the stream's start."""
    queried.send(record(0), record(1))
    reader = stream(queried, startingOffsets="earliest")
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    queried.send(record(2))
    queried.cluster.topics["logs"].logs.append(MemoryLog())
    queried.send(record(3), partition=2)
    end = reader.latestOffset(start, ReadAllAvailable())
    assert batch(queried, reader, start, end) == [line(0), line(1)]
    assert reader.latestOffset(end, ReadAllAvailable()) == end


def test_a_stream_needs_its_topics(queried: Queried) -> None:
    """A new stream of a topic that does not exist fails, because the name may be misspelt. But a
    new stream may have a pattern that matches no topic yet. Topics that match the pattern later are
    read from their start."""
    with pytest.raises(SkidwayError, match="the topic gone does not exist"):
        stream(queried, subscribe="gone", schema__registry__url="").initialOffset()
    reader = stream(queried, subscribe="", subscribePattern="web.*", schema__registry__url="")
    start = reader.initialOffset()
    assert start == {}
    queried.cluster.create("web-1")
    queried.send(record(4), topic="web-1")
    end = reader.latestOffset(start, ReadAllAvailable())
    (part,) = reader.partitions(start, end)
    assert [row["_kafka_offset"] for row in queried.read(reader, part)] == [0]


def test_a_commit_changes_nothing(queried: Queried) -> None:
    """Spark may call `commit` and `stop`. Neither of them opens a connection to the brokers, and
    each connection that the stream opened earlier is already closed. So no offsets are
    committed."""
    queried.send(record(0))
    reader, connections = stream(queried), []
    connect = KafkaConnection.client

    def client(*given: Any, **settings: Any) -> MagicMock:
        made = MagicMock(wraps=connect(*given, **settings))
        made.__enter__.return_value = made
        connections.append(made)
        return made

    with patch.object(KafkaConnection, "client", client):
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadAllAvailable())
        reader.partitions(start, end)
        assert len(connections) == 3
        reader.commit(end)
        reader.stop()
    assert [each.__exit__.call_count for each in connections] == [1, 1, 1]
