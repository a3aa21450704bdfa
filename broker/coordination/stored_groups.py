"""Reads, lists and deletes the groups in ZooKeeper. The session's thread runs this code and waits
for ZooKeeper's answers.

If ZooKeeper's answer to an operation was lost, the operation can be repeated.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kazoo.exceptions import BadVersionError, NoNodeError, NotEmptyError

from skidway import log
from skidway.broker.coordination import consumers
from skidway.broker.coordination.answers import answered, each_answer, one_answer, require
from skidway.broker.coordination.consumers import Committed
from skidway.broker.coordination.documents import DocumentRefused
from skidway.coordination import Coordinator
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka import group_nodes
from skidway.kafka.types import TopicPartition

DELETED_BYTES_AT_ONCE = 256 * 1024
"""The paths in one transaction have at most this many bytes, because ZooKeeper closes the
connection if a request has more than 1 MB.
"""
NOBODY_EVER = -1
"""The value of `ids_version` in `Looked` if no consumer has ever registered for the group, and of
`ids_writes` if the group has no `ids` node."""
NO_RECORD = -2
_ATTEMPTS_MAX = 5
_log = log.get(__name__)

Offsets = dict[TopicPartition, Committed]


class GroupInUse(SkidwayError):
    """Raised if an operation is refused because the group has members, or consumers that have
    registered in ZooKeeper."""


class GroupGone(SkidwayError):
    """Raised if ZooKeeper has no group with this name."""


class Looked(NamedTuple):
    """What the broker found in ZooKeeper about a group. native: the number of Skidway's own
    consumers that have registered for the group in ZooKeeper.

    ids_version: the version of the children of the group's `ids` node; consumers register as
    children of this node. ids_writes: the version of the `ids` node itself; each consumer writes to
    the `ids` node when it registers.
    """

    record: bytes | None
    offsets: Offsets
    native: int
    ids_version: int
    record_version: int = NO_RECORD
    ids_writes: int = NOBODY_EVER


def look(coordinator: Coordinator, group: str) -> Looked:
    """Reads everything that ZooKeeper has about a group. Raises Unreachable."""
    with answered(coordinator) as client:
        found = coordinator.get(group_nodes.record_path(group))
        status = one_answer(client.exists_async(group_nodes.ids_path(group)))
        native, version = (status.numChildren, status.cversion) if status else (0, 0)
        writes = status.version if status else NOBODY_EVER
        record, of_record = (None, NO_RECORD) if found is None else (found.data, found.version)
        offsets = read_offsets(client, group)
        return Looked(record, offsets, native, version or NOBODY_EVER, of_record, writes)


def list_groups(coordinator: Coordinator) -> dict[str, bytes | None]:
    """Returns every group with its record (its stored generation), or with None if the group has no
    record. Raises Unreachable."""
    groups = [group_nodes.group_of(name) for name in coordinator.children(group_nodes.CONSUMERS)]
    with answered(coordinator) as client:
        answers = each_answer(
            client.get_async, [group_nodes.record_path(group) for group in groups]
        )
        return {
            group: None if isinstance(answer, Exception) else answer[0]
            for group, answer in zip(groups, answers, strict=True)
        }


def delete_group(coordinator: Coordinator, group: str) -> None:
    """Deletes a group with its offsets. Raises GroupInUse and GroupGone. If the answer is lost, the
    call can be repeated.

    The transaction also deletes the node under which Skidway's own consumers register. So if a
    consumer registers at the same time, either the deletion fails, or the consumer begins with an
    empty group. If a group has too many nodes for one transaction, the broker deletes it in several
    transactions. The first of them deletes the node under which consumers register.
    """
    path, ids = group_nodes.group_path(group), group_nodes.ids_path(group)
    with answered(coordinator) as client:
        if one_answer(client.exists_async(path)) is None:
            raise GroupGone(f"there is no group {group!r}")
        for _ in range(_ATTEMPTS_MAX):
            nodes = _tree(client, path)
            registered = sum(each.startswith(f"{ids}/") for each in nodes)
            if registered:
                raise in_use(group, registered)
            if all(_delete(client, part) for part in _parts(nodes, ids)):
                return
    raise Unreachable(f"group {group!r} changes too often to be deleted")


def require_unused(coordinator: Coordinator, group: str) -> None:
    """Raises GroupGone if there is no such group, and GroupInUse if a consumer has registered for
    the group in ZooKeeper."""
    with answered(coordinator) as client:
        if one_answer(client.exists_async(group_nodes.group_path(group))) is None:
            raise GroupGone(f"there is no group {group!r}")
        ids = one_answer(client.exists_async(group_nodes.ids_path(group)))
        if ids is not None and ids.numChildren:
            raise in_use(group, ids.numChildren)


def delete_offsets(
    coordinator: Coordinator, group: str, partitions: Iterable[TopicPartition]
) -> None:
    """Deletes offsets. If an offset does not exist, this is no error."""
    paths = [group_nodes.offset_path(group, each) for each in partitions]
    with answered(coordinator) as client:
        for answer in each_answer(client.delete_async, paths):
            if isinstance(answer, Exception):
                require(answer, NoNodeError)


def expire_offsets(coordinator: Coordinator, group: str, offsets: Offsets) -> int:
    """Deletes those of the given offsets that have not changed since they were read. Returns how
    many offsets were deleted. Newer commits are kept.
    """
    versions = {
        group_nodes.offset_path(group, each): committed.version
        for each, committed in offsets.items()
    }
    count = 0
    with answered(coordinator) as client:
        # The requests are sent together to save time: commits of other groups wait until this job
        # is done.
        for answer in each_answer(
            lambda path: client.delete_async(path, versions[path]), list(versions)
        ):
            if isinstance(answer, Exception):
                require(answer, BadVersionError, NoNodeError)
            else:
                count += 1
    return count


def expire_group(coordinator: Coordinator, group: str, looked: Looked) -> int:
    """Deletes a group with its offsets, except what has changed since `looked` was read. Returns
    the number of deleted offsets. If an offset was committed since then, keeps this offset and the
    group. If a member has joined since then, keeps the group, but not its unchanged offsets.
    """
    count = expire_offsets(coordinator, group, looked.offsets)
    with answered(coordinator) as client:
        if looked.record_version != NO_RECORD:
            _delete_version(client, group_nodes.record_path(group), looked.record_version)
        if looked.ids_writes != NOBODY_EVER:
            _forget_beginnings(client, group, looked.ids_writes)
        _prune(client, group_nodes.group_path(group))
    return count


def offset_paths(coordinator: Coordinator, topic: str) -> list[str]:
    """Returns the paths of the nodes below which groups have stored committed offsets of a topic:
    one node for each group.
    """
    groups = [group_nodes.group_of(name) for name in coordinator.children(group_nodes.CONSUMERS)]
    paths = [group_nodes.topic_offsets_path(group, topic) for group in groups]
    with answered(coordinator) as client:
        found = each_answer(client.exists_async, paths)
    return [path for path, status in zip(paths, found, strict=True) if status is not None]


def count_native(client: Any, groups: Sequence[str]) -> dict[str, int]:
    """Returns, for each group, the number of its consumers that have registered in ZooKeeper."""
    paths = [group_nodes.ids_path(group) for group in groups]
    found = each_answer(client.exists_async, paths)
    for each in found:
        if isinstance(each, Exception):
            raise each
    return {
        group: 0 if status is None else status.numChildren
        for group, status in zip(groups, found, strict=True)
    }


def read_offsets(client: Any, group: str) -> Offsets:
    """Returns all offsets of a group. A node that contains no valid offset is skipped and
    logged.
    """
    try:
        topics = sorted(one_answer(client.get_children_async(group_nodes.offsets_path(group))))
    except NoNodeError:
        return {}
    above = [group_nodes.topic_offsets_path(group, topic) for topic in topics]
    partitions = []
    for topic, names in zip(topics, each_answer(client.get_children_async, above), strict=True):
        numbers = () if isinstance(names, Exception) else map(consumers.partition_number, names)
        partitions += [TopicPartition(topic, each) for each in numbers if each is not None]
    paths = [group_nodes.offset_path(group, each) for each in partitions]
    offsets: Offsets = {}
    for partition, path, answer in zip(
        partitions, paths, each_answer(client.get_async, paths), strict=True
    ):
        if isinstance(answer, Exception):
            require(answer, NoNodeError)
            continue
        try:
            found = consumers.read_offset(path, answer[0], answer[1].mtime)
            offsets[partition] = replace(found, version=answer[1].version)
        except DocumentRefused as error:
            _log.warning("committed_offset_refused", group=group, reason=str(error))
    return offsets


def _delete_version(client: Any, path: str, version: int) -> bool:
    try:
        one_answer(client.delete_async(path, version))
    except (BadVersionError, NoNodeError):
        return False
    return True


def _forget_beginnings(client: Any, group: str, ids_writes: int) -> None:
    """Deletes the nodes in which Skidway's own consumers have recorded how many partitions each
    topic had when the group first read the topic. Deletes nothing if a consumer has registered
    since the broker read the group.
    """
    above = group_nodes.offsets_path(group)
    with contextlib.suppress(NoNodeError):
        for topic in one_answer(client.get_children_async(above)):
            transaction = client.transaction()
            transaction.check(group_nodes.ids_path(group), ids_writes)
            transaction.delete(f"{above}/{topic}")
            # ZooKeeper refuses the transaction if there are committed offsets below the node.
            one_answer(transaction.commit_async())


def _prune(client: Any, path: str) -> None:
    """Deletes those of the node `path` and the nodes below it that have neither data nor children,
    each node after its children."""
    with contextlib.suppress(NoNodeError, NotEmptyError):
        for name in one_answer(client.get_children_async(path)):
            _prune(client, f"{path}/{name}")
        status = one_answer(client.exists_async(path))
        if status is not None and not status.dataLength:
            _delete_version(client, path, status.version)


def in_use(group: str, count: int) -> GroupInUse:
    """Returns the error for a group for which `count` consumers have registered in ZooKeeper."""
    return GroupInUse(f"group {group!r} has {count} consumers that coordinate through ZooKeeper")


def _tree(client: Any, path: str) -> list[str]:
    """Returns the paths of a node and of all nodes below it, each node after its children."""
    found: list[str] = []
    level = [path]
    while level:
        found += level
        answers = each_answer(client.get_children_async, level)
        level = [
            f"{above}/{name}"
            for above, names in zip(level, answers, strict=True)
            if not isinstance(names, Exception)
            for name in names
        ]
    return found[::-1]


def _parts(nodes: Sequence[str], ids: str) -> Iterator[Sequence[str]]:
    """Divides the nodes that are to be deleted into parts, each of which fits into one transaction,
    and yields the parts. The node `ids` is in the first part.
    """
    ordered = [*(each for each in nodes if each == ids), *(each for each in nodes if each != ids)]
    part: list[str] = []
    size = 0
    for each in ordered:
        weight = len(each) + 16
        if part and size + weight > DELETED_BYTES_AT_ONCE:
            yield part
            part, size = [], 0
        part.append(each)
        size += weight
    yield part


def _delete(client: Any, nodes: Sequence[str]) -> bool:
    """Deletes all nodes or none of them. Returns False if the nodes have changed since they were
    listed."""
    transaction = client.transaction()
    for each in nodes:
        transaction.delete(each)
    results = one_answer(transaction.commit_async())
    return not any(isinstance(each, Exception) for each in results)
