"""The list of mutants is up to date. A mutant is a fault that is put into the code on purpose, and
certain tests must notice it. The code that each mutant replaces exists, and so do the tests that
must notice the mutant."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from mutants.listing import drawn, mutants_of, packages
from mutants.mutant import Mutant
from support import promises_page

ROOT = Path(__file__).parents[2]
MUTANTS = [mutant for package in packages() for mutant in mutants_of(package)]


def _name(mutant: Mutant) -> str:
    return f"{mutant.broken} ({mutant.file})"


@cache
def _functions(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("package", packages())
def test_a_mutant_changes_what_stands_there_once_and_is_a_program(package: str) -> None:
    """A mutant is a fault that is put into the code on purpose. The text that a mutant replaces
    occurs exactly once in the mutant's file, and the changed file is valid Python. So whoever
    changes such a text in the code must change its mutants, too."""
    stale = []
    for mutant in mutants_of(package):
        text = (ROOT / mutant.file).read_text()
        if text.count(mutant.old) != 1 or mutant.new == mutant.old:
            stale.append(_name(mutant))
        ast.parse(text.replace(mutant.old, mutant.new))
    assert stale == []


def test_the_tests_that_must_notice_a_mutant_exist() -> None:
    """Each mutant (a fault that is put into the code on purpose) names at least one test file, or
    one test of a test file, that must notice the mutant. The file exists, and if one of its tests
    is named, so does this test."""
    for mutant in MUTANTS:
        assert mutant.tests, _name(mutant)
        for test in mutant.tests:
            file, _, name = test.partition("::")
            assert (ROOT / file).is_file(), _name(mutant)
            assert not name or name.partition("[")[0] in _functions(file), _name(mutant)


def test_no_two_mutants_are_one() -> None:
    """No two mutants (faults that are put into the code on purpose) have the same description or
    make the same change."""
    assert len({mutant.broken for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)


def test_a_share_is_drawn_by_a_text() -> None:
    """A run with only some of the mutants draws them at random, with a text as the seed. The same
    text always draws the same mutants. Over many texts every mutant is drawn."""
    assert drawn(MUTANTS, 100, "a") == drawn(MUTANTS, 100, "a")
    assert len(drawn(MUTANTS, 2, "a")) == -(-len(MUTANTS) // 2)
    assert sorted(map(_name, drawn(MUTANTS, 1, "a"))) == sorted(map(_name, MUTANTS))
    few = MUTANTS[:40]
    firsts = {drawn(few, 40, str(number))[0] for number in range(20 * len(few))}
    assert firsts == set(few)


def test_every_rule_has_a_mutant() -> None:
    """For each promise of docs/delivery.md there is a mutant (a fault that is put into the code on
    purpose) that at least one of the promise's tests must notice. Promises that only end-to-end
    tests check are left out."""
    rows = promises_page.kept().items()
    assert len(rows) > 80
    noticing = {test.partition("[")[0] for mutant in MUTANTS for test in mutant.tests}
    rows = [(name, tests) for name, tests in rows if not all("/e2e/" in test for test in tests)]
    without = [name for name, tests in rows if not noticing.intersection(tests)]
    assert without == []
