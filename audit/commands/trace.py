"""`skidway audit trace`: follows one line through every tier."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import Any

from skidway.audit.commands import tracing_options
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.tracing import places, rendering, trace
from skidway.audit.tracing.places import FilePlace, Place
from skidway.cli.moments import parse_since
from skidway.cli.output import print_json, print_lines, table
from skidway.clock import SystemClock
from skidway.errors import UsageError


def register(verbs: Any) -> None:
    """Adds the verb `trace`."""
    words = "follow one line through every tier, with times; 1 if a tier lacks it"
    parser = verbs.add_parser("trace", help=words, description=f"{words}.")
    parser.add_argument(
        "line",
        nargs="?",
        metavar="HOST:FILE:BYTE",
        help="a byte of the line; FILE is a path or a file id",
    )
    tracing_options.add_where(parser)
    words = "the partition and offset of the line's record; need one --topic"
    parser.add_argument("--partition", type=int, metavar="N", help=words)
    parser.add_argument("--offset", type=int, metavar="N", help="see --partition")
    parser.add_argument(
        "--row",
        metavar="COLUMNS",
        help="the row's own columns: _file_id=N,_offset=N, or the row as a JSON object",
    )
    words = "look for the record from this event time on, first: 2026-01-31T10:00:00Z, 24h, 7d"
    parser.add_argument("--since", metavar="TIME", help=words)
    parser.set_defaults(run=_trace)


def _trace(args: argparse.Namespace) -> int:
    place, clock = _place(args), SystemClock()
    since_ms = None if args.since is None else parse_since(args.since, clock.time_ms())
    host = place.host if isinstance(place, FilePlace) else None
    with tracing_options.opened(args, clock, host, lambda ledger: _topics(ledger, place)) as site:
        if isinstance(place, FilePlace):
            stories = trace.trace_file(site, place, args.topic, since_ms)
        else:
            stories = [trace.trace_record(site, place)]
    decode = tracing_options.decoder(args)
    if args.json:
        print_json({"lines": [rendering.document(each, decode) for each in stories]})
    else:
        if len(stories) > 1:
            print(
                f"{len(stories)} files have had this path, the newest first; a file id names one."
            )
        for number, story in enumerate(stories):
            if number or len(stories) > 1:
                print()
            print_lines(rendering.heading(story, decode))
            table(rendering.rows(story), rendering.COLUMNS)
            print_lines([rendering.sentence(story)])
    return 0 if stories and all(each.is_everywhere for each in stories) else 1


def _place(args: argparse.Namespace) -> Place:
    record = (args.partition, args.offset)
    given = [args.line is not None, args.row is not None, record != (None, None)]
    if sum(given) != 1:
        raise UsageError(f"{places.FORMS[0].upper()}{places.FORMS[1:]}.")
    topic = args.topic[0] if args.topic is not None and len(args.topic) == 1 else None
    if args.line is not None:
        return places.file_place(args.line)
    if args.row is not None:
        return places.row_place(args.row, topic)
    return places.record_place(topic, *record)


def _topics(ledger: Ledger, place: Place) -> Collection[str]:
    """Returns the names of the source topics that may have the line at `place`. place: bytes of a
    file, or an offset of a partition."""
    if not isinstance(place, FilePlace):
        name = place.topic.removesuffix(".rejected")
        return {name, name.partition(".")[2]} - {""}
    lines = ledger.lines
    files = (
        lines.files_with(place.file) if place.file is not None else lines.files_of(place.host or "")
    )
    return {each.source.topic for each in files if place.path in (None, each.path)}
