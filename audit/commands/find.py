"""`skidway audit find`: finds those lines of a host's files in which a text occurs, and says which
tiers have these lines."""

from __future__ import annotations

import argparse
import time
from typing import Any

from skidway.audit.commands import tracing_options
from skidway.audit.tracing import find, rendering
from skidway.audit.tracing.find import FindQuestion
from skidway.cli.moments import parse_since
from skidway.cli.output import print_json, print_lines, table
from skidway.clock import SystemClock
from skidway.errors import UsageError

LIMIT = 20
LIMIT_MAX = 1_000


def register(verbs: Any) -> None:
    """Adds the verb `find`."""
    words = "find lines of a host by a text, in every tier; 1 if a tier lacks one, or none is found"
    parser = verbs.add_parser("find", help=words, description=f"{words}.")
    parser.add_argument(
        "text", metavar="TEXT", help="a part of the line, upper and lower case as is"
    )
    parser.add_argument("--host", required=True, metavar="HOST", help="the host that wrote it")
    words = "lines with event times from then on: 2026-01-31T10:00:00Z, 1h, 7d"
    parser.add_argument("--since", required=True, metavar="TIME", help=words)
    parser.add_argument("--until", metavar="TIME", help="lines with event times before this time")
    parser.add_argument(
        "--file",
        action="append",
        default=[],
        metavar="PATH",
        help="also search this file of the host, which must be readable here; may be repeated",
    )
    words = f"show the newest N lines ({LIMIT}, at most {LIMIT_MAX:,})"
    parser.add_argument("--limit", type=int, default=LIMIT, metavar="N", help=words)
    tracing_options.add_where(parser)
    parser.set_defaults(run=_find)


def _find(args: argparse.Namespace) -> int:
    clock = SystemClock()
    question = _question(args, clock.time_ms())
    begun = time.monotonic()
    with tracing_options.opened(
        args,
        clock,
        args.host,
        lambda ledger: {each.source.topic for each in ledger.lines.files_of(args.host)},
    ) as site:
        found = find.find(site, question)
    seconds = time.monotonic() - begun
    decode = tracing_options.decoder(args)
    sentences = list(find.words_of(found, question))
    if args.json:
        print_json(
            {
                "count": found.count,
                "records": found.seen,
                "skipped": found.skipped,
                "seconds": round(seconds, 3),
                "lines": [rendering.document(each, decode) for each in found.stories],
                "sentences": sentences,
            }
        )
    else:
        if found.stories:
            rows = [rendering.find_row(each, decode) for each in found.stories]
            table(rows, rendering.FIND_COLUMNS)
        print_lines(sentences)
    return 0 if found.stories and all(each.is_everywhere for each in found.stories) else 1


def _question(args: argparse.Namespace, now_ms: int) -> FindQuestion:
    if not args.text:
        raise UsageError("TEXT must not be empty.")
    if not 1 <= args.limit <= LIMIT_MAX:
        raise UsageError(f"--limit must lie in 1 .. {LIMIT_MAX:,}.")
    since_ms = parse_since(args.since, now_ms)
    until_ms = now_ms + find.AHEAD_MS
    if args.until is not None:
        until_ms = parse_since(args.until, now_ms, "--until")
    if until_ms <= since_ms:
        raise UsageError("--until must be later than --since.")
    topics = None if args.topic is None else tuple(args.topic)
    return FindQuestion(
        args.text, args.host, since_ms, until_ms, topics, tuple(args.file), args.limit
    )
