"""`skidway rejected show | export TOPIC`: prints the rejected lines of a topic, with the reason and
the position in the log file, or writes them to a file in which people can repair them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from skidway.cli.moments import parse_since, shown
from skidway.cli.options import add_bootstrap_option, add_json_option
from skidway.cli.output import print_json, print_rows
from skidway.cli.topics import connect
from skidway.clock import SystemClock
from skidway.errors import SkidwayError, UsageError
from skidway.schemas.consuming.rejected_examples import line_text
from skidway.schemas.consuming.rejected_lines import FoundLine, RejectedLines, Wanted, repairable
from skidway.schemas.consuming.values import plain

LINES = 20
LINE_BYTES_MAX = 160
"""A table shows at most this many bytes of a line. --json prints the whole line."""
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
    since = None if args.since is None else parse_since(args.since, SystemClock().time_ms())
    with connect(args) as client:
        lines = RejectedLines(client, args.topic)
        found = lines.newest(Wanted(since), args.max)
    if args.json:
        print_json([_document(each) for each in found])
    else:
        print_rows([_table_row(each) for each in found], COLUMNS, as_json=False)
    return _status(lines)


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
    return _status(lines)


def _status(lines: RejectedLines) -> int:
    """Says how many records are no rejected lines for this version. Returns the exit status."""
    if lines.unread:
        sys.stderr.write(
            f"skidway rejected: this version cannot read {lines.unread} records as rejected lines\n"
        )
    return 1 if lines.unread else 0


@contextmanager
def _new_file(name: str) -> Iterator[TextIO]:
    """Creates a file and opens it for writing; the name `-` means standard output. Raises
    SkidwayError if the file cannot be written, or if it already exists: an existing file may
    contain lines that a person has repaired. Only this user may read the file.
    """
    if name == "-":
        yield sys.stdout
        return
    try:
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise SkidwayError(
            f"cannot write {name}: {(error.strerror or str(error)).lower()}"
        ) from error


def _document(found: FoundLine) -> dict[str, Any]:
    """Returns a rejected line as --json prints it."""
    rejected = plain(dict(found.document))
    where = {"timestamp": found.timestamp, "offset": found.offset}
    return {
        **where, **rejected, "position": rejected.pop("first"), "time": shown(found.timestamp),
    }  # fmt: skip


def _table_row(found: FoundLine) -> dict[str, Any]:
    """Returns the row of the table for a rejected line. The reason includes its detail, such as the
    field that does not fit. What cannot be printed, such as a tab or a byte that is not UTF-8, has
    an escape (\\t, \\xff); an ellipsis shows that a line is longer."""
    document = found.document
    detail = f": {document['detail']}" if document["detail"] else ""
    return {
        "time": shown(found.timestamp),
        "reason": f"{document['reason']}{detail}",
        "host": document["host"],
        "file": document["path"],
        "position": document["first"],
        "line": line_text(document, LINE_BYTES_MAX),
    }
