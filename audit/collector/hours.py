"""Answers requests of programs that wait for whole hours, such as the loader before it marks an
hour as complete.

    /complete.json?topic=dc1.logs&since=...&until=...    the answer of `skidway audit complete`
    /hours.json?topic=dc1.logs&since=...&until=...       the last judgement of each hour that has
                                                         buckets; cheap, but perhaps a little old.
                                                         An hour that may have lines of a declared
                                                         loss is not complete here: ask
                                                         /complete.json

`topic` is a name as reports print it. `since` and `until` are times: 2026-02-01T00:00:00Z, 90m.
With `output=<name>`, the answer of /complete.json also names the newest message that the collector
has from that output. The program that loads into that output must compare this message with the
last message that it published itself. If the two are the same message, the answer takes all rows of
the program into account.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from skidway.audit.collector.judge import BLOCK_MS
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.retired_places import retired_by
from skidway.audit.judgement.standing import Standing
from skidway.audit.judgement.topic_judgement import TopicJudgement
from skidway.audit.reports import completeness_report, report
from skidway.audit.reports.completeness_question import answered, question
from skidway.audit.reports.topic_names import is_named, topics_named, with_rejects
from skidway.audit.topic.messages import Tier
from skidway.cli.moments import parse_moment
from skidway.clock import Clock
from skidway.errors import UsageError

HOURS_MAX = 1_000
"""An answer of /hours.json has at most this many hours."""


class Hours:
    """Answers requests from one ledger. blocks: returns the last judgement of each hour, by the
    hour's start in ms. The caller must make only one request at a time."""

    def __init__(
        self,
        ledger: Ledger,
        policy: Callable[[], Policy],
        blocks: Callable[[], Mapping[int, Standing]],
        clock: Clock,
    ) -> None:
        self._ledger = ledger
        self._policy = policy
        self._blocks = blocks
        self._clock = clock

    def complete(self, request: Request) -> dict[str, Any]:
        """The document of /complete.json."""
        topic, since_ms, until_ms = self._asked(request)
        asked, policy, now_ms = question(topic, since_ms, until_ms), self._policy(), self._now()
        try:
            answer = answered(self._ledger, policy, asked, now_ms)
        except UsageError as error:
            raise HTTPException(400, str(error)) from error
        said = completeness_report.document(answer.found, asked, policy, 0.0)
        del said["seconds_waited"]
        output = request.query_params.get("output")
        heard = None if output is None else _heard(answer.evidence, policy, output)
        return {**said, "judged_ms": now_ms, "output": heard}

    def judged(self, request: Request) -> dict[str, Any]:
        """The document of /hours.json."""
        topic, since_ms, until_ms = self._asked(request)
        first = since_ms - since_ms % BLOCK_MS
        if not first < until_ms <= first + HOURS_MAX * BLOCK_MS:
            raise HTTPException(400, f"since is at most {HOURS_MAX} hours before until")
        blocks, reach = self._blocks(), self._reach()
        found = {x: self._hour(topic, x, blocks, reach) for x in range(first, until_ms, BLOCK_MS)}
        for hour in self._lossy(topic, found):
            found[hour] = _document(hour, is_complete=False, judged_ms=self._now())
        return {"topic": topic, "hours": [x for x in found.values() if x is not None]}

    def _lossy(self, topic: str, hours: Iterable[int]) -> list[int]:
        """The hours that may have lines of a declared loss. The judgements of buckets do not show
        all of these hours, because a bucket without counts has no judgement."""
        names, policy, now_ms = with_rejects([topic]), self._policy(), self._now()
        evidence = self._ledger.evidence((now_ms, now_ms), topics_named(names))  # without buckets
        judgements = [
            TopicJudgement(evidence, source, policy, now_ms)
            for source in evidence.topics
            if is_named(source, names)
        ]
        return [x for x in hours if any(y.may_have_lost((x, BLOCK_MS)) for y in judgements)]

    def _reach(self) -> int:
        """A bucket may begin before an hour and end inside the hour. Returns how many blocks before
        the hour may contain the start of such a bucket."""
        size = self._ledger.bucket_ms() or BLOCK_MS
        return -(-size // BLOCK_MS) if BLOCK_MS % size else 0

    def _hour(
        self, topic: str, hour: int, blocks: Mapping[int, Standing], reach: int
    ) -> dict[str, Any] | None:
        names = with_rejects([topic])
        near = (blocks.get(hour - back * BLOCK_MS) for back in range(reach + 1))
        found = [x.where(lambda source: is_named(source, names)) for x in near if x is not None]
        if not any(x.counted for x in found):
            return None
        judged_ms = min(x.judged_ms for x in found)
        return _document(hour, is_complete=all(map(_is_good, found)), judged_ms=judged_ms)

    def _asked(self, request: Request) -> tuple[str, int, int]:
        query, now_ms = request.query_params, self._now()
        for name in ("topic", "since", "until"):
            if not query.get(name):
                raise HTTPException(400, f"{name} is missing")
        try:
            times = [parse_moment(query[name], now_ms, name) for name in ("since", "until")]
        except UsageError as error:
            raise HTTPException(400, str(error)) from error
        return query["topic"], times[0], times[1]

    def _now(self) -> int:
        return self._clock.time_ms()


def _document(hour: int, *, is_complete: bool, judged_ms: int) -> dict[str, Any]:
    return {
        "hour": report.time_text(hour),
        "hour_ms": hour,
        "complete": is_complete,
        "judged_ms": judged_ms,
    }


def _is_good(found: Standing) -> bool:
    return not found.overdue and not found.warned and all(x.is_complete for x in found.topics)


def _heard(evidence: Evidence, policy: Policy, output: str) -> dict[str, Any] | None:
    """The epoch and number of an output's newest message in the ledger, and whether the output is
    retired. The caller needs the second fact, because a verdict says nothing about the rows of a
    retired output."""
    known = [key for key in evidence.senders if key[:2] == (Tier.HDFS, output)]
    if not known:
        return None
    newest = max(known, key=lambda key: key.epoch)
    numbers = evidence.senders[newest]
    retired = retired_by(policy.retired_places, evidence.retirements)
    return {
        "name": output,
        "epoch": newest.epoch,
        "last": numbers.last,
        "retired": retired.holds(Tier.HDFS, output, numbers.cluster),
    }
