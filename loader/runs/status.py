"""Shows what is loaded and what a run would load. Changes nothing."""

from __future__ import annotations

from typing import Any, Final

from skidway.errors import SkidwayError
from skidway.loader.planning import plan
from skidway.loader.planning.plan import Planned
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.planning.topic_plan import TopicPlan
from skidway.loader.planning.topics import choose, unknown
from skidway.loader.runs.history import topic_history
from skidway.loader.runs.outcome import gravest
from skidway.loader.runs.run_topics import look
from skidway.loader.settings import LoaderSettings
from skidway.loader.state import chain, layout, operations
from skidway.loader.state.manifest import Manifest
from skidway.loader.state.moves import moves
from skidway.loader.store import Store

RATE_LOADS: Final = 5
"""`load plan` estimates how long the next loads will take. The estimate uses the rate of the
largest load among the newest RATE_LOADS loads. The rate of a small load says little about the rate
of large loads.
"""

Row = dict[str, Any]


def status(settings: LoaderSettings) -> list[Row]:
    """Returns one row per topic and partition in the newest manifests. Reads only the output, and
    sends no request to a broker."""
    store = settings.output.store()
    chosen, _ = choose(settings.topics, store.names(layout.STATE))
    return [row for topic in chosen for row in _status(store, topic)]


def planned(settings: LoaderSettings) -> tuple[list[Row], int]:
    """Returns two values: what a run would load (one row for each partition of each chosen topic),
    and the exit status."""
    store = settings.output.store()
    rows: list[Row] = []
    codes = []
    with settings.kafka.client() as client:
        found = look(settings, client)
    for name in found.missing:
        rows.append({"topic": name, "problem": str(unknown(name))})
        codes.append(SkidwayError.exit_code)
    for name, problem in found.troubles.items():
        rows.append({"topic": name, "problem": str(problem)})
        codes.append(problem.exit_code)
    for topic in found.topics:
        try:
            ranges = _ranges(topic, _newest(store, topic.name), settings)
            rate = newest_rate(store, topic.name)
        except SkidwayError as error:
            rows.append({"topic": topic.name, "problem": str(error)})
            codes.append(error.exit_code)
            continue
        for each in ranges:
            slices = plan.cut([each], settings.slice_records)
            rows.append(_planned_row(topic.name, each, len(slices), rate))
            if each.refused:
                codes.append(SkidwayError.exit_code)
    return rows, gravest(codes)


def _ranges(topic: SourceTopic, newest: Manifest | None, settings: LoaderSettings) -> list[Planned]:
    found = TopicPlan(topic, newest, settings.gaps_accepted)
    found.check(settings.bucket_ms)
    return [*found.missing(), *(found.partition(bounds) for bounds in topic.bounds)]


def _planned_row(topic: str, each: Planned, slices: int, rate: int | None) -> Row:
    records = each.end - each.first
    return {
        "topic": topic,
        "partition": each.partition,
        "loaded": each.position,
        "first": each.first,
        "end": each.end,
        "records": records,
        "slices": slices,
        "seconds": None if rate is None else round(records / rate),
        "problem": each.refused or None,
    }


def _newest(store: Store, topic: str) -> Manifest | None:
    return operations.run(chain.newest_manifest(topic), store)


def newest_rate(store: Store, topic: str) -> int | None:
    """Returns the rate, in rows per second, of the largest load among the newest RATE_LOADS loads.
    Leaves out loads without rows, and loads whose duration is not known. Returns None if no load is
    left."""
    loads = topic_history(store, topic, RATE_LOADS)
    timed = [(row["rows"], row["rows_per_second"]) for row in loads if row["rows_per_second"]]
    return max(timed)[1] if timed else None


def _status(store: Store, topic: str) -> list[Row]:
    newest = _newest(store, topic)
    if newest is None:
        return []
    unfinished = sum(1 for move in moves(newest) if store.length(move.source) is not None)
    return [
        {
            "topic": topic,
            "partition": each.partition,
            "load": newest.number,
            "loaded": each.end,
            "at": newest.created_text,
            "rows": newest.rows(),
            "rejects": newest.rejects(),
            "unfinished": unfinished,
        }
        for each in newest.partitions
    ]
