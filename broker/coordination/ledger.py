"""The operations on groups in ZooKeeper; they block, and belong on the session's thread.

What can be asked at once is: requests are sent without waiting for each other's answers, offsets
are written in transactions of many groups. An operation whose answer was lost can be done again.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kazoo.exceptions import (
    KazooException,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
)

from broker.coordination import consumers
from broker.coordination.answers import answered
from broker.coordination.consumers import Committed
from broker.coordination.documents import DocumentRefused
from skidway import log
from skidway.coordination import UNANSWERED, Coordinator
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka import group_nodes
from skidway.kafka.types import TopicPartition

ASKED_AT_ONCE = 200
WRITTEN_AT_ONCE = 500
"""Offsets in one transaction."""
WRITTEN_BYTES_AT_ONCE = 256 * 1024
"""ZooKeeper closes the connection of a request above 1 MB."""
ANSWER_WITHIN_S = 10.0
NOBODY_EVER = -1
"""The version of a group's registrations where nobody ever registered."""
_REMEMBERED_MAX = 200_000
_LISTED_ABOVE = 10
_ATTEMPTS_MAX = 5
_log = log.get(__name__)

Offset = tuple[str, TopicPartition]
Offsets = dict[TopicPartition, Committed]


class GroupInUse(SkidwayError):
    """A group that has members, perhaps of the kind that registers in ZooKeeper."""


class GroupGone(SkidwayError):
    """There is no such group."""


class Record(NamedTuple):
    """A group as it is to be stored; with members only where nobody registered in ZooKeeper."""

    content: bytes
    has_members: bool


@dataclass(frozen=True, slots=True)
class Errand:
    """What the loop wants done at once, in this order."""

    records: Mapping[str, Record] = field(default_factory=dict)
    commits: Mapping[Offset, Committed] = field(default_factory=dict)
    loads: Sequence[str] = ()
    reads: Sequence[str] = ()
    counts: Sequence[str] = ()


@dataclass(slots=True)
class Report:
    """How it went: by group, content or error."""

    records: dict[str, SkidwayError | None] = field(default_factory=dict)
    loads: dict[str, bytes | None] = field(default_factory=dict)
    reads: dict[str, Offsets] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    transactions: int = 0


class Looked(NamedTuple):
    """A group as it lies there; `native` counts the consumers that registered in ZooKeeper."""

    record: bytes | None
    offsets: Offsets
    native: int
    ids_version: int


class Ledger:
    """Used on the session's thread; remembers which nodes are there, and their versions.

    What it remembers wrongly, because others deleted it, it learns from the refusal."""

    def __init__(self) -> None:
        self._there: set[str] = set()
        self._versions: dict[str, int] = {}

    def carry_out(self, coordinator: Coordinator, errand: Errand) -> Report:
        """All of an errand. Raises Unreachable: then anything may or may not have been done."""
        report = Report()
        with answered(coordinator) as client:
            for group, record in errand.records.items():
                report.records[group] = self._write_record(client, group, record)
            report.transactions = self._write_offsets(client, errand.commits)
            report.loads = self._load(client, errand.loads)
            for group in errand.reads:
                report.reads[group] = read_offsets(client, group)
            report.counts = _count_native(client, errand.counts)
        return report

    def _load(self, client: Any, groups: Sequence[str]) -> dict[str, bytes | None]:
        found: dict[str, bytes | None] = {}
        paths = [group_nodes.record_path(group) for group in groups]
        for group, answer in zip(groups, _each(client.get_async, paths), strict=True):
            if isinstance(answer, Exception):
                _only(answer, NoNodeError)
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
                # Who registers writes to this node in the same transaction: so one of us fails.
                present = _get(client.exists_async(ids))
                if present is None:
                    _make(client, ids)
                    continue
                if present.numChildren:
                    return _in_use(group, present.numChildren)
                transaction.check(ids, present.version)
            if version is None:
                transaction.create(path, record.content)
            else:
                transaction.set_data(path, record.content, version)
            results = _get(transaction.commit_async())
            refusal = next((each for each in results if _refuses(each)), None)
            if refusal is None:
                self._remember(group, 0 if version is None else results[-1].version)
                return None
            self._learn_version(client, group, path)
        return SkidwayError(f"ZooKeeper's node {path} changes too often to be written")

    def _learn_version(self, client: Any, group: str, path: str) -> None:
        """A write was refused: others made, changed or removed the node, or the one above it.

        Or an earlier write of ours was done, whose answer was lost; nobody else coordinates it.
        """
        found = _get(client.exists_async(path))
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
        """Writes all of them; the number of transactions."""
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
            results = _get(transaction.commit_async())
            if not any(isinstance(each, Exception) for each in results):
                self._there.update(chunk)
                return attempt
            self._there.difference_update(chunk)
        raise Unreachable("the offsets in ZooKeeper change too often to be written")


def _make(client: Any, path: str) -> None:
    with contextlib.suppress(NodeExistsError):
        _get(client.create_async(path, b"", makepath=True))


def _refuses(result: Any) -> bool:
    return isinstance(result, Exception) and not isinstance(result, RolledBackError)


def _in_use(group: str, consumers_: int) -> GroupInUse:
    return GroupInUse(
        f"group {group!r} has {consumers_} consumers that coordinate through ZooKeeper"
    )


def _count_native(client: Any, groups: Sequence[str]) -> dict[str, int]:
    paths = [group_nodes.ids_path(group) for group in groups]
    found = _each(client.exists_async, paths)
    for each in found:
        if isinstance(each, Exception):
            raise each
    return {
        group: 0 if status is None else status.numChildren
        for group, status in zip(groups, found, strict=True)
    }


def look(coordinator: Coordinator, group: str) -> Looked:
    """All of a group. Raises Unreachable."""
    with answered(coordinator) as client:
        found = coordinator.get(group_nodes.record_path(group))
        status = _get(client.exists_async(group_nodes.ids_path(group)))
        native, version = (status.numChildren, status.cversion) if status else (0, 0)
        record = None if found is None else found.data
        return Looked(record, read_offsets(client, group), native, version or NOBODY_EVER)


def list_groups(coordinator: Coordinator) -> dict[str, bytes | None]:
    """Every group, with its record if there is one. Raises Unreachable."""
    groups = [group_nodes.group_of(name) for name in coordinator.children(group_nodes.CONSUMERS)]
    with answered(coordinator) as client:
        answers = _each(client.get_async, [group_nodes.record_path(group) for group in groups])
        return {
            group: None if isinstance(answer, Exception) else answer[0]
            for group, answer in zip(groups, answers, strict=True)
        }


def delete_group(coordinator: Coordinator, group: str) -> None:
    """Deletes a group with its offsets. Raises GroupInUse, GroupGone. Can be done again."""
    path = group_nodes.group_path(group)
    with answered(coordinator) as client:
        if _get(client.exists_async(path)) is None:
            raise GroupGone(f"there is no group {group!r}")
        try:
            with contextlib.suppress(NoNodeError):
                _get(client.delete_async(group_nodes.ids_path(group)))
        except NotEmptyError:
            raise GroupInUse(
                f"group {group!r} has consumers that coordinate through ZooKeeper"
            ) from None
        with contextlib.suppress(NoNodeError):
            client.delete(path, recursive=True)


def require_unused(coordinator: Coordinator, group: str) -> None:
    """Raises GroupGone if there is no such group, GroupInUse if somebody registered there."""
    with answered(coordinator) as client:
        if _get(client.exists_async(group_nodes.group_path(group))) is None:
            raise GroupGone(f"there is no group {group!r}")
        ids = _get(client.exists_async(group_nodes.ids_path(group)))
        if ids is not None and ids.numChildren:
            raise _in_use(group, ids.numChildren)


def delete_offsets(
    coordinator: Coordinator, group: str, partitions: Iterable[TopicPartition]
) -> None:
    """Deletes offsets; those that are not there are no fault."""
    paths = [group_nodes.offset_path(group, each) for each in partitions]
    with answered(coordinator) as client:
        for answer in _each(client.delete_async, paths):
            if isinstance(answer, Exception):
                _only(answer, NoNodeError)


def forget_topic(coordinator: Coordinator, topic: str) -> None:
    """Deletes the offsets of a topic in every group. Can be done again."""
    groups = [group_nodes.group_of(name) for name in coordinator.children(group_nodes.CONSUMERS)]
    paths = [group_nodes.topic_offsets_path(group, topic) for group in groups]
    if not paths:
        return
    with answered(coordinator) as client:
        for path, found in zip(paths, _each(client.exists_async, paths), strict=True):
            if found is not None:
                with contextlib.suppress(NoNodeError):
                    client.delete(path, recursive=True)


def read_offsets(client: Any, group: str) -> Offsets:
    """All offsets of a group; what is none is passed over, and said."""
    try:
        topics = sorted(_get(client.get_children_async(group_nodes.offsets_path(group))))
    except NoNodeError:
        return {}
    above = [group_nodes.topic_offsets_path(group, topic) for topic in topics]
    partitions = []
    for topic, names in zip(topics, _each(client.get_children_async, above), strict=True):
        numbers = () if isinstance(names, Exception) else map(consumers.partition_number, names)
        partitions += [TopicPartition(topic, each) for each in numbers if each is not None]
    paths = [group_nodes.offset_path(group, each) for each in partitions]
    offsets: Offsets = {}
    for partition, path, answer in zip(
        partitions, paths, _each(client.get_async, paths), strict=True
    ):
        if isinstance(answer, Exception):
            _only(answer, NoNodeError)
            continue
        try:
            offsets[partition] = consumers.read_offset(path, answer[0], answer[1].mtime)
        except DocumentRefused as error:
            _log.warning("committed_offset_refused", group=group, reason=str(error))
    return offsets


def _missing(client: Any, offsets: list[str]) -> set[str]:
    """Which of these nodes are not there, and which above them.

    Requests are what costs: one for each group and topic tells of all its partitions, and one for
    all groups tells which are new.
    """
    topics = sorted({_parent(path) for path in offsets})
    groups = {path: _parent(_parent(path)) for path in topics}
    new: set[str] = set()
    if len(topics) > _LISTED_ABOVE:
        with contextlib.suppress(NoNodeError):
            names = _get(client.get_children_async(group_nodes.CONSUMERS))
            new = set(groups.values()) - {f"{group_nodes.CONSUMERS}/{name}" for name in names}
    asked = [path for path in topics if groups[path] not in new]
    answers = _each(client.get_children_async, asked)
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
    found = zip(unsure, _each(client.exists_async, unsure), strict=True)
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


def _each(request: Callable[[str], Any], paths: Sequence[str]) -> list[Any]:
    """The answers to a request for each path, in their order; what ZooKeeper refused as exception.

    Silence raises what kazoo says of it.
    """
    answers: list[Any] = []
    left = iter(paths)
    while asked := [request(path) for path in itertools.islice(left, ASKED_AT_ONCE)]:
        until = time.monotonic() + ANSWER_WITHIN_S
        for each in asked:
            try:
                answers.append(each.get(timeout=max(0.0, until - time.monotonic())))
            except UNANSWERED:
                raise
            except KazooException as error:
                answers.append(error)
    return answers


def _get(asked: Any) -> Any:
    return asked.get(timeout=ANSWER_WITHIN_S)


def _only(error: Exception, *expected: type[Exception]) -> None:
    if not isinstance(error, expected):
        raise error
