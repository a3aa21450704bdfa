"""Mutants: each breaks one rule of Skidway by hand, and names the tests that must notice.

`make mutants` puts one mutant after the other into a copy of the tree and runs its tests there. It
fails when they pass, when they cannot run, and when the text that a mutant replaces is not there
any more, so the list stays current. tests/unit/test_mutants.py checks the list itself: every
promise (support.promises) has a mutant that one of its tests notices.

    mutant     the fields of a mutant
    rules/     the mutants, a module for each package: what the rule is, and how it is broken
    listing    all mutants, or a share of them that a text draws
    trial      a copy of the tree, and how a mutant fared in it
    __main__   the command

A mutant is not a typing error: it is code that somebody might write who has not understood the rule
(two transactions in place of one, a time taken too late, a missing check, a reversed order).
"""
