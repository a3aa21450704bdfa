"""The program `skidway audit count`: runs a counter with its state and its publisher."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

from skidway import invocation, log, systemd
from skidway.audit.counter.brokers import status_with_brokers
from skidway.audit.counter.counter import Counter
from skidway.audit.counter.retentions import Retentions
from skidway.audit.counter.state import CounterState
from skidway.audit.database import failures
from skidway.audit.settings import CounterSettings
from skidway.audit.signing.setting import signer_of
from skidway.audit.signing.signer import Signer
from skidway.audit.topic import topic
from skidway.audit.topic.claims import sender_overclaim
from skidway.audit.topic.messages import TOPIC, Sender, Tier
from skidway.audit.topic.publisher import Heartbeats, Publisher, check_restored, newest_own
from skidway.audit.topic.status_notes import StatusNotes
from skidway.clock import Clock
from skidway.errors import StateRefused, Unreachable
from skidway.files import DirectoryLock
from skidway.host_name import host_name
from skidway.kafka.client import Client, Fetcher, Producer
from skidway.kafka.source import CLUSTER_NAME, cluster_name_of
from skidway.kafka.types import TopicPartition
from skidway.service import Shutdown
from skidway.telemetry import Health, TelemetryServer

DATABASE = "counter.db"
TURN_MS = 200
FLUSH_WITHIN_S = 10.0
RETRY_S = 1.0

_log = log.get(__name__)


def run_counter(
    settings: CounterSettings, clock: Clock, shutdown: Shutdown, *, new_epoch: bool = False
) -> int:
    """Counts until a signal asks the program to stop. Raises StateRefused if the counter's state is
    damaged, is in use, or is older than its published messages, for example on a restored or cloned
    machine. Raises ConfigurationRefused if the settings do not fit the state or the cluster. With
    `new_epoch`, accepts an older state, and counts all records again under a new epoch.
    """
    with (
        DirectoryLock(settings.state_dir),
        settings.kafka.named(f"skidway-count-{settings.tier}").client(clock=clock) as client,
    ):
        path = settings.state_dir / DATABASE
        with failures(path), contextlib.closing(CounterState(path)) as state:
            settings = _named(settings, client)
            partitions = topic.ensure(client, shutdown.wait)
            signer = _signer(settings, clock)
            _settle_epoch(settings, client, state, clock, signer, new_epoch=new_epoch)
            state.settle_bucket(settings.bucket_ms)
            name = settings.producer_name
            partition = TopicPartition(TOPIC, topic.partition_of(name, partitions))
            return _Running(settings, client, state, partition, clock, signer).until(shutdown)


def _named(settings: CounterSettings, client: Client) -> CounterSettings:
    """Returns the settings with the name of the cluster: the name that is set or, if none is set,
    the name that the brokers report. Raises ConfigurationRefused."""
    name = cluster_name_of(client.broker_configs(CLUSTER_NAME), settings.cluster_name)
    return replace(settings, cluster_name=name)


def _signer(settings: CounterSettings, clock: Clock) -> Signer | None:
    tier, producer = Tier(settings.tier.upper()), settings.producer_name
    sender = Sender(tier, settings.cluster, producer, host_name(settings.host_name), 0)
    return signer_of(
        settings.audit_key_location, lambda identity: sender_overclaim(identity, sender), clock
    )


def _settle_epoch(
    settings: CounterSettings,
    client: Client,
    state: CounterState,
    clock: Clock,
    signer: Signer | None,
    *,
    new_epoch: bool,
) -> None:
    """Raises StateRefused if the state is older than the published messages. With `new_epoch`,
    begins a new epoch instead."""
    who = Tier(settings.tier.upper()), settings.producer_name
    newest = newest_own(client, Fetcher(client), who, clock, signer)
    if new_epoch:
        epoch = max(state.epoch, newest.epoch if newest is not None else 0) + 1
        state.begin_epoch(epoch)
        _log.info("epoch_begun", epoch=epoch)
        return
    try:
        check_restored(newest, state.epoch, state.number, state.where)
    except StateRefused as error:
        again = invocation.of_this_process().command("audit count", "--new-epoch")
        raise StateRefused(
            f"{error} To count everything again from the beginning of every log: `{again}`."
        ) from error


@dataclass(slots=True)
class _Running:
    settings: CounterSettings
    client: Client
    state: CounterState
    partition: TopicPartition
    clock: Clock
    signer: Signer | None

    def _health(self, counter: Counter) -> Health:
        """The health of the counter, and why it cannot sign its messages. Another thread asks."""
        health, refusal = counter.health, self.signer and self.signer.last_refusal
        if not refusal:
            return health
        return Health(False, {**health.detail, "audit_key": refusal})

    def until(self, shutdown: Shutdown) -> int:
        settings = self.settings
        fetcher = Fetcher(self.client)
        counter = Counter(settings, self.client, fetcher, self.state, self.clock)
        producer = Producer(self.client)
        publisher = Publisher(producer, self.state, self.partition, self.clock, self.signer)
        telemetry = TelemetryServer(
            settings.metrics_listener, lambda: self._health(counter), settings.allowed_hosts,
            settings.host_name,
        )  # fmt: skip
        telemetry.start()
        _log.info("counter_started", producer=settings.producer_name, epoch=self.state.epoch)
        systemd.ready(f"counting tier {settings.tier} as {settings.producer_name}")
        beats = Producer(self.client)
        retentions = Retentions(self.client, counter.sender, self.clock)
        statuses = StatusNotes(counter.sender, self.clock)

        def status() -> bytes | None:
            if not statuses.is_due:
                return None
            found = status_with_brokers(self.client, counter.sender.tier)
            return statuses.told(found, self.state.number)

        def due() -> bytes | None:
            return (
                counter.transactions_note()
                or counter.heartbeat()
                or status()
                or retentions.due(self.state.number, counter.topics)
            )

        heartbeats = Heartbeats(beats, publisher, self.partition, self.clock, self.signer)
        try:
            while not shutdown.requested:
                try:
                    counter.turn(TURN_MS, shutdown.fileno())
                except Unreachable as error:  # counts stay in memory until the cluster is back
                    counter.is_away(str(error))
                    shutdown.wait(RETRY_S)
                publisher.poll()
                heartbeats.poll(due)
            counter.commit()
            if not publisher.flush(FLUSH_WITHIN_S):
                _log.warning("counts_unpublished", messages=self.state.outbox_size)
        finally:
            telemetry.stop()
            producer.close()
            beats.close()
        return 0
