"""`skidway consume --topic T [--group G]`: prints the values of records, or whole records as JSON
lines."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from skidway.cli import profile
from skidway.cli.moments import parse_since
from skidway.cli.options import (
    add_bootstrap_option,
    add_timeout_option,
    add_zookeeper_option,
    bootstrap_server,
    zookeeper,
)
from skidway.cli.streams import write_data
from skidway.cli.topics import connect, existing
from skidway.clock import SystemClock
from skidway.consumer import Consumer, Record
from skidway.errors import UsageError
from skidway.kafka.batch import read_header
from skidway.kafka.client import EARLIEST, LATEST, Client, Fetcher
from skidway.kafka.columns import DecodedRecords, decode
from skidway.kafka.types import TopicPartition
from skidway.printable import printable
from skidway.schemas.consuming.asking import add_registry_option, registry
from skidway.schemas.consuming.values import Value, Values, plain, text_of

LOOK_EVERY_MS = 500
OPEN_S = 2.0
"""After this time, the command says that an open transaction keeps records back."""

Read = Callable[[pa.BinaryArray], list[Value]]


def register(subparsers: Any) -> None:
    """Adds the command `skidway consume`."""
    words = "print records of a topic; Avro by the schemas of a registry"
    parser = subparsers.add_parser("consume", help=words, description=f"{words}.")
    add_bootstrap_option(parser)
    parser.add_argument("--topic", required=True)
    parser.add_argument(
        "--partition",
        type=int,
        action="append",
        metavar="N",
        help="only this one; may be repeated (all)",
    )
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--from-beginning",
        action="store_true",
        help="begin with the oldest records (only new ones)",
    )
    start.add_argument("--offset", type=int, metavar="N", help="begin there; needs one --partition")
    start.add_argument(
        "--since", metavar="TIME", help="begin at 2026-01-31T10:00:00Z, or 90m, 24h, 7d ago"
    )
    parser.add_argument("--max", type=int, metavar="N", help="end after N records")
    add_timeout_option(parser, "end when nothing came for N seconds")
    parser.add_argument(
        "--json", action="store_true", help="a JSON line with offset, timestamp, key and origin"
    )
    add_registry_option(parser)
    parser.add_argument(
        "--raw", action="store_true", help="print values as their bytes, not decoded"
    )
    parser.add_argument(
        "--group",
        metavar="G",
        help="share the topic with the other members of a group, go on where it stopped, and "
        "commit what was printed",
    )
    add_zookeeper_option(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    if args.max is not None and args.max < 1:
        raise UsageError("--max must be at least 1")
    if args.group is not None:
        return _run_in_group(args)
    read = _reader(args)
    with connect(args) as client:
        fetcher = Fetcher(client)
        begin = _positions(client, args)
        for tp, offset in begin.items():
            fetcher.seek(tp, offset)
        left = args.max
        for tp, batch in _batches(fetcher, args.timeout_s):
            written = _write(tp, batch, begin[tp], left, read, as_json=args.json)
            left = None if left is None else left - written
            if left == 0:
                break
    return 0


def _run_in_group(args: argparse.Namespace) -> int:
    """Prints records as a member of a group, and commits the offsets of the printed records."""
    if args.partition or args.offset is not None or args.since is not None:
        raise UsageError("a group gives each member its partitions and offsets: see groups reset")
    with connect(args) as client:
        existing(client, [args.topic])
    read = _reader(args)
    left = args.max
    with Consumer(
        bootstrap_server(args),
        args.group,
        args.topic,
        zookeeper_connect=zookeeper(args),
        security=profile.read().security,
        zookeeper_security=profile.read().zookeeper_security,
        auto_offset_reset="earliest" if args.from_beginning else "latest",
    ) as consumer:
        heard_at = time.monotonic()
        while args.timeout_s is None or time.monotonic() - heard_at < args.timeout_s:
            records = consumer.poll(LOOK_EVERY_MS, max_records=min(left or 500, 500))
            if records:
                heard_at = time.monotonic()
                _print(_record_lines(records, read, as_json=args.json))
            left = None if left is None else left - len(records)
            if left == 0:
                break
    return 0


def _record_lines(records: list[Record], read: Read, *, as_json: bool) -> list[bytes]:
    values = read(pa.array([record.value for record in records], pa.binary()))
    if not as_json:
        return [value.line for value in values]
    return [
        _json(
            {
                "topic": record.topic,
                "partition": record.partition,
                "offset": record.offset,
                "timestamp": record.timestamp,
            },
            record.key,
            value,
        )
        for record, value in zip(records, values, strict=True)
    ]


def _reader(args: argparse.Namespace) -> Read:
    if args.raw:
        return lambda values: [Value(raw) for raw in values.to_pylist()]
    client, is_named = registry(args)
    return Values(client, _note, is_named=is_named).read


def _note(sentence: str) -> None:
    sys.stderr.write(f"skidway consume: {sentence}\n")


def _positions(client: Client, args: argparse.Namespace) -> dict[TopicPartition, int]:
    (topic,) = existing(client, [args.topic])
    count = len(topic.partitions)
    chosen = args.partition or list(range(count))
    if any(not 0 <= partition < count for partition in chosen):
        raise UsageError(f"topic {args.topic} has the partitions 0 to {count - 1} only")
    partitions = [TopicPartition(args.topic, partition) for partition in chosen]
    if args.offset is not None:
        if len(partitions) != 1:
            raise UsageError("--offset needs one --partition: offsets count per partition")
        if args.offset < 0:
            raise UsageError("--offset must be 0 or more")
        return {partitions[0]: args.offset}
    where = EARLIEST if args.from_beginning else LATEST
    if args.since is not None:
        where = parse_since(args.since, SystemClock().time_ms())
    return offsets_at(client, partitions, where)


def offsets_at(
    client: Client, partitions: list[TopicPartition], where: int
) -> dict[TopicPartition, int]:
    """Returns, for each partition, the offset of the first record whose timestamp is `where` or
    later. If all records of a partition are older, returns the partition's log end offset. `where`:
    a time in ms, or LATEST or EARLIEST.
    """
    listed = client.list_offsets(dict.fromkeys(partitions, where))
    found = {tp: each.offset for tp, each in listed.items()}
    later = [tp for tp, offset in found.items() if offset < 0]
    if later:
        ends = client.list_offsets(dict.fromkeys(later, LATEST))
        found.update({tp: each.offset for tp, each in ends.items()})
    return found


def _batches(
    fetcher: Fetcher, timeout_s: float | None
) -> Iterator[tuple[TopicPartition, DecodedRecords]]:
    """Yields batches of records as they arrive from the brokers. Ends when no batch has arrived for
    `timeout_s` seconds. If `timeout_s` is None, never ends."""
    heard_at = time.monotonic()
    told: dict[TopicPartition, int] = {}
    while timeout_s is None or time.monotonic() - heard_at < timeout_s:
        for fetched in fetcher.poll(LOOK_EVERY_MS):
            for raw in fetched.batches:
                if not read_header(raw).is_control:
                    yield fetched.tp, decode(raw)
            heard_at = time.monotonic()
        sys.stdout.flush()
        for tp, each in fetcher.open_transactions.items():
            if told.get(tp) != each.offset and time.monotonic() - each.since > OPEN_S:
                told[tp] = each.offset
                _note(f"{tp} ends at offset {each.offset} now: a transaction is open there")


def _write(
    tp: TopicPartition,
    batch: DecodedRecords,
    begin: int,
    left: int | None,
    read: Read,
    *,
    as_json: bool,
) -> int:
    """Prints at most `left` records of a batch, from offset `begin` on. Returns how many records it
    printed."""
    rows = [row for row in range(len(batch.offsets)) if batch.offsets[row] >= begin][:left]
    if not rows:
        return 0
    values = read(batch.values.slice(rows[0], len(rows)))
    if as_json:
        _print([_batch_json(tp, batch, row, v) for row, v in zip(rows, values, strict=True)])
    else:
        _print([value.line for value in values])
    return len(rows)


def _print(lines: list[bytes]) -> None:
    write_data(b"".join(line + b"\n" for line in lines))


def _batch_json(tp: TopicPartition, batch: DecodedRecords, row: int, value: Value) -> bytes:
    origin = None
    if batch.origins is not None and batch.has_origin[row]:
        names = ("agent", "file", "first", "length")
        origin = {name: int(getattr(batch.origins, name)[row]) for name in names}
    where = {
        "topic": tp.topic,
        "partition": tp.partition,
        "offset": int(batch.offsets[row]),
        "timestamp": int(batch.timestamps[row]),
    }
    return _json(where, batch.keys[row].as_py(), value, {"origin": origin})


def _json(
    where: dict[str, Any], key: bytes | None, value: Value, more: dict[str, Any] | None = None
) -> bytes:
    document = {**where, **_text("key", key)}
    if value.schema_id is None:
        document |= _text("value", value.raw)
    else:
        document |= {"schema_id": value.schema_id, "value": plain(value.decoded)}
    return printable(json.dumps({**document, **(more or {})}, ensure_ascii=False)).encode()


def _text(name: str, value: bytes | None) -> dict[str, str | None]:
    if value is None:
        return {name: None}
    suffix, text = text_of(value)
    return {name + suffix: text}
