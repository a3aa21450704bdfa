"""`skidway audit decisions`: lists the decisions of people about verdicts."""

from __future__ import annotations

import argparse
from typing import Any

from skidway.audit.commands import options
from skidway.audit.judgement import reasons
from skidway.audit.topic.decisions import Acceptance, Retirement
from skidway.cli.options import add_config_options, add_json_option
from skidway.cli.output import print_json, table
from skidway.clock import SystemClock

COLUMNS = ("TIME", "PERSON", "DECISION", "REASON")


def register(verbs: Any) -> None:
    """Adds the verb `decisions`."""
    words = "list what was accepted and retired, by whom, when and why"
    parser = verbs.add_parser("decisions", help=words, description=f"{words}.")
    add_config_options(parser)
    add_json_option(parser)
    options.add_where(parser)
    parser.set_defaults(run=_decisions, tiers=None, lateness_ms=None)


def _decisions(args: argparse.Namespace) -> int:
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
        print("Nobody has accepted or retired anything.")
    return 0


def _row(decision: Acceptance | Retirement) -> dict[str, str]:
    said = (
        reasons.of_time(decision.time_ms), decision.person, _words(decision), decision.reason,
    )  # fmt: skip
    return dict(zip(COLUMNS, said, strict=True))


def _words(decision: Acceptance | Retirement) -> str:
    if isinstance(decision, Retirement):
        return f"retired {decision.place}"
    source = decision.source
    return f"accepted {source.cluster}.{source.topic} {reasons.of_time(decision.bucket)}"


def _document(decision: Acceptance | Retirement) -> dict[str, Any]:
    said = {
        "id": decision.id,
        "time": decision.time_ms,
        "person": decision.person,
        "reason": decision.reason,
    }
    if isinstance(decision, Retirement):
        return said | {"kind": "retirement", "place": decision.place}
    names = [{"agent": each.agent, "finding": each.finding} for each in decision.findings]
    topic = f"{decision.source.cluster}.{decision.source.topic}"
    bucket = {"topic": topic, "bucket": decision.bucket, "bucket_ms": decision.bucket_ms}
    return said | {"kind": "acceptance", "findings": names} | bucket
