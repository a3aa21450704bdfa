"""Asks the audit's collector (audit/collector/hours.py) whether hours of a topic are complete."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

import urllib3
from urllib3.exceptions import HTTPError

from skidway.audit.judgement.verdict import Status
from skidway.audit.reports.topic_names import with_id
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.source import Source
from skidway.loader.state import layout

CONNECT_S: Final = 5.0
READ_S: Final = 30.0
ANSWER_S: Final = 45.0
"""One answer may take at most this many seconds, from the request to the answer's last byte."""

BUDGET_S: Final = 60.0
"""When a run has waited this many seconds for all answers of the collector together, it sends no
more questions."""

ANSWER_BYTES_MAX: Final = 64 << 20
HDFS: Final = "hdfs"
LOST: Final = Status.LOST.word

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """The collector's answer about one hour.

    heard: epoch and number of the output's newest audit message that the answer takes into account.
    lacks: whether, in any bucket of the hour, a tier lacks records or an agent has declared a loss;
    false if the collector has doubts about the whole topic. accepted: the buckets whose findings a
    person accepted.
    """

    is_complete: bool
    judged_ms: int
    heard: tuple[int, int] = (0, 0)
    lacks: bool = False
    accepted: list[Any] = field(default_factory=list)


class Collector:
    """Asks one collector during one run. If the collector does not answer a question, or has taken
    more than BUDGET_S for all answers, this object sends no more questions. Without this rule, the
    run would wait again for each topic.

    get: a function that fetches a URL with its query, and returns the JSON document.
    """

    def __init__(
        self, url: str, get: Callable[[str, Mapping[str, str]], Any] | None = None
    ) -> None:
        self._url = url.rstrip("/")
        self._get = get or _in_time
        self._away: Unreachable | None = None
        self._spent_s = 0.0

    def judged(self, source: Source, since: str, until: str) -> dict[str, Answer]:
        """Returns the collector's last judgement of each hour from `since` to `until`, without the
        hours in which nothing was counted. Hours are written as `2026-01-31T07`. Raises
        Unreachable, SkidwayError."""
        return self._ask(_judgements, "hours.json", source, since, until)

    def complete(self, source: Source, hour: str, output: str) -> Answer:
        """Returns the collector's answer whether an hour is complete in all clusters and outputs
        that the audit expects. These outputs include `output`. Raises Unreachable, SkidwayError."""
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
        begun = time.monotonic()
        try:
            return read(self._get(url, {"topic": with_id(source), **times, **more}))
        except Unreachable as error:
            self._away = error
            raise
        except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
            raise SkidwayError(f"{url} is no collector of this version: {error!r}") from error
        finally:
            self._spent_s += time.monotonic() - begun
            if self._spent_s > BUDGET_S and self._away is None:
                self._away = Unreachable(
                    f"the audit's collector took {self._spent_s:.0f} s to answer; the next run asks"
                    " about the other hours"
                )


def _judgements(found: Any) -> dict[str, Answer]:
    return {
        layout.hour_text(_number(each["hour_ms"]) // layout.HOUR_MS): Answer(
            each["complete"] is True, _number(each["judged_ms"])
        )
        for each in found["hours"]
    }


def _answer(found: Any) -> Answer:
    output, topics = found["output"], found["topics"]
    heard = (0, 0) if output is None else (_number(output["epoch"]), _number(output["last"]))
    # If the verdict does not cover the tier hdfs, or if the output is retired, the verdict says
    # nothing about the rows.
    is_about_rows = output is not None and output["retired"] is False
    is_about_rows &= bool(topics) and all(HDFS in each["tiers"] for each in topics)
    words = [hour["verdict"] for each in topics for hour in each["hours_short"]]
    has_doubts = any(each["reasons"] for each in topics)
    return Answer(
        found["ok"] is True and is_about_rows,
        _number(found["judged_ms"]),
        heard,
        not has_doubts and (any(each["lacking"] for each in topics) or LOST in words),
        [bucket for each in topics for bucket in each["accepted"]],
    )


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no number")
    return value


def _in_time(url: str, query: Mapping[str, str]) -> Any:
    """Fetches the URL in a thread, and waits at most ANSWER_S for the thread. The time limit of a
    connection would not end a slow answer, because this time limit starts again with each byte."""
    answers: SimpleQueue[Any] = SimpleQueue()

    def fetch() -> None:
        try:
            answers.put(_fetched(url, query))
        except (SkidwayError, ValueError, RecursionError) as error:
            answers.put(error)

    threading.Thread(target=fetch, name="collector", daemon=True).start()
    try:
        answer = answers.get(timeout=ANSWER_S)
    except Empty:
        raise Unreachable(
            f"the audit's collector has not answered within {ANSWER_S:.0f} s"
        ) from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _fetched(url: str, query: Mapping[str, str]) -> Any:
    try:
        with urllib3.PoolManager(timeout=urllib3.Timeout(connect=CONNECT_S, read=READ_S)) as pool:
            answer = pool.request("GET", url, fields=query, retries=False, preload_content=False)
            data = answer.read(ANSWER_BYTES_MAX + 1)
    except HTTPError as error:
        raise Unreachable(f"the audit's collector does not answer: {error}") from error
    if answer.status == 503:
        raise Unreachable(f"the audit's collector is not ready: {data[:500]!r}")
    if answer.status != 200:
        raise SkidwayError(f"{url} answered with {answer.status}: {data[:500]!r}")
    if len(data) > ANSWER_BYTES_MAX:
        raise SkidwayError(f"{url} answered with more than {ANSWER_BYTES_MAX >> 20} MiB")
    return json.loads(data)
