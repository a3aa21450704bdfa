"""An example of rejected lines is one bounded line of text, and belongs to the time that was asked
for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from skidway.kafka import columns
from skidway.kafka.batch import read_header
from skidway.kafka.client import Client
from skidway.kafka.columns import DecodedRecords
from skidway.kafka.types import TopicPartition
from skidway.schemas import wire
from skidway.schemas.codec import Codec
from skidway.schemas.consuming import rejected_lines
from skidway.schemas.consuming.rejected_examples import (
    RECORDS_MAX,
    TEXT_BYTES_MAX,
    RejectedExample,
    rejected_example,
    shown_text,
)
from skidway.schemas.consuming.rejected_lines import NUL_BYTES, WITHHELD, Wanted
from skidway.schemas.single_object import schema_text
from support.clock import ManualClock
from support.memory_kafka import MemoryClient, MemoryCluster

TOPIC = "dc1.logs.rejected"
TP = TopicPartition(TOPIC, 0)
TEXTS, NUMBERS = ("topic", "reason", "detail", "host", "path"), ("agent", "file", "first", "length")
SCHEMA = pa.schema(
    [*((x, pa.string()) for x in TEXTS), ("line", pa.binary()), *((x, pa.int64()) for x in NUMBERS)]
)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> MemoryCluster:
    """A cluster with an empty topic of rejected lines."""
    made = MemoryCluster()
    made.create(TOPIC)

    def read(
        _: Client, ranges: Mapping[TopicPartition, tuple[int, int]]
    ) -> Iterator[tuple[TopicPartition, DecodedRecords]]:
        for tp, (first, end) in ranges.items():
            for data in made.log(tp).batches:
                header = read_header(data)
                if header.last_offset >= first and header.base_offset < end:
                    yield tp, columns.decode(memoryview(data))

    monkeypatch.setattr(rejected_lines, "read_ranges", read)
    return made


def reject(cluster: MemoryCluster, time_ms: int, *lines: bytes, **others: Any) -> None:
    """Appends a batch with these rejected lines."""
    own = {
        "topic": "logs", "reason": "no-match", "detail": "", "host": "web1",
        "path": "/var/log/a.log", "agent": 5, "file": 7,
    } | others  # fmt: skip
    start = cluster.log(TP).end * 100
    rows = [
        {"first": start + 100 * at, "line": line, "length": len(line) + 1, **own}
        for at, line in enumerate(lines)
    ]
    datums = Codec(schema_text("Rejected")).encode(pa.RecordBatch.from_pylist(rows, SCHEMA))
    values = wire.add_prefix(1, datums)
    times = np.full(len(lines), time_ms, np.int64)
    cluster.log(TP).append(columns.encode(values, times))


def example(cluster: MemoryCluster, since: int, until: int, agent: int = 5) -> RejectedExample:
    client = cast(Client, MemoryClient(cluster, ManualClock()))
    wanted = Wanted(since=since, until=until)
    found = rejected_example(client, "dc1.logs", wanted, lambda x: bool(x["agent"] == agent))
    assert found is not None
    return found


def test_an_example_is_a_line_of_its_time(cluster: MemoryCluster) -> None:
    """The example is the first line that was rejected in the time span, with the places of its
    record and of the line."""
    reject(cluster, 100, b"before")
    reject(cluster, 200, b"one", b"two", detail="group 3")
    found = example(cluster, 150, 250)
    assert (found.text, found.tp, found.offset, found.time_ms) == ("one", TP, 1, 200)
    assert found.where == (
        "dc1.logs.rejected-0 at offset 1 (web1:/var/log/a.log byte 100, no-match: group 3)"
    )


def test_an_example_is_of_the_agent_that_is_meant(cluster: MemoryCluster) -> None:
    """A line of the agent that is meant comes before earlier lines of other agents. If the agent
    has none, the example is a line of another agent."""
    reject(cluster, 200, b"of another", agent=6)
    reject(cluster, 200, b"of this one")
    assert example(cluster, 200, 201).text == "of this one"
    assert example(cluster, 200, 201, agent=9).text == "of another"


def test_the_search_for_an_example_is_bounded(cluster: MemoryCluster) -> None:
    """The search reads at most RECORDS_MAX records of a partition."""
    reject(cluster, 200, *[b"x"] * RECORDS_MAX, agent=6)
    reject(cluster, 200, b"y")
    assert example(cluster, 200, 201).text == "x"


def test_there_is_no_example_without_rejects(cluster: MemoryCluster) -> None:
    """If no line was rejected in the time span, there is no example."""
    reject(cluster, 100, b"before")
    client = cast(Client, MemoryClient(cluster, ManualClock()))
    assert rejected_example(client, "dc1.logs", Wanted(since=150, until=250)) is None


@pytest.mark.parametrize(
    ("line", "others", "expected"),
    [
        (b"plain \\ text", {}, "plain \\ text"),
        (b"\x1b[31mred\x07", {}, "\\x1b[31mred\\x07"),
        (b"caf\xe9 caf\xc3\xa9", {}, "caf\\xe9 café"),
        ("a\u202eb\u2028c".encode(), {}, "a\\u202eb\\u2028c"),
        (b"x" * 400, {}, "x" * TEXT_BYTES_MAX + "…"),
        (b"the head", {"length": 5_000}, "the head…"),
        (WITHHELD, {"length": 5_000}, "[withheld]"),
        (b"", {"length": 5_000, "reason": NUL_BYTES}, "(5,000 NUL bytes)"),
    ],
)
def test_the_text_of_an_example_is_printable_and_short(
    cluster: MemoryCluster, line: bytes, others: dict[str, Any], expected: str
) -> None:
    """The text has at most TEXT_BYTES_MAX bytes of the line. It has escapes for everything that
    would change a terminal or the order of the text, and a mark if more of the line follows."""
    reject(cluster, 200, line, **others)
    assert example(cluster, 200, 201).text == expected


def test_a_character_is_not_cut(cluster: MemoryCluster) -> None:
    """A cut never shows a part of a character."""
    for size in range(1, 12):
        shown = shown_text("aé€😀z".encode(), size)
        assert "aé€😀z".startswith(shown.removesuffix("…"))
    assert shown_text("aé€😀z".encode(), 11) == "aé€😀z"
