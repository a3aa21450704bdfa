"""The fields of a mutant."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change that breaks a rule.

    broken: what the change breaks, in words. file: a path below the root; the file contains `old`
    exactly once, and the mutant replaces it by `new`. tests: pytest's ids; at least one of them
    must fail.
    """

    broken: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
