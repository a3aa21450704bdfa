"""Asks the audit's collector (audit/collector/hours.py) whether hours of a topic are complete."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import urllib3
from urllib3.exceptions import HTTPError

from skidway.audit.reports.topic_names import with_id
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.source import Source
from skidway.loader.state import layout

CONNECT_S: Final = 5.0
READ_S: Final = 30.0
HDFS: Final = "hdfs"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """The collector's answer about one hour. heard: epoch and number of the output's newest message
    that the answer takes into account. accepted: the buckets whose findings a person accepted."""

    is_complete: bool
    judged_ms: int
    heard: tuple[int, int] = (0, 0)
    accepted: list[Any] = field(default_factory=list)


class Collector:
    """One collector, as long as it answers: after a question without an answer, the other questions
    are not sent, because a run must not wait again for each topic.

    get: fetches a URL with its query, and returns the JSON document.
    """

    def __init__(
        self, url: str, get: Callable[[str, Mapping[str, str]], Any] | None = None
    ) -> None:
        self._url = url.rstrip("/")
        self._get = get or _fetched
        self._away: Unreachable | None = None

    def judged(self, source: Source, since: str, until: str) -> dict[str, Answer]:
        """The last judgement of each hour in which anything was counted, from one hour to another.
        Hours are written as `2026-01-31T07`. Raises Unreachable, SkidwayError."""
        return self._ask(_judgements, "hours.json", source, since, until)

    def complete(self, source: Source, hour: str, output: str) -> Answer:
        """Whether an hour is complete, in the rows of an output, too. Raises Unreachable,
        SkidwayError."""
        after = layout.hour_text(layout.hour_number(hour) + 1)
        return self._ask(_answer, "complete.json", source, hour, after, output=output)

    def _ask(
        self,
        read: Callable[[Any], T],
        path: str,
        source: Source,
        since: str,
        until: str,
        **more: str,
    ) -> T:
        times = {"since": f"{since}:00:00Z", "until": f"{until}:00:00Z"}
        url = f"{self._url}/{path}"
        if self._away is not None:
            raise self._away
        try:
            return read(self._get(url, {"topic": with_id(source), **times, **more}))
        except Unreachable as error:
            self._away = error
            raise
        except (LookupError, TypeError, ValueError) as error:
            raise SkidwayError(f"{url} is no collector of this version: {error!r}") from error


def _judgements(found: Any) -> dict[str, Answer]:
    return {
        layout.hour_text(each["hour_ms"] // layout.HOUR_MS): Answer(
            each["complete"], each["judged_ms"]
        )
        for each in found["hours"]
    }


def _answer(found: Any) -> Answer:
    heard, topics = found["output"] or {"epoch": 0, "last": 0}, found["topics"]
    return Answer(
        # Without the tier hdfs, the verdict would say nothing about rows.
        found["ok"] and all(HDFS in each["tiers"] for each in topics),
        found["judged_ms"],
        (heard["epoch"], heard["last"]),
        [bucket for each in topics for bucket in each["accepted"]],
    )


def _fetched(url: str, query: Mapping[str, str]) -> Any:
    try:
        with urllib3.PoolManager(timeout=urllib3.Timeout(connect=CONNECT_S, read=READ_S)) as pool:
            answer = pool.request("GET", url, fields=query, retries=False)
    except HTTPError as error:
        raise Unreachable(f"the audit's collector does not answer: {error}") from error
    if answer.status == 503:
        raise Unreachable(f"the audit's collector is not ready: {answer.data[:500]!r}")
    if answer.status != 200:
        raise SkidwayError(f"{url} answered with {answer.status}: {answer.data[:500]!r}")
    return json.loads(answer.data)
