"""`skidway audit recount`: counts the rows of the loader's output again, and compares these counts
with the audit's counts."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import Any

from skidway.audit.commands import options, publication
from skidway.audit.evidence.evidence import FOREVER
from skidway.audit.judgement import reasons
from skidway.audit.judgement.retired_places import retired_by
from skidway.audit.output import Output
from skidway.audit.recount import faults, manifests, recount
from skidway.audit.recount.manifests import Committed
from skidway.audit.recount.recount import Difference, Recounted
from skidway.audit.reports import recount_report
from skidway.audit.reports.topic_names import with_rejects
from skidway.audit.settings import AuditSettings
from skidway.audit.topic.messages import Tier, encode
from skidway.cli.moments import parse_moment
from skidway.cli.options import add_config_options, add_json_option
from skidway.cli.output import print_json, print_lines, table
from skidway.clock import SystemClock
from skidway.errors import UsageError


def register(verbs: Any) -> None:
    """Adds the verb `recount`."""
    parser = verbs.add_parser(
        "recount",
        help="check the files, count their rows again, compare with what was counted; 1 if they"
        " differ",
    )
    add_config_options(parser)
    add_json_option(parser)
    parser.add_argument(
        "--output", required=True, metavar="DIR|hdfs://HOST:PORT/DIR", help="the loader's output"
    )
    options.add_where(parser)
    options.add_topic(parser)
    parser.add_argument(
        "--since",
        metavar="TIME",
        help="only rows with event times from that hour on: 2026-01-31T10:00:00Z, 26h, 7d",
    )
    parser.add_argument(
        "--tell", action="store_true", help="tell the collector, for pages, metrics and report"
    )
    parser.set_defaults(run=_recount, tiers=None, lateness_ms=None)


def _recount(args: argparse.Namespace) -> int:
    settings = options.settings_of(args)
    output = options.output_of(args, settings)
    clock = SystemClock()
    since_ms = None if args.since is None else parse_moment(args.since, clock.time_ms())
    since_ms = None if since_ms is None else since_ms - since_ms % faults.HOUR_MS
    compared, is_proven = _compared(args, settings, output, since_ms, clock)
    if args.tell:
        host = options.here(settings)
        results = recount_report.results(compared, host, output.url, since_ms, clock.time_ms())
        values = [encode(result) for result in results]
        signer = publication.recount_signer(settings, host, clock)
        publication.say(args, settings, values, clock, "what the recount found", signer)
    if args.json:
        print_json(recount_report.document(compared))
    else:
        table(recount_report.table(compared), recount_report.COLUMNS)
        doubt = [] if is_proven else [f"But {reasons.NOT_VERIFIED}."]
        print_lines([*recount_report.faults(compared), recount_report.sentence(compared), *doubt])
    return 0 if recount_report.is_good(compared) else 1


def _compared(
    args: argparse.Namespace,
    settings: AuditSettings | None,
    output: Output,
    since_ms: int | None,
    clock: SystemClock,
) -> tuple[list[tuple[Recounted, list[Difference]]], bool]:
    """Recounts each topic that the output has, or should have according to the audit. Returns the
    recounts, each with its differences from the audit's counts, and whether the senders of these
    counts are verified, if they have to be. since_ms: only buckets that begin
    at this time or later are compared; None for all buckets."""
    asked = None if args.topic is None else set(with_rejects(args.topic))
    known = [manifests.head(output, topic) for topic in recount.topics(output)]
    recounts = [recount.recount(output, x, since_ms) for x in known if _is_asked(x, asked)]
    # The rows are counted before the ledger is read. So the loader has had time to publish the
    # counts of all these rows.
    ledger = options.ledger_of(args, settings, clock)
    try:
        evidence = ledger.evidence((FOREVER[0] if since_ms is None else since_ms, FOREVER[1]))
    finally:
        ledger.close()
    policy = options.policy_of(args, settings)
    retired = retired_by(policy.retired_places, evidence.retirements)
    found = {each.committed.topic: each for each in recounts}
    for each in recount.expected(output, known, evidence).values():
        if each.topic in found:
            found[each.topic].committed = each
        elif _is_asked(each, asked) and not retired.holds(Tier.HDFS, each.producer, ""):
            recounts.append(recount.recount(output, each, since_ms))
    if asked is not None and not recounts:
        raise UsageError(f"{output.url} has nothing of {', '.join(args.topic)}.")
    tiers = policy.tiers
    compared = [
        (each, recount.compare(each, evidence, tiers, recount.loaded_since(output, each)))
        for each in recounts
    ]
    return compared, not evidence.unproven


def _is_asked(topic: Committed, asked: Collection[str] | None) -> bool:
    names = {topic.topic} if topic.source is None else {topic.topic, topic.source.topic}
    return asked is None or not names.isdisjoint(asked)
