"""Reads one offset range of a query, in a Python worker of Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from skidway.clock import SystemClock
from skidway.kafka.batch import read_header
from skidway.kafka.client import EARLIEST, Client
from skidway.kafka.errors import OffsetOutOfRange
from skidway.kafka.source import sources_of
from skidway.kafka.types import TopicPartition
from skidway.loader.datasource import losses
from skidway.loader.datasource.announcements import announcements_of
from skidway.loader.datasource.options import Options
from skidway.loader.datasource.ranges import OffsetRange
from skidway.loader.datasource.rows import Places, Rows, needs_places, needs_values
from skidway.loader.datasource.schemas import registry_of
from skidway.loader.datasource.subscription import id_in
from skidway.loader.reading.batches import batches
from skidway.loader.reading.decoder import Decoder


def read(part: OffsetRange, wanted: pa.Schema, options: Options) -> Iterator[pa.RecordBatch]:
    """Yields the rows of one offset range, in at most one Arrow batch for each record batch.

    If records are missing and `failOnDataLoss` is true, raises DataLost. If a value cannot be
    decoded, raises SkidwayError or skips the record, as the option `undecodable` says.
    """
    with options.kafka.client() as client:
        if not _is_same_topic(client, part, options):
            return
        decoder = None
        if needs_values(part, wanted, options):
            decoder = Decoder(registry_of(options), part.schema)
        places = _places(client, part, options) if needs_places(wanted) else None
        rows = Rows(part, wanted, options, decoder, places)
        for raw in batches_of(client, part, fails=options.fail_on_data_loss):
            made = rows.of(raw)
            if made.num_rows:
                yield made
        _is_same_topic(client, part, options)  # fails or warns if the topic was created again


def batches_of(client: Client, part: OffsetRange, *, fails: bool) -> Iterator[memoryview]:
    """Yields the record batches of a range. fails: whether to raise DataLost if records expire
    before they are read."""
    tp, at = TopicPartition(part.topic, part.partition), part.first
    while at < part.end:
        try:
            for raw in batches(client, tp, at):
                header = read_header(raw)
                if header.base_offset >= part.end:
                    return
                at = header.last_offset + 1
                yield raw
                if at >= part.end:
                    return
        except OffsetOutOfRange:
            sentence = f"{part.topic} partition {part.partition}: offset {at} was there when the "
            losses.report([f"{sentence}query began, and has expired"], fails=fails)
            begin = client.list_offsets({tp: EARLIEST})[tp].offset
            if begin <= at:
                return  # the log ends before offset `at`
            at = begin


def _is_same_topic(client: Client, part: OffsetRange, options: Options) -> bool:
    """Returns whether the topic still has the id that it had when the query was planned. If the id
    has changed and `failOnDataLoss` is true, raises DataLost."""
    now = id_in(client.metadata([part.topic]), part.topic)
    if not part.topic_id or now == part.topic_id:
        return True
    sentence = f"the topic {part.topic} was deleted, or made again, while it was read"
    losses.report([sentence], fails=options.fail_on_data_loss)
    return False


def _places(client: Client, part: OffsetRange, options: Options) -> Places:
    announced = announcements_of(options.kafka)
    announced.read_on(client, sources_of(client, [part.topic], "").values(), SystemClock())
    return announced.columns
