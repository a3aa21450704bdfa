"""Makes the parts of the loop from the state. Each part gets the other parts that it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from skidway.agent.accounts.accounts import Accounts
from skidway.agent.accounts.backlog import Backlogs
from skidway.agent.accounts.fieldless_notes import FieldlessNotes
from skidway.agent.accounts.mail import Mail
from skidway.agent.accounts.register import Register
from skidway.agent.batches.fieldless import Fieldless
from skidway.agent.batches.press import AHEAD_MS_MAX
from skidway.agent.batches.rejections import Rejections
from skidway.agent.cluster.destinations import Cluster, Destination
from skidway.agent.cluster.known_schemas import known_schemas
from skidway.agent.cluster.topics import Topics
from skidway.agent.delivery.inquiry import Inquiry
from skidway.agent.delivery.outbound import Outbound, Sink
from skidway.agent.delivery.presses import Presses
from skidway.agent.delivery.progress import Progress
from skidway.agent.delivery.refused import Refused
from skidway.agent.delivery.replay import Replay
from skidway.agent.delivery.search import Logs
from skidway.agent.files.handles import Handles
from skidway.agent.files.host import Host
from skidway.agent.files.matches import Match
from skidway.agent.files.pod_labels import PodLabels
from skidway.agent.files.reading import UNFINISHED_S, FileReader
from skidway.agent.files.tracking import Tracker
from skidway.agent.loop import beginning
from skidway.agent.loop.source_reports import SourceReports
from skidway.agent.recipe import Recipe
from skidway.agent.settings import AgentSettings
from skidway.agent.state.changes import Changes
from skidway.agent.state.database import StateDatabase
from skidway.agent.values.intents import Intent, Numbers
from skidway.agent.values.tracked import TrackedFile
from skidway.audit.topic.messages import Bounds, Sender, Tier
from skidway.clock import Clock
from skidway.dataclass import dataclass
from skidway.kafka.codecs import BY_NAME
from skidway.kafka.types import TopicPartition


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the loop's parts get from outside: the host, the clock and the brokers.

    sink: takes the batches to send. logs: at each call, makes a new `Logs`, which reads the
    brokers' logs. ends: the log end offsets of the partitions without a floor (see
    `beginning.without_floor`).
    """

    host: Host
    host_name: str
    clock: Clock
    sink: Sink
    cluster: Cluster
    logs: Callable[[], Logs]
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Parts:
    """All parts of a loop. first: the changes that a starting agent writes to its state. The first
    turn's transaction contains these changes.
    """

    mail: Mail
    topics: Topics
    handles: Handles
    tracker: Tracker
    labels: PodLabels
    reader: FileReader
    outbound: Outbound
    numbers: Numbers
    rejections: Rejections
    fieldless: Fieldless
    presses: Presses
    progress: Progress
    inquiry: Inquiry
    refused: Refused
    replay: Replay
    accounts: Accounts
    backlogs: Backlogs
    fieldless_notes: FieldlessNotes
    source_reports: SourceReports
    register: Register
    first: Changes


def make_parts(
    settings: AgentSettings,
    state: StateDatabase,
    surroundings: Surroundings,
    destinations: Sequence[Destination],
) -> Parts:
    """Makes all parts. Raises StateRefused if the state belongs to another cluster, or to topics
    that were made again.
    """
    return _Maker(settings, state, surroundings, destinations).parts()


class _Maker:
    """Makes the parts of one loop. Owns the values that most parts need."""

    def __init__(
        self,
        settings: AgentSettings,
        state: StateDatabase,
        surroundings: Surroundings,
        destinations: Sequence[Destination],
    ) -> None:
        self._settings = settings
        self._state = state
        self._around = surroundings
        self._destinations = destinations
        self._intents: list[Intent] = state.intents()
        self._recipes: dict[bytes, Recipe] = state.recipes()
        self._files: list[TrackedFile] = state.files()
        labels = state.labels()
        for each in self._files:
            each.labels = labels.get(each.file, ())
        cluster = surroundings.cluster
        is_same = state.cluster_id == cluster.id
        self._topics = Topics(cluster, state.topics(), same_cluster=is_same)
        self._handles = Handles(surroundings.host, settings.max_open_files)

    def parts(self) -> Parts:
        """Makes all parts: each part after those that it needs."""
        settings, state, clock = self._settings, self._state, self._around.clock
        cluster, destinations = self._around.cluster, self._destinations
        waiting = beginning.open_topics(self._intents, self._recipes)
        beginning.check_cluster(state, cluster, destinations, waiting)
        mail = Mail(state.outbox())
        accounts = Accounts(settings, state, self._sender(), self._topics, mail)
        tracker = self._tracker()
        labels = PodLabels(self._around.host)
        reader = self._reader(tracker, labels, accounts)
        rejections = Rejections(settings.rejected_share_max)
        fieldless = Fieldless()
        presses = self._presses(rejections, fieldless)
        known = known_schemas(settings.schema_registry_url, destinations)
        first = beginning.first_changes(state, cluster, destinations, known, clock.time_ms())
        self._topics.take_ids(destinations, first)
        progress = self._progress(first)
        numbers = Numbers(state.last_sequence())
        wait_s = settings.read_back_wait_ms / 1000
        inquiry = Inquiry(
            tracker, self._handles, presses, progress, numbers, self._around.logs(), state.agent,
            clock.monotonic() + wait_s,
        )  # fmt: skip
        refused = Refused(tracker, presses, progress, self._around.logs(), state.agent, wait_s)
        replay = Replay(self._intents, presses, tracker, self._handles, inquiry)
        accounts.open(state, clock.time_ms(), first)
        tracker.has_lost = accounts.has_lost
        register = Register(state.agent, self._topics, mail, tracker, reader, self._handles)
        tracker.news.born += beginning.unannounced(self._files, mail)
        return Parts(
            mail=mail,
            topics=self._topics,
            handles=self._handles,
            tracker=tracker,
            labels=labels,
            reader=reader,
            outbound=Outbound(self._around.sink, settings.buffer_memory),
            numbers=numbers,
            rejections=rejections,
            fieldless=fieldless,
            presses=presses,
            progress=progress,
            inquiry=inquiry,
            refused=refused,
            replay=replay,
            accounts=accounts,
            backlogs=Backlogs(self._sender(), mail, tracker, self._handles),
            fieldless_notes=FieldlessNotes(self._sender(), mail, fieldless),
            source_reports=SourceReports(self._sender(), mail, tracker),
            register=register,
            first=first,
        )

    def _tracker(self) -> Tracker:
        tailed = [destination.tailed() for destination in self._destinations]
        tracker = Tracker(self._around.host, self._handles, tailed, self._around.host_name)
        promised = {intent.file: intent.end for intent in self._intents}
        since = beginning.since(self._state)
        tracker.first_looks.load(self._state.looked(), since)
        matches = {key: Match(*each) for key, each in self._state.matches().items()}
        tracker.matches.load(matches, self._state.epoch)
        unopened, unbegun = self._state.unopened(), self._state.unbegun()
        tracker.load(self._files, promised, since, unopened, unbegun)
        return tracker

    def _reader(self, tracker: Tracker, labels: PodLabels, accounts: Accounts) -> FileReader:
        def may_read(tracked: TrackedFile) -> bool:
            return tracked.announced and not accounts.leaving.is_done_with(tracked.birth.topic)

        inactive_ms = self._settings.close_inactive_ms
        return FileReader(
            tracker,
            self._handles,
            labels,
            idle_flush_s=self._settings.idle_flush_ms / 1000,
            close_rotated_s=self._settings.close_rotated_ms / 1000,
            close_inactive_s=None if inactive_ms is None else inactive_ms / 1000,
            unfinished_s=UNFINISHED_S,
            may_read=may_read,
        )

    def _presses(self, rejections: Rejections, fieldless: Fieldless) -> Presses:
        return Presses(
            self._state.agent,
            BY_NAME[self._settings.compression_type],
            self._settings.audit_bucket_ms,
            self._topics,
            self._recipes,
            {intent.recipe for intent in self._intents},
            rejections,
            fieldless,
        )

    def _progress(self, first: Changes) -> Progress:
        floors = beginning.floors(self._state, self._destinations, self._around.ends, first)
        before = [intent.sequence for intent in self._intents]
        return Progress(
            self._state.offsets(),
            floors,
            before,
            lambda topic: self._topics.source(topic).topic_id,
        )

    def _sender(self) -> Sender:
        state, bounds = self._state, Bounds(self._settings.lateness_ms, AHEAD_MS_MAX)
        cluster, host_name = self._around.cluster.name, self._around.host_name
        return Sender(Tier.AGENT, cluster, str(state.agent), host_name, state.epoch, bounds)
