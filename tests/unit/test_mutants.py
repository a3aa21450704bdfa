"""The list of mutants is current: what each replaces is there, and so are the tests it names."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mutants.listing import drawn, mutants_of, packages
from mutants.mutant import Mutant

ROOT = Path(__file__).parents[2]
MUTANTS = [mutant for package in packages() for mutant in mutants_of(package)]


def _name(mutant: Mutant) -> str:
    return mutant.broken.replace(" ", "-")


@pytest.mark.parametrize("mutant", MUTANTS, ids=_name)
def test_a_mutant_changes_what_stands_there_once_and_is_a_program(mutant: Mutant) -> None:
    """The change of a rule that was written anew is written anew, too."""
    text = (ROOT / mutant.file).read_text()
    assert text.count(mutant.old) == 1
    assert mutant.new != mutant.old
    ast.parse(text.replace(mutant.old, mutant.new))


@pytest.mark.parametrize("mutant", MUTANTS, ids=_name)
def test_the_tests_that_must_notice_a_mutant_exist(mutant: Mutant) -> None:
    """A file, or a function in it."""
    assert mutant.tests
    for test in mutant.tests:
        file, _, name = test.partition("::")
        functions = {
            node.name
            for node in ast.walk(ast.parse((ROOT / file).read_text()))
            if isinstance(node, ast.FunctionDef)
        }
        assert not name or name.partition("[")[0] in functions


def test_no_two_mutants_are_one() -> None:
    """Neither by their words nor by what they do."""
    assert len({mutant.broken for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)


def test_a_share_is_drawn_by_a_text() -> None:
    """The same text draws the same, and over many texts each mutant has its turn."""
    assert drawn(MUTANTS, 100, "a") == drawn(MUTANTS, 100, "a")
    assert len(drawn(MUTANTS, 2, "a")) == -(-len(MUTANTS) // 2)
    assert sorted(map(_name, drawn(MUTANTS, 1, "a"))) == sorted(map(_name, MUTANTS))
    firsts = {drawn(MUTANTS, 100, str(number))[0] for number in range(20 * len(MUTANTS))}
    assert firsts == set(MUTANTS)
