"""`load run`: every chosen topic up to the watermarks at the start of the run.

One topic that cannot go on does not stop the others; the run is good when all of them are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from loader import bounds, commit, delta, plan, topics
from loader.bounds import Asked
from loader.feed import Feed, audit_topics
from loader.manifest import Gap, Manifest
from loader.plan import Planned
from loader.publish import publish
from loader.settings import LoaderSettings
from loader.spark import Interrupted, Progress, SparkRunner
from loader.store import Store, open_store
from loader.topic_load import LostRace, Outcome, Parts, Topic, TopicLoad, note
from loader.waiting import WaitingNotes
from schemas.client import RegistryClient
from skidway import log
from skidway.clock import Clock, SystemClock
from skidway.errors import ConfigurationRefused, SkidwayError, StateRefused, Unreachable
from skidway.kafka import gaps
from skidway.kafka.client import Client
from skidway.kafka.client.cluster import Cluster
from skidway.kafka.source import Source, cluster_name_of, sources_of
from skidway.kafka.types import TopicPartition

RACES_MAX: Final = 5
"""Loads of one topic that a run may lose to another loader; then it gives up what is left."""

ATTEMPTS_MAX: Final = 20
"""Loads of one topic in one run: races lost, and announcements that came while it waited."""

GRAVEST_FIRST: Final = (
    StateRefused.exit_code,
    ConfigurationRefused.exit_code,
    Unreachable.exit_code,
    SkidwayError.exit_code,
)
"""Status of a run with several problems: what needs a person, what may come back, the rest."""

PATIENCE_S: Final = 10.0
"""How long a run itself waits for announcements that are on their way."""

_log = log.get(__name__)


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
        run = _Run(parts, session, progress, pause)
        report = Report([_missing(name) for name in session.missing])
        report.outcomes += [
            Outcome(name, problems=[problem]) for name, problem in session.troubles.items()
        ]
        report.outcomes += run.load_all()
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


class _Run:
    """The topics of one run, one after the other."""

    def __init__(
        self,
        parts: Parts,
        session: Session,
        progress: Callable[[str], Progress],
        pause: Callable[[float], object],
    ) -> None:
        self._parts, self._session = parts, session
        self._progress, self._pause = progress, pause
        self._told_in_vain = False

    def load_all(self) -> list[Outcome]:
        """Every topic; what goes wrong with one is in its outcome."""
        newest: dict[str, Manifest | None] = {}
        outcomes = {topic.name: Outcome(topic.name) for topic in self._session.topics}
        for topic in self._session.topics:
            with _problems(outcomes[topic.name]):
                newest[topic.name] = self._begin(topic)
        feed = self._parts.feed
        feed.positions.update(_lowest(newest.values()))
        self._parts.read_on()
        for topic in self._session.topics:
            if topic.name in newest:
                with _problems(outcomes[topic.name]):
                    self._load(topic, newest[topic.name], outcomes[topic.name])
        return list(outcomes.values())

    def _begin(self, topic: Topic) -> Manifest | None:
        return commit.run(commit.begin(topic.name), self._parts.store)

    def _load(self, topic: Topic, newest: Manifest | None, outcome: Outcome) -> None:
        lost_races = attempts = 0
        self._tell(topic, newest)
        while attempts < ATTEMPTS_MAX:
            newest = self._publish(topic, newest)
            attempt = TopicLoad(self._parts, topic, newest)
            whole = attempt.plan()
            outcome.problems = [SkidwayError(each.refused) for each in whole if each.refused]
            if not any(_moves(each) for each in whole):
                if lost_races and not outcome.problems:
                    outcome.notes.append(_done_by_another(topic))
                return
            planned = plan.limit(whole, self._parts.settings.max_offsets_per_load)
            if lost_races == RACES_MAX:
                raise LostRace(_never_won(topic))
            try:
                manifest, results = attempt.run(planned, self._progress(topic.name))
            except LostRace as lost:
                _log.warning("race_lost", topic=topic.name, reason=str(lost))
                attempts, lost_races = attempts + 1, lost_races + 1
                newest = self._begin(topic)
                continue
            note(outcome, manifest, results)
            if manifest is not None:
                newest = manifest
                self._publish(topic, newest)
                _log.info(
                    "load_committed",
                    topic=topic.name,
                    load=manifest.number,
                    rows=manifest.rows(),
                    rejects=manifest.rejects(),
                )
                self._tell(topic, newest)
                if plan.has_more(whole, planned, manifest):
                    continue  # to the watermarks of the start; each load moves a partition on
            attempts += 1
            if not self._awaited(topic, outcome):
                return

    def _tell(self, topic: Topic, newest: Manifest | None) -> None:
        """Tells the brokers how far the newest load is, for `retention.hold` and for people.

        Nothing here depends on it: what cannot be told is told with the next run. One that waited
        for brokers in vain does not wait for them again.
        """
        ranges = () if newest is None else newest.partitions
        offsets = {TopicPartition(topic.name, each.partition): each.end for each in ranges}
        if newest is None or newest.topic_id != topic.topic_id or not offsets:
            return
        if self._told_in_vain:
            return
        try:
            self._parts.client.commit_offsets(self._parts.settings.group_id, offsets)
        except SkidwayError as error:
            self._told_in_vain = True
            _log.warning("offsets_not_committed", topic=topic.name, reason=str(error))

    def _publish(self, topic: Topic, newest: Manifest | None) -> Manifest | None:
        """Publishes what the audit topic lacks of the newest load; returns the newest manifest.

        Raises StateRefused when the audit topic knows more loads of this output than there are.
        """
        if newest is None:
            return None
        if self._heard(newest) > delta.last_key(newest):
            newer = self._begin(topic)  # another loader may have committed it just now
            if newer is None or self._heard(newer) > delta.last_key(newer):
                epoch, number = self._heard(newest)
                raise StateRefused(
                    f"{newest.producer}: the audit topic has message {number} of epoch {epoch} of "
                    f"this output, the newest manifest ends with message "
                    f"{delta.last_number(newest)} of epoch {newest.epoch}: the output is an older "
                    "copy; restore it, or load into another one"
                )
            newest = newer
        known = self._parts.feed.number(newest.producer, newest.epoch)
        missing = [each for each in delta.messages(newest) if each.number > known]
        publish(self._parts.client, missing, self._parts.clock)
        for message in missing:
            self._parts.feed.take(message)
        return newest

    def _heard(self, newest: Manifest) -> tuple[int, int]:
        """The newest message of this output on the audit topic, by epoch and number."""
        feed = self._parts.feed
        epoch = feed.epoch(newest.producer)
        return epoch, feed.number(newest.producer, epoch)

    def _awaited(self, topic: Topic, outcome: Outcome) -> bool:
        """Whether announcements that ranges ended at have come meanwhile."""
        notes = WaitingNotes(self._parts.store, topic.name)
        for key in {key for stop in outcome.waiting for key in stop.awaited}:
            notes.begin(key, self._parts.clock.time_ms())
        keys = {stop.waiting_for for stop in outcome.waiting if stop.waiting_for is not None}
        until = time.monotonic() + PATIENCE_S
        while keys and time.monotonic() < until:
            self._parts.read_on()
            names = self._parts.feed.names_of(topic.source)
            if keys & names.keys():
                notes.clear(names)
                return True
            self._pause(1.0)
        notes.clear(self._parts.feed.names_of(topic.source))
        for stop in outcome.waiting:
            _log.warning("waiting_for_announcement", reason=stop.sentence)
        return False


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


def _moves(planned: Planned) -> bool:
    return planned.first < planned.end or planned.gap is not None


def _done_by_another(topic: Topic) -> str:
    return (
        f"{topic.name}: another loader was faster and has loaded what was left up to the "
        "watermarks of this run's start"
    )


def _never_won(topic: Topic) -> str:
    return (
        f"{topic.name}: another loader was faster {RACES_MAX} times, and there is more to load; "
        "the next run goes on"
    )


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
