"""Answers requests for the history of verdicts.

    /history.json?topic=dc1.logs&bucket=2026-02-01T10:04:00Z
    /history.json?topic=dc1.logs&since=24h&until=1h

All parameters may be left out. `bucket` is any time in the bucket. Times have the form
2026-02-01T10:04:00Z or 90m (90 minutes ago), or are numbers of ms since 1970. An answer has at most
BUCKETS_MAX buckets, the newest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.exceptions import HTTPException

from skidway.audit.collector.history import Row
from skidway.audit.collector.history_store import BucketHistory, HistoryStore
from skidway.audit.evidence.evidence import FOREVER
from skidway.audit.reports import history_report, latencies, report
from skidway.audit.reports.latencies import ByPlace
from skidway.audit.reports.topic_names import is_named, topic_name
from skidway.cli.moments import parse_moment
from skidway.errors import UsageError
from skidway.kafka.source import Source

BUCKETS_MAX = 500


def answer(
    store: HistoryStore | None, query: Mapping[str, str], known: Iterable[Source], now_ms: int
) -> dict[str, Any]:
    """Returns the JSON document of /history.json. store: None if the collector stores no history.
    known: the topics that the ledger knows. Raises an HTTPException with status 404 if there is no
    history, and with status 400 for an unknown topic or a bad parameter."""
    if store is None:
        raise HTTPException(404, "This collector has no history.")
    topic = query.get("topic")
    if topic is not None and not any(is_named(x, [topic]) for x in known):
        raise HTTPException(400, f"topic {topic!r} is unknown to the audit")
    since = _time(query, "since", FOREVER[0], now_ms)
    until = _time(query, "until", FOREVER[1], now_ms)

    def is_meant(source: Source) -> bool:
        return topic is None or is_named(source, [topic])

    if "bucket" in query:
        found = store.read_at(_time(query, "bucket", 0, now_ms), is_meant, BUCKETS_MAX + 1)
    else:
        found = store.read((since, until), is_meant, BUCKETS_MAX + 1)
    return {
        "since": report.time_text(store.since_ms),
        "since_ms": store.since_ms,
        "more": len(found) > BUCKETS_MAX,
        "buckets": [_document(x, store.arrivals(x)) for x in found[:BUCKETS_MAX]],
    }


def changes(found: BucketHistory) -> list[str]:
    """Returns the lines about a bucket's history for the bucket's page: one for each row of the
    history."""
    return history_report.lines(map(_change, found.rows), found.left_out)


def _document(found: BucketHistory, arrivals: ByPlace) -> dict[str, Any]:
    return {
        "topic": topic_name(found.source),
        "topic_id": found.source.topic_id,
        "bucket": report.time_text(found.bucket),
        "bucket_ms": found.bucket,
        "left_out": found.left_out,
        "changes": [_change(x) for x in found.rows],
        "arrivals": latencies.documents(arrivals),
    }


def _change(row: Row) -> dict[str, Any]:
    return {
        "revision": row.revision,
        "time": report.time_text(row.time_ms),
        "time_ms": row.time_ms,
        "word": row.word,
        "complete": row.is_complete,
        "reasons": list(row.reasons),
        "cause": row.cause,
    }


def _time(query: Mapping[str, str], name: str, default: int, now_ms: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    try:
        found = int(text) if text.lstrip("-").isdecimal() else parse_moment(text, now_ms, name)
    except ValueError as error:
        raise HTTPException(400, f"{name} is no time") from error
    except UsageError as error:
        raise HTTPException(400, str(error)) from error
    if abs(found) >= 1 << 61:
        raise HTTPException(400, f"{name} is beyond all times")
    return found
