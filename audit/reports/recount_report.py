"""Reports on a recount, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from skidway.audit.recount.faults import Fault
from skidway.audit.recount.recount import Difference, Recounted
from skidway.audit.reports.report import reasons_text, time_text
from skidway.audit.topic.recount_result import REASONS_MAX, RecountResult

COLUMNS = ("topic", "loads", "files", "rows", "verdict", "why")

Compared = Sequence[tuple[Recounted, Sequence[Difference]]]


def is_good(compared: Compared) -> bool:
    """Whether at least one topic was recounted, no file has a fault (for example, is missing or
    damaged), and the rows of all topics agree with the counts of the tiers.
    """
    return bool(compared) and not any(_differs(*each) for each in compared)


def table(compared: Compared) -> list[dict[str, Any]]:
    """The rows of the table: one for each topic."""
    return [
        {
            "topic": found.committed.topic,
            "loads": found.loads,
            "files": found.files,
            "rows": found.rows,
            "verdict": "differs" if _differs(found, differences) else "agrees",
            "why": reasons_text(_reasons(found, differences)),
        }
        for found, differences in compared
    ]


def sentence(compared: Compared) -> str:
    """The result of the recount in one sentence."""
    if not compared:
        return "There is no committed load to recount."
    rows = sum(found.rows for found, _ in compared)
    bad = sum(1 for each in compared if _differs(*each))
    if bad:
        return (
            f"{bad} of {len(compared)} recounted topics differ from what was committed and counted."
        )
    topics = "1 topic" if len(compared) == 1 else f"{len(compared)} topics"
    if rows == 1:
        return f"The 1 row of {topics} is what every tier counted."
    return f"The {rows} rows of {topics} are what every tier counted."


def faults(compared: Compared) -> Iterator[str]:
    """A line for each fault of a file. At most `FAULTS_MAX` faults of a topic have a line of their
    own; one more line says how many others there are.
    """
    for found, _ in compared:
        yield from found.faults.sentences()


def document(compared: Compared) -> dict[str, Any]:
    """The whole report as JSON."""
    topics = [
        row
        | {
            "why": _reasons(found, differences),
            "differences": [_difference(x) for x in differences],
            "faults": [_fault(x) for x in found.faults.kept],
            "more_faults": found.faults.more,
        }
        for row, (found, differences) in zip(table(compared), compared, strict=True)
    ]
    return {"sentence": sentence(compared), "topics": topics}


def results(
    compared: Compared, host: str, output: str, since_ms: int | None, time_ms: int
) -> Iterator[RecountResult]:
    """The messages that report the results to the collector, one for each topic. There is no
    message about rows whose source topic is unknown. since_ms: the time from which on rows were
    recounted; None if all rows were recounted."""
    for found, differences in compared:
        if found.committed.source is not None:
            yield RecountResult(
                time_ms, host, output, found.committed.source, since_ms,
                found.loads, found.files, found.rows, len(found.faults.kept) + found.faults.more,
                len(differences), tuple(_reasons(found, differences)[:REASONS_MAX]),
            )  # fmt: skip


def _differs(found: Recounted, differences: Sequence[Difference]) -> bool:
    return bool(found.faults or differences)


def _reasons(found: Recounted, differences: Sequence[Difference]) -> list[str]:
    texts = [f"{time_text(x.bucket[0])}, agent {x.agent}: {x.reason}" for x in differences]
    return [*found.faults.sentences(), *texts]


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "bucket": difference.bucket[0],
        "bucket_ms": difference.bucket[1],
        "agent": difference.agent,
        "tier": difference.tier.value.lower(),
        "rows": difference.recounted.count,
        "counted": difference.counted.count,
        "reason": difference.reason,
    }


def _fault(fault: Fault) -> dict[str, Any]:
    place = fault.place
    return {
        "kind": fault.kind.value,
        "path": fault.path,
        "hour": place.hour or None,
        "agents": list(place.agents),
        "partition": place.partition,
        "first": place.first,
        "end": place.end,
        "reason": fault.sentence,
    }
