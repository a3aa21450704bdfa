"""Makes the content of `_SUCCESS`: JSON about the state of the hour when the loader marked the hour
as complete.

    {"topic": "dc1.app", "hour": "2026-01-31T07", "rows": 1200, "judged_ms": ms since the epoch by
     the collector's clock, "accepted": [buckets that are complete because a person accepted their
     findings, as `skidway audit complete --json` lists them]}

Hadoop's jobs only check that the file exists.
"""

from __future__ import annotations

import json

from skidway.loader.complete_hours.collector import Answer


def content(topic: str, hour: str, rows: int, answer: Answer) -> bytes:
    """Returns the bytes of an hour's `_SUCCESS`. rows: how many rows the hour's files have. answer:
    the collector's answer that the hour is complete."""
    said = {
        "topic": topic,
        "hour": hour,
        "rows": rows,
        "judged_ms": answer.judged_ms,
        "accepted": answer.accepted,
    }
    return json.dumps(said, indent=1).encode() + b"\n"
