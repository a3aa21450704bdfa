"""`skidway audit report`: prints every bucket's counts and verdict. With --history and --decisions,
prints how verdicts changed, and what people decided about them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from skidway.audit.commands import decisions, history, options
from skidway.audit.evidence.evidence import FOREVER, Evidence
from skidway.audit.explanation.document import document_of, sentence
from skidway.audit.explanation.explanation import explain
from skidway.audit.explanation.next_command import Access
from skidway.audit.explanation.present_cause import PresentCause
from skidway.audit.explanation.present_causes import present_causes
from skidway.audit.explanation.worst_problem import Problem, worst_problem
from skidway.audit.judgement.clocks import Clocks, clocks
from skidway.audit.judgement.hosts import HostState, survey
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.standing import Standing, of_evidence
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict
from skidway.audit.reports import (
    clock_report,
    fieldless_report,
    host_report,
    refused_report,
    report,
    source_remarks,
)
from skidway.audit.reports.source_remarks import Unread
from skidway.audit.reports.topic_names import is_named, topics_named, with_rejects
from skidway.audit.settings import AuditSettings
from skidway.audit.topic.fieldless_note import Members
from skidway.cli.moments import parse_moment
from skidway.cli.options import add_config_options, add_json_option
from skidway.cli.output import print_json, print_lines, table
from skidway.clock import SystemClock
from skidway.dataclass import dataclass
from skidway.errors import UsageError
from skidway.kafka.source import Source


def register(verbs: Any) -> None:
    """Adds the verb `report`."""
    parser = verbs.add_parser("report", help="every bucket's counts and verdict; 1 if one is short")
    add_config_options(parser)
    add_json_option(parser)
    options.add_where(parser)
    options.add_topic(parser)
    parser.add_argument("--since", metavar="TIME", help="2026-01-31T10:00:00Z, 90m, 24h, 7d")
    options.add_expected(parser)
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
    access = options.access_of(args, settings)
    found = _judged(args, settings, policy, access)
    if args.json:
        beside = {
            "hosts": host_report.summary(found.hosts, found.unread.hosts),
            "clocks": clock_report.document(found.clocks),
            "causes": [document_of(x) for x in found.present],
            "worst": None if found.worst is None else found.worst.document(),
            "sources": found.unread.sentences,
            **refused_report.document(found.evidence),
            "fieldless": fieldless_report.document(found.fieldless),
            "buckets_deleted": found.deleted,
        }
        print_json(report.document(found.whole, found.buckets) | beside)
    else:
        rows = report.table(found.buckets, policy.tiers, each=args.each_bucket)
        table(rows, report.columns(policy.tiers))
        print_lines(
            [
                *map(sentence, found.present),
                *([] if found.worst is None else [found.worst.sentence(access)]),
                report.sentence(found.whole),
                *report.sentences_of_deleted(found.deleted),
                *found.unread.beside,
                *refused_report.sentences(found.evidence, found.now_ms),
                *host_report.remarks(found.hosts),
                *clock_report.sentences(found.clocks),
                *fieldless_report.sentences(found.fieldless),
            ]
        )
    status = report.exit_status(found.whole, everything=args.all)
    return max(status, int(found.clocks.is_ours_wrong), int(bool(found.unread.fileless)))


@dataclass(frozen=True, slots=True)
class _Judged:
    """What the report says. whole: the verdict on all buckets together. deleted: how many buckets
    have no counts any more. fieldless: the members of lines that have no field. present: what is
    wrong now. worst: the worst problem, if nothing is wrong now. unread: what agents cannot read.
    evidence: that of the buckets. now_ms: when they were judged.
    """

    whole: Standing
    buckets: list[BucketVerdict]
    hosts: list[HostState]
    clocks: Clocks
    deleted: int
    fieldless: Mapping[Source, Members]
    present: list[PresentCause]
    worst: Problem | None
    unread: Unread
    evidence: Evidence
    now_ms: int


def _judged(
    args: argparse.Namespace, settings: AuditSettings | None, policy: Policy, access: Access
) -> _Judged:
    clock = SystemClock()
    since = FOREVER[0]
    if args.since is not None:
        since = parse_moment(args.since, clock.time_ms())
    names = None if args.topic is None else with_rejects(args.topic)
    ledger = options.ledger_of(args, settings, clock)
    try:
        evidence = ledger.evidence((since, FOREVER[1]), topics_named(names))
        fieldless = fieldless_report.fieldless(ledger.notes(), names)
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
    present = present_causes(evidence, policy, now_ms, access)
    worst = None
    if not present:
        worst = worst_problem(found, lambda x: explain(x, evidence, policy, now_ms, access))
    is_meant = None if names is None else lambda source: is_named(source, names)
    unread = source_remarks.unread(evidence, policy, now_ms, is_meant)
    return _Judged(
        whole, found, states, times, deleted, fieldless, present, worst, unread, evidence, now_ms
    )
