"""`load run`: every chosen topic up to the watermarks at the start of the run.

One topic that cannot go on does not stop the others; the run is good when all of them are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from skidway.clock import Clock, SystemClock
from skidway.errors import ConfigurationRefused, SkidwayError, StateRefused, Unreachable
from skidway.kafka import gaps
from skidway.kafka.client import Client
from skidway.kafka.client.cluster import Cluster
from skidway.kafka.source import Source, cluster_name_of, sources_of
from skidway.kafka.types import TopicPartition
from skidway.loader.audit_topic.feed import Feed, audit_topics
from skidway.loader.planning import bounds, topics
from skidway.loader.planning.bounds import Asked
from skidway.loader.runs.group_offsets import GroupOffsets
from skidway.loader.runs.topic_load import Outcome, Parts, Topic
from skidway.loader.runs.topic_run import TopicRun
from skidway.loader.settings import LoaderSettings
from skidway.loader.spark.runner import Interrupted, Progress, SparkRunner
from skidway.loader.state.manifest import Gap, Manifest
from skidway.loader.store import Store, open_store
from skidway.schemas.client import RegistryClient

GRAVEST_FIRST: Final = (
    StateRefused.exit_code,
    ConfigurationRefused.exit_code,
    Unreachable.exit_code,
    SkidwayError.exit_code,
)
"""Status of a run with several problems: what needs a person, what may come back, the rest."""


@dataclass(slots=True)
class Report:
    """What a run did. seconds: of loading, without Spark's start."""

    outcomes: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """0 when every topic is loaded; else that of the gravest problem."""
        codes = {problem.exit_code for each in self.outcomes for problem in each.problems}
        return next((code for code in GRAVEST_FIRST if code in codes), max(codes, default=0))

    def document(self) -> dict[str, Any]:
        """For `--json`."""
        rows = sum(each.rows for each in self.outcomes)
        return {
            "ok": self.exit_code == 0,
            "rows": rows,
            "rejects": sum(each.rejects for each in self.outcomes),
            "repeats": sum(each.repeats for each in self.outcomes),
            "seconds": round(self.seconds, 3),
            "rows_per_second": round(rows / self.seconds) if self.seconds else 0,
            "topics": [_document(each) for each in self.outcomes],
        }


@dataclass(slots=True)
class Session:
    """What is there before anything is loaded; the settings with the cluster's name."""

    settings: LoaderSettings
    client: Client
    store: Store
    cluster_id: str
    topics: list[Topic]
    missing: list[str]
    troubles: dict[str, SkidwayError]
    audit_topics: list[str]


def load(
    settings: LoaderSettings,
    *,
    interrupted: Callable[[], bool] = lambda: False,
    progress: Callable[[str], Progress] = lambda _topic: lambda _done, _total: None,
    pause: Callable[[float], object] = time.sleep,
    clock: Clock | None = None,
) -> Report:
    """Loads. Raises what stops the whole run: an unreachable broker, an output that is refused."""
    store = open_store(settings.output)
    clock = clock or SystemClock()
    with (
        Client(settings.bootstrap_servers, client_id="skidway-loader") as client,
        SparkRunner(settings, interrupted) as spark,
    ):
        begin = time.monotonic()
        session = look(settings, client, store)
        settings = session.settings
        registry = RegistryClient(settings.schema_registry_url, security=settings.registry_security)
        shared = settings, client, registry, store, spark, clock, Feed()
        parts = Parts(*shared, session.cluster_id, session.audit_topics)
        report = Report([_missing(name) for name in session.missing])
        report.outcomes += [
            Outcome(name, problems=[problem]) for name, problem in session.troubles.items()
        ]
        report.outcomes += load_all(parts, session.topics, progress, pause)
        report.seconds = time.monotonic() - begin - spark.started_s
    return report


def look(settings: LoaderSettings, client: Client, store: Store) -> Session:
    """Topics, sources and watermarks as they are now. Raises Unreachable, ConfigurationRefused."""
    name = cluster_name_of(client.broker_configs(), settings.cluster_name)
    settings = replace(settings, cluster_name=name)
    cluster = client.metadata()
    chosen, missing = topics.choose(settings.topics, cluster.topics)
    # The watermarks of data first: an announcement is acknowledged before its file's records, and a
    # gap is written down before anything behind it is mirrored.
    asked = bounds.ask(client, cluster, _partitions(cluster, chosen))
    troubles: dict[str, SkidwayError] = {}
    try:
        found = _look_at(settings, client, cluster, chosen, asked)
    except Unreachable:
        raise
    except SkidwayError:  # of one of them: the others go on
        found = []
        for name in chosen:
            try:
                found += _look_at(settings, client, cluster, [name], asked)
            except Unreachable:
                raise
            except SkidwayError as error:
                troubles[name] = SkidwayError(f"{name} cannot be loaded now: {error}")
    audits = audit_topics((topic.source for topic in found), settings.cluster, cluster.topics)
    cluster_id = cluster.cluster_id or ""
    return Session(settings, client, store, cluster_id, found, missing, troubles, audits)


def _partitions(cluster: Cluster, names: Iterable[str]) -> list[TopicPartition]:
    return [
        TopicPartition(name, partition.index)
        for name in names
        for partition in cluster.topics[name].partitions
    ]


def _look_at(
    settings: LoaderSettings,
    client: Client,
    cluster: Cluster,
    names: Sequence[str],
    asked: Asked,
) -> list[Topic]:
    """What there is of these topics. Raises SkidwayError where nothing of one can be loaded."""
    sources = sources_of(client, names, settings.cluster)
    for name in names:
        partitions = _partitions(cluster, [name])
        if name not in sources or not partitions:
            raise SkidwayError(f"it has no partitions now ({cluster.topics[name].error.name})")
        if all(tp in asked.away for tp in partitions):
            raise SkidwayError(str(asked.away[partitions[0]]))
    named = gaps.named_by_mirrors(client, names)
    return [_topic(cluster, sources[name], name, named[name], asked) for name in names]


def _topic(
    cluster: Cluster, source: Source, name: str, named: Sequence[gaps.Gap], asked: Asked
) -> Topic:
    topic_id = cluster.topics[name].topic_id
    missing: dict[int, tuple[Gap, ...]] = {}
    for gap in named:
        known = missing.get(gap.partition, ())
        missing[gap.partition] = (*known, Gap(gap.first, gap.end, gap.reason))
    return Topic(
        name,
        source.topic_id if topic_id is None else topic_id.hex,
        source,
        tuple(each for tp, each in asked.bounds.items() if tp.topic == name),
        missing,
        {tp.partition: str(error) for tp, error in asked.away.items() if tp.topic == name},
    )


def load_all(
    parts: Parts,
    topics: Iterable[Topic],
    progress: Callable[[str], Progress],
    pause: Callable[[float], object],
) -> list[Outcome]:
    """Every topic, one after the other; what goes wrong with one is in its outcome."""
    offsets = GroupOffsets(parts.client, parts.settings.group_id)
    runs = [TopicRun(parts, each, offsets, progress, pause) for each in topics]
    begun = []
    for run in runs:
        with _problems(run.outcome):
            run.begin()
            begun.append(run)
    parts.feed.positions.update(_lowest(run.newest for run in begun))
    parts.read_on()
    for run in begun:
        with _problems(run.outcome):
            run.load()
    return [run.outcome for run in runs]


class _problems:  # noqa: N801 - reads as a phrase
    """Puts what a topic raises into its outcome; an interrupted run ends as a whole."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, SkidwayError) and not isinstance(error, Interrupted):
            self._outcome.problems.append(error)
            return True
        return False


def _lowest(manifests: Iterable[Manifest | None]) -> dict[str, int]:
    """Where the audit topics have to be read from, so that no topic misses anything."""
    known = list(manifests)
    if any(manifest is None for manifest in known):
        return {}
    positions = [manifest.audit_positions for manifest in known if manifest is not None]
    keys = set.intersection(*(set(each) for each in positions)) if positions else set()
    return {key: min(each[key] for each in positions) for key in keys}


def _missing(name: str) -> Outcome:
    problem = SkidwayError(f"the topic {name} does not exist")
    return Outcome(name, problems=[problem])


def _document(outcome: Outcome) -> dict[str, Any]:
    return {
        "topic": outcome.topic,
        "loads": outcome.loads,
        "rows": outcome.rows,
        "rejects": outcome.rejects,
        "repeats": outcome.repeats,
        "files": outcome.files,
        "reject_reasons": dict(outcome.reasons),
        "partitions": [
            {"partition": each.partition, "first": each.first, "end": each.end}
            for each in outcome.ranges
        ],
        "waiting": [stop.sentence for stop in outcome.waiting],
        "problems": [str(problem) for problem in outcome.problems],
        "notes": outcome.notes,
    }
