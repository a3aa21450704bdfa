"""A byte range that the agent has chosen at random in a log file. The agent makes the range's
records a second time, for a sample (see agent/sampling)."""

from __future__ import annotations

from dataclasses import dataclass

from skidway.agent.values.intents import Intent


@dataclass(frozen=True, slots=True)
class Drawn:
    """An intent that the checkpoint has passed, and whose records brokers have acknowledged.

    period: the beginning (ms) of the period in which the checkpoint passed it. period_ms: the
    length of the period. rank: the range's lot (a hash that looks random); the ranges with the
    lowest lots of a period are chosen. count: how many ranges were chosen in the period; 0 as long
    as the period has not ended. number: the range's number among the chosen ranges, from 1; 0 as
    long as the period has not ended.
    """

    period: int
    period_ms: int
    rank: int
    intent: Intent
    count: int = 0
    number: int = 0

    @property
    def order(self) -> tuple[int, int, int, int]:
        """The key by which the ranges of a state are sorted: the oldest period first, and in each
        period the lowest lot (`rank`) first.
        """
        return self.period, self.rank, self.intent.file, self.intent.first
