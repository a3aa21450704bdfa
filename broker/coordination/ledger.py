"""Writes groups to ZooKeeper. The session's thread runs this code and waits for ZooKeeper's
answers.

One transaction writes the offsets of many groups. A job is everything that one call of `carry_out`
writes and reads. If ZooKeeper's answer was lost, the same job can be carried out again. (The word
"ledger" does not mean the audit's ledger here.)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kazoo.exceptions import NodeExistsError, NoNodeError, RolledBackError

from skidway.broker.coordination import consumers, stored_groups
from skidway.broker.coordination.answers import answered, each_answer, one_answer, require
from skidway.broker.coordination.consumers import Committed
from skidway.broker.coordination.stored_groups import Offsets
from skidway.coordination import Coordinator
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka import group_nodes
from skidway.kafka.types import TopicPartition

WRITTEN_AT_ONCE = 500
"""One transaction writes at most this many offsets."""
WRITTEN_BYTES_AT_ONCE = 256 * 1024
"""One transaction has at most this many bytes, because ZooKeeper closes the connection if a request
has more than 1 MB.
"""
_REMEMBERED_MAX = 200_000
_LISTED_ABOVE = 10
_ATTEMPTS_MAX = 5

Offset = tuple[str, TopicPartition]


class Record(NamedTuple):
    """The content that is to be stored for a group. A group with members is stored only if no
    consumer has registered in ZooKeeper for the group. (Skidway's own consumers register there.)
    """

    content: bytes
    has_members: bool


@dataclass(frozen=True, slots=True)
class Job:
    """All the work that the loop submits to the session's thread at one time. The thread does the
    work in the order in which the class lists its fields.
    """

    records: Mapping[str, Record] = field(default_factory=dict)
    commits: Mapping[Offset, Committed] = field(default_factory=dict)
    loads: Sequence[str] = ()
    reads: Sequence[str] = ()
    counts: Sequence[str] = ()


@dataclass(slots=True)
class Report:
    """The results of a job. records: for each group, None if its record was stored, otherwise the
    error. loads, reads, counts: the data that was read for each group. transactions: how many
    transactions wrote offsets."""

    records: dict[str, SkidwayError | None] = field(default_factory=dict)
    loads: dict[str, bytes | None] = field(default_factory=dict)
    reads: dict[str, Offsets] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    transactions: int = 0


class Ledger:
    """Writes groups, on the session's thread. Remembers which nodes it has seen in ZooKeeper, and
    their versions.

    If another program has deleted or changed such a node since then, ZooKeeper refuses the next
    write to the node, and this object reads the node again.
    """

    def __init__(self) -> None:
        self._there: set[str] = set()
        self._versions: dict[str, int] = {}

    def carry_out(self, coordinator: Coordinator, job: Job) -> Report:
        """Does all the work of a job. If this function raises Unreachable, the job may have been
        done in part or completely.
        """
        report = Report()
        with answered(coordinator) as client:
            for group, record in job.records.items():
                report.records[group] = self._write_record(client, group, record)
            report.transactions = self._write_offsets(client, job.commits)
            report.loads = self._load(client, job.loads)
            for group in job.reads:
                report.reads[group] = stored_groups.read_offsets(client, group)
            report.counts = stored_groups.count_native(client, job.counts)
        return report

    def _load(self, client: Any, groups: Sequence[str]) -> dict[str, bytes | None]:
        found: dict[str, bytes | None] = {}
        paths = [group_nodes.record_path(group) for group in groups]
        for group, answer in zip(groups, each_answer(client.get_async, paths), strict=True):
            if isinstance(answer, Exception):
                require(answer, NoNodeError)
                self._versions.pop(group, None)
                found[group] = None
            else:
                found[group] = answer[0]
                self._remember(group, answer[1].version)
        return found

    def _write_record(self, client: Any, group: str, record: Record) -> SkidwayError | None:
        path, ids = group_nodes.record_path(group), group_nodes.ids_path(group)
        for _ in range(_ATTEMPTS_MAX):
            transaction, version = client.transaction(), self._versions.get(group)
            if record.has_members:
                # A consumer registers in a transaction that writes to the node `ids`. If that
                # transaction and the transaction of this function reach ZooKeeper at the same time,
                # one of the two fails.
                present = one_answer(client.exists_async(ids))
                if present is None:
                    _make(client, ids)
                    continue
                if present.numChildren:
                    return stored_groups.in_use(group, present.numChildren)
                transaction.check(ids, present.version)
            if version is None:
                transaction.create(path, record.content)
            else:
                transaction.set_data(path, record.content, version)
            results = one_answer(transaction.commit_async())
            refusal = next((each for each in results if _refuses(each)), None)
            if refusal is None:
                self._remember(group, 0 if version is None else results[-1].version)
                return None
            self._learn_version(client, group, path)
        return SkidwayError(f"ZooKeeper's node {path} changes too often to be written")

    def _learn_version(self, client: Any, group: str, path: str) -> None:
        """Reads the version of a group's node again after ZooKeeper has refused a write to the
        node.

        The refusal has several possible reasons: another program has created, changed or removed
        the node or its parent; an earlier write of this broker was done, and its answer was lost;
        or the previous coordinator of the group has written to the node just before it ceased to be
        the coordinator.
        """
        found = one_answer(client.exists_async(path))
        if found is not None:
            self._remember(group, found.version)
        else:
            self._versions.pop(group, None)
            _make(client, _parent(path))

    def _remember(self, group: str, version: int) -> None:
        if len(self._versions) >= _REMEMBERED_MAX:
            self._versions.clear()
        self._versions[group] = version

    def _write_offsets(self, client: Any, commits: Mapping[Offset, Committed]) -> int:
        count = 0
        for chunk in _chunks(commits):
            count += self._write_chunk(client, chunk)
        return count

    def _write_chunk(self, client: Any, chunk: Mapping[str, bytes]) -> int:
        if len(self._there) > _REMEMBERED_MAX:
            self._there.clear()
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            missing = _missing(client, [path for path in chunk if path not in self._there])
            transaction = client.transaction()
            for path in sorted(missing - chunk.keys(), key=len):
                transaction.create(path, b"")
            for path, content in chunk.items():
                if path in missing:
                    transaction.create(path, content)
                else:
                    transaction.set_data(path, content)
            results = one_answer(transaction.commit_async())
            if not any(isinstance(each, Exception) for each in results):
                self._there.update(chunk)
                return attempt
            self._there.difference_update(chunk)
        raise Unreachable("the offsets in ZooKeeper change too often to be written")


def _make(client: Any, path: str) -> None:
    with contextlib.suppress(NodeExistsError):
        one_answer(client.create_async(path, b"", makepath=True))


def _refuses(result: Any) -> bool:
    return isinstance(result, Exception) and not isinstance(result, RolledBackError)


def _missing(client: Any, offsets: list[str]) -> set[str]:
    """Returns which of the nodes `offsets`, and of all nodes above them, do not exist.

    To save requests, one request lists all partitions of a group and topic. If there are many
    groups and topics, one request also lists all existing groups.
    """
    topics = sorted({_parent(path) for path in offsets})
    groups = {path: _parent(_parent(path)) for path in topics}
    new: set[str] = set()
    if len(topics) > _LISTED_ABOVE:
        with contextlib.suppress(NoNodeError):
            names = one_answer(client.get_children_async(group_nodes.CONSUMERS))
            new = set(groups.values()) - {f"{group_nodes.CONSUMERS}/{name}" for name in names}
    asked = [path for path in topics if groups[path] not in new]
    answers = each_answer(client.get_children_async, asked)
    there = {
        path: frozenset(names)
        for path, names in zip(asked, answers, strict=True)
        if not isinstance(names, Exception)
    }
    missing = {
        path for path in offsets if path.rpartition("/")[2] not in there.get(_parent(path), ())
    }
    absent = set(topics) - there.keys()
    above = {_parent(path) for path in absent} | {groups[path] for path in absent}
    above |= {group_nodes.CONSUMERS} if above else set()
    unsure = [path for path in above if path not in new and _parent(path) not in new]
    found = zip(unsure, each_answer(client.exists_async, unsure), strict=True)
    return missing | absent | above - {path for path, status in found if status is not None}


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _chunks(commits: Mapping[Offset, Committed]) -> Iterator[dict[str, bytes]]:
    chunk: dict[str, bytes] = {}
    size = 0
    for (group, partition), committed in commits.items():
        path = group_nodes.offset_path(group, partition)
        content = consumers.offset_document(committed)
        weight = len(path) + len(content)
        if chunk and (len(chunk) >= WRITTEN_AT_ONCE or size + weight > WRITTEN_BYTES_AT_ONCE):
            yield chunk
            chunk, size = {}, 0
        chunk[path] = content
        size += weight
    if chunk:
        yield chunk
