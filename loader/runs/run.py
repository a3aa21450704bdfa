"""Does `load run`, which loads every chosen topic up to the high watermarks at the start of the
run.

If one topic cannot be loaded, the other topics are still loaded. The run succeeds only if no topic
has a problem. Records that wait for an announcement are no problem; a later run loads them. Neither
is a topic without a schema that only a pattern has chosen: it has a status and a sentence of its
own.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable

from skidway.audit.signing.setting import signer_of
from skidway.audit.topic.claims import loads_overclaim
from skidway.clock import Clock, SystemClock
from skidway.errors import SkidwayError
from skidway.kafka.client import Client
from skidway.loader.audit_topic.feed import Feed
from skidway.loader.complete_hours.collector import Collector
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.planning.topics import unknown
from skidway.loader.runs.group_offsets import GroupOffsets
from skidway.loader.runs.outcome import Report, TopicOutcome
from skidway.loader.runs.parts import Parts
from skidway.loader.runs.progress_display import LoggedProgress
from skidway.loader.runs.run_progress import RunProgress, Shown
from skidway.loader.runs.run_topics import RunTopics, look
from skidway.loader.runs.topic_loads import TopicLoads
from skidway.loader.runs.working_time import WorkingTime
from skidway.loader.settings import LoaderSettings
from skidway.loader.spark.runner import Interrupted, SparkRunner
from skidway.loader.state.manifest import Manifest
from skidway.loader.state.run_notes import OwnNote
from skidway.loader.store import Store


def run(
    settings: LoaderSettings,
    *,
    interrupted: Callable[[], bool] = lambda: False,
    shown: Shown | None = None,
    pause: Callable[[float], object] = time.sleep,
    clock: Clock | None = None,
) -> Report:
    """Loads the topics that the settings choose. shown: a function that shows the run's progress;
    None if the progress goes to the log. Raises the errors that stop the whole run, for example if
    no broker answers or the output is refused."""
    with SparkRunner(settings, interrupted) as spark:
        return run_on(settings, spark, shown=shown, pause=pause, clock=clock)


def run_on(
    settings: LoaderSettings,
    spark: SparkRunner,
    feed: Feed | None = None,
    *,
    shown: Shown | None = None,
    pause: Callable[[float], object] = time.sleep,
    clock: Clock | None = None,
) -> Report:
    """Does the same as `run`, but with a Spark session that several runs may use. feed: what
    earlier runs have read from the audit topics; None if there was no earlier run."""
    store, clock = settings.output.store(), clock or SystemClock()
    with (
        settings.kafka.client() as client,
        OwnNote(store, clock, settings.host) as note,
    ):
        time_taken = WorkingTime(clock, spark)
        found = look(settings, client)
        parts = parts_of(found, client, store, spark, clock, feed)
        progress = RunProgress(clock, shown or LoggedProgress(clock), note)
        outcomes = _not_loaded(found) + load_topics(parts, found.topics, progress, pause)
        return Report(outcomes, time_taken.seconds())


def parts_of(
    found: RunTopics,
    client: Client,
    store: Store,
    spark: SparkRunner,
    clock: Clock,
    feed: Feed | None = None,
) -> Parts:
    """Makes the objects that all topics of a run share."""
    settings = found.settings
    return Parts(
        settings=settings,
        client=client,
        registry=settings.registry.client(),
        store=store,
        spark=spark,
        clock=clock,
        feed=feed or Feed(),
        cluster_id=found.cluster_id,
        audit_topics=found.audit_topics,
        collector=Collector(settings.collector_url) if settings.collector_url else None,
        signer=signer_of(
            settings.audit_key_location,
            lambda identity: loads_overclaim(identity, settings.cluster),
            clock,
        ),
    )


def load_topics(
    parts: Parts,
    topics: Iterable[SourceTopic],
    progress: RunProgress,
    pause: Callable[[float], object],
) -> list[TopicOutcome]:
    """Loads the topics one after the other, and then writes `_SUCCESS` for their complete hours.
    Returns the outcome of each topic. If a topic has an error, adds the error to the topic's
    outcome, and loads the other topics."""
    offsets = GroupOffsets(parts.client, parts.settings.group_id)
    chosen = [TopicLoads(parts, each, offsets, progress, pause) for each in topics]
    begun = [x for x in chosen if _do(x.begin, x.outcome) and not x.outcome.foreign]
    needing = [each for each in begun if each.needs_audit_topics]
    if needing:
        parts.feed.begin(_lowest(each.newest for each in needing))
        parts.read_on()
    loaded = [each for each in begun if _do(each.load, each.outcome)]
    # The run asks the collector about hours only after all loads, so that no load waits for the
    # collector. A slow collector may answer only for the first topics, so each run asks about the
    # topics in another order.
    random.Random(parts.clock.time_ms()).shuffle(loaded)  # noqa: S311 - no secret
    for each in loaded:
        _do(each.mark, each.outcome)
    return [each.outcome for each in chosen]


def _do(step: Callable[[], None], outcome: TopicOutcome) -> bool:
    """Does a step of one topic. If the step raises an error, adds the error to the outcome and
    returns False. Does not catch Interrupted, because Interrupted must end the whole run."""
    try:
        step()
    except Interrupted:
        raise
    except SkidwayError as error:
        outcome.problems.append(error)
        return False
    return True


def _not_loaded(found: RunTopics) -> list[TopicOutcome]:
    """Returns the outcomes of the topics that the run cannot load."""
    missing = [TopicOutcome(name, problems=[unknown(name)]) for name in found.missing]
    return missing + [
        TopicOutcome(name, problems=[problem]) for name, problem in found.troubles.items()
    ]


def _lowest(manifests: Iterable[Manifest | None]) -> dict[str, int]:
    """Returns the positions from which the run must read the audit topics, so that it misses no
    message for any of its topics."""
    known = list(manifests)
    if any(manifest is None for manifest in known):
        return {}
    positions = [manifest.audit_positions for manifest in known if manifest is not None]
    keys = set.intersection(*(set(each) for each in positions)) if positions else set()
    return {key: min(each[key] for each in positions) for key in keys}
