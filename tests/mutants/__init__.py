"""Mutants: each a rule of Skidway broken by hand, and the tests that must notice.

`make mutants` puts one after the other into a copy of the tree and runs its tests there. It fails
when they pass, when they cannot run, and when the text that a mutant replaces is not there any
more, so the list is kept current. tests/unit/test_mutants.py checks the list itself: every
promise (support.promises) has a mutant that one of its tests notices.

    mutant     what one is
    rules/     the mutants, a module for each package: what the rule is, and how it is broken
    listing    all of them, and a share of them that a text draws
    trial      a copy of the tree, and what became of a mutant in it
    __main__   the command

A mutant is no typing error: it is what somebody might write who has not understood the rule (two
transactions for one, a moment taken too late, a check left out, an order turned round).
"""
