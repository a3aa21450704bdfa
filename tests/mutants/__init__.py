"""Mutants: each is a change, written by hand, that breaks one rule of Skidway. A mutant names the
tests that must notice it.

`make mutants` puts one mutant after the other into a copy of the tree and runs the mutant's tests
there. The command fails if these tests pass or cannot run, or if the text that a mutant replaces
does not exist any more, so the list stays current. tests/unit/test_mutants.py checks the list
itself: for every promise (support.promises) there is a mutant that one of the promise's tests
notices.

    mutant     the fields of a mutant
    rules/     the mutants, a module for each package: what the rule is, and how it is broken
    listing    all mutants, or a share of them that a given text selects
    trial      a copy of the tree, and the trial of a mutant in it
    __main__   the command

A mutant is not a typing error. It is code that somebody might write without understanding the rule:
two transactions instead of one, a time read too late, a missing check, a reversed order.
"""
