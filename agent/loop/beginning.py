"""What a starting agent reads from its state, which states it refuses, and what its first
transaction writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from skidway import invocation
from skidway.agent.accounts.mail import Mail
from skidway.agent.cluster.destinations import Cluster, Destination
from skidway.agent.recipe import Recipe
from skidway.agent.state.changes import Changes
from skidway.agent.state.database import StateDatabase
from skidway.agent.values.intents import Intent
from skidway.agent.values.schemas import KnownSchema
from skidway.agent.values.tracked import FileState, TrackedFile
from skidway.errors import StateRefused
from skidway.kafka.types import TopicPartition


def check_cluster(
    state: StateDatabase,
    cluster: Cluster,
    destinations: Sequence[Destination],
    open_topics: set[str],
) -> None:
    """If lines on their way to a topic are not acknowledged yet, checks that they can still arrive:
    raises StateRefused if the agent now sends to another cluster, or if the topic was deleted and
    made again.
    """
    if not open_topics:
        return
    if state.cluster_id and cluster.id and state.cluster_id != cluster.id:
        raise StateRefused(
            f"the state has lines on their way to cluster {state.cluster_id}, and "
            f"bootstrap.servers leads to cluster {cluster.id}; deliver them to the former first"
        )
    known = state.topics()
    for destination in destinations:
        for source in (destination.data, destination.rejected):
            before = known.get(source.topic)
            if before is None or destination.data.topic not in open_topics:
                continue
            if before.topic_id and source.topic_id and before.topic_id != source.topic_id:
                raise StateRefused(
                    f"topic {source.topic} was made again (its id was {before.topic_id}, is "
                    f"{source.topic_id}) while lines were on their way to it; an operator has to "
                    f"decide what became of them ({_give_up(destination.data.topic)})"
                )


def _give_up(topic: str) -> str:
    return invocation.of_this_process().command("agent state give-up", topic)


def open_topics(intents: Iterable[Intent], recipes: Mapping[bytes, Recipe]) -> set[str]:
    """Returns the data topics to which the state's intents send records (not the topics for
    rejected lines). Leaves out intents that an operator gave up."""
    named = (recipes.get(intent.recipe) for intent in intents)
    return {recipe.data.name for recipe in named if recipe is not None}


def first_changes(
    state: StateDatabase,
    cluster: Cluster,
    destinations: Sequence[Destination],
    known: Sequence[KnownSchema],
    now_ms: int,
) -> Changes:
    """Returns the first changes that a starting agent writes to its state. These changes set the
    name and id of the cluster. For each new topic, they set the present time as the time at which
    the agent first started with the topic. They store the schemas in `known`. They also delete
    losses and recipes that are not needed any more.
    """
    changes = Changes()
    changes.forget_recipes()
    changes.forget_losses()
    if sorted(known) != sorted(state.schemas()):
        changes.put_schemas(known)
    for topic in {each.data.topic for each in destinations} - state.since().keys():
        changes.put_since(topic, now_ms)
    if (state.cluster, state.cluster_id) != (cluster.name, cluster.id):
        changes.put_meta("cluster", cluster.name)
        changes.put_meta("cluster_id", cluster.id)
    return changes


def without_floor(
    state: StateDatabase, destinations: Iterable[Destination]
) -> list[TopicPartition]:
    """Returns the partitions for which the state has no floor. A partition's floor is the offset
    from which the agent reads the partition when it looks for records that may have arrived. Before
    a starting agent sends anything, it asks the cluster for the log end offsets of the partitions
    without a floor. These offsets become the floors.

    If the state has intents that the checkpoint has not passed, the list is empty. Records of these
    intents may be before the log end offsets, so the agent must read the partitions from their
    beginning.
    """
    if state.intents():
        return []
    known = _floors(state, destinations)
    return [
        TopicPartition(topic.name, partition)
        for each in destinations
        for topic in (each.recipe.data, each.recipe.rejected)
        for partition in range(topic.partitions)
        if (topic.name, partition) not in known
    ]


def floors(
    state: StateDatabase,
    destinations: Sequence[Destination],
    ends: Mapping[TopicPartition, int],
    changes: Changes,
) -> dict[TopicPartition, int]:
    """Returns the floor of each partition that has one. The log end offsets in `ends` become
    floors, and are added to `changes`. When the agent looks for records of intents, it reads each
    partition from the partition's floor on, or from offset 0 if the partition has no floor.
    """
    ids = _topic_ids(destinations)
    changes.put_floors((tp, ids[tp.topic], end) for tp, end in ends.items())
    return {**_floors(state, destinations), **ends}


def _floors(state: StateDatabase, destinations: Iterable[Destination]) -> dict[TopicPartition, int]:
    """Returns the floors from the state. (A partition's floor is the lowest offset that the agent
    may still have to read.) Leaves out topics that were deleted and made again after their floors
    were stored."""
    ids = _topic_ids(destinations)
    return {
        tp: floor
        for tp, topic_id, floor in state.floors()
        if ids.get(tp.topic, topic_id) == topic_id
    }


def _topic_ids(destinations: Iterable[Destination]) -> dict[str, str]:
    sources = (source for each in destinations for source in (each.data, each.rejected))
    return {source.topic: source.topic_id for source in sources}


def since(state: StateDatabase) -> dict[str, int]:
    """Returns, for each topic, the time (ms) of its last seal, which says that all lines up to this
    time are counted. If a topic has no seal, returns the time at which the agent first started with
    the topic. Files that changed after this time may be unknown to the agent.
    """
    found = state.since()
    for name, topic in state.topics().items():
        if topic.sealed_until is not None:
            found[name] = max(found.get(name, 0), topic.sealed_until)
    return found


def unannounced(files: Iterable[TrackedFile], mail: Mail) -> list[TrackedFile]:
    """Returns the open files that must be announced to the audit once more, because their
    announcement is neither acknowledged by the brokers nor in the state's outbox."""
    waiting = mail.announced_files()
    return [
        tracked
        for tracked in files
        if tracked.state is FileState.OPEN and not tracked.announced and tracked.file not in waiting
    ]
