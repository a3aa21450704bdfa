"""Makes a sentence for each kill -9: what the program was doing, and what became of this work.

The sentences tell what was seen, and judge nothing: the audit, the recount and the comparison with
the writer's own count say whether anything is missing. This module does no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skidway.demo.states import AgentState, CounterState
from skidway.kafka.types import TopicPartition

Offsets = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill and its result. `met` says what the program was doing, and `cost` says what became
    of this work. `seconds` is the time from the kill until the interrupted work was done.
    """

    program: str
    met: str
    cost: str
    seconds: float

    @property
    def sentence(self) -> str:
        return f"{self.met}; {self.cost}. That took {self.seconds:.1f} s."


def of_agent(killed: AgentState, now: AgentState, seconds: float) -> Kill:
    """Describes a kill of the agent. `killed` is the agent's state on disk after the kill. `now` is
    the agent's state after the agent has sent the interrupted bytes."""
    flying = killed.in_flight
    met = (
        f"{sum(flying.values()):,} bytes of {len(flying)} files were promised in {killed.intents} "
        "intents and not acknowledged"
    )
    lost, uncertain = now.lost - killed.lost, now.uncertain - killed.uncertain
    cost = f"they were sent again and acknowledged ({lost:,} bytes lost, {uncertain:,} uncertain)"
    return Kill("agent", met, cost, seconds)


def of_broker(killed: AgentState, log_ends: Offsets, seconds: float) -> Kill:
    """Describes a kill of the broker. `killed` is the agent's state at the time of the kill; it
    says which offsets the broker had acknowledged. `log_ends` are the broker's log ends after its
    restart.
    """
    acknowledged = killed.acknowledged_offsets
    flying = sum(killed.in_flight.values())
    missing = sum(max(last + 1 - log_ends.get(tp, 0), 0) for tp, last in acknowledged.items())
    kept = sum(last + 1 for last in acknowledged.values()) - missing
    met = f"{flying:,} bytes from the agent were on their way to it"
    cost = (
        f"its log held all {kept:,} acknowledged records, the rest was taken when it was back"
        if not missing
        else f"its log lacks {missing:,} acknowledged records"
    )
    return Kill("broker-dc1", met, cost, seconds)


def of_counter(killed: CounterState, ends: Offsets, now: CounterState, seconds: float) -> Kill:
    """Describes a kill of the counter. `ends` are the broker's log ends at the time of the kill.
    `now` is the counter's state once the counter has reached these log ends."""
    waiting = sum(max(end - killed.next_offsets.get(tp, 0), 0) for tp, end in ends.items())
    done = sum(killed.next_offsets.values())
    met = f"{done:,} records were counted for good, {waiting:,} were not"
    same = "the same epoch" if now.epoch == killed.epoch else "a NEW epoch"
    cost = f"it counted on from those offsets in {same}"
    return Kill("count-dc1", met, cost, seconds)


def of_loader(
    staged: Mapping[str, int], committed: Offsets, began: Offsets, rows: int, seconds: float
) -> Kill:
    """Describes a kill of the loader. `staged` is the number of records, by topic, that were in the
    offline cluster at the time of the kill and were not loaded yet. `committed` are the end offsets
    in the manifests after the kill. `began` are the offsets at which the next load began. `rows` is
    the number of rows that the next load committed. A partition of which nothing was committed is
    not compared: its first load begins where its log begins."""
    met = f"it was loading {sum(staged.values()):,} records of {len(staged)} topics"
    moved = [tp for tp, first in began.items() if first != committed.get(tp, first)]
    where = (
        f"ELSEWHERE than the last manifest ends, in {len(moved)} partitions"
        if moved
        else "at the very offsets where the last manifest ends"
    )
    cost = f"the next load began {where} and committed {rows:,} rows"
    return Kill("loader", met, cost, seconds)
