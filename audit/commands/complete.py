"""`skidway audit complete`: says whether a topic is complete in the time from `--since` to
`--until`. A scheduled job can run this command before it reads the topic's rows."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from skidway.audit.commands import options
from skidway.audit.commands.live_ledger import LiveLedger
from skidway.audit.commands.polling import patiently
from skidway.audit.judgement.completeness import Completeness, Question
from skidway.audit.judgement.policy import Policy
from skidway.audit.reports import completeness_report
from skidway.audit.reports.completeness_question import answered, question
from skidway.cli.moments import parse_duration, parse_moment
from skidway.cli.options import add_config_options, add_json_option
from skidway.cli.output import Progress, print_json, print_lines
from skidway.clock import Clock, SystemClock

DAY_MS = 86_400_000
POLL_S = 10.0


def register(verbs: Any) -> None:
    """Adds the verb `complete`."""
    words = "whether everything of a topic before a time is complete; 1 if not"
    parser = verbs.add_parser("complete", help=words, description=f"{words}.")
    add_config_options(parser)
    add_json_option(parser)
    options.add_where(parser)
    parser.add_argument(
        "--topic", required=True, metavar="TOPIC", help="as the report names it; with its rejects"
    )
    parser.add_argument(
        "--until", required=True, metavar="TIME", help="2026-02-01T00:00:00Z, 90m, 24h, 7d"
    )
    parser.add_argument(
        "--since", metavar="TIME", help="the time from which on (24 hours before --until)"
    )
    parser.add_argument(
        "--wait", metavar="DURATION", default="0s", help="wait so long for it: 90m, 2h (0s)"
    )
    parser.set_defaults(run=_complete, tiers=None, lateness_ms=None)


def _complete(args: argparse.Namespace) -> int:
    clock = SystemClock()
    settings = options.settings_of(args)
    policy = options.policy_of(args, settings)
    timeout_s = parse_duration(args.wait, "--wait")
    since_ms, until_ms = _span(args, clock.time_ms())
    asked = question(args.topic, since_ms, until_ms)
    begun = clock.monotonic()
    notes: list[str] = []
    with LiveLedger(args, settings, clock) as live:
        found = patiently(
            lambda: _look(live, policy, asked, clock, notes),
            clock,
            time.sleep,
            timeout_s,
            Progress("topics complete", 0),
            POLL_S,
        )
        if any(x.is_short for x in found) and live.is_store:
            options.note_staleness(live.ledger, clock)
    for words in notes:
        print(f"note: {words}", file=sys.stderr)
    if args.json:
        waited_s = clock.monotonic() - begun
        print_json(completeness_report.document(found, asked, policy, waited_s, notes=notes))
    else:
        print_lines(completeness_report.sentences(found, asked, policy))
    return int(any(x.is_short for x in found))


def _span(args: argparse.Namespace, now_ms: int) -> tuple[int, int]:
    until_ms = parse_moment(args.until, now_ms, "--until")
    since_ms = until_ms - DAY_MS
    if args.since is not None:
        since_ms = parse_moment(args.since, now_ms)
    return since_ms, until_ms


def _look(
    live: LiveLedger, policy: Policy, asked: Question, clock: Clock, notes: list[str]
) -> list[Completeness]:
    live.catch_up()
    answer = answered(live.ledger, policy, asked, clock.time_ms())
    notes[:] = answer.notes
    return answer.found
