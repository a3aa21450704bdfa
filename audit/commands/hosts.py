"""`skidway audit hosts` shows the hosts that the roster names or that were heard. `skidway audit
wait` waits until hosts are proven complete, for example before an upgrade continues with the next
hosts."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from typing import Any

from skidway.audit.commands import options
from skidway.audit.commands.live_ledger import LiveLedger
from skidway.audit.commands.polling import patiently
from skidway.audit.evidence.evidence import FOREVER
from skidway.audit.evidence.ledger_evidence import NO_BUCKETS
from skidway.audit.judgement import reasons
from skidway.audit.judgement.clocks import clocks
from skidway.audit.judgement.host_proofs import Proof, proofs
from skidway.audit.judgement.hosts import survey
from skidway.audit.judgement.policy import Policy
from skidway.audit.reports import clock_report, host_report, refused_report, source_remarks
from skidway.audit.settings import TIERS, AuditSettings
from skidway.audit.topic.messages import Tier
from skidway.cli.moments import parse_since
from skidway.cli.options import add_config_options, add_json_option, add_timeout_option
from skidway.cli.output import Progress, print_json, print_lines, table
from skidway.clock import Clock, SystemClock
from skidway.errors import UsageError

TIMEOUT_S = 300.0


def register(verbs: Any) -> None:
    """Adds the subcommands `hosts` and `wait`."""
    hosts = verbs.add_parser(
        "hosts", help="every host, and when it was heard; 1 if an expected one is missed"
    )
    add_config_options(hosts)
    add_json_option(hosts)
    options.add_where(hosts)
    hosts.set_defaults(run=_hosts, tiers=None, lateness_ms=None)
    wait = verbs.add_parser(
        "wait", help="wait until hosts have sealed past a time and are complete since; 1 if not"
    )
    add_config_options(wait)
    add_json_option(wait)
    options.add_where(wait)
    wait.add_argument(
        "--host", action="append", required=True, metavar="HOST", help="may be repeated"
    )
    wait.add_argument(
        "--since", required=True, metavar="TIME", help="2026-01-31T10:00:00Z, 90s, 5m"
    )
    wait.add_argument(
        "--tiers",
        metavar="LIST",
        help="tiers that must agree, including agent, without exemptions; default: as the settings"
        " say, without hdfs unless it is the only one besides agent",
    )
    wait.add_argument("--lateness-ms", type=int, metavar="MS", help="allowed after a bucket's end")
    add_timeout_option(wait, f"({TIMEOUT_S:.0f})", TIMEOUT_S)
    wait.set_defaults(run=_wait)


def _hosts(args: argparse.Namespace) -> int:
    clock = SystemClock()
    settings = options.settings_of(args)
    policy = options.policy_of(args, settings)
    ledger = options.ledger_of(args, settings, clock)
    try:
        evidence = ledger.evidence(NO_BUCKETS)
    finally:
        ledger.close()
    if evidence.rebuilding:
        print(f"note: {reasons.of_rebuilding(evidence.rebuilding)}", file=sys.stderr)
    if evidence.unread:
        print(f"note: {reasons.of_unread(evidence.unread)}", file=sys.stderr)
    now_ms = clock.time_ms()
    states, times = survey(evidence, policy, now_ms), clocks(evidence, policy, now_ms)
    unread = source_remarks.unread(evidence, policy, now_ms)
    if args.json:
        beside = {"sources": unread.sentences, "clocks": clock_report.document(times)}
        beside |= refused_report.document(evidence)
        print_json(host_report.document(states, unread.hosts) | beside)
    else:
        table(host_report.table(states), host_report.COLUMNS)
        said = [host_report.sentence(states, unread.hosts), *unread.sentences]
        said += refused_report.sentences(evidence, now_ms)
        print_lines([*said, *clock_report.sentences(times)])
    is_missed = not states or any(state.is_missed for state in states)
    return int(is_missed or times.is_ours_wrong)


def _wait(args: argparse.Namespace) -> int:
    clock = SystemClock()
    settings = options.settings_of(args)
    policy = _gate_policy(args, settings)
    since_ms = parse_since(args.since, clock.time_ms())
    if not args.timeout_s >= 0:
        raise UsageError("--timeout-s must not be negative.")
    begun = clock.monotonic()
    with LiveLedger(args, settings, clock) as live:
        found = patiently(
            lambda: _look(live, args, settings, policy, since_ms, clock),
            clock,
            time.sleep,
            args.timeout_s,
            Progress("hosts proven", len(set(args.host))),
        )
        if any(x.is_short for x in found) and live.is_store:
            options.note_staleness(live.ledger, clock)
    waited_s = clock.monotonic() - begun
    if args.json:
        print_json(host_report.wait_document(found, since_ms, policy, waited_s))
    else:
        print_lines(host_report.wait_sentences(found, since_ms, policy))
    return int(any(proof.is_short for proof in found))


def _gate_policy(args: argparse.Namespace, settings: AuditSettings | None) -> Policy:
    """Returns the policy of `wait` (what must be counted where). Without --tiers, it leaves out the
    tier hdfs, because counts of hdfs come only with the next load. But if hdfs is the only tier
    besides agent, it stays, because the counts of one tier alone cannot be compared."""
    policy = options.policy_of(args, settings)
    if args.tiers is None and set(policy.tiers) != {Tier.AGENT, Tier.HDFS}:
        policy = replace(policy, tiers=tuple(x for x in policy.tiers if x is not Tier.HDFS))
    if Tier.AGENT not in policy.tiers:
        raise UsageError(f"--tiers: agent must be among them (of {', '.join(TIERS)}).")
    return policy


def _look(
    live: LiveLedger,
    args: argparse.Namespace,
    settings: AuditSettings | None,
    policy: Policy,
    since_ms: int,
    clock: Clock,
) -> list[Proof]:
    live.catch_up()
    evidence = live.ledger.evidence(live.ledger.window_of(since_ms, FOREVER[1]))
    return proofs(evidence, policy, args.host, since_ms, clock.time_ms())
