"""Computes how many lines have reached each tier (stage of the pipeline), and at which rate.

The live table shows these numbers, and the summary shows the highest rates.

This module does no I/O.

The writer and the agent count bytes, the brokers and the counter count records, and the loader
counts rows. This module converts bytes to lines and back with the mean length of the lines written
so far. A tier may have more lines than were written, because lines may be sent twice after a kill.
The loader drops these duplicates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

WRITTEN, AGENT, BROKER, MIRROR, COUNTED, ROWS = TIERS = (
    "written", "agent", "broker", "mirror", "counted", "hdfs",
)  # fmt: skip
MEAN_OVER_S: Final = 2.0
MB: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Filled:
    """One tier at one moment. `lines` is the number of lines that have reached the tier. `behind`
    is the number of written lines that have not reached the tier yet.
    """

    tier: str
    lines: int
    bytes: float
    bytes_per_s: float
    behind: int


@dataclass(slots=True)
class Tiers:
    """Measures how many lines and bytes all tiers have, again and again, and keeps those
    measurements that are needed to compute the rates."""

    _samples: list[tuple[float, Mapping[str, float]]] = field(default_factory=list)
    _fastest: dict[str, float] = field(default_factory=dict)

    def take(
        self,
        now_s: float,
        written_lines: int,
        written_bytes: int,
        settled_bytes: int,
        records: Mapping[str, int],
    ) -> list[Filled]:
        """Adds a measurement. Returns how many lines and bytes each tier has now, and the tier's
        rate. `records` has the number of records in each tier after the agent."""
        mean = written_bytes / written_lines if written_lines else 0.0
        lines = {
            WRITTEN: written_lines,
            AGENT: round(settled_bytes / mean) if mean else 0,
            **{tier: records.get(tier, 0) for tier in TIERS[2:]},
        }
        sizes = {tier: count * mean for tier, count in lines.items()}
        sizes |= {WRITTEN: float(written_bytes), AGENT: float(settled_bytes)}
        self._samples.append((now_s, sizes))
        while len(self._samples) > 2 and now_s - self._samples[1][0] >= MEAN_OVER_S:
            del self._samples[0]
        first_s, first = self._samples[0]
        rates = {
            tier: (sizes[tier] - first[tier]) / (now_s - first_s) if now_s > first_s else 0.0
            for tier in TIERS
        }
        if now_s - first_s >= MEAN_OVER_S:
            for tier, rate in rates.items():
                self._fastest[tier] = max(rate, self._fastest.get(tier, 0.0))
        return [
            Filled(tier, lines[tier], sizes[tier], rates[tier], max(written_lines - lines[tier], 0))
            for tier in TIERS
        ]

    def fastest(self, tier: str) -> float:
        """Returns the tier's highest mean rate over MEAN_OVER_S or longer, in bytes per second."""
        return self._fastest.get(tier, 0.0)


def table(filled: list[Filled], away: Mapping[str, str]) -> list[str]:
    """Returns the lines of the live table. `away` contains the tiers whose programs do not run now,
    each with a word that the table shows, such as "killed"."""
    lines = [f"  {'tier':<10}{'lines':>12}{'MB':>9}{'MB/s':>8}{'lines behind':>15}"]
    for each in filled:
        behind = f"{each.behind:,}" if each.tier != WRITTEN else ""
        lines.append(
            f"  {each.tier:<10}{each.lines:>12,}{each.bytes / MB:>9.1f}"
            f"{each.bytes_per_s / MB:>8.1f}{behind:>15}  {away.get(each.tier, '')}".rstrip()
        )
    return lines


def line(filled: list[Filled]) -> str:
    """Returns one line of text, for output to a file. It says how many lines each tier has, and how
    fast the writer writes."""
    counts = ", ".join(f"{each.tier} {each.lines:,}" for each in filled)
    return f"{counts}; {filled[0].bytes_per_s / MB:.1f} MB/s"
