"""What the broker counts: plain numbers, which the loop increases and `metrics` publishes."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Counts:
    """Counts of the work that the broker has done since its start."""

    batches: int = 0
    messages: int = 0
    appended_bytes: int = 0
    fetches: int = 0
    fetched_bytes: int = 0
    retention_checks: int = 0
    hold_lost_records: int = 0
    partitions_held: int = 0
    answers_failed: int = 0
    mirrors_failed: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    uncreated: dict[str, int] = field(default_factory=dict)

    def count_refused(self, reason: str) -> None:
        """Counts a refused batch under its reason. There are only a few different reasons, so this
        needs little memory."""
        self.refused[reason] = self.refused.get(reason, 0) + 1

    def count_uncreated(self, reason: str) -> None:
        """Counts a topic that a Metadata request would have created, but for a bound."""
        self.uncreated[reason] = self.uncreated.get(reason, 0) + 1
