"""`skidway audit why` without a topic: shows, for each topic, the bucket that `why TOPIC` would
explain, with the bucket's gravest cause and the next command. Also shows facts that belong to no
bucket: what does not answer now, which comes first, the faults that the newest recounts found, and
the expected hosts that do not report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from skidway.audit.commands import options
from skidway.audit.evidence.evidence import FOREVER, Evidence
from skidway.audit.explanation.choice import first_explained, is_bad, nothing_due, urgency
from skidway.audit.explanation.document import document, document_of, sentence
from skidway.audit.explanation.explanation import Explanation, explain, explain_recounts
from skidway.audit.explanation.next_command import Access, explain_bucket, show_hosts
from skidway.audit.explanation.present_causes import present_causes
from skidway.audit.judgement.clocks import clocks
from skidway.audit.judgement.hosts import survey
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.reports import clock_report, host_report, source_remarks
from skidway.audit.reports.report import time_text
from skidway.audit.reports.topic_names import topic_names
from skidway.cli.output import print_json, print_lines, render_table
from skidway.clock import Clock
from skidway.kafka.source import Source

COLUMNS = ("topic", "bucket", "verdict", "others", "cause", "why", "next")

Explain = Callable[[BucketVerdict], Sequence[Explanation]]


def run(args: Any, settings: Any, policy: Policy, clock: Clock) -> int:
    """Prints, for each topic, the bucket that `why TOPIC` would explain, and the facts that belong
    to no bucket. Returns the exit status: 0 if there are buckets and none of them needs a look (see
    choice.is_bad), the newest recounts agree, all servers answer, all expected hosts report and
    this host's clock is right; 1 in all other cases."""
    ledger = options.ledger_of(args, settings, clock)
    try:
        evidence = ledger.evidence(FOREVER)
    finally:
        ledger.close()
    access = options.access_of(args, settings)
    now_ms = clock.time_ms()
    found = verdicts(evidence, policy, now_ms)
    states, times = survey(evidence, policy, now_ms), clocks(evidence, policy, now_ms)
    rows = worst(
        found,
        lambda x: explain(x, evidence, policy, now_ms, access),
        _differing(evidence, policy, now_ms, access),
    )
    unread = source_remarks.unread(evidence, policy, now_ms)
    is_missed = any(state.is_missed for state in states)
    present = present_causes(evidence, policy, now_ms, access)
    if args.json:
        beside = {
            "sources": unread.sentences,
            "hosts": host_report.summary(states, unread.hosts),
            "clocks": clock_report.document(times),
            "causes": [document_of(x) for x in present],
        }
        print_json({"topics": rows} | beside)
    else:
        said = [*unread.beside, *host_report.remarks(states)]
        said += [f"next: {show_hosts(access)}"] if is_missed else []
        said += clock_report.sentences(times)
        if present:
            print_lines(map(sentence, present))
        if rows:
            print(render_table([_text(x, access) for x in rows], COLUMNS))
            said.insert(
                0, f"{access.audit('audit why', 'TOPIC')} explains one of them, with all causes."
            )
        elif found:
            said.append(nothing_due(is_alone=not (said or present)))
        else:
            said.insert(0, "Nothing was counted: there is no bucket to judge.")
        print_lines(said)
    is_bad_now = bool(present) or is_missed or bool(unread.fileless) or times.is_ours_wrong
    return int(bool(rows) or not found or is_bad_now)


def worst(
    found: Iterable[BucketVerdict],
    explained: Explain,
    differing: Iterable[tuple[Source, Explanation]] = (),
) -> list[dict[str, Any]]:
    """Returns a row for each topic with a bucket that somebody should look at, the topic with the
    worst bucket first. Also returns a row for each output that, according to its newest recount,
    differs from the counts; this row names no bucket. explained: a function that returns the causes
    why a bucket is not complete. differing: the topics and explanations of these outputs."""
    bad: dict[Source, list[BucketVerdict]] = {}
    for verdict in found:
        if is_bad(verdict):
            bad.setdefault(verdict.source, []).append(verdict)
    changed: dict[Source, list[Explanation]] = {}
    for source, each in differing:
        changed.setdefault(source, []).append(each)
    names = topic_names([*bad, *changed])
    rows: list[dict[str, Any]] = []

    def order(source: Source) -> tuple[Any, ...]:
        if source not in bad:
            return 2, names[source]
        first = first_explained(bad[source])[0]
        return int(first.residue is Status.OPEN), urgency(first), names[source]

    for source in sorted({*bad, *changed}, key=order):
        own = _of_buckets(names[source], bad[source], explained) if source in bad else []
        rows += own
        for each in changed.get(source, ()):
            cause = document(each)
            if not any(_is_same(cause, x["cause"]) for x in own):
                rows.append(_row(names[source], None, each.cause.value, 0, cause))
    return rows


def _differing(
    evidence: Evidence, policy: Policy, now_ms: int, access: Access
) -> Iterator[tuple[Source, Explanation]]:
    """Yields a topic and an explanation for each output that, according to its newest recount,
    differs from the counts.
    """
    for source in evidence.topics:
        for each in explain_recounts(source, evidence, policy, now_ms, access):
            yield source, each


def _of_buckets(
    topic: str, bad: Sequence[BucketVerdict], explained: Explain
) -> list[dict[str, Any]]:
    """Returns the row of the bucket that `why TOPIC` would explain. bad: the buckets of the topic
    that somebody should look at."""
    verdict = first_explained(bad)[0]
    causes = [document(x) for x in explained(verdict)]
    cause = causes[0] if causes else None
    return [_row(topic, time_text(verdict.bucket), verdict.word, len(bad) - 1, cause)]


def _row(
    topic: str, bucket: str | None, verdict: str, others: int, cause: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "topic": topic, "bucket": bucket, "verdict": verdict, "others": others, "cause": cause
    }  # fmt: skip


def _is_same(cause: dict[str, Any], other: dict[str, Any] | None) -> bool:
    return other is not None and all(cause[x] == other[x] for x in ("cause", "command"))


def _text(row: dict[str, Any], access: Access) -> dict[str, Any]:
    cause = row["cause"]
    row = row | {"bucket": row["bucket"] or ""}
    if cause is None:
        return row | {"cause": "", "why": "", "next": ""}
    host, line = cause["command"]["host"], cause["command"]["line"]
    if cause["command"] == cause["accept"]:  # the command also accepts causes that are not shown
        host, line = "", explain_bucket(row["topic"], row["bucket"], access).line
    command = f"on {host}: {line}" if host else line
    return row | {"cause": cause["cause"], "why": cause["words"], "next": command}
