"""`skidway audit why`: explains why a bucket is not complete, and names the command to run next."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from skidway.audit.commands import agent_health, every_why, history, options, tracing_options
from skidway.audit.commands.first_line import FirstLine, FirstLines
from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.evidence.evidence import FOREVER, Evidence
from skidway.audit.explanation.choice import (
    alike,
    covered,
    first_explained,
    is_bad,
    nothing_due,
    with_covered,
)
from skidway.audit.explanation.document import document, document_of, sentence, text
from skidway.audit.explanation.explanation import Explanation, explain
from skidway.audit.explanation.present_cause import PresentCause
from skidway.audit.explanation.present_causes import present_causes
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.clocks import present_ms
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import TopicJudgement, verdicts
from skidway.audit.judgement.verdict import BucketVerdict
from skidway.audit.reports import fieldless_report
from skidway.audit.reports.latencies import arrivals_in, latencies_ms
from skidway.audit.reports.report import acceptance_document, reasons_text, time_text
from skidway.audit.reports.topic_names import is_named, topic_names, topics_named, with_rejects
from skidway.cli.moments import parse_moment
from skidway.cli.options import add_config_options, add_json_option
from skidway.cli.output import print_json, print_lines
from skidway.clock import SystemClock
from skidway.errors import Unreachable, UsageError
from skidway.schemas.consuming.asking import add_registry_option


def register(verbs: Any) -> None:
    """Adds the verb `why`."""
    words = "why a bucket is not complete, where, since when, and what to do next"
    parser = verbs.add_parser("why", help=words, description=f"say {words}.")
    parser.add_argument(
        "topic", metavar="TOPIC", nargs="?",
        help="as reports print it; with its rejects; without it, one bucket of each topic",
    )  # fmt: skip
    parser.add_argument(
        "bucket", metavar="BUCKET", nargs="?",
        help="a time in it, 2026-01-31T10:00:00Z; by default, the worst to look at: one that is "
        "held up now before one that has a warning or lacks only rows, and of these the oldest",
    )  # fmt: skip
    add_config_options(parser)
    add_json_option(parser)
    options.add_where(parser)
    options.add_expected(parser)
    agent_health.add_option(parser)
    tracing_options.add_agent_config(parser)
    history.add_collector(parser)
    add_registry_option(parser)
    parser.set_defaults(run=_why)


Explained = tuple[BucketVerdict, Sequence[Explanation]]
Told = tuple[BucketVerdict, Sequence[tuple[Explanation, FirstLine | None]]]


def _why(args: argparse.Namespace) -> int:
    settings = options.settings_of(args)
    policy = options.policy_of(args, settings)
    if args.topic is None:
        return every_why.run(args, settings, policy, SystemClock())
    now_ms = SystemClock().time_ms()
    names = with_rejects([args.topic])
    ledger = options.ledger_of(args, settings, SystemClock())
    try:
        window = FOREVER
        if args.bucket is not None:
            moment = parse_moment(args.bucket, now_ms, "BUCKET")
            window = ledger.window_with_overlaps(moment)
        evidence = ledger.evidence(window, topics_named(names))
        fieldless = fieldless_report.fieldless(ledger.notes(), names)
    finally:
        ledger.close()
    if not any(is_named(x, names) for x in evidence.topics):
        raise UsageError(f"The audit does not know the topic {args.topic}.")
    access = options.access_of(args, settings)
    healths = agent_health.healths(args.agent_health, access.here)

    def explained(verdict: BucketVerdict, last: int | None = None) -> Explained:
        return verdict, explain(verdict, evidence, policy, now_ms, access, healths, last)

    judged = verdicts(evidence, policy, now_ms)
    found = [x for x in judged if is_named(x.source, names)]
    others = same = 0
    if args.bucket is not None:
        shown = with_covered(_at(found, evidence, names, policy, now_ms, args.bucket), judged)
        answer = [explained(x) for x in shown]
    else:
        bad = [x for x in found if is_bad(x)]
        shown = with_covered(first_explained(bad), judged)
        lasts = [_last(x, judged) for x in shown]
        ids = {id(x) for x in shown}
        left = [x for x in bad if id(x) not in ids]
        others, same = len(left), _count_covered(shown, lasts, left)
        answer = [explained(x, last) for x, last in zip(shown, lasts, strict=True)] or _elsewhere(
            [explained(x) for x in [*_newest(found), *_empty(evidence, names, policy, now_ms)]]
        )
    host = cache(partial(tracing_options.host_state, args, settings, access.here))
    lines = FirstLines(args, settings, host)
    told = [(x, [(each, lines.of(x, each)) for each in causes]) for x, causes in answer]
    present = present_causes(evidence, policy, now_ms, access)
    _print(args, told, others, same, evidence, present)
    if not args.json:
        print_lines(fieldless_report.sentences(fieldless))
    return int(any(_is_wanting(x, causes) for x, causes in answer) or others > 0)


def _last(verdict: BucketVerdict, found: Sequence[BucketVerdict]) -> int | None:
    """Returns the last bucket that an acceptance of this bucket can also cover; None if the
    acceptance can cover only this bucket."""
    run = alike(verdict, found)
    return run[-1].bucket if run else None


def _count_covered(
    shown: Sequence[BucketVerdict], lasts: Sequence[int | None], left: Sequence[BucketVerdict]
) -> int:
    """Returns how many of the buckets in `left` are also accepted by the printed commands. left:
    the buckets that somebody should look at, but that the command does not show. lasts: for each
    command, the last bucket that it accepts; None if it accepts only one bucket.
    """
    runs = [
        covered(x, last, left) for x, last in zip(shown, lasts, strict=True) if last is not None
    ]
    return len({id(x) for run in runs for x in run})


def _is_wanting(verdict: BucketVerdict, causes: Iterable[Explanation]) -> bool:
    differs = any(x.cause is Cause.OUTPUT_CHANGED for x in causes)
    return is_bad(verdict) or differs


def _at(
    found: Sequence[BucketVerdict],
    evidence: Evidence,
    names: Sequence[str],
    policy: Policy,
    now_ms: int,
    bucket: str,
) -> Sequence[BucketVerdict]:
    """Returns, for each topic, the verdict on the bucket that contains the time `bucket`. Returns
    the verdicts on deleted buckets that contain this time, too. If nobody counted anything in any
    of these buckets, judges an empty bucket."""
    moment = parse_moment(bucket, now_ms, "BUCKET")
    shown = [x for x in found if x.bucket <= moment < x.bucket + x.bucket_ms]
    known = {(x.source, x.bucket, x.bucket_ms) for x in shown}
    deleted = [
        verdict
        for verdict in _deleted(evidence, names, policy, now_ms, moment)
        if (verdict.source, verdict.bucket, verdict.bucket_ms) not in known
    ]
    return [*shown, *deleted] or _whole(evidence, names, policy, now_ms, moment)


def _empty(
    evidence: Evidence, names: Sequence[str], policy: Policy, now_ms: int
) -> Sequence[BucketVerdict]:
    """Returns, for each topic except topics of rejects, the verdict on the newest bucket that is
    due, even if nobody counted anything in this bucket. Only this bucket shows which hosts are
    silent now.
    """
    moment = now_ms - policy.lateness_ms - policy.bucket_ms
    return _whole(evidence, names, policy, now_ms, moment)


def _deleted(
    evidence: Evidence, names: Sequence[str], policy: Policy, now_ms: int, moment: int
) -> Sequence[BucketVerdict]:
    """Returns the verdicts on the deleted buckets that contain a time. The size of such a bucket
    may differ from the size of the buckets that the audit still has."""
    return [
        TopicJudgement(evidence, source, policy, present_ms(evidence, policy, now_ms)).whole_bucket(
            bucket
        )
        for source, topic in evidence.topics.items()
        if is_named(source, names)
        for bucket in sorted(topic.pruned)
        if bucket[0] <= moment < sum(bucket)
    ]


def _whole(
    evidence: Evidence, names: Sequence[str], policy: Policy, now_ms: int, moment: int
) -> Sequence[BucketVerdict]:
    """Returns, for each topic except topics of rejects, the verdict on the bucket that contains a
    time, even if nobody counted anything in this bucket."""
    size = policy.bucket_ms
    return [
        TopicJudgement(evidence, source, policy, present_ms(evidence, policy, now_ms)).whole_bucket(
            (moment - moment % size, size)
        )
        for source in evidence.topics
        if is_named(source, names) and not source.topic.endswith(REJECTED_SUFFIX)
    ]


def _newest(found: Sequence[BucketVerdict]) -> Sequence[BucketVerdict]:
    """Returns the verdict on the newest bucket of each topic. A recount checks a whole topic, so
    the command shows the recount's result only with this bucket."""
    return list({x.source: x for x in found}.values())


def _elsewhere(found: Iterable[Explained]) -> list[Explained]:
    """Returns the causes that keep buckets from being complete and will not go away by themselves.
    If several buckets have the same cause, returns it only for the first of them. The command shows
    these causes if there is no bucket at which somebody should look.
    """
    passing = (Cause.TOO_YOUNG, Cause.IN_FLIGHT, Cause.COUNTER_BEHIND, Cause.FILTERED)
    kept: list[Explained] = []
    seen: set[Explanation] = set()
    for verdict, causes in found:
        new = [each for each in causes if each.cause not in passing and each not in seen]
        seen.update(new)
        kept.append((verdict, new))
    return [(x, causes) for x, causes in kept if causes]


def _print(
    args: argparse.Namespace,
    found: Sequence[Told],
    others: int,
    same: int,
    evidence: Evidence,
    present: Sequence[PresentCause],
) -> None:
    names = topic_names(x.source for x, _ in found)
    noted = {id(x): _noted(args.collector, names[x.source], x) for x, _ in found}
    since = {id(x): _since(x, noted[id(x)]) for x, _ in found}
    if args.json:
        buckets = [
            {
                "topic": names[verdict.source],
                "bucket": time_text(verdict.bucket),
                "bucket_ms": verdict.bucket,
                "verdict": verdict.word,
                "due": verdict.due,
                "counted": _is_counted(evidence, verdict),
                "since": since[id(verdict)],
                "places": _places(verdict, noted[id(verdict)]),
                "acceptances": [acceptance_document(each) for each in verdict.acceptances],
                "causes": [
                    document(x) | {"line": None if line is None else line.document()}
                    for x, line in causes
                ],
            }
            for verdict, causes in found
        ]
        causes_now = [document_of(x) for x in present]
        print_json({"buckets": buckets, "others": others, "alike": same, "causes": causes_now})
        return
    lines = [sentence(x) for x in present]
    lines += [] if found else [nothing_due(is_alone=not present)]
    for verdict, causes in found:
        said = [x for x, _ in causes]
        is_counted = _is_counted(evidence, verdict)
        lines.append(
            _heading(
                names[verdict.source], verdict, said, since[id(verdict)], is_counted=is_counted
            )
        )
        if verdict.acceptances:
            lines.append(f"  {reasons_text(verdict.words)}")
        lines += text(said)
        for each in (line for _, line in causes if line is not None):
            lines.append(f"  the first {each.kind} line is {each.where}: {each.text}")
    if others:
        lines.append(_more(others, same))
    print_lines(lines)


def _is_counted(evidence: Evidence, verdict: BucketVerdict) -> bool:
    topic, bucket = evidence.topic(verdict.source), (verdict.bucket, verdict.bucket_ms)
    return bucket in topic.tallies or bucket in topic.pruned


def _heading(
    topic: str,
    verdict: BucketVerdict,
    causes: Sequence[Explanation],
    since: str | None,
    *,
    is_counted: bool,
) -> str:
    """Returns a sentence that says what is wrong. since: since when the bucket has had its verdict;
    None if this is not known. is_counted: whether anything was ever counted in the bucket. If only
    the output's files or rows are wrong, the sentence names no bucket, because a recount checks the
    whole topic."""
    if not is_bad(verdict) and causes and all(x.cause is Cause.OUTPUT_CHANGED for x in causes):
        return f"The output has other rows of {topic} than were counted."
    warned = ", with a warning" if verdict.is_warned else ""
    begin = f" since {since}" if since else ""
    empty = "" if is_counted else "; nothing was counted in it"
    return f"{topic} {time_text(verdict.bucket)} is {verdict.word}{begin}{warned}{empty}."


def _more(others: int, same: int) -> str:
    """Returns a sentence that says how many other buckets somebody should look at (`others`), and
    how many of these have the same causes as the bucket that the command shows (`same`). If people
    accept the shown bucket, they can accept these buckets with the same command.
    """
    said = "1 other bucket needs" if others == 1 else f"{others:,} other buckets need"
    if not same:
        return f"{said} a look, too."
    which = (
        "It has" if others == same == 1 else f"{same:,} of them {'has' if same == 1 else 'have'}"
    )
    return f"{said} a look, too. {which} the same causes: an acceptance as above covers them all."


def _noted(collector: str, topic: str, verdict: BucketVerdict) -> Mapping[str, Any]:
    try:
        found = history.bucket_history(collector, topic, time_text(verdict.bucket))
    except (Unreachable, UsageError):
        return {}
    return found or {}


def _places(verdict: BucketVerdict, noted: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns an entry for each place: its count, and how many ms after the bucket's end the place
    first had all records (None if this is not known). noted: the collector's history of the
    bucket."""
    latencies = latencies_ms(verdict, arrivals_in(noted.get("arrivals")))
    return [
        {
            "tier": place.tier.value.lower(),
            "place": place.name,
            "count": None if sums is None else sums.count,
            "latency_ms": latencies[place],
        }
        for place, sums in verdict.places().items()
    ]


def _since(verdict: BucketVerdict, noted: Mapping[str, Any]) -> str | None:
    begin = None
    for change in reversed(noted.get("changes", ())):
        if change["word"] != verdict.word:
            break
        begin = change["time"]
    return begin
