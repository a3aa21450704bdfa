"""Answers programs that wait until an hour is complete. One of these programs is the loader, which
marks an hour as complete only after the audit has found it complete.

    /complete.json?topic=dc1.logs&since=...&until=...    the answer of `skidway audit complete`
    /hours.json?topic=dc1.logs&since=...&until=...       the last judgement of each hour that has
                                                         buckets, from the collector's last step of
                                                         judging, so nothing is judged again. In
                                                         this answer, an hour that may contain lines
                                                         that an agent declared lost is never
                                                         complete: ask /complete.json about it

`topic` is a name as reports print it. `since` and `until` are times such as 2026-02-01T00:00:00Z or
90m (90 minutes ago). With `output=<name>`, the answer of /complete.json also names the newest
message that the collector has from that output. The program that loads into that output must
compare this message with the last message that it published itself. If both are the same message,
the answer takes into account all rows that the program has loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from skidway.audit.collector.addresses import agents_address
from skidway.audit.collector.editions import Edition
from skidway.audit.collector.judge import BLOCK_MS
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.ledger_evidence import NO_BUCKETS
from skidway.audit.judgement.completeness import completeness
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.retired_places import retired_by
from skidway.audit.judgement.standing import Standing
from skidway.audit.reports import completeness_report, report
from skidway.audit.reports.completeness_question import notes_on, question, topics_of, window_of
from skidway.audit.reports.topic_names import is_named, topics_named, with_rejects
from skidway.audit.topic.messages import Tier
from skidway.cli.moments import parse_moment
from skidway.clock import Clock
from skidway.errors import UsageError

HOURS_MAX = 1_000
"""An answer of /hours.json has at most this many hours."""


class Hours:
    """Answers the requests for /complete.json and /hours.json. Each answer is made from one edition
    (what the collector knew at the end of one step of judging)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def complete(self, edition: Edition, request: Request) -> dict[str, Any]:
        """Returns the JSON document of /complete.json."""
        topic, since_ms, until_ms = self._asked(request)
        asked, policy, now_ms = question(topic, since_ms, until_ms), edition.policy, self._now()
        evidence = edition.evidence(window_of(edition.ledger, asked), topics_of(asked))
        try:
            found = completeness(evidence, policy, asked, now_ms, edition.known(evidence))
        except UsageError as error:
            raise HTTPException(400, str(error)) from error
        bounded = report.Bounded(agents_address)
        notes = notes_on(asked, found, evidence)
        said = completeness_report.document(found, asked, policy, 0.0, bounded, notes)
        del said["seconds_waited"]
        output = request.query_params.get("output")
        heard = None if output is None else _heard(evidence, policy, output)
        return {**said, "judged_ms": edition.step.standing.judged_ms, "output": heard}

    def judged(self, edition: Edition, request: Request) -> dict[str, Any]:
        """Returns the JSON document of /hours.json."""
        topic, since_ms, until_ms = self._asked(request)
        first = since_ms - since_ms % BLOCK_MS
        if not first < until_ms <= first + HOURS_MAX * BLOCK_MS:
            raise HTTPException(400, f"since is at most {HOURS_MAX} hours before until")
        names = topics_named(with_rejects([topic]))
        blocks, reach = edition.step.blocks, _reach(edition, names)
        found = {x: self._hour(topic, x, blocks, reach) for x in range(first, until_ms, BLOCK_MS)}
        for hour in _lossy(edition, topic, found):
            found[hour] = _document(hour, is_complete=False, judged_ms=self._now())
        return {"topic": topic, "hours": [x for x in found.values() if x is not None]}

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


def _lossy(edition: Edition, topic: str, hours: Iterable[int]) -> list[int]:
    """Returns those of the hours that may contain lines that an agent declared lost. The verdicts
    on buckets do not show all of these hours, because a bucket without counts has no verdict.
    """
    names = with_rejects([topic])
    evidence = edition.evidence(NO_BUCKETS, topics_named(names))
    judgements = [
        edition.judgement(evidence, source)
        for source, each in evidence.topics.items()
        if is_named(source, names) and each.losses
    ]
    return [x for x in hours if any(y.may_have_lost((x, BLOCK_MS)) for y in judgements)]


def _reach(edition: Edition, names: Collection[str] | None) -> int:
    """A bucket of the topics with these names may begin before an hour and end inside the hour.
    Returns the greatest number of hours by which such a bucket may begin before the hour."""
    sizes = (x for x in edition.ledger.bucket_sizes(names) if BLOCK_MS % x)
    return max((-(-x // BLOCK_MS) for x in sizes), default=0)


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
    """Returns the epoch and number of an output's newest message in the ledger, and whether the
    output is retired; None if the ledger has no message of the output. The caller must know whether
    the output is retired, because verdicts do not count the rows of a retired output."""
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
