"""The part of a move that runs on the new broker's host: turns a copied directory into a partition
of the new broker. The directory contains a waybill, which is a list of its files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from skidway.broker.catalog import PartitionState
from skidway.broker.coordination import reassignment, store
from skidway.broker.handover import waybill
from skidway.broker.handover.waybill import Waybill
from skidway.broker.log import names
from skidway.broker.log.log_directory import LogDirectory, write_checkpoints
from skidway.coordination import Coordinator
from skidway.errors import SkidwayError, StateRefused
from skidway.files import fsync_directory


class TakeOver:
    """Takes over partitions for one broker. The caller must have locked the broker's log
    directories."""

    def __init__(
        self, broker_id: int, directories: list[LogDirectory], coordinator: Coordinator
    ) -> None:
        self._broker_id = broker_id
        self._directories = directories
        self._coordinator = coordinator
        self._cluster_id = store.cluster_id(coordinator)

    def take_over(
        self, directory: Path, progress: Callable[[str], object]
    ) -> tuple[Path, Waybill, int]:
        """Takes over the partition in a directory. Returns the partition's new directory, its
        waybill (the list of its files) and its leader epoch. May be called again after a failure.

        Raises StateRefused if the directory is not complete, or if it is a copy from an earlier
        hand-over. Also raises other kinds of SkidwayError, and OSError.
        """
        home, path = self._home_of(directory)
        bill = waybill.read(path)
        if bill is None:
            return self._resume(home, path)
        target = self._check(path, home, bill)
        progress(f"{bill.partition}: comparing {bill.size_bytes} bytes in {path}")
        waybill.receive(path, bill)
        self._note_offsets(home, bill)
        epoch = self._switch(bill)
        path.rename(target)
        _finish(home, target)
        return target, bill, epoch

    def _resume(self, home: LogDirectory, path: Path) -> tuple[Path, Waybill, int]:
        """Completes a take-over that was interrupted after it had renamed the directory: `path` no
        longer exists, and the waybill is in the renamed directory. Raises StateRefused if there is
        no such take-over.
        """
        partition = names.moved_partition(path.name)
        if partition is not None and not path.exists():
            target = home.path / names.partition_directory(partition)
            bill = waybill.read(target)
            if bill is not None and bill.partition == partition:
                epoch = self._epoch_since(bill)
                _finish(home, target)
                return target, bill, epoch
            if target.exists():
                raise _served_already(target)
        raise StateRefused(
            f"{path} has no {waybill.FILE}: hand the partition over first (skidway broker "
            "hand-over, where it was served), and copy all of its directory"
        )

    def _epoch_since(self, bill: Waybill) -> int:
        assigned = reassignment.read(self._coordinator, bill.partition)
        now = assigned.state
        newer = assigned.topic_id == bill.topic_id and now.leader_epoch > bill.leader_epoch
        if not newer or now.leader != self._broker_id:
            raise StateRefused(
                f"{bill.partition} is led by broker {now.leader} in leader epoch "
                f"{now.leader_epoch}, so this broker did not take over what was handed over by "
                f"broker {bill.broker_id} in epoch {bill.leader_epoch}"
            )
        return now.leader_epoch

    def _home_of(self, directory: Path) -> tuple[LogDirectory, Path]:
        path = directory.absolute()
        for home in self._directories:
            if home.path.absolute() == path.parent:
                return home, home.path / path.name
        wanted = ", ".join(str(each.path) for each in self._directories)
        raise StateRefused(f"{directory} is not in one of this broker's log.dirs ({wanted})")

    def _check(self, path: Path, home: LogDirectory, bill: Waybill) -> Path:
        if path.name != names.moved_directory(bill.partition):
            raise StateRefused(
                f"{path} holds {bill.partition}: it must keep the name "
                f"{names.moved_directory(bill.partition)}"
            )
        if bill.cluster_id != self._cluster_id:
            raise StateRefused(
                f"{bill.partition} was handed over in cluster {bill.cluster_id}, and this is "
                f"cluster {self._cluster_id}"
            )
        name = names.partition_directory(bill.partition)
        for each in self._directories:
            if (each.path / name).exists():
                raise _served_already(each.path / name)
        return home.path / name

    def _note_offsets(self, home: LogDirectory, bill: Waybill) -> None:
        """Writes the waybill's offsets into the checkpoint files of the log directory. Otherwise
        records that DeleteRecords has deleted would appear again.
        """
        home.recovery_points[bill.partition] = bill.log_end_offset
        home.log_start_offsets[bill.partition] = bill.log_start_offset
        try:
            write_checkpoints(home.path, home.recovery_points, home.log_start_offsets)
        except OSError as error:
            raise SkidwayError(f"cannot write into {home.path}: {error.strerror}") from error

    def _switch(self, bill: Waybill) -> int:
        """Writes to ZooKeeper that this broker leads the partition. Raises StateRefused if another
        broker has taken the partition over, or if the topic was recreated.
        """
        assigned = reassignment.read(self._coordinator, bill.partition)
        wanted = PartitionState(self._broker_id, bill.leader_epoch + 1, (self._broker_id,))
        now = assigned.state
        if assigned.topic_id != bill.topic_id:
            raise StateRefused(
                f"the topic of {bill.partition} was deleted and recreated since the hand-over"
            )
        if (now.leader, now.leader_epoch) == (wanted.leader, wanted.leader_epoch):
            return wanted.leader_epoch  # an earlier, interrupted run has already written this state
        if (now.leader, now.leader_epoch) != (bill.broker_id, bill.leader_epoch):
            raise StateRefused(
                f"{bill.partition} is led by broker {now.leader} in leader epoch "
                f"{now.leader_epoch}; it was handed over by broker {bill.broker_id} in epoch "
                f"{bill.leader_epoch}, so this copy is older than what is served"
            )
        reassignment.write(self._coordinator, bill.partition, assigned, wanted)
        return wanted.leader_epoch


def _finish(home: LogDirectory, target: Path) -> None:
    """Makes the rename of the partition's directory durable, and then removes the waybill from the
    directory. Raises OSError.
    """
    fsync_directory(home.path)
    (target / waybill.FILE).unlink()
    fsync_directory(target)


def _served_already(target: Path) -> StateRefused:
    return StateRefused(f"{target} is there already; this broker serves it")
