"""Applies retention at intervals: deletes segments that are older than the topic's limit, and the
oldest segments of a log that has more bytes than the topic's limit. Before the broker deletes
segments, it finds out which groups have not read them yet.

The setting `retention.hold` lists groups, for example of a mirror or a loader. The committed
offsets of such a group show which records it has not read yet. The broker keeps these records even
if retention would delete them: the group holds the segments back. A group that has committed no
offsets holds all segments back. The offsets are in ZooKeeper, so the broker reads them in the
background, and only for partitions with expired segments. While ZooKeeper cannot be reached, the
broker uses the offsets that it read last.

Segments are held back only up to a limit. Beyond `retention.hold.max.ms` or
`retention.hold.max.bytes`, the broker deletes segments even if groups have not read them. If a
group has not read some offsets of these segments, the broker logs these offsets as a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Protocol

from skidway import log
from skidway.broker.coordination import store
from skidway.broker.counts import Counts
from skidway.broker.log.expiration import Cut
from skidway.broker.log.log_manager import LogManager
from skidway.broker.partitions.hosted import HostedPartitions
from skidway.coordination import Coordinator
from skidway.errors import SkidwayError
from skidway.kafka.types import TopicPartition

Reader = tuple[str, TopicPartition]
"""A group and a partition that it reads."""

_log = log.get(__name__)


class Session(Protocol):
    """An object that runs operations on ZooKeeper, such as a `ZooKeeperSession`."""

    def submit(
        self,
        work: Callable[[Coordinator], dict[Reader, int]],
        done: Callable[[dict[Reader, int] | SkidwayError], None],
    ) -> None:
        """Runs `work` on another thread, then calls `done` on the loop."""
        ...


class Expiry:
    """Applies retention. Only the loop's thread may use it. `call_later(delay_ms, action)` makes
    the loop call `action` after the delay.
    """

    def __init__(
        self,
        logs: LogManager,
        partitions: HostedPartitions,
        session: Session,
        counts: Counts,
        call_later: Callable[[float, Callable[[], None]], None],
        producer_expiration_ms: int,
    ) -> None:
        self._logs = logs
        self._partitions = partitions
        self._session = session
        self._counts = counts
        self._call_later = call_later
        self._producer_expiration_ms = producer_expiration_ms
        self._offsets: dict[Reader, int] = {}

    def look(self) -> None:
        """Asks ZooKeeper which offsets the groups of `retention.hold` have committed, then deletes
        the expired segments that no group holds back (see the module's docstring)."""
        self._counts.retention_checks += 1
        held = self._logs.held()
        readers = [(group, tp) for tp, groups in held.items() for group in groups]
        if not readers:
            self._expire({})
            return

        def told(outcome: dict[Reader, int] | SkidwayError) -> None:
            if isinstance(outcome, SkidwayError):
                _log.warning("hold_offsets_not_read", reason=str(outcome))
            else:
                self._offsets = dict(outcome)  # has no entry for a group that committed nothing
            self._expire(held)

        self._session.submit(lambda coordinator: store.committed(coordinator, readers), told)

    def _expire(self, held: Mapping[TopicPartition, Iterable[str]]) -> None:
        known = {reader: self._known(reader) for tp in held for reader in _of(held, tp)}

        def held_from(partition: TopicPartition) -> int | None:
            groups = _of(held, partition)
            if not set(self._logs.logs[partition].config.held_by).issubset(held.get(partition, ())):
                # At the last call of `look`, no segment of the partition had expired yet, or
                # `retention.hold` did not name all these groups yet. So that call did not ask
                # ZooKeeper for the offsets of all these groups. The next call of `look` asks for
                # the missing offsets.
                return 0  # holds all segments back until the next call of `look`
            return min((known[reader] for reader in groups), default=None)

        found = self._logs.expire(held_from, self._producer_expiration_ms)
        self._offsets = {reader: at for reader, at in self._offsets.items() if reader in known}
        self._counts.partitions_held = found.held
        for failure in found.failures:
            self._partitions.storage_failed(failure)
        for partition in found.unflushed:
            self._partitions.flush(partition)
        for cut in found.cuts:
            for reader in _of(held, cut.partition):
                self._name_gap(reader, known[reader], cut)
        for delay_ms, paths in found.renamed.items():
            self._call_later(delay_ms, partial(self._logs.remove, paths))

    def _known(self, reader: Reader) -> int:
        offset, log = self._offsets.get(reader, 0), self._logs.logs.get(reader[1])
        return offset if log is not None and offset <= log.log_end_offset else 0

    def _name_gap(self, reader: Reader, offset: int, cut: Cut) -> None:
        """Logs and counts the offsets that a group can no longer read, because the broker has
        deleted segments that the group held back. offset: the offset up to which the group had
        read. cut: what was deleted.
        """
        first = max(offset, cut.first)
        if first >= cut.end:
            return
        self._counts.hold_lost_records += cut.end - first
        _log.error(
            "retention_hold_exceeded",
            partition=str(cut.partition),
            group=reader[0],
            first_offset=first,
            end_offset=cut.end,
        )


def _of(held: Mapping[TopicPartition, Iterable[str]], partition: TopicPartition) -> list[Reader]:
    return [(group, partition) for group in held.get(partition, ())]
