"""How much of an unknown log is looked at, and how much of it must have a form."""

from __future__ import annotations

from typing import Final

LOOKED_AT_MAX: Final = 200
"""At most this many lines of the log are looked at."""

SHARE_LEAST: Final = 0.8
"""A log counts as values with a delimiter, as pairs, or as JSON objects after a prefix, if at least
this share of its lines has that form."""
