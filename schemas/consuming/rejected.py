"""`skidway rejected show | export TOPIC`: prints the rejected lines of a topic, with the reason and
the position in the log file, or writes them to a file in which people can repair them."""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import numpy as np
import pyarrow as pa

from skidway.cli.moments import parse_since, shown
from skidway.cli.options import add_bootstrap_option, add_json_option
from skidway.cli.output import print_json, print_rows
from skidway.cli.topics import connect
from skidway.clock import SystemClock
from skidway.errors import SkidwayError, UsageError
from skidway.kafka.client import EARLIEST, LATEST, Client
from skidway.kafka.columns import DecodedRecords
from skidway.kafka.types import TopicPartition
from skidway.schemas import wire
from skidway.schemas.codec import Codec
from skidway.schemas.codec.objects import objects
from skidway.schemas.consuming.consume import offsets_at
from skidway.schemas.consuming.rejected_lines import (
    SUFFIX,
    RejectedLines,
    Wanted,
    repairable,
    topic_of_rejects,
)
from skidway.schemas.consuming.values import plain
from skidway.schemas.single_object import schema_text
from skidway.schemas.topic_reading import read_ranges

LINES = 20
LINE_CHARACTERS_MAX = 160
"""A table shows at most this many characters of a line. --json prints the whole line."""
COLUMNS = ("time", "reason", "host", "file", "position", "line")


def register(subparsers: Any) -> None:
    """Adds the command `skidway rejected`."""
    parser = subparsers.add_parser("rejected", help="lines that did not fit, and why")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    words = "print the newest lines that did not fit, with reason, host, file and position"
    show = verbs.add_parser("show", help=words, description=f"{words}.")
    show.add_argument(
        "topic", metavar="TOPIC", help="for example nginx, or dc1.nginx if it is mirrored"
    )
    add_bootstrap_option(show)
    show.add_argument(
        "--since", metavar="TIME", help="rejected since 2026-01-31T10:00:00Z, or 90m, 24h, 7d ago"
    )
    show.add_argument(
        "--max", type=int, default=LINES, metavar="N", help=f"the newest N lines ({LINES})"
    )
    add_json_option(show)
    show.set_defaults(run=_show)
    words = "write lines that did not fit into a file, to repair them for `skidway agent replay`"
    export = verbs.add_parser("export", help=words, description=f"{words}.")
    export.add_argument("topic", metavar="TOPIC", help="as for show")
    export.add_argument("file", metavar="FILE", help="a new file of JSON lines, or - for stdout")
    add_bootstrap_option(export)
    export.add_argument("--since", metavar="TIME", help="rejected since this time, as for show")
    export.add_argument("--until", metavar="TIME", help="rejected before this time")
    words = "only lines with this reason; may be repeated"
    export.add_argument("--reason", action="append", default=[], metavar="REASON", help=words)
    words = "only lines of files with such a path, for example '/var/log/nginx/*'"
    export.add_argument("--where-file", metavar="PATTERN", help=words)
    export.set_defaults(run=_export)


def _show(args: argparse.Namespace) -> int:
    if args.max < 1:
        raise UsageError("--max must be at least 1")
    name = args.topic if args.topic.endswith(SUFFIX) else args.topic + SUFFIX
    since = None if args.since is None else parse_since(args.since, SystemClock().time_ms())
    wanted = Wanted(since)
    codec = Codec(schema_text("Rejected"))
    with connect(args) as client:
        topic = topic_of_rejects(client, name)
        partitions = [TopicPartition(name, each.index) for each in topic.partitions]
        ranges = _ranges(client, partitions, since, args.max)
        unread = 0
        found: list[dict[str, Any]] = []
        for tp, batch in read_ranges(client, ranges):
            rows, refused = _rows(codec, batch, ranges[tp][0])
            unread += refused
            found += [row for row in rows if wanted.takes(row, row["timestamp"])]
            found = sorted(found, key=lambda row: row["timestamp"])[-args.max :]
    if args.json:
        print_json([{**row, "time": shown(row["timestamp"])} for row in found])
    else:
        print_rows([_table_row(row) for row in found], COLUMNS, as_json=False)
    if unread:
        sys.stderr.write(
            f"skidway rejected: this version cannot read {unread} records as rejected lines\n"
        )
    return 1 if unread else 0


def _export(args: argparse.Namespace) -> int:
    now_ms = SystemClock().time_ms()
    times = [
        None if text is None else parse_since(text, now_ms, option)
        for text, option in ((args.since, "--since"), (args.until, "--until"))
    ]
    wanted = Wanted(times[0], times[1], tuple(args.reason), args.where_file)
    count = 0
    with connect(args) as client, _new_file(args.file) as out:
        lines = RejectedLines(client, args.topic)
        for document in lines.read(wanted):
            out.write(json.dumps(repairable(document), ensure_ascii=False) + "\n")
            count += 1
    sys.stderr.write(f"skidway rejected: {count:,} lines\n")
    if lines.unread:
        sys.stderr.write(
            f"skidway rejected: this version cannot read {lines.unread} records as rejected lines\n"
        )
    return 1 if lines.unread else 0


@contextmanager
def _new_file(name: str) -> Iterator[TextIO]:
    """Creates a file and opens it for writing; the name `-` means standard output. Raises
    SkidwayError if the file cannot be written, or if it already exists: an existing file may
    contain lines that a person has repaired.
    """
    if name == "-":
        yield sys.stdout
        return
    try:
        with open(name, "x", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise SkidwayError(
            f"cannot write {name}: {(error.strerror or str(error)).lower()}"
        ) from error


def _ranges(
    client: Client, partitions: list[TopicPartition], since: int | None, most: int
) -> dict[TopicPartition, tuple[int, int]]:
    """Returns, for each partition, the range of offsets of the last `most` records. If `since` (a
    time in ms) is given, the range has no records before the first record with the time `since` or
    a later time. After this first record, the range may have records with earlier times than
    `since`."""
    first = offsets_at(client, partitions, EARLIEST if since is None else since)
    end = offsets_at(client, partitions, LATEST)
    return {tp: (max(first[tp], end[tp] - most), end[tp]) for tp in partitions}


def _rows(codec: Codec, batch: DecodedRecords, begin: int) -> tuple[list[dict[str, Any]], int]:
    """Returns the rejected lines in a batch, from offset `begin` on, and the number of records that
    `codec` cannot decode."""
    wanted = np.flatnonzero(np.asarray(batch.offsets) >= begin)
    ids, datums = wire.split(batch.values.take(pa.array(wanted)))
    framed = np.flatnonzero(ids >= 0)
    decoded = codec.decode(datums.take(pa.array(framed)))
    good = wanted[framed[decoded.good]].tolist()
    rows = [
        {
            "timestamp": int(batch.timestamps[row]),
            "offset": int(batch.offsets[row]),
            **_document(document),
        }
        for row, document in zip(good, objects(decoded.batch), strict=True)
    ]
    return rows, len(wanted) - len(good)


def _document(rejected: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = plain(rejected)
    return {**found, "position": found.pop("first")}


def _table_row(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the row of the table for a rejected line. Bytes that are not UTF-8 are escaped, for
    example as \\xff. U+FFFD stands for each character that cannot be printed, such as a control
    character or a no-break space."""
    line = row.get("line")
    if line is None:  # the line is not UTF-8
        line = base64.b64decode(row["line_base64"]).decode("utf-8", "backslashreplace")
    printable = "".join(
        char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line
    )
    return {
        "time": shown(row["timestamp"]),
        "reason": row["reason"],
        "host": row["host"],
        "file": row["path"],
        "position": row["position"],
        "line": printable[:LINE_CHARACTERS_MAX],
    }
