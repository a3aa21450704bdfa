"""The real agent runs under random schedules in which changed settings move files from one topic to
another.

The model is like that of test_agent, but simpler: the host destroys nothing. In this model, new
settings send the lines of the log to another topic. The agent gets the new settings at a reload, or
at a start after a kill.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from skidway.agent.settings import AgentSettings, SourceSettings
from support.agent_schedule import Schedule, run_traced, source
from support.agent_world import World, settings
from support.promises import promise
from support.randomness import Seeds

PATTERNS = (r"(?P<line>[^x].*)", r"(?P<line>[^y].*)")
TOPICS = ("logs", "others", "third")


class Moving(Schedule):
    """One random run, in which the topic of a log changes again and again."""

    steps = 160

    def __init__(self, seed: int, partitioning: str, *, reloads: bool) -> None:
        first = settings(source(PATTERNS[0], partitioning))
        super().__init__(seed, partitioning, frozenset(), World(first), kills=4)
        self.reloads = reloads

    def actions(self) -> Iterator[tuple[Any, float]]:
        yield self.write, 10
        yield self.rotate, 1
        yield self.pass_time, 3
        if any(self.world.brokers.late.values()):
            yield self.arrive_late, 3
        reload = [(self.reload, 1.5)] if self.reloads else []
        yield from self.of_agent(*reload)

    def write(self) -> None:
        text = self.new_cell() + self.random.choice(["", "\n", "\n", "\r\n"])
        self.append(text)
        self.say(f"write {text!r}")

    def reload(self) -> None:
        """Reloads the running agent with settings that may name another topic for the log."""
        self.world.reload(self.drawn())
        self.say(f"reload {[each.topic for each in self.world.settings.sources]}")

    def start(self) -> None:
        if self.random.random() < 0.5:
            self.world.settings = self.drawn()
        for each in self.world.settings.sources:
            self.world.brokers.partitions.setdefault(each.topic, 1)
            self.world.brokers.partitions.setdefault(each.rejected_topic, 1)
        super().start()
        self.say(f"start {[each.topic for each in self.world.settings.sources]}")

    def drawn(self) -> AgentSettings:
        """Returns settings that send the log to a randomly chosen topic, and that may have another
        source before or after the log's source."""
        own = replace(
            source(self.random.choice(PATTERNS), self.partitioning),
            topic=self.random.choice(TOPICS),
        )
        other = SourceSettings(topic="fourth", paths=["/other/*"])
        return settings(*self.random.choice([[own], [other, own], [own, other]]))

    def read_message(self, message: Any) -> None:
        """Ignores the message. The messages are checked only at the end: `finish` compares the sums
        of their counts with the rows."""

    def finish(self) -> None:
        self.settle()
        rows, straddles, sums = self.load()
        assert not self.world.losses()
        assert not straddles
        assert dict(rows) == dict.fromkeys(self.written, 1)
        assert self.agent_sums() == sums, "the equation does not hold"
        assert not any(each["pending"] for each in self.world.ledger())


@promise("2 new settings")
@pytest.mark.parametrize("partitioning", ["file", "spread"])
@pytest.mark.parametrize("reloads", [True, False])
def test_files_that_move_between_topics_lose_and_double_nothing(
    partitioning: str, reloads: bool, seeds: Seeds
) -> None:
    """Reloads and restarts change again and again to which topic a log's lines go. Each line is in
    one topic once, and the agent's counts are equal to the counts of the rows."""
    for seed in seeds(range(7000, 7008)):
        run_traced(Moving(seed, partitioning, reloads=reloads), seed)
