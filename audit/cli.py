"""`skidway audit run|count|report|recount|validate`; commands.hosts and commands.accept have
more."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import Any

from skidway import service
from skidway.audit.commands import accept, decisions, options, publication
from skidway.audit.commands import hosts as host_commands
from skidway.audit.evidence.evidence import FOREVER
from skidway.audit.judgement.clocks import Clocks, clocks
from skidway.audit.judgement.hosts import HostState, survey
from skidway.audit.judgement.retired_places import retired_by
from skidway.audit.judgement.standing import Standing, of_evidence
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict, Policy
from skidway.audit.output import Output, open_output
from skidway.audit.recount import faults, manifests, recount
from skidway.audit.recount.manifests import Committed
from skidway.audit.reports import clock_report, host_report, recount_report, report
from skidway.audit.settings import TIERS, AuditSettings, CounterSettings
from skidway.audit.topic.messages import Tier, encode
from skidway.cli.moments import parse_moment
from skidway.cli.options import add_config_options, add_json_option, load_settings
from skidway.cli.output import print_good, print_json, table
from skidway.clock import SystemClock
from skidway.errors import ConfigurationRefused, UsageError

PROGRAM = options.PROGRAM
COUNTER = "audit count"


def register(subparsers: Any) -> None:
    """Adds the noun `audit`."""
    parser = subparsers.add_parser(PROGRAM, help="count, compare and report completeness")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    run = verbs.add_parser("run", help="collect counts and serve the dashboard until SIGTERM")
    add_config_options(run, AuditSettings)
    run.set_defaults(run=_run)
    count = verbs.add_parser("count", help="count a cluster's topics for a tier until SIGTERM")
    add_config_options(count, CounterSettings)
    count.add_argument(
        "--new-epoch",
        action="store_true",
        help="forget the state and count everything again from the beginning of every log",
    )
    count.set_defaults(run=_count)
    _register_report(verbs)
    _register_recount(verbs)
    host_commands.register(verbs)
    accept.register(verbs)
    decisions.register(verbs)
    validate = verbs.add_parser("validate", help="check settings, and end")
    validate.add_argument("program", nargs="?", choices=("run", "count"), default="run")
    add_config_options(validate)
    add_json_option(validate)
    validate.set_defaults(run=_validate)


def _register_report(verbs: Any) -> None:
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
        "--all", action="store_true", help="1 also for buckets that are too young to be complete"
    )
    parser.add_argument(
        "--each-bucket", action="store_true", help="a line for each bucket, also for alike ones"
    )
    parser.set_defaults(run=_report)


def _register_recount(verbs: Any) -> None:
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
        help="only rows of event times from then on, by whole hours: 2026-01-31T10:00:00Z, 26h, 7d",
    )
    parser.add_argument(
        "--tell", action="store_true", help="tell the collector, for pages, metrics and report"
    )
    parser.set_defaults(run=_recount, tiers=None, lateness_ms=None)


def _run(args: argparse.Namespace) -> int:
    from skidway.audit.collector.collector import run_collector

    def body(shutdown: service.Shutdown) -> int:
        return run_collector(load_settings(AuditSettings, args, PROGRAM), SystemClock(), shutdown)

    return service.run(PROGRAM, body, level=args.log_level)


def _count(args: argparse.Namespace) -> int:
    from skidway.audit.counter.program import run_counter

    def body(shutdown: service.Shutdown) -> int:
        settings = load_settings(CounterSettings, args, PROGRAM)
        return run_counter(settings, SystemClock(), shutdown, new_epoch=args.new_epoch)

    return service.run(COUNTER, body, level=args.log_level)


def _validate(args: argparse.Namespace) -> int:
    if args.program == "count":
        counter = load_settings(CounterSettings, args, PROGRAM)
        words = (
            f"tier {counter.tier} counts {', '.join(counter.topics)} of"
            f" {counter.bootstrap_servers}, state in {counter.state_dir}"
        )
        return print_good(words, as_json=args.json)
    settings = load_settings(AuditSettings, args, PROGRAM)
    options.listed(settings)
    words = (
        f"audit of {', '.join(settings.tiers)} from {settings.bootstrap_servers},"
        f" store in {settings.store_dir}, dashboard on {settings.listener}"
    )
    return print_good(words, as_json=args.json)


def _report(args: argparse.Namespace) -> int:
    settings = options.settings_of(args)
    policy = options.policy_of(args, settings)
    judged, found, states, times = _judged(args, settings, policy)
    if args.json:
        beside = {"hosts": host_report.summary(states), "clocks": clock_report.document(times)}
        print_json(report.document(judged, found) | beside)
    else:
        rows = report.table(found, policy.tiers, each=args.each_bucket)
        table(rows, report.columns(policy.tiers))
        remarks = [*host_report.remarks(states), *clock_report.sentences(times)]
        print("\n".join([report.sentence(judged), *remarks]))
    return max(report.exit_status(judged, everything=args.all), int(times.is_ours_wrong))


def _recount(args: argparse.Namespace) -> int:
    settings = options.settings_of(args)
    output = _output(args.output)
    clock = SystemClock()
    since_ms = None if args.since is None else parse_moment(args.since, clock.time_ms())
    since_ms = None if since_ms is None else since_ms - since_ms % faults.HOUR_MS
    asked = None if args.topic is None else set(options.with_rejects(args.topic))
    known = [manifests.head(output, topic) for topic in recount.topics(output)]
    recounts = [recount.recount(output, x, since_ms) for x in known if _is_asked(x, asked)]
    ledger = options.ledger_of(args, settings, clock)  # what was loaded before has been said by now
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
    if args.tell:
        results = recount_report.results(compared, output.url, since_ms, clock.time_ms())
        values = [encode(result) for result in results]
        publication.say(args, settings, values, clock, "what the recount found")
    if args.json:
        print_json(recount_report.document(compared))
    else:
        table(recount_report.table(compared), recount_report.COLUMNS)
        for line in recount_report.faults(compared):
            print(line)
        print(recount_report.sentence(compared))
    return 0 if recount_report.is_good(compared) else 1


def _output(url: str) -> Output:
    try:
        return open_output(url)
    except ConfigurationRefused as error:
        raise UsageError(f"{error}.") from error


def _is_asked(topic: Committed, asked: Collection[str] | None) -> bool:
    names = {topic.topic} if topic.source is None else {topic.topic, topic.source.topic}
    return asked is None or not names.isdisjoint(asked)


def _judged(
    args: argparse.Namespace, settings: AuditSettings | None, policy: Policy
) -> tuple[Standing, list[BucketVerdict], list[HostState], Clocks]:
    clock = SystemClock()
    since = FOREVER[0]
    if args.since is not None:
        since = parse_moment(args.since, clock.time_ms())
    names = None if args.topic is None else options.with_rejects(args.topic)
    ledger = options.ledger_of(args, settings, clock)
    try:
        evidence = ledger.evidence((since, FOREVER[1]), options.topics_named(names))
    finally:
        ledger.close()
    now_ms = clock.time_ms()
    found = verdicts(evidence, policy, now_ms)
    states, times = survey(evidence, policy, now_ms), clocks(evidence, policy, now_ms)
    if names is not None:
        found = [x for x in found if options.is_named(x.source, names)]
    whole = of_evidence(evidence, found)
    if names is not None:
        whole = whole.where(lambda source: options.is_named(source, names))
    return whole, found, states, times
