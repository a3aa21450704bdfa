"""Tests that rules are found by the name of a resource."""

from __future__ import annotations

from functools import reduce
from operator import or_
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from skidway.kafka.acls.acl import Operation, Permission
from skidway.kafka.acls.patterns import ALL_OPERATIONS, DENIED, by_type, is_about, speaks_of
from support.acls import NAMES, OPERATIONS, TYPES, Draws


@given(st.randoms(use_true_random=False))
def test_all_rules_about_a_resource_are_found(random: Random) -> None:
    """What rules say about a resource is what each of them says that is about the resource."""
    acls = Draws(random).acls(20)
    patterns = by_type(acls)
    for type, name in [(type, name) for type in TYPES for name in (*NAMES, "")]:
        about = [acl for acl in acls if is_about(acl.resource, type, name)]
        bits = {
            operation + (DENIED if acl.permission is Permission.DENY else 0)
            for acl in about
            for operation in OPERATIONS
            if speaks_of(acl, operation)
        }
        expected = reduce(or_, (1 << bit for bit in bits), 0)
        assert (patterns[type].bits(name) if type in patterns else 0) == expected


def test_all_operations_leave_room_for_those_that_are_denied() -> None:
    """The bits of allowed and of denied operations do not overlap."""
    assert ALL_OPERATIONS < 1 << DENIED
    assert sum(1 << each for each in range(2, max(Operation) + 1)) == ALL_OPERATIONS
