"""`skidway consume --topic T [--group G]`: prints records, as plain values or as JSON lines."""

from __future__ import annotations

import argparse
import base64
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from skidway.cli.options import add_bootstrap_option, add_zookeeper_option
from skidway.cli.topics import connect, existing
from skidway.errors import UsageError
from skidway.kafka.batch import read_header
from skidway.kafka.client import EARLIEST, LATEST, Client, Fetcher
from skidway.kafka.columns import DecodedBatch, decode
from skidway.kafka.consumer import Consumer, Record
from skidway.kafka.types import TopicPartition

LOOK_EVERY_MS = 500


def register(subparsers: Any) -> None:
    """Adds the noun `consume`."""
    parser = subparsers.add_parser("consume", help="print records of a topic")
    add_bootstrap_option(parser)
    parser.add_argument("--topic", required=True)
    parser.add_argument(
        "--partition", type=int, action="append", metavar="N", help="may be repeated; else all"
    )
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--from-beginning", action="store_true", help="else only new records")
    start.add_argument("--offset", type=int, metavar="N", help="with one --partition: begin there")
    parser.add_argument("--max", type=int, metavar="N", help="end after N records")
    parser.add_argument(
        "--timeout", type=float, metavar="S", help="end when nothing came for S seconds"
    )
    parser.add_argument(
        "--json", action="store_true", help="a JSON line with offset, timestamp, key and origin"
    )
    parser.add_argument(
        "--group",
        metavar="G",
        help="share the topic with the other members of a group, go on where it stopped, and "
        "commit what was printed; needs --zookeeper",
    )
    add_zookeeper_option(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    if args.max is not None and args.max < 1:
        raise UsageError("--max must be at least 1")
    if args.group is not None:
        return _run_in_group(args)
    with connect(args) as client:
        fetcher = Fetcher(client)
        begin = _positions(client, args)
        for tp, offset in begin.items():
            fetcher.seek(tp, offset)
        left = args.max
        for tp, batch in _batches(fetcher, args.timeout):
            written = _write(tp, batch, begin[tp], left, _json_line if args.json else _value_line)
            left = None if left is None else left - written
            if left == 0:
                break
    return 0


def _run_in_group(args: argparse.Namespace) -> int:
    """Prints as a member of a group. What was written out is done with, and committed."""
    if args.partition or args.offset is not None:
        raise UsageError("a group gives each member its partitions and offsets: see groups reset")
    with connect(args) as client:
        existing(client, [args.topic])
    line = record_json if args.json else record_value
    left = args.max
    with Consumer(
        args.bootstrap_server,
        args.zookeeper,
        args.group,
        args.topic,
        auto_offset_reset="earliest" if args.from_beginning else "latest",
    ) as consumer:
        heard_at = time.monotonic()
        while args.timeout is None or time.monotonic() - heard_at < args.timeout:
            records = consumer.poll(LOOK_EVERY_MS, max_records=min(left or 500, 500))
            if records:
                heard_at = time.monotonic()
            sys.stdout.buffer.write(b"".join(line(record) + b"\n" for record in records))
            sys.stdout.flush()
            left = None if left is None else left - len(records)
            if left == 0:
                break
    return 0


def record_value(record: Record) -> bytes:
    """A record as its value."""
    return record.value or b""


def record_json(record: Record) -> bytes:
    """A record as a JSON line."""
    document = {**record._asdict(), **_text("key", record.key), **_text("value", record.value)}
    for name in ("key", "value"):
        if isinstance(document[name], bytes):
            del document[name]
    return json.dumps(document, ensure_ascii=False).encode()


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
    listed = client.list_offsets(dict.fromkeys(partitions, where))
    return {tp: found.offset for tp, found in listed.items()}


def _batches(
    fetcher: Fetcher, timeout_s: float | None
) -> Iterator[tuple[TopicPartition, DecodedBatch]]:
    """Batches as they come, until none came for `timeout_s` seconds (None: for ever)."""
    heard_at = time.monotonic()
    while timeout_s is None or time.monotonic() - heard_at < timeout_s:
        for fetched in fetcher.poll(LOOK_EVERY_MS):
            for raw in fetched.batches:
                if not read_header(raw).is_control:
                    yield fetched.tp, decode(raw)
            heard_at = time.monotonic()
        sys.stdout.flush()


def _write(
    tp: TopicPartition,
    batch: DecodedBatch,
    begin: int,
    left: int | None,
    line: Callable[[TopicPartition, DecodedBatch, int], bytes],
) -> int:
    """Writes the records of a batch from offset `begin` on, at most `left`; returns how many."""
    rows = [row for row in range(len(batch.offsets)) if batch.offsets[row] >= begin][:left]
    sys.stdout.buffer.write(b"".join(line(tp, batch, row) + b"\n" for row in rows))
    return len(rows)


def _value_line(_: TopicPartition, batch: DecodedBatch, row: int) -> bytes:
    return batch.values[row].as_py() or b""


def _json_line(tp: TopicPartition, batch: DecodedBatch, row: int) -> bytes:
    document: dict[str, Any] = {
        "topic": tp.topic,
        "partition": tp.partition,
        "offset": int(batch.offsets[row]),
        "timestamp": int(batch.timestamps[row]),
        **_text("key", batch.keys[row].as_py()),
        **_text("value", batch.values[row].as_py()),
        "origin": None,
    }
    if batch.origins is not None and batch.has_origin[row]:
        document["origin"] = {
            name: int(getattr(batch.origins, name)[row])
            for name in ("agent", "file", "first", "length")
        }
    return json.dumps(document, ensure_ascii=False).encode()


def _text(name: str, value: bytes | None) -> dict[str, str | None]:
    """As text if it is UTF-8, else under another name as base64, so that nothing is guessed."""
    if value is None:
        return {name: None}
    try:
        return {name: value.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode("ascii")}
