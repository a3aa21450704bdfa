"""Reads and checks the options of a query. If Spark's own Kafka source has an option of the same
name, the option has the same meaning here, except for the differences that docs/spark.md lists.

| option | meaning |
|---|---|
| kafka.bootstrap.servers | host:port of brokers, several separated by commas; required |
| subscribe | topics, separated by commas |
| subscribePattern | regular expression (of Python) that must match a topic's whole name |
| startingOffsets | earliest (default of queries), latest (of streams), or JSON |
| endingOffsets | latest (default), or JSON; queries only |
| startingTimestamp | only rows with this event time (in ms) or a later one |
| endingTimestamp | only rows with an earlier event time (in ms) than this |
| maxOffsetsPerTrigger | about how many offsets one batch of a stream has; no limit by default |
| maxRecordsPerPartition | at most how many offsets one task reads (400000) |
| failOnDataLoss | true (default): fail if records are missing; false: warn |
| includeHeaders | true: rows have the column `_headers` (default false) |
| includeHostAndFile | true: rows have the columns `_host` and `_file` (default false) |
| undecodable | `fail` (default) or `skip` a record whose value cannot be decoded |
| kafka.security.protocol | PLAINTEXT (default), SSL, SASL_PLAINTEXT or SASL_SSL |
| kafka.ssl.{ca,certificate,key,crl}.location | PEM files, on every host that runs tasks |
| kafka.ssl.endpoint.identification.algorithm | https (default), or none: names are not checked |
| kafka.sasl.mechanism | PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 |
| kafka.sasl.username | who the query logs in as |
| kafka.sasl.password.location | file with the password, on every host that runs tasks |
| schema.registry.url | registry whose schemas decode values; if not set: columns `key`, `value` |
| schema.registry.basic.auth.user.info.location | file with user:password, on those hosts |
| schema.registry.ssl.{ca,certificate,key}.location | PEM files, on every host that runs tasks |

A query must set exactly one of `subscribe` and `subscribePattern`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skidway.errors import ConfigurationRefused, UsageError
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.security import NAMES as SECURITY_NAMES
from skidway.kafka.security import KafkaSecurity
from skidway.loader.datasource.positions import EARLIEST, LATEST, Given, given
from skidway.schemas.client import RegistryConnection, Security

RECORDS_PER_PARTITION: Final = 400_000
NAMES: Final = (
    "kafka.bootstrap.servers",
    "subscribe",
    "subscribePattern",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "maxOffsetsPerTrigger",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "includeHostAndFile",
    "undecodable",
    *(f"kafka.{name}" for name in SECURITY_NAMES),
    "schema.registry.url",
    "schema.registry.basic.auth.user.info.location",
    "schema.registry.ssl.ca.location",
    "schema.registry.ssl.certificate.location",
    "schema.registry.ssl.key.location",
)
"""The names of the options, with upper and lower case as in docs/spark.md. Spark ignores case in
the names of options."""


CLIENT_ID: Final = "skidway-spark"


@dataclass(frozen=True, slots=True)
class Options:
    """The checked options of one query. None, an empty text or an empty tuple means that the option
    is not set.

    starting, ending: EARLIEST, LATEST, or positions. since_ms, until_ms: the query returns only
    rows with event times in [since_ms, until_ms).
    """

    kafka: KafkaConnection
    topics: tuple[str, ...]
    pattern: str | None
    starting: Given | None
    ending: Given | None
    since_ms: int | None
    until_ms: int | None
    offsets_per_trigger: int | None
    records_per_partition: int
    fail_on_data_loss: bool
    with_headers: bool
    with_places: bool
    skip_undecodable: bool
    registry: RegistryConnection

    @staticmethod
    def of(texts: Mapping[str, str]) -> Options:
        """Returns the checked options. Raises UsageError if a required option is missing, if an
        option is unknown, or if the value of an option is invalid."""
        value = _Texts(texts)
        topics = tuple(each.strip() for each in value["subscribe"].split(",") if each.strip())
        pattern = value["subscribePattern"] or None
        if bool(topics) == bool(pattern):
            raise UsageError(
                "format skidway needs one of the options subscribe and subscribePattern"
            )
        return Options(
            kafka=KafkaConnection(
                value.required("kafka.bootstrap.servers"),
                CLIENT_ID,
                security=_kafka_security(value),
            ),
            topics=tuple(dict.fromkeys(topics)),
            pattern=_pattern(pattern),
            starting=given("startingOffsets", value["startingOffsets"]),
            ending=_ending(given("endingOffsets", value["endingOffsets"])),
            since_ms=value.number("startingTimestamp"),
            until_ms=value.number("endingTimestamp"),
            offsets_per_trigger=value.number("maxOffsetsPerTrigger", least=1),
            records_per_partition=value.number("maxRecordsPerPartition", least=1)
            or RECORDS_PER_PARTITION,
            fail_on_data_loss=value.choice("failOnDataLoss", "true", "false") == "true",
            with_headers=value.choice("includeHeaders", "false", "true") == "true",
            with_places=value.choice("includeHostAndFile", "false", "true") == "true",
            skip_undecodable=value.choice("undecodable", "fail", "skip") == "skip",
            registry=RegistryConnection(value["schema.registry.url"], _security(value)),
        )

    def check_batch(self) -> None:
        """Raises UsageError if `startingOffsets` is `latest`, because only a stream may begin
        there."""
        if self.starting == LATEST:
            raise UsageError("option startingOffsets: only a stream can begin at latest")

    def check_stream(self) -> None:
        """Raises UsageError for an option that only a batch query may have."""
        for name, is_set in (
            ("endingOffsets", self.ending is not None),
            ("endingTimestamp", self.until_ms is not None),
        ):
            if is_set:
                raise UsageError(f"option {name}: a stream has no end")


class _Texts:
    """The texts of all options. The text of an option that is not set is empty."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = {key.lower(): value for key, value in texts.items()}
        known = {name.lower() for name in NAMES} | {"path"}
        unknown = sorted(set(self._texts) - known)
        if unknown:
            raise UsageError(
                f"format skidway has no option {unknown[0]}; it has {', '.join(NAMES)}"
            )

    def __getitem__(self, name: str) -> str:
        return self._texts.get(name.lower()) or ""

    def required(self, name: str) -> str:
        if not self[name]:
            raise UsageError(f"format skidway needs the option {name}")
        return self[name]

    def choice(self, name: str, default: str, other: str) -> str:
        text = self[name].lower() or default
        if text not in (default, other):
            raise UsageError(f"option {name} is {default} or {other}, not {self[name]!r}")
        return text

    def number(self, name: str, *, least: int = 0) -> int | None:
        text = self[name]
        if not text:
            return None
        if not (text.isascii() and text.isdigit()) or int(text) < least:
            raise UsageError(f"option {name} is a number of at least {least}, not {text!r}")
        return int(text)


def _pattern(text: str | None) -> str | None:
    try:
        return text and re.compile(text).pattern
    except re.error as error:
        raise UsageError(
            f"option subscribePattern: {text!r} is no regular expression: {error}"
        ) from error


def _ending(ending: Given | None) -> Given | None:
    if ending == EARLIEST:
        raise UsageError("option endingOffsets is latest or JSON, not earliest")
    return ending


def _kafka_security(value: _Texts) -> KafkaSecurity:
    try:
        return KafkaSecurity.of({name: value[f"kafka.{name}"] for name in SECURITY_NAMES})
    except ConfigurationRefused as error:
        raise UsageError(f"option kafka.{error}") from error


def _security(value: _Texts) -> Security:
    def file(name: str) -> Path | None:
        text = value[f"schema.registry.{name}.location"]
        return Path(text) if text else None

    names = ("basic.auth.user.info", "ssl.ca", "ssl.certificate", "ssl.key")
    return Security(*map(file, names))
