"""A mutant is a change, written by hand, that breaks one rule of Skidway. Each mutant lists the
tests that must notice it.

`make mutants` tries the mutants one by one. For each mutant, it makes the change in a copy of the
source tree, runs the mutant's tests there, and undoes the change. The command fails if these tests
pass or cannot run. It also fails if the text that a mutant replaces no longer exists, so the list
stays up to date. The list itself is checked by tests/unit/test_mutants.py. For every promise in
support.promises, there must be a mutant that one of the tests of this promise notices.

    mutant     the fields of a mutant
    rules/     the mutants, in modules by package and subject
    listing    lists all mutants, or a part of them that a given text selects
    trial      tries a mutant in a copy of the source tree
    __main__   the command

A mutant is not a typing error. It is code that a programmer might write without understanding the
rule. Examples are two transactions instead of one, a time that is read too late, a missing check,
and a reversed order.
"""
