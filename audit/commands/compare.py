"""`skidway audit compare`: compares log files, or the notes of `skidway agent count` about their
lines, with what another log shipper has sent to a topic."""

from __future__ import annotations

import argparse
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skidway.audit.comparison import lines, matching, reports
from skidway.audit.comparison.lines import FileLines
from skidway.audit.comparison.matching import NO_TIME, Records
from skidway.audit.comparison.notes import Notes
from skidway.audit.comparison.shapes import SHAPES, Shape
from skidway.audit.tracing.logs import open_transactions, spans_of_topics
from skidway.cli.moments import parse_since
from skidway.cli.options import add_bootstrap_option, add_json_option
from skidway.cli.output import print_json, print_lines, table
from skidway.cli.topics import connect, existing
from skidway.clock import SystemClock
from skidway.errors import UsageError
from skidway.kafka.client import EARLIEST, LATEST, Client, ListedOffset
from skidway.kafka.types import TopicPartition
from skidway.schemas.topic_reading import read_ranges

LIMIT = 20
LIMIT_MAX = 10_000
STAMPED_EARLIER_MS = 5_000
"""A record's timestamp may be earlier than the time at which its line was written, by at most this
many ms. Some shippers (rsyslog) round the time down to a second, and some take the time that is in
the line.
"""
LAST_TIME = (1 << 63) - 1
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
    begun, now_ms = time.monotonic(), SystemClock().time_ms()
    with connect(args) as client:
        unread = open_transactions(spans_of_topics(client, [args.topic]))
        slack_ms = 0 if notes is None else STAMPED_EARLIER_MS
        found = _reach(client, args.topic, since_ms, slack_ms)
        # `_reach` has looked up the ends of the partitions. The files are read only now, so they
        # have the lines of all records before these ends. (Notes lack the lines that the agent has
        # not read yet.)
        counted = (
            None if notes is None else notes.read(since_ms or 0, now_ms, whole_ms=found.since_ms)
        )
        files = list(_files(args.files)) if counted is None else counted.files
        paths = [each.paths for each in files]
        records = Records(args.host or None, paths, are_noted=counted is not None)
        certain_ms = _read(client, found, shape, records)
    result = matching.compare(
        files,
        records,
        is_whole=found.is_whole,
        since_ms=found.since_ms,
        certain_ms=certain_ms,
    )
    said = [*reports.sentences(result, records, args.limit, is_counted=counted is not None)]
    said += [f"Not all records were compared: {each}." for each in unread]
    if counted is not None:
        said += reports.sentences_of_notes(counted, now_ms)
    has_stopped = counted is not None and reports.has_stopped(counted, now_ms)
    is_good = reports.is_good(result) and not has_stopped
    if args.json:
        document = reports.document(result, files, records, args.limit)
        document |= {"ok": is_good, "sentences": said}
        document |= {} if counted is None else reports.document_of_notes(counted)
        print_json(document | {"seconds": round(time.monotonic() - begun, 3)})
    else:
        _print(result, files, said, args.limit)
    return 0 if is_good else 1


def _print(
    result: matching.Result, files: Sequence[FileLines], said: Sequence[str], limit: int
) -> None:
    table(reports.rows(result), reports.COLUMNS)
    spans = reports.span_rows(result, files, limit)
    if spans:
        print()
        table(spans, reports.SPAN_COLUMNS)
    print_lines(["", *said])


@dataclass(frozen=True, slots=True)
class Reach:
    """Says which records of the topic are compared. ranges: their offsets. is_whole: whether these
    are all offsets that the topic ever had. since_ms: all records of lines that were written since
    this time are compared; None if there is no such time. cut: the partitions from which older
    records have expired, so that the compared records begin with the oldest record that is left.
    """

    ranges: Ranges
    is_whole: bool
    since_ms: int | None
    cut: Sequence[TopicPartition] = ()


Offsets = Mapping[TopicPartition, ListedOffset]


def reach(first: Offsets, begin: Offsets, end: Offsets, since_ms: int | None) -> Reach:
    """Returns which records of a topic are compared. first, end: the first offset and the log end
    offset of each partition. begin: the first record of each partition at or after `since_ms`."""
    ranges = {
        tp: (begin[tp].offset if begin[tp].offset >= 0 else end[tp].offset, end[tp].offset)
        for tp in first
    }
    is_whole = since_ms is None and all(each.offset == 0 for each in first.values())
    # In the partitions of `cut`, records have expired, and no record from before `since_ms` is
    # left. So some of the expired records may have been newer than `since_ms`.
    cut = [tp for tp in first if 0 < first[tp].offset >= ranges[tp][0]]
    if since_ms is None or any(begin[tp].offset < 0 for tp in cut):
        return Reach(ranges, is_whole, None, cut)
    stamps = [begin[tp].timestamp + STAMPED_EARLIER_MS for tp in cut]
    return Reach(ranges, is_whole, max([since_ms, *stamps]), cut)


def _reach(client: Client, topic: str, since_ms: int | None, slack_ms: int) -> Reach:
    """Looks up the offsets of the records whose lines were written since `since_ms` (None: of all
    records). slack_ms: by how much a record's timestamp may be earlier than the time at which its
    line was written."""
    (found,) = existing(client, [topic])
    tps = [TopicPartition(topic, each.index) for each in found.partitions]
    first = client.list_offsets(dict.fromkeys(tps, EARLIEST))
    end = client.list_offsets(dict.fromkeys(tps, LATEST))
    if since_ms is None:
        return reach(first, first, end, None)
    begin = client.list_offsets(dict.fromkeys(tps, max(since_ms - slack_ms, 0)))
    return reach(first, begin, end, since_ms)


def _files(patterns: list[str]) -> Iterator[FileLines]:
    room = lines.LINES_MAX
    for path in lines.files_of(patterns):
        found = lines.read(path, room)
        room -= len(found.begins)
        yield found


def _read(client: Client, reach: Reach, shape: Shape, records: Records) -> int:
    firsts = dict[TopicPartition, int]()
    for tp, batch in read_ranges(client, reach.ranges):
        first, end = reach.ranges[tp]
        rows = (batch.offsets.tolist(), batch.timestamps.tolist(), batch.values.to_pylist())
        for offset, time_ms, value in zip(*rows, strict=True):
            if first <= offset < end:
                firsts.setdefault(tp, time_ms)
                records.add(shape.shipped(value), tp.partition, offset, time_ms)
    return certain_after(reach, firsts)


def certain_after(reach: Reach, firsts: Mapping[TopicPartition, int]) -> int:
    """Returns a time (ms) such that no record with a later timestamp has expired in any partition.
    If no record of the compared time has expired (`reach.cut` is empty), returns NO_TIME, which is
    earlier than every record. If the topic has only one partition, also returns NO_TIME, because a
    partition loses its oldest records first: if the record of a file's fifth line is still there,
    so are the records of the lines after it. If the topic has several partitions, and all compared
    records of a partition in `reach.cut` have expired, returns LAST_TIME, which is later than every
    record. firsts: the timestamp of the first record of each partition.
    """
    if len(reach.ranges) == 1 or not reach.cut:
        return NO_TIME
    return max(firsts.get(tp, LAST_TIME) for tp in reach.cut)
