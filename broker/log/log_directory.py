"""A log directory: one of the directories in the setting `log.dirs`. It is either in use or
offline. Before the broker uses the directory, it locks the directory, and checks that the
directory's meta.properties names this broker.

The failure of a directory does not affect the other directories. If the disk of a directory has a
lasting failure (the device or an fsync reports an error), the directory is offline until the broker
is started again. Requests for its partitions get an error, and the broker writes nothing more to
the directory. A full disk is no lasting failure: the broker refuses appends until there is space.
If a directory cannot be used when the broker starts, it is offline until the next start. If no
directory can be used, the broker does not start.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from skidway import log
from skidway.broker.log import checkpoints, names
from skidway.broker.log.checkpoints import MetaProperties
from skidway.errors import SkidwayError, StateRefused
from skidway.files import DirectoryLock, make_directory
from skidway.kafka.types import TopicPartition

Offsets = dict[TopicPartition, int]
ROOM_BYTES = 64 << 10
"""A volume with fewer free bytes counts as full: small files still fit, but hardly a batch."""
_log = log.get(__name__)


@dataclass(slots=True, eq=False)
class LogDirectory:
    """One log directory, with the offsets that its two checkpoint files contain or are about to
    get: the recovery point and the log start offset of each partition.

    offline: why the directory is not in use; None while it is in use. full: in words for people,
    the operation that failed because the volume had no space, or how little space is left; None if
    there was space at the last write. noted: the partitions for which the checkpoint files
    on disk may have an entry.
    """

    path: Path
    lock: DirectoryLock
    meta: MetaProperties | None = None
    clean: bool = False
    offline: str | None = None
    full: str | None = None
    recovery_points: Offsets = field(default_factory=dict)
    log_start_offsets: Offsets = field(default_factory=dict)
    noted: set[TopicPartition] = field(default_factory=set)

    def open(self) -> None:
        """Locks the directory, and reads its meta.properties and its checkpoint files. Sets `clean`
        if the directory has the file that a clean stop leaves. Raises SkidwayError and OSError.
        """
        make_directory(self.path)
        if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            raise SkidwayError(f"cannot use the log directory {self.path}: permission denied")
        self.lock.acquire()
        self.meta = checkpoints.read_meta(self.path)
        self.clean = (self.path / names.CLEAN_SHUTDOWN).exists()
        self.recovery_points = checkpoints.read_offsets(self.path / names.RECOVERY_POINTS)
        self.log_start_offsets = checkpoints.read_offsets(self.path / names.LOG_START_OFFSETS)
        self.noted = set(self.recovery_points) | set(self.log_start_offsets)

    def claim(self, broker_id: int, cluster_id: str) -> None:
        """Checks in meta.properties that the directory belongs to this broker. If the directory
        has no meta.properties, writes one for this broker. Raises StateRefused and OSError.
        """
        if self.meta is None:
            directory_id = checkpoints.encode_id(uuid.uuid4())
            meta = MetaProperties(broker_id, cluster_id, directory_id)
            checkpoints.write_meta(self.path, meta)
            self.meta = meta
        if self.meta.broker_id != broker_id:
            raise StateRefused(
                f"the log directory {self.path} belongs to broker {self.meta.broker_id}, not "
                f"to {broker_id}; set broker.id={self.meta.broker_id} or another log.dirs"
            )
        if self.meta.cluster_id != cluster_id:
            raise StateRefused(
                f"the log directory {self.path} belongs to cluster {self.meta.cluster_id}, and "
                f"ZooKeeper says that this is {cluster_id}; is zookeeper.connect right?"
            )

    def note_full(self, reason: str) -> None:
        """Notes that an operation failed because the directory's volume had no space."""
        if self.full is None:
            _log.error("log_directory_full", directory=str(self.path), reason=reason)
        self.full = reason

    def note_written(self) -> None:
        """Notes that something was written, so that the volume no longer counts as full, unless
        hardly any space is left."""
        free_bytes = self.free_bytes()
        if free_bytes is not None and free_bytes < ROOM_BYTES:
            self.note_full(f"only {free_bytes} bytes are free in {self.path}")
        elif self.full is not None:
            self.full = None
            _log.info("log_directory_has_space", directory=str(self.path))

    def free_bytes(self) -> int | None:
        """Returns how many bytes may still be written to the directory's volume; None if the
        operating system does not say.
        """
        try:
            status = os.statvfs(self.path)
        except OSError:
            return None
        if not status.f_blocks:
            return None
        return status.f_bavail * status.f_frsize

    def go_offline(self, reason: str) -> None:
        """Takes the directory out of use. reason: why, in words for people."""
        self.offline = reason
        _log.error("log_directory_offline", directory=str(self.path), reason=reason)


def open_directories(paths: Iterable[Path]) -> list[LogDirectory]:
    """Opens the directory of each path and returns it. If a directory cannot be used, its
    LogDirectory is offline. Raises SkidwayError if no directory can be used.

    Raises StateRefused if another process uses a directory, or if the meta.properties of a
    directory is damaged. After StateRefused the broker does not start, because the cause is
    probably an operator's mistake and not a failed disk.
    """
    found = [LogDirectory(path, DirectoryLock(path)) for path in paths]
    first: SkidwayError | None = None
    for each in found:
        try:
            each.open()
            continue
        except StateRefused:
            raise
        except SkidwayError as error:
            failure = error
        except OSError as error:
            why = error.strerror or error
            failure = SkidwayError(f"cannot use the log directory {each.path}: {why}")
        first = first or failure
        each.offline = str(failure)
    if first is not None and all(each.offline is not None for each in found):
        raise first
    for each in found:
        if each.offline is not None:
            each.go_offline(each.offline)
    return found


def write_checkpoints(directory: Path, points: Offsets, starts: Offsets) -> None:
    """Writes both checkpoint files of a directory: the recovery points, and the log start offsets.
    Raises OSError."""
    checkpoints.write_offsets(directory / names.LOG_START_OFFSETS, starts)
    checkpoints.write_offsets(directory / names.RECOVERY_POINTS, points)


def only(offsets: Mapping[TopicPartition, int], keep: Iterable[TopicPartition]) -> Offsets:
    """Returns those entries of `offsets` whose partition is in `keep`."""
    return {each: offsets[each] for each in keep if each in offsets}
