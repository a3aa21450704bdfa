"""The part of a move that runs on the old broker's host: turns a partition of the old broker into a
directory that can be moved. The directory then contains a waybill, which is a list of its files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from skidway.broker.coordination import reassignment, store
from skidway.broker.coordination.reassignment import Assigned
from skidway.broker.handover import waybill
from skidway.broker.handover.waybill import Waybill
from skidway.broker.log import dump, names
from skidway.broker.log.config import LogConfig
from skidway.broker.log.dump import NoBatch
from skidway.broker.log.log_directory import LogDirectory
from skidway.broker.log.opening import Opening
from skidway.broker.log.partition_log import PartitionLog
from skidway.broker.log.recovery import open_log
from skidway.broker.topics.configs import log_config
from skidway.coordination import Coordinator
from skidway.errors import SkidwayError, StateRefused
from skidway.files import fsync_directory
from skidway.kafka.types import TopicPartition


class HandOver:
    """Hands over partitions of one broker (prepares them for a move to another broker or
    directory). The caller must have locked the broker's log directories."""

    def __init__(
        self,
        broker_id: int,
        defaults: LogConfig,
        directories: list[LogDirectory],
        coordinator: Coordinator,
        now_ms: int,
    ) -> None:
        self._broker_id = broker_id
        self._defaults = defaults
        self._directories = directories
        self._coordinator = coordinator
        self._cluster_id = store.cluster_id(coordinator)
        self._now_ms = now_ms

    def hand_over(
        self, partition: TopicPartition, progress: Callable[[str], object]
    ) -> tuple[Path, Waybill]:
        """Prepares a partition for the move. Returns the directory to copy, and the directory's
        waybill (the list of its files). May be called again after a success or a failure.

        Raises StateRefused if this broker may not hand the partition over, for example because
        another broker leads it. Also raises other kinds of SkidwayError, such as DamagedLog, and
        OSError.
        """
        home, path, moved = self._find(partition)
        if not path.exists():
            known = waybill.read(moved)
            if known is not None:
                return moved, known
        assigned = self._assigned(partition)
        config = log_config(self._defaults, assigned.configs)
        if path.exists():
            progress(f"{partition}: reading {path}")
            self._open(home, partition, path, config)
            _check_batches(path)
            _drop_waybill(path)
            path.rename(moved)
            fsync_directory(home.path)
        log = self._open(home, partition, moved, config)
        bill = Waybill(
            partition,
            assigned.topic_id,
            self._cluster_id,
            self._broker_id,
            assigned.state.leader_epoch,
            log.log_start_offset,
            log.log_end_offset,
            waybill.contents(moved),
        )
        waybill.write(moved, bill)
        return moved, bill

    def _find(self, partition: TopicPartition) -> tuple[LogDirectory, Path, Path]:
        name, gone = names.partition_directory(partition), names.moved_directory(partition)
        for home in self._directories:
            path, moved = home.path / name, home.path / gone
            if path.exists() and moved.exists():
                raise StateRefused(
                    f"{moved} is there beside {path}: an earlier move left it; remove it first"
                )
            if path.exists() or moved.exists():
                return home, path, moved
        looked = ", ".join(str(each.path) for each in self._directories)
        raise StateRefused(f"{partition} has no directory {name} in {looked}")

    def _assigned(self, partition: TopicPartition) -> Assigned:
        assigned = reassignment.read(self._coordinator, partition)
        if assigned.state.leader != self._broker_id:
            raise StateRefused(
                f"{partition} is led by broker {assigned.state.leader}, not by this one, "
                f"{self._broker_id}: hand it over there"
            )
        return assigned

    def _open(
        self, home: LogDirectory, partition: TopicPartition, path: Path, config: LogConfig
    ) -> PartitionLog:
        """Opens the log as the broker does at its start, and closes it cleanly. If the broker
        crashed, opening the log repairs it.
        """
        opening = Opening(
            partition,
            path,
            config,
            self._now_ms,
            clean=home.clean,
            recovery_point=home.recovery_points.get(partition, 0),
            log_start_offset=home.log_start_offsets.get(partition, 0),
        )
        log = open_log(opening).log
        log.close_cleanly()
        return log


def _drop_waybill(path: Path) -> None:
    """Removes the waybill that an interrupted take-over has left in the partition's directory.
    Otherwise a later take-over could mistake it for the waybill of this hand-over.
    """
    if (path / waybill.FILE).exists():
        (path / waybill.FILE).unlink()
        fsync_directory(path)


def _check_batches(path: Path) -> None:
    for file in dump.segment_files(path):
        for batch in dump.batches(file):
            if isinstance(batch, NoBatch):
                raise SkidwayError(
                    f"{file} is damaged at position {batch.position}: {batch.reason}"
                )
            if not batch.crc_ok:
                raise SkidwayError(
                    f"{file} is damaged at position {batch.position}: the CRC-32C is wrong"
                )
