"""Mutants of the rules by which an idle agent returns memory to the operating system."""

from mutants.mutant import Mutant

MEMORY = "tests/unit/agent/test_memory.py::"

MUTANTS = (
    Mutant(
        "pages that the process has changed are given back, too",
        "agent/memory.py",
        """ and line.split()[1] == "0" and _is_library(mapping):
""",
        """ and _is_library(mapping):
""",
        (MEMORY + "test_only_unchanged_pages_of_libraries_are_given_back",),
    ),
    Mutant(
        "pages that the process may change are given back, too",
        "agent/memory.py",
        """    return "w" not in rights and rights.endswith("p") and""",
        """    return rights.endswith("p") and""",
        (MEMORY + "test_only_unchanged_pages_of_libraries_are_given_back",),
    ),
)
