"""Tests messages whose counts and seals are stored as columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skidway.audit.counts import bucket
from skidway.audit.topic import count_columns, seal_columns, usual_messages
from skidway.audit.topic.count_columns import LONGEST_MS, Count, CountColumns, Filtered
from skidway.audit.topic.field_bounds import FARTHEST_MS
from skidway.audit.topic.messages import (
    Delta,
    Message,
    MessageRefused,
    Seal,
    Sender,
    Tier,
    decode,
    encode,
)
from skidway.audit.topic.seal_columns import SealColumns, SealedTopic
from skidway.kafka.source import Source
from skidway.schemas import single_object

LOGS, OTHER = Source("dc1", "cid", "logs", "1"), Source('d"c\n2', "", "other", "2")
SENDER = Sender(Tier.AGENT, "dc1", "7", "host", 1)
COUNTS = (
    Count(LOGS, 7, 60, 60, 1, 2, -3, 4, 5, 6, (Filtered("debug", 8, 9), Filtered("health", 1, 2))),
    Count(OTHER, 7, 60, 60, 1, 2, 3),
    Count(LOGS, 7, -60, 60, 1, 2, (1 << 63) - 1, previous=-1),
)
SEALS = (
    SealedTopic(LOGS, 9, 4, ((0, 5), (3, 7))),
    SealedTopic(OTHER, 0, 4),
    SealedTopic(replace(OTHER, topic_id="3"), 9, 5, ((1, 1),), final=True),
)


def test_columns_are_the_sequence_they_were_made_of() -> None:
    """Counts and seals in columns are equal to the values from which they were made, in their
    number, their order and each field, including filtered records and the offsets of a seal."""
    for values, columns in ((COUNTS, CountColumns.of(COUNTS)), (SEALS, SealColumns.of(SEALS))):
        assert columns == values
        assert values == columns
        assert columns != values[:-1]
        assert (len(columns), columns[1], columns[-2:]) == (3, values[1], values[-2:])
        assert (hash(columns), repr(columns)) == (hash(values), repr(values))
        assert type(columns).of(columns) is columns
    assert (len(CountColumns.of([])), len(SealColumns.of([]))) == (0, 0)


def damaged(message: Message, part: str, **changes: Any) -> bytes:
    """Encodes the message, but with other values in one of its fields, which must be an Avro
    record. `part` is the name of this field, and `changes` gives the new values."""
    name, record = single_object.decode(encode(message))
    return single_object.encode(name, record | {part: record[part] | changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"sources": ""},
        {"sources": "7"},
        {"sources": '["dc1","cid","logs"]'},
        {"sources": '["dc1","cid","logs",1]'},
        {"sources": "[]"},
        {"sources": "[" * 100_000},
        {"sources": '["dc1","cid","\\ud800","1","","","",""]'},
        {"table": b"1234567"},
        {"table": bytes(8 * 11)},
    ],
)
def test_damaged_columns_are_refused(changes: dict[str, Any]) -> None:
    """If the columns of a message are damaged or do not fit together, decoding raises
    MessageRefused."""
    for value in (
        damaged(Delta(SENDER, 1, 0, counts=COUNTS), "columns", **changes),
        damaged(Seal(SENDER, 1, 0, SEALS), "sealed", **changes),
    ):
        with pytest.raises(MessageRefused):
            decode(value)


@pytest.mark.parametrize("remembered", [0, 4096])
@pytest.mark.parametrize("index", [3, -1])
def test_an_index_that_points_nowhere_is_refused(
    monkeypatch: pytest.MonkeyPatch, index: int, remembered: int
) -> None:
    """In a message with columns, counts and offsets name a topic by its index, and an entry of
    filtered records (those that a rule left out) names a count by its index. A message is refused
    if an index leads to no topic or count. This is so even if the message is so large that the
    decoder does not remember the result of its check."""
    monkeypatch.setattr(seal_columns, "CHECKED_BYTES_MAX", remembered)
    rule = {"index": index, "rule": "debug", "records": 1, "bytes": 1}
    with pytest.raises(MessageRefused, match="there is no count"):
        decode(damaged(Delta(SENDER, 1, 0, counts=COUNTS), "columns", filtered=[rule]))
    offset = b"".join(x.to_bytes(8, "little", signed=True) for x in (index, 0, 0))
    with pytest.raises(MessageRefused, match="names none of the 3 sources"):
        decode(damaged(Seal(SENDER, 1, 0, SEALS), "sealed", offsets=offset))
    table = CountColumns.of(COUNTS).table.copy()
    table[0, 1] = index
    with pytest.raises(MessageRefused, match="do not name the 2 sources"):
        decode(damaged(Delta(SENDER, 1, 0, counts=COUNTS), "columns", table=table.tobytes()))


@pytest.mark.parametrize(
    ("bucket", "bucket_ms", "reason"),
    [
        (0, 0, "a bucket has no length"),
        (0, -60_000, "a bucket has no length"),
        (0, LONGEST_MS + 1, "or is longer than a day"),
        (0, 2**63 - 1, "or is longer than a day"),
        (FARTHEST_MS + 1, 60_000, "a bucket begins too far from 1970"),
        (2**63 - 1, 60_000, "a bucket begins too far from 1970"),
        (-FARTHEST_MS - 1, 60_000, "a bucket begins too far from 1970"),
        (-(2**63), 60_000, "a bucket begins too far from 1970"),
    ],
)
@pytest.mark.parametrize("remembered", [0, 4096])
def test_buckets_that_cannot_exist_are_refused(
    monkeypatch: pytest.MonkeyPatch, bucket: int, bucket_ms: int, reason: str, remembered: int
) -> None:
    """A message is refused if one of its buckets has no length, is longer than a day, or begins
    millions of years before or after 1970. Otherwise one message could make the collector fail at
    each start, or keep it from answering. A message with such a bucket is refused even if the
    message is so large that the decoder does not remember the result of its check."""
    monkeypatch.setattr(count_columns, "CHECKED_BYTES_MAX", remembered)
    table = CountColumns.of(COUNTS).table.copy()
    table[2:4, 1] = bucket, bucket_ms
    value = damaged(Delta(SENDER, 1, 0, counts=COUNTS), "columns", table=table.tobytes())
    for decoded in (decode, usual_messages.decode):
        with pytest.raises(MessageRefused, match=reason):
            decoded(value)


@pytest.mark.parametrize("bucket_ms", [1_000, 60_000, 7 * 60_000, LONGEST_MS])
@pytest.mark.parametrize("time_ms", [-(2**63), -1, 253_402_300_799_999, 2**63 - 1])
def test_no_message_of_a_program_is_refused_for_its_buckets(time_ms: int, bucket_ms: int) -> None:
    """A record's timestamp may be any 64-bit number. Even for the smallest and the largest
    timestamp, and for every size of buckets that the settings allow, the program counts the record
    in a bucket that a message can have."""
    start = int(bucket.start(np.array([time_ms]), bucket_ms)[0])
    count = Count(LOGS, 7, start, bucket_ms, 1, 2, 3)
    said = Delta(SENDER, 1, 0, counts=(count,))
    for decoded in (decode, usual_messages.decode):
        assert decoded(encode(said)) == said


def test_a_source_that_nothing_names_is_refused() -> None:
    """A message that names a source topic, but has no counts of this topic, is refused. Otherwise
    one message could add thousands of topics to the audit."""
    sources = CountColumns.of(
        [*COUNTS, Count(replace(LOGS, topic="third"), 7, 0, 1, 1, 1, 1)]
    ).names
    with pytest.raises(MessageRefused, match="do not name the 3 sources"):
        decode(damaged(Delta(SENDER, 1, 0, counts=COUNTS), "columns", sources=sources))
