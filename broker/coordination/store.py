"""The operations on ZooKeeper, with one function for each. All of them block, so the event loop
never calls them: the session's thread does, or the main thread before the loop runs.

These functions raise Unreachable if ZooKeeper does not answer, and DocumentRefused if the content
of a node is invalid. If ZooKeeper's answer to an operation was lost, the operation can be repeated.
If ZooKeeper refuses the repeated write, the reason may be that the first attempt has already made
the change. So the operation reads the current state before it concludes that another broker was
faster.
"""

from __future__ import annotations

import contextlib
import secrets
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from skidway import log
from skidway.broker.catalog import PartitionState
from skidway.broker.coordination import consumers, documents, stored_groups
from skidway.broker.coordination.answers import answered
from skidway.broker.coordination.documents import DocumentRefused, Registration
from skidway.broker.log.checkpoints import encode_id
from skidway.broker.log.producer_id import NUMBERS
from skidway.coordination import Coordinator
from skidway.errors import SkidwayError, StateRefused, Unreachable
from skidway.kafka import gaps, group_nodes
from skidway.kafka.gaps import Gap
from skidway.kafka.types import TopicPartition

PRODUCER_IDS_A_BLOCK = 1000
_KEY_BYTES = 32
REMOVED_AT_ONCE = 500
"""One transaction removes at most this many nodes, because ZooKeeper closes the connection if a
request has more than 1 MB.
"""
_ATTEMPTS_MAX = 100
_LOOK_AGAIN_S = 0.25
_log = log.get(__name__)


class TopicExists(SkidwayError):
    """Raised if a topic with the wanted name exists, or is being deleted."""


class TopicGone(SkidwayError):
    """Raised if the topic no longer exists. A new topic may have its name."""


class TooManyGaps(SkidwayError):
    """Raised if a mirror topic has more gaps (ranges of offsets that are missing in the source)
    than fit into its settings.
    """


def cluster_id(coordinator: Coordinator) -> str:
    """Returns the cluster's id. If the cluster has none yet, creates it."""
    path = documents.CLUSTER_ID
    new = documents.cluster_id(encode_id(uuid.uuid4()))
    return documents.read_cluster_id(path, _made(coordinator, path, new))


def producer_id_key(coordinator: Coordinator) -> bytes:
    """Returns the key of the cluster's producer ids. If there is none yet, creates it."""
    path = documents.PRODUCER_ID_KEY
    new = documents.producer_id_key(secrets.token_bytes(_KEY_BYTES))
    return documents.read_producer_id_key(path, _made(coordinator, path, new))


def _made(coordinator: Coordinator, path: str, content: bytes) -> bytes:
    """Returns the content of a node that never changes. If there is none yet, creates it."""
    coordinator.create_if_absent(path, content)
    found = coordinator.get(path)
    if found is None:
        raise SkidwayError(f"ZooKeeper's node {path} vanished while it was read")
    return found.data


def register(
    coordinator: Coordinator, registered: Registration, *, wait_s: float, time_ms: int
) -> int:
    """Waits until the session of the broker's predecessor (another process with the same broker id)
    has ended. Then registers the broker. Returns the broker's epoch.

    If the predecessor has the same directory id, its process has ended, because this broker now has
    the lock of the log directory with this id. In this case the function deletes the predecessor's
    node at once. Raises SkidwayError if another broker keeps the broker id for longer than
    `wait_s`.
    """
    path = documents.broker_path(registered.broker.broker_id)
    deadline = time.monotonic() + wait_s
    waiting = False
    while True:
        with answered(coordinator) as client:
            try:
                content = documents.registration(registered, time_ms)
                client.retry(client.create, path, content, ephemeral=True, makepath=True)
            except NodeExistsError:
                pass
            try:
                data, status = client.retry(client.get, path)
            except NoNodeError:
                continue
            if status.ephemeralOwner == client.client_id[0]:
                return int(status.czxid)
            other = documents.read_registration(path, data)
            if other.directory_id == registered.directory_id:
                with contextlib.suppress(NoNodeError, BadVersionError):
                    client.retry(client.delete, path, version=status.version)
                continue
        if time.monotonic() >= deadline:
            # The conflict may end by itself: when a broker has moved to another host, its old
            # session may still exist for a while.
            raise SkidwayError(
                f"broker.id {registered.broker.broker_id} is in use by the broker at "
                f"{other.broker.endpoints[0].address}; give this one another"
            )
        if not waiting:
            _log.warning("broker_id_in_use", path=path, waiting_s=wait_s)
            waiting = True
        time.sleep(_LOOK_AGAIN_S)


def claim_controller(coordinator: Coordinator, broker_id: int, time_ms: int) -> int:
    """If the cluster has no controller, makes this broker the controller. Returns the controller's
    broker id.

    Raises Unreachable if the controller changes again and again during the call.
    """
    path = documents.CONTROLLER
    content = documents.controller(broker_id, time_ms)
    for _ in range(_ATTEMPTS_MAX):
        coordinator.create_if_absent(path, content, ephemeral=True)
        found = coordinator.get(path)
        if found is not None:
            return documents.read_controller(path, found.data)
        # The old controller's session ended between `create_if_absent` and `get`, so no watch will
        # report its end. Try again at once: otherwise the cluster would have no controller until
        # another node changes.
    raise Unreachable(f"ZooKeeper's node {path} changes too often to be read")


def create_topic(
    coordinator: Coordinator,
    topic: str,
    topic_id: uuid.UUID,
    partitions: Mapping[int, Sequence[int]],
    configs: Mapping[str, str],
) -> None:
    """Creates a topic and its settings in one transaction. Raises TopicExists."""
    with answered(coordinator) as client:
        if client.retry(client.exists, documents.deletion_path(topic)) is not None:
            raise TopicExists(f"Topic '{topic}' is being deleted.")
        for parent in (documents.TOPICS, documents.TOPIC_CONFIGS):
            client.ensure_path(parent)
        transaction = client.transaction()
        # A creation or deletion that was not finished may have left settings behind. The
        # transaction that creates the topic also removes these settings. If another broker creates
        # the topic at the same time, the whole transaction fails, so the settings that the other
        # broker has written stay.
        if client.retry(client.exists, documents.config_path(topic)) is not None:
            transaction.delete(documents.config_path(topic))
        transaction.create(documents.config_path(topic), documents.configs(configs))
        transaction.create(documents.topic_path(topic), documents.topic(topic_id, partitions))
        results = transaction.commit()
    if not any(isinstance(each, Exception) for each in results):
        return
    found = coordinator.get(documents.topic_path(topic))
    if found is None or documents.read_topic(topic, found.data)[0] != topic_id:
        raise TopicExists(f"Topic '{topic}' already exists.")


def name_gap(coordinator: Coordinator, topic: str, topic_id: uuid.UUID, gap: Gap) -> None:
    """Adds a gap (offsets that are missing in the source) to a mirror topic's settings, even if
    another program changes the settings at the same time.

    Raises TopicGone, TooManyGaps, and StateRefused if the gaps in the settings are invalid.
    """

    def change(configs: Mapping[str, str]) -> Mapping[str, str]:
        known = configs.get(gaps.CONFIG, "")
        wrong = gaps.refusal(known)
        if wrong is not None:
            raise StateRefused(f"the settings of {topic} in ZooKeeper: {gaps.CONFIG} {wrong}")
        named = gaps.added(gaps.decode(known), gap)
        if len(named) > gaps.GAPS_MAX:
            raise TooManyGaps(
                f"offsets {gap.first} to {gap.end} are missing in the source, and {topic} names "
                f"{gaps.GAPS_MAX} gaps already"
            )
        return {**configs, gaps.CONFIG: gaps.encode(named)}

    alter_configs(coordinator, topic, topic_id, change)


def committed(
    coordinator: Coordinator, readers: Iterable[tuple[str, TopicPartition]]
) -> dict[tuple[str, TopicPartition], int]:
    """Returns the offsets that these groups have committed in these partitions. If a group has
    committed no offset in a partition, or its node is invalid, the result has no entry for this
    group and partition."""
    found = {}
    for group, partition in readers:
        path = group_nodes.offset_path(group, partition)
        node = coordinator.get(path)
        if node is None:
            continue
        try:
            found[group, partition] = consumers.read_offset(path, node.data, 0).offset
        except DocumentRefused as error:
            _log.warning("committed_offset_refused", group=group, reason=str(error))
    return found


def alter_configs(
    coordinator: Coordinator,
    topic: str,
    topic_id: uuid.UUID,
    change: Callable[[Mapping[str, str]], Mapping[str, str]],
) -> dict[str, str]:
    """Changes a topic's settings, even if another program changes them at the same time. Returns
    the new settings.

    Raises TopicGone, and the exceptions that `change` raises.
    """
    topic_path, path = documents.topic_path(topic), documents.config_path(topic)
    for _ in range(_ATTEMPTS_MAX):
        node, found = coordinator.get(topic_path), coordinator.get(path)
        if node is None or documents.read_topic(topic_path, node.data)[0] != topic_id:
            raise TopicGone(f"Topic '{topic}' is not there any more.")
        known = {} if found is None else documents.read_configs(path, found.data)
        changed = dict(change(known))
        if changed == known:
            return changed
        content = documents.configs(changed)
        if found is None:
            done = coordinator.create_if_absent(path, content)
        else:
            done = coordinator.set_versioned(path, content, found.version)
        if done:
            return changed
    raise Unreachable(f"ZooKeeper's node {path} changes too often to be written")


def add_partitions(
    coordinator: Coordinator,
    topic: str,
    topic_id: uuid.UUID,
    partitions: Mapping[int, Sequence[int]],
) -> None:
    """Adds partitions to a topic. `partitions` maps the number of each partition, old or new, to
    its replicas. Raises TopicGone."""
    path = documents.topic_path(topic)
    content = documents.topic(topic_id, partitions)
    for _ in range(_ATTEMPTS_MAX):
        found = coordinator.get(path)
        if found is None or documents.read_topic(path, found.data)[0] != topic_id:
            raise TopicGone(f"Topic '{topic}' is not there any more.")
        known = documents.read_topic(path, found.data)[1]
        if all(number in known for number in partitions):
            return
        if coordinator.set_versioned(path, content, found.version):
            return
    raise Unreachable(f"ZooKeeper's node {path} changes too often to be written")


def mark_deletion(coordinator: Coordinator, topic: str, topic_id: uuid.UUID) -> None:
    """Creates the node in ZooKeeper that marks a topic as being deleted. A broker that has read
    this node no longer serves the topic. Raises TopicGone."""
    _still(coordinator, topic, topic_id)
    coordinator.create_if_absent(documents.deletion_path(topic), documents.deletion(topic_id))


def remove_topic(coordinator: Coordinator, topic: str) -> None:
    """Removes a topic that is marked as being deleted and whose partitions are already deleted.
    Also removes the offsets that groups have committed in the topic. If the answer is lost, the
    call can be repeated.

    If the node that marks the topic is missing, removes nothing: another broker has finished the
    deletion, and if there is a topic with this name now, it is a new topic.
    """
    mark = documents.deletion_path(topic)
    with answered(coordinator) as client:
        if client.retry(client.exists, mark) is None:
            return
        for _ in range(_ATTEMPTS_MAX):
            if client.retry(client.exists, mark) is None:
                return
            roots = stored_groups.offset_paths(coordinator, topic)
            roots += [documents.topic_path(topic), documents.config_path(topic)]
            nodes = [node for root in roots for node in _tree(client, root)]
            if _removed(client, mark, [*nodes, mark]):
                return
    raise Unreachable(f"ZooKeeper's nodes of topic {topic} change too often to be removed")


def _removed(client: Any, mark: str, paths: Sequence[str]) -> bool:
    """Removes the nodes in the given order, in transactions that fail if the node `mark` is gone.
    Returns whether all nodes are removed.
    """
    for at in range(0, len(paths), REMOVED_AT_ONCE):
        transaction = client.transaction()
        transaction.check(mark, -1)
        for path in paths[at : at + REMOVED_AT_ONCE]:
            transaction.delete(path)
        if any(isinstance(each, Exception) for each in transaction.commit()):
            return False
    return True


def _tree(client: Any, path: str) -> list[str]:
    try:
        children = client.retry(client.get_children, path)
    except NoNodeError:
        return []
    below = [each for name in children for each in _tree(client, f"{path}/{name}")]
    return [*below, path]


def _still(coordinator: Coordinator, topic: str, topic_id: uuid.UUID) -> None:
    path = documents.topic_path(topic)
    found = coordinator.get(path)
    if found is None or documents.read_topic(path, found.data)[0] != topic_id:
        raise TopicGone(f"Topic '{topic}' is not there any more.")


def lead_new(
    coordinator: Coordinator,
    topic: str,
    topic_id: uuid.UUID,
    partitions: Sequence[int],
    leader: int,
) -> dict[int, PartitionState]:
    """Writes the leader of a topic's new partitions. Returns the states of these partitions. Raises
    TopicGone."""
    _still(coordinator, topic, topic_id)
    wanted = PartitionState(leader, 0, (leader,))
    return {each: lead(coordinator, topic, each, wanted) for each in partitions}


def lead(
    coordinator: Coordinator, topic: str, partition: int, wanted: PartitionState
) -> PartitionState:
    """Writes the state of a partition, or creates it if `wanted.version` is -1. Returns the state
    that ZooKeeper has afterwards.

    The returned state differs from `wanted` if another broker has written the state meanwhile.
    Raises TopicGone.
    """
    path = documents.state_path(topic, partition)
    content = documents.state(wanted)
    if wanted.version < 0:
        coordinator.create_if_absent(path, content)
    else:
        coordinator.set_versioned(path, content, wanted.version)
    found = coordinator.get(path)
    if found is None:
        raise TopicGone(f"Topic '{topic}' is not there any more.")
    return documents.read_state(path, found.data, found.version)


def producer_id_block(coordinator: Coordinator, broker_id: int, above: int) -> tuple[int, int]:
    """Takes a new block of numbers for producer ids. They are higher than those of every earlier
    block, and higher than `above`. Returns the first and the last one. Raises StateRefused if all
    numbers are used up.
    """
    path = documents.PRODUCER_ID_BLOCK
    for _ in range(_ATTEMPTS_MAX):
        found = coordinator.get(path)
        last = -1 if found is None else documents.read_producer_id_block(path, found.data)
        first = max(last, above) + 1
        end = first + PRODUCER_IDS_A_BLOCK - 1
        if end >= NUMBERS:
            raise StateRefused(f"ZooKeeper's node {path} says that all producer ids are used up")
        content = documents.producer_id_block(broker_id, first, end)
        if found is None:
            done = coordinator.create_if_absent(path, content)
        else:
            done = coordinator.set_versioned(path, content, found.version)
        # If an earlier attempt took a block, but its answer was lost, the numbers of that block are
        # never used.
        if done:
            return first, end
    raise Unreachable(f"ZooKeeper's node {path} changes too often to be written")
