"""`skidway audit accept`, `retire` and `disown`: a person's decisions about verdicts.

A decision is a message on the audit topic of the cluster that the collector reads. So the collector
reads the decision a moment later, and reads it again when its ledger is rebuilt. The options of
module `options` say where these commands read evidence.
"""

from __future__ import annotations

import argparse
import os
import pwd
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skidway.audit.commands import options, publication
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.ledger_evidence import NO_BUCKETS
from skidway.audit.judgement import acceptances, reasons
from skidway.audit.judgement.acceptances import Signature
from skidway.audit.judgement.counting_places import place_of
from skidway.audit.judgement.retired_places import RetiredPlaces
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict, Place
from skidway.audit.reports import report
from skidway.audit.reports.topic_names import is_named, topic_names, topics_named, with_rejects
from skidway.audit.settings import AuditSettings
from skidway.audit.signing.signer import Signer
from skidway.audit.topic.decisions import OTHERS, Acceptance, Decision
from skidway.audit.topic.messages import Tier, encode
from skidway.audit.topic.publisher import LIMIT_BYTES
from skidway.cli.moments import parse_moment
from skidway.cli.options import add_config_options, add_json_option
from skidway.cli.output import print_json, print_lines
from skidway.clock import Clock, SystemClock
from skidway.errors import UsageError
from skidway.kafka.source import Source

LINES_SHOWN = 20


def register(verbs: Any) -> None:
    """Adds the subcommands `accept`, `retire` and `disown`."""
    words = "accept why buckets are not complete: they no longer hold anything back"
    accept = verbs.add_parser("accept", help=words, description=f"{words}.")
    accept.add_argument("topic", metavar="TOPIC", help="as reports print it; with its rejects")
    accept.add_argument("bucket", metavar="BUCKET", help="a time in it, 2026-01-31T10:00:00Z")
    accept.add_argument("last", metavar="LAST", nargs="?", help="a time in the last one of several")
    _add_common(accept)
    accept.set_defaults(run=_accept, tiers=None, lateness_ms=None)
    words = "retire an output, a mirror or a cluster: nobody waits for its counts any more"
    retire = verbs.add_parser("retire", help=words, description=f"{words}.")
    retire.add_argument(
        "place",
        metavar="PLACE",
        nargs="+",
        help="as reports print it: hdfs OUTPUT, mirror CLUSTER, broker CLUSTER; or cluster CLUSTER",
    )
    _add_common(retire)
    retire.set_defaults(run=_retire, tiers=None, lateness_ms=None)
    words = "disown messages that no version of yours wrote: verdicts no longer wait for them"
    disown = verbs.add_parser("disown", help=words, description=f"{words}.")
    disown.add_argument(
        "fingerprint",
        metavar="FINGERPRINT",
        nargs="+",
        help=f"of the unknown schema, as reports print it; or {OTHERS}",
    )
    _add_common(disown)
    disown.set_defaults(run=_disown, tiers=None, lateness_ms=None)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reason", required=True, metavar="TEXT", help="why; `audit report --decisions` shows it"
    )
    parser.add_argument(
        "--name", metavar="NAME", help="who decides (the name in the key, or the login name)"
    )
    parser.add_argument(
        "--key", type=Path, metavar="FILE", help=f"the person's key (~/{publication.PERSON_KEY})"
    )
    parser.add_argument("--revoke", action="store_true", help="take it back")
    add_config_options(parser)
    add_json_option(parser)
    options.add_where(parser)


def _accept(args: argparse.Namespace) -> int:
    clock = SystemClock()
    settings, signer, signed = _decider(args, clock)
    found, standing = _buckets(args, settings, clock)
    decisions: Sequence[Decision]
    if args.revoke:
        decisions = acceptances.revocations(found, standing, signed)
        buckets = {(each.source, each.bucket, each.bucket_ms) for each in standing}
        said = [f"{name}: taken back" for key, (name, _) in _named(found).items() if key in buckets]
    else:
        decisions = accepted = acceptances.acceptances(found, signed)
        by_bucket = _named(found)
        said = [_line(*by_bucket[x.source, x.bucket, x.bucket_ms], args.json) for x in accepted]
    publish(args, settings, decisions, clock, signer)
    return _tell(args, said, decisions)


def _retire(args: argparse.Namespace) -> int:
    clock = SystemClock()
    settings, signer, signed = _decider(args, clock)
    place = " ".join(args.place)
    ledger = options.ledger_of(args, settings, clock)
    try:
        evidence = ledger.evidence(NO_BUCKETS)
    finally:
        ledger.close()
    decisions: Sequence[Decision]
    if args.revoke:
        texts = () if settings is None else settings.retired_places
        known = _retired_places(evidence, place, place)
        others = acceptances.other_retirements(
            place, texts, evidence.retirements, lambda text: _retired_places(evidence, place, text)
        )
        decisions = acceptances.reinstatements(place, evidence.retirements, signed, others)
        said = [acceptances.reinstated(place, known, others)]
    else:
        known = list(dict.fromkeys(_places_of(evidence, place)))
        decisions = [acceptances.retirement(place, known, signed)]
        said = [f"{place} is retired by {signed.person}: nobody waits for its counts any more."]
    publish(args, settings, decisions, clock, signer)
    return _tell(args, said, decisions)


def _disown(args: argparse.Namespace) -> int:
    clock = SystemClock()
    settings, signer, signed = _decider(args, clock)
    ledger = options.ledger_of(args, settings, clock)
    try:
        disowned, unread = ledger.evidence(NO_BUCKETS).disownments, ledger.unread()
    finally:
        ledger.close()
    decisions: Sequence[Decision]
    if args.revoke:
        decisions = acceptances.owned_again(args.fingerprint, disowned, signed)
        said = [
            f"Messages with the schema {each} hold verdicts up again." for each in args.fingerprint
        ]
    else:
        decisions = made = acceptances.disownments(args.fingerprint, unread, signed)
        said = [f"{reasons.of_disowned(x, unread[x.fingerprint])}." for x in made]
    publish(args, settings, decisions, clock, signer)
    return _tell(args, said, decisions)


def publish(
    args: argparse.Namespace,
    settings: AuditSettings | None,
    decisions: Sequence[Decision],
    clock: Clock,
    signer: Signer | None = None,
) -> None:
    """Publishes decisions on the audit topic. signer: has the key of the person; None if nobody
    signs. Raises UsageError if a decision is too large for a message, and the errors of
    `publication.say`."""
    values = [encode(each) for each in decisions]
    if max(map(len, values)) > LIMIT_BYTES:
        raise UsageError("One bucket has more findings than fit a message: nothing was accepted.")
    publication.say(args, settings, values, clock, "the decision", signer)


def _decider(
    args: argparse.Namespace, clock: Clock
) -> tuple[AuditSettings | None, Signer | None, Signature]:
    settings = options.settings_of(args)
    signer, person = publication.person_signer(settings, args.key, clock)
    return settings, signer, _signature(args, person, clock)


def _signature(args: argparse.Namespace, person: str | None, clock: Clock) -> Signature:
    if person is not None and args.name not in (None, person):
        raise UsageError(f"--name {args.name}: the key is that of {person}.")
    person = args.name or person or os.environ.get("SUDO_USER") or _login_name()
    if not args.reason.strip():
        raise UsageError("--reason must say something.")
    return Signature(clock.time_ms(), person.strip(), args.reason.strip())


def _login_name() -> str:
    return pwd.getpwuid(os.getuid()).pw_name


def _buckets(
    args: argparse.Namespace, settings: AuditSettings | None, clock: Clock
) -> tuple[list[BucketVerdict], list[Acceptance]]:
    """Returns the present verdicts on the buckets that the arguments name, and all acceptances in
    the topics of these buckets, except those that somebody took back."""
    now_ms = clock.time_ms()
    first = parse_moment(args.bucket, now_ms, "BUCKET")
    last = first if args.last is None else parse_moment(args.last, now_ms, "LAST")
    if last < first:
        raise UsageError("LAST must not be before BUCKET.")
    policy = options.policy_of(args, settings)
    names = with_rejects([args.topic])
    ledger = options.ledger_of(args, settings, clock)
    try:
        evidence = ledger.evidence(ledger.window_of(first, last + 1), topics_named(names))
    finally:
        ledger.close()
    if evidence.rebuilding:
        raise UsageError(f"{reasons.of_rebuilding(evidence.rebuilding)}; wait until it has them.")
    if evidence.unread:
        raise UsageError(f"{reasons.of_unread(evidence.unread)}; upgrade the audit first.")
    heard_ms = max(evidence.last_seen.values(), default=0)
    if not args.revoke and now_ms - heard_ms > policy.silence_ms:
        raise UsageError(
            f"By this host's clock nobody was heard for {(now_ms - heard_ms) // 1000:,} s. If that "
            "is true, verdicts will still change: nothing is accepted until counters and collector "
            "run again. If it is not, set the clock."
        )
    found = [
        verdict
        for verdict in verdicts(evidence, policy, now_ms)
        if is_named(verdict.source, names) and verdict.bucket + verdict.bucket_ms > first
    ]
    return found, [each for topic in evidence.topics.values() for each in topic.acceptances]


def _retired_places(evidence: Evidence, place: str, text: str) -> list[Place]:
    """A person can retire places by a text that names a place, or something that contains places,
    such as a cluster. Returns the places that both texts, `place` and `text`, would retire.
    Considers only places of senders other than agents.
    """
    found = zip(_places_of(evidence, place), _places_of(evidence, text), strict=True)
    return list(dict.fromkeys(x for meant, x in found if meant.is_retired and x.is_retired))


def _places_of(evidence: Evidence, place: str) -> list[Place]:
    """Returns, for each sender that is not an agent, the place at which the sender counts. A
    returned place is marked as retired if the argument `place` names it, or names something that
    contains it, such as its cluster.
    """
    retired = RetiredPlaces([place])
    known = (key for key in evidence.senders if key.tier is not Tier.AGENT)
    return [place_of(key, evidence, retired) for key in known]


def _named(
    found: Sequence[BucketVerdict],
) -> dict[tuple[Source, int, int], tuple[str, BucketVerdict]]:
    topics = topic_names(x.source for x in found)
    return {
        (x.source, x.bucket, x.bucket_ms): (f"{topics[x.source]} {report.time_text(x.bucket)}", x)
        for x in found
    }


def _line(name: str, verdict: BucketVerdict, is_whole: bool) -> str:
    said = "; ".join(verdict.words) if is_whole else report.reasons_text(verdict.words)
    return f"{name} ({verdict.status.word}): {said}"


def _tell(args: argparse.Namespace, said: Sequence[str], decisions: Sequence[Decision]) -> int:
    if args.json:
        print_json({"says": list(said), "decisions": [each.id for each in decisions]})
        return 0
    print_lines(said[:LINES_SHOWN])
    if len(said) > LINES_SHOWN:
        print(f"and {len(said) - LINES_SHOWN:,} more buckets")
    return 0
