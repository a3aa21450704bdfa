"""Tests moves of a partition to another broker. Each move is interrupted in the middle and run
again. The first broker hands the partition's directory over with a file, the waybill. The second
broker takes the directory over."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from skidway.broker.catalog import PartitionState
from skidway.broker.coordination import documents, reassignment
from skidway.broker.handover import hand_over, take_over, waybill
from skidway.broker.handover.hand_over import HandOver
from skidway.broker.handover.take_over import TakeOver
from skidway.broker.log.config import LogConfig
from skidway.broker.log.log_directory import LogDirectory, open_directories
from skidway.coordination import Coordinator
from skidway.errors import StateRefused
from skidway.kafka.types import TopicPartition
from support.clock import ManualClock
from support.memory_zookeeper import MemoryCoordinator, MemoryZooKeeper

LOGS = TopicPartition("logs", 0)


class Killed(BaseException):
    """A stand-in for the sudden end of the process."""


class Move:
    """The log directories of two brokers, and the ZooKeeper nodes of a partition that the first
    broker leads."""

    def __init__(self, folder: Path) -> None:
        nodes = MemoryCoordinator(MemoryZooKeeper(ManualClock(), 10.0))
        nodes.create_if_absent(
            documents.topic_path("logs"), documents.topic(uuid.uuid4(), {0: (1,)})
        )
        state = documents.state(PartitionState(1, 0, (1,)))
        nodes.create_if_absent(documents.state_path("logs", 0), state)
        self.coordinator = cast(Coordinator, nodes)
        self.homes: dict[int, LogDirectory] = {}
        for number in (1, 2):
            (self.homes[number],) = open_directories([folder / str(number)])
        (self.path(1) / "logs-0").mkdir()

    def path(self, broker: int) -> Path:
        return self.homes[broker].path

    def hand_over(self, broker: int) -> waybill.Waybill:
        worker = HandOver(broker, LogConfig(), [self.homes[broker]], self.coordinator, 0)
        return worker.hand_over(LOGS, lambda _: None)[1]

    def take_over(self, broker: int) -> int:
        worker = TakeOver(broker, [self.homes[broker]], self.coordinator)
        return worker.take_over(self.path(broker) / "logs-0.moved", lambda _: None)[2]

    def copy(self) -> None:
        shutil.copytree(self.path(1) / "logs-0.moved", self.path(2) / "logs-0.moved")


@pytest.fixture
def move(tmp_path: Path) -> Iterator[Move]:
    found = Move(tmp_path)
    yield found
    for each in found.homes.values():
        each.lock.release()


def interrupted(do: Callable[[], object], module: object, name: str) -> None:
    """Runs `do`, and ends it in the middle, when it calls the function `name` of `module`."""

    def end(*_: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, end)
        with pytest.raises(Killed):
            do()


def test_a_take_over_that_ended_after_its_rename_is_completed(move: Move) -> None:
    """A waybill is the file with which a directory is handed over. If a take-over is killed after
    it renamed the partition's directory and before it removed the waybill, a second run of the same
    command completes the take-over."""
    move.hand_over(1)
    move.copy()
    interrupted(lambda: move.take_over(2), take_over, "fsync_directory")
    assert not (move.path(2) / "logs-0.moved").exists()
    assert move.take_over(2) == 1
    assert not (move.path(2) / "logs-0" / waybill.FILE).exists()
    assert reassignment.read(move.coordinator, LOGS).state.leader == 2
    with pytest.raises(StateRefused, match="is there already; this broker serves it"):
        move.take_over(2)


def test_a_waybill_in_a_directory_that_another_broker_took_over_is_refused(move: Move) -> None:
    """A waybill is the file with which a directory is handed over. A broker completes an
    interrupted take-over only if it is the partition's leader, and the leader epoch is higher than
    the epoch in the waybill. Otherwise it refuses the directory."""
    move.hand_over(1)
    move.copy()
    (move.path(2) / "logs-0.moved").rename(move.path(2) / "logs-0")
    with pytest.raises(StateRefused, match="this broker did not take over"):
        move.take_over(2)
    assert (move.path(2) / "logs-0" / waybill.FILE).exists()


def test_a_hand_over_does_not_use_the_waybill_of_an_earlier_move(move: Move) -> None:
    """A waybill is the file with which a directory is handed over. If a hand-over is killed after
    it renamed the directory, and the operator runs the hand-over again, the hand-over writes a new
    waybill. It does not use an old waybill that an interrupted take-over left in the directory."""
    move.hand_over(1)
    move.copy()
    interrupted(lambda: move.take_over(2), take_over, "fsync_directory")
    interrupted(lambda: move.hand_over(2), hand_over.waybill, "write")
    bill = move.hand_over(2)
    assert (bill.broker_id, bill.leader_epoch) == (2, 1)
