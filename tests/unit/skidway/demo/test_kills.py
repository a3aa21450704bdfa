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


def test_agent_that_has_passed_its_promises_has_lost_nothing() -> None:
    """Before an agent sends bytes of a file, it stores an intent, which says which bytes it is
    going to send. The agent's position in the file advances when the bytes are acknowledged. A
    killed agent lost nothing if, after its restart, its positions have passed all intents that it
    had stored before the kill. The demo's sentence about the kill says how many bytes of these
    intents were not acknowledged at the time of the kill."""
    now = AgentState(positions={1: 500, 2: 230})
    kill = kills.of_agent(KILLED, now, 2.0)
    assert kill.lost == 0
    assert "80 bytes of 2 files were promised in 2 intents" in kill.sentence
    assert kill.sentence.endswith("Lost: nothing, after 2.0 s.")


def test_agent_that_lost_or_left_something_says_so() -> None:
    """After an agent's kill, two kinds of bytes count as losses: those that the agent has declared
    lost or uncertain since the kill, and those of intents that its positions never passed. Losses
    from before the kill are not counted."""
    before = AgentState(lost=7, promised={1: 150}, positions={1: 100})
    kill = kills.of_agent(before, AgentState(lost=10, uncertain=2, positions={1: 140}), 1.0)
    assert kill.lost == 3 + 2 + 10
    assert "NOT made good: 15" in kill.sentence


def test_broker_that_kept_what_it_acknowledged_has_lost_nothing() -> None:
    """A killed broker lost nothing if, in each partition, the last acknowledged offset is lower
    than the log end."""
    kill = kills.of_broker(KILLED, {A0: 10, A1: 90}, KILLED, 1.0)
    assert kill.lost == 0
    assert "held all 15 acknowledged records" in kill.sentence


def test_broker_whose_log_is_shorter_has_lost_records() -> None:
    """After a broker's kill, each acknowledged offset that the log does not have counts as one lost
    record."""
    kill = kills.of_broker(KILLED, {A0: 7}, KILLED, 1.0)
    assert kill.lost == 3 + 5
    assert "lacks 8 acknowledged records" in kill.sentence


def test_counter_counts_on_from_its_offsets() -> None:
    """A counter is the audit's program that counts records. A killed counter lost nothing if it
    continues in the same epoch, from the offsets of its last transaction."""
    killed = CounterState(3, {A0: 10, A1: 20})
    kill = kills.of_counter(killed, {A0: 15, A1: 20}, CounterState(3, {A0: 99, A1: 20}), 1.0)
    assert kill.lost == 0
    assert "30 records were counted for good, 5 were not" in kill.sentence


def test_counter_that_starts_over_or_stops_short_is_a_loss() -> None:
    """If a killed counter (the audit's program that counts records) begins a new epoch, it counts
    records twice. If it stops before the log end, it omits records. Both faults are shown as
    losses."""
    killed = CounterState(3, {A0: 10})
    assert kills.of_counter(killed, {A0: 15}, CounterState(4, {A0: 15}), 1.0).lost
    assert kills.of_counter(killed, {A0: 15}, CounterState(3, {A0: 14}), 1.0).lost


def test_loader_begins_where_the_last_manifest_ends() -> None:
    """A killed load lost nothing if the next load begins where the last manifest ends. At any other
    offset, rows would be doubled or missing, which counts as a loss."""
    good = kills.of_loader({"a": 5}, {A0: 10}, {A0: 10, A1: 0}, 5, 1.0)
    assert good.lost == 0
    assert "loading 5 records of 1 topics" in good.sentence
    assert kills.of_loader({"a": 5}, {A0: 10}, {A0: 12}, 5, 1.0).lost == 2
