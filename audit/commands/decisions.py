"""`skidway audit report --decisions`: lists the decisions of people about verdicts."""

from __future__ import annotations

import argparse
from typing import Any, Final

from skidway.audit.commands import options
from skidway.audit.judgement import reasons
from skidway.audit.topic.decisions import Disownment, Lasting, Retirement
from skidway.cli.output import print_json, table
from skidway.clock import SystemClock
from skidway.errors import UsageError

COLUMNS: Final = ("TIME", "PERSON", "SIGNED", "DECISION", "REASON")


def add_option(parser: argparse.ArgumentParser) -> None:
    """Adds --decisions."""
    words = "instead of buckets: what was accepted, retired and disowned, by whom, when and why"
    parser.add_argument("--decisions", action="store_true", help=words)


def print_decisions(args: argparse.Namespace) -> int:
    """Prints all decisions that nobody took back, the oldest first. Returns the exit status. Raises
    UsageError if an option selects buckets."""
    if args.history or args.bucket or args.topic or args.since:
        raise UsageError("--decisions takes no --history, --bucket, --topic or --since.")
    ledger = options.ledger_of(args, options.settings_of(args), SystemClock())
    try:
        found = sorted(ledger.decisions(), key=lambda each: (each.time_ms, each.id))
    finally:
        ledger.close()
    if args.json:
        print_json({"decisions": [_document(each) for each in found]})
    elif found:
        table([_row(each) for each in found], COLUMNS)
    else:
        print("Nobody has accepted, retired or disowned anything.")
    return 0


def _row(decision: Lasting) -> dict[str, str]:
    said = (
        reasons.of_time(decision.time_ms), decision.person, "yes" if decision.is_signed else "no",
        _words(decision), decision.reason,
    )  # fmt: skip
    return dict(zip(COLUMNS, said, strict=True))


def _words(decision: Lasting) -> str:
    if isinstance(decision, Retirement):
        return f"retired {decision.place}"
    if isinstance(decision, Disownment):
        return f"disowned messages with the schema {decision.fingerprint}"
    source = decision.source
    return f"accepted {source.cluster}.{source.topic} {reasons.of_time(decision.bucket)}"


def _document(decision: Lasting) -> dict[str, Any]:
    said = {
        "id": decision.id,
        "time": decision.time_ms,
        "person": decision.person,
        "signed": decision.is_signed,
        "reason": decision.reason,
    }
    if isinstance(decision, Retirement):
        return said | {"kind": "retirement", "place": decision.place}
    if isinstance(decision, Disownment):
        return said | {"kind": "disownment", "fingerprint": decision.fingerprint}
    names = [{"agent": each.agent, "finding": each.finding} for each in decision.findings]
    topic = f"{decision.source.cluster}.{decision.source.topic}"
    bucket = {"topic": topic, "bucket": decision.bucket, "bucket_ms": decision.bucket_ms}
    return said | {"kind": "acceptance", "findings": names} | bucket
