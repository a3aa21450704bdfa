"""One mutant."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change that breaks a rule.

    broken: what is wrong with it, in words. file: below the root; `old` stands there exactly once
    and becomes `new`. tests: pytest's ids; at least one of them must fail.
    """

    broken: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
