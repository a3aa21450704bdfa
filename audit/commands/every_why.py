"""`skidway audit why` without a topic: shows, for each topic, the bucket that `why TOPIC` would
explain, with the bucket's gravest cause and the next command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from skidway.audit.commands import options
from skidway.audit.evidence.evidence import FOREVER
from skidway.audit.explanation.choice import first_explained, is_bad
from skidway.audit.explanation.document import document
from skidway.audit.explanation.explanation import Explanation, explain
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict
from skidway.audit.reports.report import time_text
from skidway.audit.reports.topic_names import topic_names
from skidway.cli.output import print_json, render_table
from skidway.clock import Clock

COLUMNS = ("topic", "bucket", "verdict", "others", "cause", "why", "next")

Explain = Callable[[BucketVerdict], Sequence[Explanation]]


def run(args: Any, settings: Any, policy: Policy, clock: Clock) -> int:
    """Prints, for each topic, the bucket that `why TOPIC` would explain. Returns the exit status: 1
    if a bucket was printed, otherwise 0."""
    ledger = options.ledger_of(args, settings, clock)
    try:
        evidence = ledger.evidence(FOREVER)
    finally:
        ledger.close()
    access = options.access_of(args, settings)
    now_ms = clock.time_ms()
    found = verdicts(evidence, policy, now_ms)
    rows = worst(found, lambda x: explain(x, evidence, policy, now_ms, access))
    if args.json:
        print_json({"topics": rows})
    elif rows:
        print(render_table([_text(x) for x in rows], COLUMNS))
        print("skidway audit why TOPIC explains one of them, with all causes.")
    else:
        print("Every bucket that is due is complete or accepted.")
    return int(bool(rows))


def worst(found: Iterable[BucketVerdict], explained: Explain) -> list[dict[str, Any]]:
    """Returns a row for each topic with a bucket that somebody should look at. explained: a
    function that returns the causes why a bucket is not complete."""
    bad: dict[Any, list[BucketVerdict]] = {}
    for verdict in found:
        if is_bad(verdict):
            bad.setdefault(verdict.source, []).append(verdict)
    names = topic_names(bad)
    rows = []
    for source, of_topic in sorted(bad.items(), key=lambda x: names[x[0]]):
        verdict = first_explained(of_topic)[0]
        causes = [document(x) for x in explained(verdict)]
        rows.append(
            {
                "topic": names[source],
                "bucket": time_text(verdict.bucket),
                "verdict": verdict.word,
                "others": len(of_topic) - 1,
                "cause": causes[0] if causes else None,
            }
        )
    return rows


def _text(row: dict[str, Any]) -> dict[str, Any]:
    cause = row["cause"]
    if cause is None:
        return row | {"cause": "", "why": "", "next": ""}
    host, line = cause["command"]["host"], cause["command"]["line"]
    command = f"on {host}: {line}" if host else line
    return row | {"cause": cause["cause"], "why": cause["words"], "next": command}
