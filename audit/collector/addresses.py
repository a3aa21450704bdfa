"""Makes the addresses of the parts of a long list that does not fit into one answer."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from skidway.audit.judgement.verdict import BucketVerdict
from skidway.audit.reports.topic_names import topic_name

ROWS_MAX = 500
"""A JSON document lists at most this many hosts, senders or agents."""


def agents_address(verdict: BucketVerdict) -> str:
    """Returns the address of the JSON document that lists the agents of this bucket, from the first
    agent on."""
    query = {"topic": topic_name(verdict.source), "bucket": verdict.bucket}
    return f"/buckets.json?{urlencode(query)}"


def next_address(path: str, query: Mapping[str, str], begin: int, count: int) -> str | None:
    """Returns the address of the next part of a list that has `count` rows and was shown from row
    `begin` on. Returns None if no row is left."""
    end = begin + ROWS_MAX
    return f"{path}?{urlencode({**query, 'from': str(end)})}" if end < count else None
