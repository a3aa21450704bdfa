"""Tests batch queries of topics in memory: the rows of a query, its bounds of offset and time,
missing records, queries of several topics, and chosen columns."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from skidway.audit.topic.messages import TOPIC as AUDIT
from skidway.errors import SkidwayError, UsageError
from skidway.kafka.types import TopicPartition
from skidway.loader.datasource.losses import DataLost
from skidway.schemas.wire import prefix
from support.loading import START_MS, Record, datum
from support.memory_query import Queried
from support.promises import promise


def record(number: int, time_ms: int = START_MS) -> Record:
    return Record(first=10 * number, time_ms=time_ms)


def line(number: int) -> str:
    return f"7/1/{10 * number}+10"


def test_a_query_gives_every_record_once(queried: Queried) -> None:
    """Without further options, a query returns each record in the log once. It does not drop
    repeats (records that were sent again). The rows have the columns of the schema and the columns
    that the data source adds."""
    queried.send(record(0), record(1))
    queried.send(record(1), partition=1)
    rows = queried.rows()
    assert [(row["line"], row["_partition"]) for row in rows] == [
        (line(0), 0), (line(1), 0), (line(1), 1),
    ]  # fmt: skip
    assert list(rows[1]) == [
        "line", "_agent", "_file_id", "_offset", "_length", "_timestamp", "_topic", "_partition",
        "_kafka_offset",
    ]  # fmt: skip
    assert rows[1] == {
        "line": line(1), "_agent": 7, "_file_id": 1, "_offset": 10, "_length": 10,
        "_timestamp": datetime.fromtimestamp(START_MS / 1000, UTC), "_topic": "logs",
        "_partition": 0, "_kafka_offset": 1,
    }  # fmt: skip


def test_records_without_fields_are_rows(queried: Queried) -> None:
    """A query of a topic whose schema has no fields has a row for each record, with the columns
    that the data source adds. With a later version, the row has the default of its field."""
    nothing = {"type": "record", "name": "Tick", "fields": []}
    queried.registry.add(8, "logs-value", json.dumps(nothing))
    queried.send(*(replace(record(number), value=prefix(8)) for number in range(3)))
    assert [row["_kafka_offset"] for row in queried.rows()] == [0, 1, 2]
    assert len(queried.rows(undecodable="skip")) == 3
    with pytest.raises(UsageError, match="no topic of the query has a column x"):
        queried.rows(StructType().add("x", "long"))
    fields = [{"name": "x", "type": "int", "default": 7}]
    queried.registry.add(9, "logs-value", json.dumps({**nothing, "fields": fields}))
    queried.send(replace(record(3), value=prefix(9) + b"\x0a"))
    assert [row["x"] for row in queried.rows()] == [7, 7, 7, 5]


def test_an_empty_topic_gives_no_rows(queried: Queried) -> None:
    """A query gives no rows if its topic has no records, if its range is empty, or if it names its
    columns and its pattern matches no topic. If the pattern matches no topic, and the query does
    not name its columns, the query fails."""
    columns = StructType().add("line", "string")
    assert queried.rows() == []
    queried.send(record(0))
    assert queried.rows(startingTimestamp=str(START_MS + 1)) == []
    assert queried.rows(columns, subscribe="", subscribePattern="none.*") == []
    with pytest.raises(SkidwayError, match=r"no topic matches the pattern none\.\*"):
        queried.source(subscribe="", subscribePattern="none.*").schema()


def test_tasks_read_at_most_so_many_records(queried: Queried) -> None:
    """A partition is divided into ranges of `maxRecordsPerPartition` offsets, with a task for each
    range. If a batch lies in two ranges, both tasks read the batch, but each record becomes a row
    only once."""
    queried.send(*map(record, range(5)))
    source = queried.source(maxRecordsPerPartition="2")
    reader = source.reader(source.schema())
    parts: list[Any] = list(reader.partitions())
    assert [(part.first, part.end) for part in parts] == [(0, 2), (2, 4), (4, 5)]
    assert [row["line"] for part in parts for row in queried.read(reader, part)] == [
        line(number) for number in range(5)
    ]


def test_offsets_bound_a_query(queried: Queried) -> None:
    """`startingOffsets` and `endingOffsets` are JSON as in Spark: an offset for each partition,
    where -2 means the first offset and -1 the end."""
    queried.send(*map(record, range(4)))
    queried.send(*map(record, range(10, 13)), partition=1)
    found = queried.lines(
        startingOffsets=json.dumps({"logs": {"0": 1, "1": -2}}),
        endingOffsets=json.dumps({"logs": {"0": 3, "1": -1}}),
    )
    assert found == [*map(line, (1, 2)), *map(line, (10, 11, 12))]


def test_time_bounds_are_exact(queried: Queried) -> None:
    """A query returns exactly the rows whose event time is at or after `startingTimestamp` and
    before `endingTimestamp`, wherever these rows lie in the log."""
    times = [5, 9, 1, 7, 3]
    for number, minute in enumerate(times):
        queried.send(record(number, START_MS + minute), record(100, START_MS))
    found = queried.lines(startingTimestamp=str(START_MS + 3), endingTimestamp=str(START_MS + 7))
    assert found == [line(0), line(4)]


@promise("5 query")
def test_expired_offsets_fail_a_query(queried: Queried) -> None:
    """A query that asks for offsets whose records have expired, or for offsets that do not exist
    yet, fails with an error message. With `failOnDataLoss` false it reads the records that
    exist."""
    for number in range(4):
        queried.send(record(number))
    queried.cluster.log(TopicPartition("logs", 0)).expire(2)
    asked = {"startingOffsets": json.dumps({"logs": {"0": 1, "1": 0}})}
    with pytest.raises(
        DataLost, match="logs partition 0: offsets 1 to 1 have expired; the log beg"
    ):
        queried.rows(**asked)
    assert queried.lines(**asked, failOnDataLoss="false") == [line(2), line(3)]
    asked = {"endingOffsets": json.dumps({"logs": {"0": 9, "1": 0}})}
    with pytest.raises(DataLost, match="the log ends at offset 4, before offset 9"):
        queried.rows(**asked)
    assert queried.lines(**asked, failOnDataLoss="false") == [line(2), line(3)]


@promise("5 query")
def test_records_that_expire_during_a_query_fail_it(queried: Queried) -> None:
    """If records expire after the query was planned and before a task reads them, the task fails.
    With `failOnDataLoss` false the task continues to read at the beginning of the log."""
    for number in range(4):
        queried.send(record(number))
    readers = {}
    for fails in ("true", "false"):
        source = queried.source(failOnDataLoss=fails)
        readers[fails] = source.reader(source.schema())
    plans = {fails: reader.partitions()[0] for fails, reader in readers.items()}
    queried.cluster.log(TopicPartition("logs", 0)).expire(2)
    with pytest.raises(DataLost, match="offset 0 was there when the query began"):
        queried.read(readers["true"], plans["true"])
    left = queried.read(readers["false"], plans["false"])
    assert [row["line"] for row in left] == [line(2), line(3)]


@promise("5 query", "1 topic made again")
def test_a_topic_made_again_fails_a_query(
    queried: Queried, caplog: pytest.LogCaptureFixture
) -> None:
    """If a topic is deleted and created again after a query was planned and before its tasks read
    the topic, the query fails. A query also fails if it begins at positions that an earlier query
    used, and the topic was deleted and created again since then. With `failOnDataLoss` false, the
    first query returns no rows, and the second query reads the new topic. Both then log a warning
    that says the same as the error."""
    queried.send(record(0))
    readers = [
        (source.reader(source.schema()), source)
        for source in (queried.source(), queried.source(failOnDataLoss="false"))
    ]
    plans = [reader.partitions()[0] for reader, _ in readers]
    before = queried.cluster.topics["logs"].topic_id.hex
    queried.cluster.create("logs", 2)
    queried.send(record(5))
    with pytest.raises(DataLost, match="the topic logs was deleted, or made again, while it was"):
        queried.read(readers[0][0], plans[0])
    assert queried.read(readers[1][0], plans[1]) == []
    positions = json.dumps({"logs": {"id": before, "0": 0, "1": 0}})
    with pytest.raises(DataLost, match=f"made again: its id was {before}, now it is"):
        queried.rows(startingOffsets=positions)
    assert caplog.messages == ["data_lost"]
    assert queried.lines(startingOffsets=positions, failOnDataLoss="false") == [line(5)]
    said = [vars(each)["skidway_fields"]["what"] for each in caplog.records]
    assert {each.levelname for each in caplog.records} == {"WARNING"}
    assert said[0] == "the topic logs was deleted, or made again, while it was read"
    assert f"made again: its id was {before}, now it is" in said[1]
    assert len(said) == 2


def test_several_topics_are_one_table(queried: Queried) -> None:
    """A query of topics with different schemas has the columns of all schemas. A row has null in
    the columns that its topic lacks. If a column has different types in two topics, a query must
    name the columns that it reads; otherwise it is refused."""
    queried.cluster.create("web")
    schema = fields(("line", "string"), ("status", "long"))
    queried.registry.add(2, "web-value", schema)
    queried.send(record(0))
    both = {"subscribe": "logs, web"}
    names = queried.source(**both).schema().fieldNames()
    assert names[:2] == ["line", "status"]
    assert [(row["line"], row["status"], row["_topic"]) for row in queried.rows(**both)] == [
        (line(0), None, "logs")
    ]
    queried.registry.add(2, "web-value", fields(("line", "long")))
    with pytest.raises(
        SkidwayError, match="the column line is string in the topic logs, and int64"
    ):
        queried.source(**both).schema()
    assert queried.rows(StructType().add("_topic", "string"), **both) == [{"_topic": "logs"}]
    queried.registry.add(2, "web-value", fields(("Line", "string")))
    with pytest.raises(SkidwayError, match="the columns line and Line of these topics differ only"):
        queried.source(**both).schema()


def fields(*named: tuple[str, str]) -> str:
    each = [{"name": name, "type": kind} for name, kind in named]
    return json.dumps({"type": "record", "name": "Log", "fields": each})


def test_a_pattern_matches_whole_names_of_data_topics(queried: Queried) -> None:
    """`subscribePattern` has to match the whole name of a topic, and never matches Skidway's
    internal topics."""
    queried.announce(7, 1, "web-1", "/var/log/a.log")
    queried.cluster.create("logs-2")
    queried.send(record(0))
    assert queried.lines(subscribe="", subscribePattern="logs") == [line(0)]
    with pytest.raises(SkidwayError, match="no topic matches"):
        queried.source(subscribe="", subscribePattern="_skidway.*").schema()


def test_a_topic_that_does_not_exist_is_named(queried: Queried) -> None:
    """If the option `subscribe` names a topic that does not exist, the query fails, because the
    name may be misspelt."""
    with pytest.raises(SkidwayError, match="the topic gone does not exist"):
        queried.source(subscribe="logs,gone").schema()


def test_a_mirrored_topic_has_the_schema_of_its_source(queried: Queried) -> None:
    """For a mirrored topic, a query uses the schema that the registry has for the source topic."""
    configs = {"mirror.source.cluster": "dc1", "mirror.source.topic": "logs"}
    queried.cluster.create("dc1.logs", 1, configs)
    queried.send(record(3), topic="dc1.logs")
    (row,) = queried.rows(subscribe="dc1.logs")
    assert (row["line"], row["_topic"]) == (line(3), "dc1.logs")


def test_a_topic_without_a_schema_is_named(queried: Queried) -> None:
    """If the registry has no schema for a topic, the query fails, and the error names the missing
    subject."""
    queried.cluster.create("web")
    with pytest.raises(SkidwayError, match="no schema web-value for the topic web"):
        queried.source(subscribe="web").schema()


def test_without_a_registry_keys_and_values_are_bytes(queried: Queried) -> None:
    """A query without the address of a registry returns keys and values as the bytes that were
    sent."""
    queried.send(record(0))
    (row,) = queried.rows(schema__registry__url="")
    assert (row["key"], row["value"]) == (None, datum(line(0)))


def test_only_the_named_columns_are_read(queried: Queried) -> None:
    """A query that names its columns gets exactly these columns in the given order. If the query
    names no column of the schema, values are decoded only if the option `undecodable` is `skip`.
    The query fails if it names a column that no topic has. It also fails if a column's type in the
    topic cannot be converted to the type that the query gives."""
    queried.send(record(1))
    wanted = StructType().add("_kafka_offset", "long").add("line", "string")
    assert queried.rows(wanted) == [{"_kafka_offset": 0, "line": line(1)}]
    queried.send_value("logs", b"no datum")
    offsets = StructType().add("_kafka_offset", "long")
    assert queried.rows(offsets) == [{"_kafka_offset": 0}, {"_kafka_offset": 1}]
    assert queried.rows(offsets, undecodable="skip") == [{"_kafka_offset": 0}]
    with pytest.raises(UsageError, match="no topic of the query has a column lines; it has _agent"):
        queried.rows(StructType().add("lines", StringType()))
    small = StructType().add("_agent", IntegerType())
    assert queried.rows(small) == [{"_agent": 7}, {"_agent": 0}]
    with pytest.raises(SkidwayError, match="logs partition 0: the column line is string, and cann"):
        queried.rows(StructType().add("line", LongType()), undecodable="skip")


def test_records_without_a_time_are_rows(queried: Queried) -> None:
    """A producer may leave out a record's timestamp, which is then -1. A query without time bounds
    returns such a record, and so does a query with only `endingTimestamp`. A query with
    `startingTimestamp` leaves it out, because -1 is earlier than every bound."""
    queried.send(record(0, -1))
    assert queried.lines() == [line(0)]
    assert queried.lines(startingTimestamp="0") == []
    assert queried.lines(endingTimestamp="0") == [line(0)]
    assert queried.lines(startingTimestamp="0", endingTimestamp="1") == []


@pytest.mark.parametrize("time_ms", [2**62, -(2**62), 9_223_372_036_854_776])
def test_a_record_whose_time_spark_cannot_hold_fails_or_is_skipped(
    queried: Queried, time_ms: int
) -> None:
    """If Spark cannot hold the event time of a record, the query fails and names the record. With
    `undecodable=skip` it skips this record alone. A query that does not ask for the event time has
    its row."""
    queried.send(record(0), record(1, time_ms), record(2))
    columns = StructType().add("line", "string")
    with pytest.raises(SkidwayError, match="logs partition 0 offset 1: timestamp a time that micr"):
        queried.rows()
    assert queried.lines(undecodable="skip") == [line(0), line(2)]
    assert [row["line"] for row in queried.rows(columns)] == [line(0), line(1), line(2)]


@promise("5 query", "1 topic made again")
def test_a_topic_made_again_while_it_is_read_fails_a_query(queried: Queried) -> None:
    """If the topic is deleted and created again while a task reads it, the task fails."""
    queried.send(record(0))
    source = queried.source()
    reader = source.reader(source.schema())
    (part,) = reader.partitions()
    rows = reader.read(part)
    next(rows)
    queried.cluster.create("logs", 2)
    with pytest.raises(DataLost, match="was deleted, or made again, while it was read"):
        next(rows)


def test_a_mirrored_topic_has_announcements_of_its_source(queried: Queried) -> None:
    """For a mirrored topic, a query reads the hosts and paths of files from the mirror of the
    source cluster's audit topic."""
    configs = {"mirror.source.cluster": "dc1", "mirror.source.topic": "logs"}
    queried.cluster.create("dc1.logs", 1, configs)
    queried.cluster.create("dc1._skidway_audit", 1, {**configs, "mirror.source.topic": AUDIT})
    queried.send(record(0), topic="dc1.logs")
    queried.announce(7, 1, "web-1", "/a.log", audit="dc1._skidway_audit")
    (row,) = queried.rows(subscribe="dc1.logs", includeHostAndFile="true")
    assert (row["_host"], row["_file"]) == ("web-1", "/a.log")


def test_a_value_that_cannot_be_decoded_fails_or_is_skipped(queried: Queried) -> None:
    """By default a query fails at a value that cannot be decoded, and the error gives the record's
    topic, partition and offset. With the option `undecodable=skip` the query skips such records."""
    queried.send(record(0))
    queried.send_value("logs", b"no datum")
    with pytest.raises(SkidwayError, match="logs partition 0 offset 1: no-schema-id"):
        queried.rows()
    assert queried.lines(undecodable="skip") == [line(0)]


def test_host_and_file_come_from_announcements(queried: Queried) -> None:
    """With the option `includeHostAndFile` each row has the host and path of its file, or null if
    the audit topic has no announcement of the file. (An announcement is an agent's message with a
    file's host and path.) If a file is announced twice, the first announcement counts. Later
    queries also know files that were announced after the first query, and fetch only these newer
    messages of the audit topic."""
    queried.announce(7, 1, "web-1", "/var/log/a.log")
    audit = queried.cluster.log(TopicPartition(AUDIT, 0))
    queried.send(record(0), Record(file=2))
    asked = {"includeHostAndFile": "true"}
    places = [(row["_host"], row["_file"]) for row in queried.rows(**asked)]
    assert places == [("web-1", "/var/log/a.log"), (None, None)]
    audit.batches[0][-1] ^= 1  # damaged, so a query that fetches it again fails
    queried.announce(7, 1, "other", "/another")
    queried.announce(7, 2, "web-2", "/var/log/b.log")
    places = [(row["_host"], row["_file"]) for row in queried.rows(**asked)]
    assert places == [("web-1", "/var/log/a.log"), ("web-2", "/var/log/b.log")]
    assert "_host" not in queried.rows()[0]
    assert queried.rows(StructType().add("_host", "string"))[1] == {"_host": "web-2"}


def test_headers_come_on_request(queried: Queried) -> None:
    """With the option `includeHeaders` each row has all headers of its record with their values as
    bytes, or null if the record has no headers."""
    queried.send(record(0))
    queried.send_value("logs", datum("a"))
    first, second = (row["_headers"] for row in queried.rows(includeHeaders="true"))
    assert [(each["key"], len(each["value"])) for each in first] == [("origin", 28)]
    assert second is None


def test_a_query_cannot_begin_at_the_end(queried: Queried) -> None:
    """Only a stream may have `latest` as its `startingOffsets`."""
    with pytest.raises(UsageError, match="only a stream can begin at latest"):
        queried.rows(startingOffsets="latest")


def test_offsets_must_name_every_partition(queried: Queried) -> None:
    """Offsets in JSON that leave out a partition or a topic are an error, as in Spark's own Kafka
    source."""
    with pytest.raises(UsageError, match=r"an offset for each partition \(0 to 1\) of logs"):
        queried.rows(startingOffsets='{"logs": {"0": 1}}')
    with pytest.raises(UsageError, match="must name the topics that are read: logs, not other"):
        queried.rows(startingOffsets='{"other": {"0": 1}}')
