"""Time and place of the record in its topic."""

from __future__ import annotations

from typing import Any

from skidway.row_columns.column import RowColumn, Rows


class Timestamp(RowColumn):
    """The event time, ms, UTC; its hour decides the row's directory."""

    name, type, rises = "_timestamp", "timestamp", True

    def values(self, rows: Rows) -> Any:
        return rows.timestamps


class Topic(RowColumn):
    """The topic from which the row was read, for example `dc1.nginx`."""

    name, type, in_files = "_topic", "string", False

    def values(self, rows: Rows) -> Any:
        return rows.topic


class Partition(RowColumn):
    """The partition of the record."""

    name, type = "_partition", "int"

    def values(self, rows: Rows) -> Any:
        return rows.partition


class KafkaOffset(RowColumn):
    """The offset of the record in its partition."""

    name, type, rises = "_kafka_offset", "long", True

    def values(self, rows: Rows) -> Any:
        return rows.offsets


class Headers(RowColumn):
    """All headers of the record; null if it has none."""

    name, type, is_null, in_files = "_headers", "headers", True, False

    def values(self, rows: Rows) -> Any:
        return rows.headers


TIMESTAMP = Timestamp()
KAFKA_OFFSET = KafkaOffset()
POSITION = (Partition(), KAFKA_OFFSET)
RECORD = (TIMESTAMP, Topic(), *POSITION, Headers())
