"""Defines what a mutant is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change that breaks a rule.

    `broken` describes the broken rule in words. `file` is the path of the changed file, which
    contains the text `old` exactly once. The mutant replaces `old` by `new`. `tests` are the pytest
    ids of the mutant's tests, of which at least one must fail.
    """

    broken: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
