"""`skidway audit report`: prints every bucket's counts and verdict. With --history and --decisions,
prints how verdicts changed, and what people decided about them."""

from __future__ import annotations

import argparse
from typing import Any

from skidway.audit.commands import decisions, history, options
from skidway.audit.evidence.evidence import FOREVER
from skidway.audit.judgement.clocks import Clocks, clocks
from skidway.audit.judgement.hosts import HostState, survey
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.standing import Standing, of_evidence
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict
from skidway.audit.reports import clock_report, host_report, report, source_remarks
from skidway.audit.reports.source_remarks import Unread
from skidway.audit.reports.topic_names import is_named, topics_named, with_rejects
from skidway.audit.settings import TIERS, AuditSettings
from skidway.cli.moments import parse_moment
from skidway.cli.options import add_config_options, add_json_option
from skidway.cli.output import print_json, print_lines, table
from skidway.clock import SystemClock
from skidway.errors import UsageError


def register(verbs: Any) -> None:
    """Adds the verb `report`."""
    parser = verbs.add_parser("report", help="every bucket's counts and verdict; 1 if one is short")
    add_config_options(parser)
    add_json_option(parser)
    options.add_where(parser)
    options.add_topic(parser)
    parser.add_argument("--since", metavar="TIME", help="2026-01-31T10:00:00Z, 90m, 24h, 7d")
    parser.add_argument(
        "--tiers", metavar="LIST", help=f"which must agree, without exemptions ({','.join(TIERS)})"
    )
    parser.add_argument(
        "--lateness-ms", type=int, metavar="MS", help="allowed after a bucket's end"
    )
    parser.add_argument(
        "--all", action="store_true", help="1 even if buckets are only too young to be complete"
    )
    parser.add_argument(
        "--each-bucket", action="store_true", help="a line for each bucket, even for alike ones"
    )
    history.add_options(parser)
    decisions.add_option(parser)
    parser.set_defaults(run=_report)


def _report(args: argparse.Namespace) -> int:
    if args.decisions:
        return decisions.print_decisions(args)
    if args.history:
        return history.print_history(args)
    if args.bucket is not None:
        raise UsageError("--bucket needs --history.")
    settings = options.settings_of(args)
    policy = options.policy_of(args, settings)
    judged, found, states, times, deleted, unread = _judged(args, settings, policy)
    if args.json:
        beside = {"hosts": host_report.summary(states), "clocks": clock_report.document(times)}
        counts = {"sources": unread.sentences, "buckets_deleted": deleted}
        print_json(report.document(judged, found) | beside | counts)
    else:
        rows = report.table(found, policy.tiers, each=args.each_bucket)
        table(rows, report.columns(policy.tiers))
        said = [report.sentence(judged), *report.sentences_of_deleted(deleted)]
        said += [*unread.sentences, *host_report.remarks(states)]
        print_lines([*said, *clock_report.sentences(times)])
    status = report.exit_status(judged, everything=args.all)
    return max(status, int(times.is_ours_wrong), int(bool(unread.fileless)))


def _judged(
    args: argparse.Namespace, settings: AuditSettings | None, policy: Policy
) -> tuple[Standing, list[BucketVerdict], list[HostState], Clocks, int, Unread]:
    """Returns the verdicts on all buckets together and on each bucket, the states of the hosts and
    of their clocks, how many buckets have no counts any more, and what agents cannot read."""
    clock = SystemClock()
    since = FOREVER[0]
    if args.since is not None:
        since = parse_moment(args.since, clock.time_ms())
    names = None if args.topic is None else with_rejects(args.topic)
    ledger = options.ledger_of(args, settings, clock)
    try:
        evidence = ledger.evidence((since, FOREVER[1]), topics_named(names))
    finally:
        ledger.close()
    now_ms = clock.time_ms()
    found = verdicts(evidence, policy, now_ms)
    states, times = survey(evidence, policy, now_ms), clocks(evidence, policy, now_ms)
    if names is not None:
        found = [x for x in found if is_named(x.source, names)]
    named = [x for x in evidence.topics if names is None or is_named(x, names)]
    deleted = sum(evidence.topic(source).deleted for source in named)
    whole = of_evidence(evidence, found)
    if names is not None:
        whole = whole.where(lambda source: is_named(source, names))
    is_meant = None if names is None else lambda source: is_named(source, names)
    unread = source_remarks.unread(evidence, policy, now_ms, is_meant)
    return whole, found, states, times, deleted, unread
