"""Replaces parts of texts: the parts that kinds recognize, and the parts that a source's patterns
match.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from skidway.agent.shaping.kinds import KINDS

MASKED: Final = "[masked]"
"""The text that the rule `mask FIELD matching` puts in place of what its pattern matches."""


def mask_kinds(texts: pa.StringArray, kinds: Iterable[str]) -> pa.StringArray:
    """Puts a fixed text in place of everything that these kinds recognize in the texts. The kinds
    are always applied in the same order, that of KINDS.
    """
    wanted = set(kinds)
    for name, kind in KINDS.items():
        if name in wanted:
            texts = kind.mask(texts)
    return texts


def mask_matching(texts: pa.StringArray, pattern: str) -> pa.StringArray:
    """Puts MASKED in place of everything that a pattern (RE2) matches in the texts."""
    return pc.replace_substring_regex(texts, pattern, MASKED)
