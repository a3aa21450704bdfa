"""Reports on refused and disowned messages, as sentences and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.refused import Refused
from skidway.audit.judgement import reasons, refusals

SHOWN: Final = 5
RECENT_MS: Final = 86_400_000
"""Sentences tell of messages that were refused within this time; JSON and the page have all."""


def sentences(evidence: Evidence, now_ms: int) -> list[str]:
    """A sentence about each of the senders whose messages were refused lately, and about each
    schema whose messages somebody disowned."""
    lately = [x for x in evidence.refused if now_ms - x.taken_ms <= RECENT_MS]
    refused = [reasons.of_refused(x) for x in refusals.groups(lately)]
    disowned = [
        reasons.of_disowned(x, evidence.disowned[x.fingerprint])
        for x in evidence.disownments
        if x.fingerprint in evidence.disowned
    ]
    return [*_first(refused, "senders or reasons"), *_first(disowned, "schemas")]


def document(evidence: Evidence) -> dict[str, Any]:
    """The refused messages as JSON, those that were read last first, and the disowned ones."""
    return {
        "refused": [_row(x) for x in evidence.refused],
        "disowned": [
            {
                "fingerprint": x.fingerprint,
                "messages": evidence.disowned.get(x.fingerprint, 0),
                "person": x.person,
                "reason": x.reason,
            }
            for x in evidence.disownments
        ],
    }


def _row(found: Refused) -> dict[str, Any]:
    return {
        "sender": found.sender or None,
        "claimed": found.claimed or None,
        "kind": found.kind or None,
        "reason": found.reason,
        "detail": found.detail or None,
        "topic": found.topic,
        "partition": found.partition,
        "first_offset": found.first,
        "last_offset": found.last,
        "count": found.count,
        "last_seen": found.taken_ms,
        "taken": found.is_admitted,
    }


def _first(said: Sequence[str], what: str) -> list[str]:
    more = len(said) - SHOWN
    others = [f"So are those of further {what} ({more:,})."] if more > 0 else []
    return [*(f"{words}." for words in said[:SHOWN]), *others]
