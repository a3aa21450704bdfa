"""Finds, for `guess`, the fields with texts in which a mask (a rule of `shape` that replaces
secrets) recognizes a secret.

`guess` only says which rules would mask the secrets; people decide whether to use the rules.
`guess` does not look for IP addresses, because many logs are of no use without them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from skidway.agent.shaping.kinds import KINDS, is_card
from skidway.agent.validation.excerpts import excerpt
from skidway.agent.validation.preview import SHOWN_CHARACTERS_MAX

LOOKED_AT_MAX: Final = 200
"""`guess` looks for secrets in at most this many rows."""

CARDS_LEAST: Final = 0.5
"""If at least this share of the numbers with the length and the prefix of a card has a correct
check digit, these numbers are probably cards. Of all other numbers, one in ten has a correct check
digit by chance.
"""

BEFORE_MASK: Final = 40
"""How many characters before a masked secret `guess` shows."""

_KINDS: Final = tuple(kind for kind in KINDS if kind != "ips")
_NUMBERS: Final = re.compile(r"(?<![\w.-])[0-9](?:[ -]?[0-9]){12,18}(?![\w-]|\.[0-9])")
_ISSUERS: Final = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}"
    r"|35\d{14}|6(?:011|5\d\d|4[4-9]\d)\d{12}|62\d{14,17}"
)
"""Matches numbers that have the length and the first digits of a card network's numbers."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """What `secrets` found in rows. rules: for each field with secrets, a rule for the setting
    `shape` that masks these secrets. examples: for each rule, the first text that it changes, from
    shortly before the mask on, so that people see whether it is a secret. notes: sentences about
    numbers that are probably not cards.
    """

    rules: list[str]
    examples: list[str]
    notes: list[str]


def secrets(rows: Sequence[Mapping[str, Any]]) -> Secrets:
    """Finds the fields whose texts contain secrets that masks recognize."""
    some = rows[:LOOKED_AT_MAX]
    found = Secrets([], [], [])
    for field in dict.fromkeys(name for row in some for name in row):
        values = [row.get(field) for row in some]
        texts = pa.array([each for each in values if isinstance(each, str)], pa.string())
        kinds = [kind for kind in _KINDS if not KINDS[kind].mask(texts).equals(texts)]
        if "cards" in kinds and (note := _about_numbers(field, texts.to_pylist())) is not None:
            kinds.remove("cards")
            found.notes.append(note)
        if kinds:
            found.rules.append(f"mask {field} for {', '.join(kinds)}")
            found.examples.append(_first_masked(texts, kinds))
    return found


def _first_masked(texts: pa.StringArray, kinds: Sequence[str]) -> str:
    masked = texts
    for kind in kinds:
        masked = KINDS[kind].mask(masked)
    pairs = zip(texts.to_pylist(), masked.to_pylist(), strict=True)
    before, after = next((one, other) for one, other in pairs if one != other)
    letters = enumerate(zip(before, after, strict=False))
    begin = next((n for n, (one, other) in letters if one != other), len(before))
    return excerpt(after[max(begin - BEFORE_MASK, 0) :], SHOWN_CHARACTERS_MAX)


def _about_numbers(field: str, texts: Sequence[str]) -> str | None:
    """Returns a sentence that says why the numbers in texts are probably not cards; None if they
    may be cards. Numbers without the prefix and length of a card network do not count: however many
    they are, a field with a few cards is still a field with cards.
    """
    numbers = [re.sub("[ -]", "", each) for text in texts for each in _NUMBERS.findall(text)]
    of_networks = [each for each in numbers if _ISSUERS.fullmatch(each)]
    good = sum(map(is_card, of_networks))
    if not numbers or (good and good >= CARDS_LEAST * len(of_networks)):
        return None
    return (
        f"The field {field} has {len(numbers):,} long numbers, of which "
        f"{sum(map(is_card, numbers)):,} have the check digit of a card, as by chance; if they are "
        f"cards, `mask {field} for cards` masks them."
    )
