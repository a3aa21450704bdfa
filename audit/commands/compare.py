"""`skidway audit compare`: compares log files, or an agent's notes of their lines, with what an
existing shipper has sent."""

from __future__ import annotations

import argparse
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from skidway.audit.comparison import lines, matching, reports
from skidway.audit.comparison.lines import FileLines
from skidway.audit.comparison.matching import Records
from skidway.audit.comparison.notes import Notes
from skidway.audit.comparison.shapes import SHAPES, Shape
from skidway.cli.moments import parse_since
from skidway.cli.options import add_bootstrap_option, add_json_option
from skidway.cli.output import print_json, table
from skidway.cli.topics import connect, existing
from skidway.clock import SystemClock
from skidway.errors import UsageError
from skidway.kafka.client import EARLIEST, LATEST, Client
from skidway.kafka.types import TopicPartition
from skidway.schemas.topic_reading import read_ranges

LIMIT = 20
LIMIT_MAX = 10_000
FIELDS = ("text", "path", "offset", "host")
Ranges = dict[TopicPartition, tuple[int, int]]


def register(verbs: Any) -> None:
    """Adds the verb `compare`."""
    words = (
        "compare files of this host with what another shipper has sent to a topic; 1 if lines are"
        " missing, doubled or changed"
    )
    parser = verbs.add_parser("compare", help=words, description=f"{words}.")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--files",
        action="append",
        metavar="PATTERN",
        help="files of the log, rotated ones too: '/var/log/app.log*'; may be repeated",
    )
    words = "the notes of skidway agent count, instead of the files themselves"
    where.add_argument("--counted", type=Path, metavar="DIR", help=words)
    add_bootstrap_option(parser)
    parser.add_argument("--topic", required=True, help="the topic to which the shipper sends")
    parser.add_argument(
        "--shape", required=True, choices=sorted(SHAPES), help="what the shipper's records say"
    )
    for name in FIELDS:
        parser.add_argument(
            f"--{name}-field",
            metavar="NAME",
            help=f"the field with the {name}, if not the shape's; '' for none",
        )
    words = (
        "only records since 2026-01-31T10:00:00Z, 1h, 7d; earlier lines are not compared (with"
        " --counted: since all lines are noted)"
    )
    parser.add_argument("--since", metavar="TIME", help=words)
    host = socket.gethostname()
    words = f"the host in records of these files ({host}); '' for every host"
    parser.add_argument("--host", default=host, help=words)
    words = f"show N ranges ({LIMIT}, at most {LIMIT_MAX:,})"
    parser.add_argument("--limit", type=int, default=LIMIT, metavar="N", help=words)
    add_json_option(parser)
    parser.set_defaults(run=_compare)


def _compare(args: argparse.Namespace) -> int:
    if not 1 <= args.limit <= LIMIT_MAX:
        raise UsageError(f"--limit must lie in 1 .. {LIMIT_MAX:,}.")
    names = {name: getattr(args, f"{name}_field") for name in FIELDS}
    shape = SHAPES[args.shape].with_names(names)
    notes = None if args.counted is None else Notes(args.counted)
    since_ms = None if args.since is None else parse_since(args.since, SystemClock().time_ms())
    if notes is not None and since_ms is None:
        since_ms = notes.from_ms()
    begun = time.monotonic()
    with connect(args) as client:
        ranges, is_whole = _ranges(client, args.topic, since_ms)
        # The partitions' ends were looked up before, so the files have the lines of all records.
        # (Notes lack the lines that the agent has not read yet.)
        counted = None if notes is None else notes.read(since_ms or 0)
        files = list(_files(args.files)) if counted is None else counted.files
        records = Records(args.host or None, [each.paths for each in files])
        _read(client, ranges, shape, records)
    result = matching.compare(files, records, is_whole=is_whole, since_ms=since_ms)
    said = [*reports.sentences(result, records, args.limit, is_counted=counted is not None)]
    if counted is not None:
        said += reports.sentences_of_notes(counted)
    if args.json:
        document = reports.document(result, files, records, args.limit)
        document |= {"sentences": said}
        if counted is not None:
            document |= reports.document_of_notes(counted)
        print_json(document | {"seconds": round(time.monotonic() - begun, 3)})
    else:
        table(reports.rows(result), reports.COLUMNS)
        spans = reports.span_rows(result, files, args.limit)
        if spans:
            print()
            table(spans, reports.SPAN_COLUMNS)
        print("\n".join(["", *said]))
    return 0 if reports.is_good(result) else 1


def _ranges(client: Client, topic: str, since_ms: int | None) -> tuple[Ranges, bool]:
    """Returns the offsets to read: all, or those from the first record at or after `since_ms` on.
    Also returns whether these are all offsets that the topic ever had."""
    (found,) = existing(client, [topic])
    tps = [TopicPartition(topic, each.index) for each in found.partitions]
    first = client.list_offsets(dict.fromkeys(tps, EARLIEST))
    end = client.list_offsets(dict.fromkeys(tps, LATEST))
    begin = first if since_ms is None else client.list_offsets(dict.fromkeys(tps, since_ms))
    ranges = {
        tp: (begin[tp].offset if begin[tp].offset >= 0 else end[tp].offset, end[tp].offset)
        for tp in tps
    }
    return ranges, since_ms is None and all(each.offset == 0 for each in first.values())


def _files(patterns: list[str]) -> Iterator[FileLines]:
    room = lines.LINES_MAX
    for path in lines.files_of(patterns):
        found = lines.read(path, room)
        room -= len(found.begins)
        yield found


def _read(client: Client, ranges: Ranges, shape: Shape, records: Records) -> None:
    for tp, batch in read_ranges(client, ranges):
        first, end = ranges[tp]
        for offset, value in zip(batch.offsets.tolist(), batch.values.to_pylist(), strict=True):
            if first <= offset < end:
                records.add(shape.shipped(value), tp.partition, offset)
