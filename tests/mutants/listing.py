"""Finds the mutants in the modules of tests/mutants/rules, and chooses a part of them."""

from __future__ import annotations

import hashlib
import pkgutil
from collections.abc import Sequence
from importlib import import_module

from mutants import rules
from mutants.mutant import Mutant


def packages() -> list[str]:
    """Returns the names of the modules in tests/mutants/rules, for example `agent_files`."""
    return sorted(module.name for module in pkgutil.iter_modules(rules.__path__))


def mutants_of(package: str) -> tuple[Mutant, ...]:
    """Returns the mutants in one module of tests/mutants/rules. `package` is the module's name."""
    found: tuple[Mutant, ...] = import_module(f"mutants.rules.{package}").MUTANTS
    return found


def drawn(mutants: Sequence[Mutant], parts: int, by: str) -> list[Mutant]:
    """Returns `len(mutants) / parts` mutants (rounded up). The text `by` decides which mutants are
    chosen."""

    def lot(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{by}\0{mutant.file}\0{mutant.broken}".encode()).digest()

    return sorted(mutants, key=lot)[: -(-len(mutants) // parts)]
