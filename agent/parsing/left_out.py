"""Reasons for which a line is left out instead of rejected. Such a line is counted as filtered by
the rule of this name, because the agent must account for every line."""

from __future__ import annotations

from typing import Final

CSV_HEADER: Final = "csv header"
"""A header line."""
BLANK: Final = "blank"
"""A blank line between lines of a format that has no blank lines."""
LEFT_OUT: Final = (CSV_HEADER, BLANK)
