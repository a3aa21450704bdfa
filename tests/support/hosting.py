"""Hosts a broker's partitions without the broker's event loop. The test itself advances the clock,
ends the jobs of the disk worker and runs the timers."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

from skidway.broker.log.config import LogConfig
from skidway.broker.log.flusher import WorkOutcome
from skidway.broker.log.log_manager import LogManager
from skidway.broker.network.timers import Timers
from skidway.broker.partitions.hosted import HostedPartitions
from skidway.broker.partitions.replica import Replica
from skidway.broker.purgatory import Purgatory
from support.batches import PARTITION, batch, open_in, put
from support.clock import ManualClock


class HeldWorker:
    """Replaces the broker's disk worker (the thread that calls fsync). It finishes no job by
    itself: the test lets each job succeed or fail."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], None], Callable[[WorkOutcome], None]]] = []

    def submit(self, work: Callable[[], None], done: Callable[[WorkOutcome], None]) -> None:
        self.waiting.append((work, done))

    def finish(self, error: OSError | None = None) -> None:
        work, done = self.waiting.pop(0)
        if error is None:
            work()
        done(WorkOutcome(error, 0.0))


class World:
    def __init__(self, directory: Path, config: LogConfig | None = None) -> None:
        self.clock, self.timers, self.worker = ManualClock(), Timers(), HeldWorker()
        self.logs = LogManager(self.clock, self.worker)
        self.logs.open_directories([directory])
        self.purgatory = Purgatory(self.timers)
        self.hosted = HostedPartitions(
            self.logs, self.purgatory, self.worker, self.timers, self.clock
        )
        (directory / "logs-0").mkdir()
        log = open_in(directory / "logs-0", config)
        self.logs.logs[PARTITION] = log
        self.logs._homes[PARTITION] = self.logs.directories[0]
        self.replica = Replica(PARTITION, uuid.uuid4(), log, 0)
        self.hosted.host(self.replica)

    def produce(self, *values: bytes) -> None:
        put(self.replica.log, batch(*values))
        self.hosted.touch(self.replica)
        self.hosted.write()

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.timers.run_due(self.clock.monotonic())
