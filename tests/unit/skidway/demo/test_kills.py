from __future__ import annotations

from skidway.demo import kills
from skidway.demo.states import AgentState, CounterState
from skidway.kafka.types import TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
KILLED = AgentState(
    acknowledged=300,
    intents=2,
    positions={1: 100, 2: 200},
    promised={1: 150, 2: 230},
    acknowledged_offsets={A0: 9, A1: 4},
)


def test_a_kill_of_the_agent_tells_what_was_promised_and_what_became_of_it() -> None:
    """Before an agent sends bytes of a file, it stores an intent, which says which bytes it is
    going to send. The demo's sentence about the kill says how many bytes of these intents were not
    acknowledged at the time of the kill, and how many the agent has declared lost or uncertain
    since. Losses from before the kill are not counted."""
    kill = kills.of_agent(KILLED, AgentState(positions={1: 500, 2: 230}), 2.0)
    assert "80 bytes of 2 files were promised in 2 intents" in kill.sentence
    assert kill.sentence.endswith("(0 bytes lost, 0 uncertain). That took 2.0 s.")
    before = AgentState(lost=7, promised={1: 150}, positions={1: 100})
    kill = kills.of_agent(before, AgentState(lost=10, uncertain=2, positions={1: 140}), 1.0)
    assert "(3 bytes lost, 2 uncertain)" in kill.sentence


def test_a_kill_of_the_broker_tells_whether_its_log_has_what_it_acknowledged() -> None:
    """The sentence about the broker's kill says how many acknowledged records its log has, or how
    many it lacks."""
    assert "held all 15 acknowledged records" in kills.of_broker(KILLED, {A0: 10, A1: 90}, 1.0).cost
    assert "lacks 8 acknowledged records" in kills.of_broker(KILLED, {A0: 7}, 1.0).cost


def test_a_kill_of_the_counter_tells_where_it_counted_on() -> None:
    """A counter is the audit's program that counts records. The sentence about its kill says how
    many records it had counted, and whether it counted on in the same epoch."""
    killed = CounterState(3, {A0: 10, A1: 20})
    ends = {A0: 15, A1: 20}
    kill = kills.of_counter(killed, ends, CounterState(3, {A0: 99, A1: 20}), 1.0)
    assert "30 records were counted for good, 5 were not" in kill.sentence
    assert "in the same epoch" in kill.sentence
    assert "a NEW epoch" in kills.of_counter(killed, ends, CounterState(4, ends), 1.0).cost


def test_a_kill_of_the_loader_tells_where_the_next_load_began() -> None:
    """The sentence about the loader's kill says whether the next load began where the last manifest
    ends. Partitions that no manifest has named yet, as those of files that a later run tails too,
    are not compared."""
    new = TopicPartition("app-logs", 0)
    good = kills.of_loader({"a": 5}, {A0: 10}, {A0: 10, A1: 0, new: 4_000}, 5, 1.0)
    assert "loading 5 records of 1 topics" in good.sentence
    assert "at the very offsets where the last manifest ends and committed 5 rows" in good.sentence
    moved = kills.of_loader({"a": 5}, {A0: 10}, {A0: 12}, 5, 1.0)
    assert "ELSEWHERE than the last manifest ends, in 1 partitions" in moved.sentence
