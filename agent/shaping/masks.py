"""Replaces parts of texts: what kinds recognize, and what patterns of a source find."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from skidway.agent.shaping.kinds import KINDS

MASKED: Final = "[masked]"
"""The text that stands in place of what a pattern finds."""


def mask_kinds(texts: pa.StringArray, kinds: Iterable[str]) -> pa.StringArray:
    """The texts without what these kinds recognize. The kinds are applied in the order of KINDS."""
    wanted = set(kinds)
    for name, kind in KINDS.items():
        if name in wanted:
            texts = kind.mask(texts)
    return texts


def mask_matching(texts: pa.StringArray, pattern: str) -> pa.StringArray:
    """The texts without what a pattern (RE2) finds."""
    return pc.replace_substring_regex(texts, pattern, MASKED)
