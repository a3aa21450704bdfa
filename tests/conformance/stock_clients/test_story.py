"""Every unmodified stock client goes through the same steps, from the creation of a topic to its
deletion.

Tests of clients that need Node, Go or a Debian package have the pytest mark `foreign`. If a client
lacks a command, either the test uses librdkafka for it, or the test does not run with this client.
`support.stock_clients` says which of the two happens.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import pytest

from skidway.kafka.batch import BatchHeader, headers
from skidway.kafka.codecs import BY_NAME, codec_of
from support import peers
from support.brokers import SkidwayBroker
from support.kafka import topic_name
from support.stock_clients import CLIENTS, Driver, StockClient
from support.story import COUNT, FIRST_MS, each_client, each_codec, records

DOCS = peers.ROOT / "docs" / "clients.md"


class Written(NamedTuple):
    """A topic, and the expected values of its records."""

    topic: str
    values: list[str]


def stored(broker: SkidwayBroker, topic: str, partition: int = 0) -> list[BatchHeader]:
    """Returns the headers of all batches in the files of the partition's log."""
    files = sorted((broker.logs / f"{topic}-{partition}").glob("*.log"))
    return [header for file in files for _, header in headers(memoryview(file.read_bytes()))]


def assert_same(found: list[dict[str, Any]], sent: list[dict[str, Any]], *, first: int = 0) -> None:
    """Asserts that the found records are the sent records, each once, in order and with all fields.
    The first record has the offset `first`."""
    assert [each["value"] for each in found] == [each["value"] for each in sent]
    assert [each["offset"] for each in found] == list(range(first, first + len(sent)))
    for name in ("key", "headers", "partition"):
        assert [each[name] for each in found] == [each[name] for each in sent]
    for each, original in zip(found, sent, strict=True):
        assert original["timestamp"] in (None, each["timestamp"])


def create_by(driver: Driver, partitions: int = 1) -> str:
    """Creates a topic with the client of this driver, and returns the topic's name."""
    topic = topic_name("story")
    driver.ask("create", topic=topic, partitions=partitions)
    return topic


@each_client()
def test_the_version_is_the_one_that_docs_name(client: StockClient, driver: Driver) -> None:
    """Each client has the version that docs/clients.md gives for it."""
    assert driver.ask("version") == {"version": client.version}
    assert f"| {client.name} | {client.version} |" in DOCS.read_text()


@each_client()
def test_topics_are_created_and_described(
    client: StockClient, driver: Driver, reference: Driver
) -> None:
    """A topic that the client creates has the requested number of partitions, and is in the
    client's list of topics."""
    topic = create_by(reference if "create" in client.lacks else driver, 3)
    assert driver.ask("describe", topic=topic) == {"partitions": [0, 1, 2]}
    assert topic in driver.ask("topics")["topics"]


@each_codec()
def test_what_is_produced_comes_back(
    client: StockClient, codec: str, driver: Driver, reference: Driver, story_broker: SkidwayBroker
) -> None:
    """With every codec, the log stores the batches as the client compressed them. Both the client
    and librdkafka can read the records that were sent."""
    topic = create_by(reference)
    sent = records(codec, timed="timestamps" not in client.lacks)
    driver.ask("produce", topic=topic, codec=codec, acks=-1, idempotent=False, records=sent)
    for reader in (driver, reference):
        got = reader.ask("consume", topic=topic, partition=0, offset=0, count=COUNT)
        assert_same(got["records"], sent)
    assert {codec_of(header) for header in stored(story_broker, topic)} == {BY_NAME[codec]}


@each_client()
def test_every_acks_and_every_offset(
    client: StockClient, driver: Driver, reference: Driver
) -> None:
    """Every record that the client produces arrives, with acks=1 and with acks=0. A consumer can
    begin at any offset, even within a batch."""
    topic = create_by(reference)
    sent = records("acks", timed="timestamps" not in client.lacks)
    for acks, part in ((1, sent[:100]), (0, sent[100:])):
        driver.ask("produce", topic=topic, codec="none", acks=acks, idempotent=False, records=part)
    reference.ask("consume", topic=topic, partition=0, offset=0, count=COUNT)
    assert driver.ask("offsets", topic=topic, partition=0) == {"first": 0, "end": COUNT}
    got = driver.ask("consume", topic=topic, partition=0, offset=55, count=COUNT - 55)
    assert_same(got["records"], sent[55:], first=55)


@pytest.fixture(scope="session")
def library(drivers: Callable[[StockClient], Driver]) -> Callable[[bool], Written]:
    """Returns a function that fills a topic with batches of every client and codec. Its argument
    says whether the clients with the pytest mark `foreign` write too."""

    @cache
    def written(foreign: bool) -> Written:
        topic, values = create_by(drivers(CLIENTS["confluent-kafka"])), []
        for writer in CLIENTS.values():
            for codec in writer.codecs if foreign or not writer.foreign else ():
                part = records(f"{writer.name}-{codec}", range(10))
                drivers(writer).ask(
                    "produce", topic=topic, codec=codec, acks=-1, idempotent=False, records=part
                )
                values += [each["value"] for each in part]
        return Written(topic, values)

    return written


@each_client()
def test_it_reads_what_the_others_wrote(
    client: StockClient, driver: Driver, library: Callable[[bool], Written]
) -> None:
    """Each client can read the batches that the other clients have written, with every codec. A
    client without the mark `foreign` reads only batches of the other clients without this mark."""
    topic, values = library(client.foreign)
    got = driver.ask("consume", topic=topic, partition=0, offset=0, count=len(values))
    assert [each["value"] for each in got["records"]] == values


@each_client()
def test_idempotent_producers_are_served(
    client: StockClient, driver: Driver, reference: Driver, story_broker: SkidwayBroker
) -> None:
    """An idempotent producer gets a producer id, and every record is stored once."""
    topic = create_by(reference)
    sent = records("idempotent", timed="timestamps" not in client.lacks)
    driver.ask("produce", topic=topic, codec="none", acks=-1, idempotent=True, records=sent)
    got = driver.ask("consume", topic=topic, partition=0, offset=0, count=COUNT)
    assert_same(got["records"], sent)
    found = stored(story_broker, topic)
    assert all(header.producer_id >= 0 for header in found)
    assert [header.base_sequence for header in found] == [header.base_offset for header in found]


@each_client("offset_at")
def test_offsets_are_found_by_time(client: StockClient, driver: Driver, reference: Driver) -> None:
    """A look-up by time finds the first record with a timestamp at or after the given time. For a
    time after the last record, the look-up finds no record."""
    topic = create_by(reference)
    writer = reference if "timestamps" in client.lacks else driver
    sent = records("timed", range(100))
    writer.ask("produce", topic=topic, codec="gzip", acks=-1, idempotent=False, records=sent)
    none = 100 if "none later" in client.lacks else -1
    for milliseconds, offset in ((-10, 0), (41_500, 42), (42_000, 42), (99_001, none)):
        asked = FIRST_MS + milliseconds
        found = driver.ask("offset_at", topic=topic, partition=0, timestamp=asked)
        assert found == {"offset": offset}, milliseconds


@each_client("delete")
def test_topics_are_deleted(client: StockClient, driver: Driver) -> None:
    """A deleted topic is no longer listed. If a topic with the same name is created again, it is
    empty."""
    topic = create_by(driver)
    driver.ask(
        "produce", topic=topic, codec="none", acks=-1, idempotent=False, records=records("old")
    )
    driver.ask("delete", topic=topic)
    assert topic not in driver.ask("topics")["topics"]
    driver.ask("create", topic=topic, partitions=2)
    assert driver.ask("describe", topic=topic) == {"partitions": [0, 1]}
    assert driver.ask("offsets", topic=topic, partition=0) == {"first": 0, "end": 0}
