"""Makes a sentence for each kill -9: what the program was doing, and what was lost.

This module does no I/O. `Kill.lost` says how much was lost in the kill, and is 0 if nothing was
lost. What it counts depends on the killed program. Agent: lost bytes. Broker: acknowledged records
that the log lacks, and bytes that the agent lost. Counter: skipped records, and 1 for a new epoch.
Loader: skipped or repeated offsets.
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
    lost: int
    seconds: float

    @property
    def sentence(self) -> str:
        end = f"NOT made good: {self.lost:,}" if self.lost else "Lost: nothing"
        return f"{self.met}; {self.cost}. {end}, after {self.seconds:.1f} s."


def of_agent(killed: AgentState, now: AgentState, seconds: float) -> Kill:
    """Describes a kill of the agent. `killed` is the agent's state on disk after the kill. `now` is
    the agent's state after the agent has sent the interrupted bytes."""
    flying = killed.in_flight
    met = (
        f"{sum(flying.values()):,} bytes of {len(flying)} files were promised in {killed.intents} "
        "intents and not acknowledged"
    )
    lost, uncertain = now.lost - killed.lost, now.uncertain - killed.uncertain
    unpassed = sum(
        max(end - now.positions.get(file, 0), 0) for file, end in killed.promised.items()
    )
    cost = f"they were sent again and acknowledged ({lost:,} bytes lost, {uncertain:,} uncertain)"
    return Kill("agent", met, cost, lost + uncertain + unpassed, seconds)


def of_broker(killed: AgentState, log_ends: Offsets, now: AgentState, seconds: float) -> Kill:
    """Describes a kill of the broker. `killed` is the agent's state at the time of the kill; it
    says which offsets the broker had acknowledged. `log_ends` are the broker's log ends after its
    restart. `now` is the agent's state after the agent has sent the interrupted bytes.
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
    failed = now.lost - killed.lost + now.uncertain - killed.uncertain
    return Kill("broker-dc1", met, cost, missing + failed, seconds)


def of_counter(killed: CounterState, ends: Offsets, now: CounterState, seconds: float) -> Kill:
    """Describes a kill of the counter. `ends` are the broker's log ends at the time of the kill.
    `now` is the counter's state once the counter has reached these log ends."""
    waiting = sum(max(end - killed.next_offsets.get(tp, 0), 0) for tp, end in ends.items())
    done = sum(killed.next_offsets.values())
    met = f"{done:,} records were counted for good, {waiting:,} were not"
    missing = sum(max(end - now.next_offsets.get(tp, 0), 0) for tp, end in ends.items())
    same = "the same epoch" if now.epoch == killed.epoch else "a NEW epoch"
    cost = f"it counted on from those offsets in {same}"
    return Kill("count-dc1", met, cost, missing + int(now.epoch != killed.epoch), seconds)


def of_loader(
    staged: Mapping[str, int], committed: Offsets, began: Offsets, rows: int, seconds: float
) -> Kill:
    """Describes a kill of the loader. `staged` is the number of records, by topic, that were in the
    offline cluster at the time of the kill and were not loaded yet. `committed` are the end offsets
    in the manifests after the kill. `began` are the offsets at which the next load began. `rows` is
    the number of rows that the next load committed."""
    met = f"it was loading {sum(staged.values()):,} records of {len(staged)} topics"
    wrong = sum(abs(first - committed.get(tp, 0)) for tp, first in began.items())
    where = "at the very offsets where the last manifest ends" if not wrong else "ELSEWHERE"
    cost = f"no manifest names any of it, the next load began {where} and committed {rows:,} rows"
    return Kill("loader", met, cost, wrong, seconds)
