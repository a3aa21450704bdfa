"""The agent stores the last acknowledged offset of each partition in its state, so that it still
knows these offsets after a restart."""

from skidway.agent.state.database import StateDatabase
from skidway.audit.topic.messages import Seal
from skidway.kafka.types import TopicPartition
from support.agent_world import World, raw, settings
from support.promises import promise

A = "/log/a.log"
FIRST, REJECTED = TopicPartition("logs", 0), TopicPartition("logs.rejected", 0)


@promise("2 checkpoint")
def test_the_last_acknowledged_offset_is_durable_with_the_checkpoint() -> None:
    """One transaction stores a file's position and the last acknowledged offsets up to this
    position, both of the data topic and of the rejected topic."""
    world = World(settings(raw()))
    world.files.append(A, b"1\n2\n\xff\n")
    world.start()
    for _ in range(10):
        world.tick()
        state = StateDatabase(world.connection)
        positions = [file.position for file in state.files()]
        offsets = state.offsets()
        assert (positions == [6]) == (offsets == {FIRST: 1, REJECTED: 0})
    assert offsets == {FIRST: 1, REJECTED: 0}
    world.files.append(A, b"3\n")
    world.settle(5)
    assert StateDatabase(world.connection).offsets()[FIRST] == 2


def test_seals_name_the_offsets_also_after_a_start() -> None:
    """A seal says that all earlier lines are counted, and contains the last acknowledged offset of
    each partition. After a restart, the agent's seals contain these offsets even before the agent
    sends any record."""
    world = World(settings(raw()))
    world.files.append(A, b"1\n2\n")
    world.start()
    world.settle(5)
    assert world.of(Seal)[-1].topics[0].offsets == ((0, 1),)
    world.kill()
    world.published.clear()
    world.start()
    world.settle(5)
    assert {seal.topics[0].offsets for seal in world.of(Seal)} == {((0, 1),)}
