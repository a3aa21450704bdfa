"""Tests which rules a filter selects. Conformance tests ask Kafka the same."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.kafka.acls.acl import (
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from skidway.kafka.acls.filters import AclFilter
from skidway.kafka.acls.patterns import is_about
from support.acls import NAMES, Draws

EVERY = AclFilter()


def exactly(acl: Acl) -> AclFilter:
    """Returns the filter with the values of a rule."""
    of = acl.resource
    return AclFilter(
        of.type, of.name, of.pattern, acl.principal, acl.host, acl.operation, acl.permission
    )


@given(st.randoms(use_true_random=False))
def test_a_filter_compares_each_field(random: Random) -> None:
    """A filter selects a rule if each of its fields is the rule's, or is ANY or None. EVERY selects
    all rules."""
    acls = Draws(random).acls(20)
    for acl in acls:
        filter = exactly(acl)
        assert [each for each in acls if filter.matches(each)] == [acl]
        for field in fields(AclFilter):
            name = field.name
            wider = replace(filter, **{name: getattr(EVERY, name)})
            for each in acls:
                rest = replace(exactly(each), **{name: getattr(filter, name)})
                assert wider.matches(each) == (rest == filter)
    assert all(EVERY.matches(each) for each in acls)


@given(st.randoms(use_true_random=False))
def test_match_selects_the_rules_about_a_resource(random: Random) -> None:
    """With MATCH, a filter selects the rules that are about a resource. Other than when Kafka
    decides, LITERAL `*` is then about names that begin with `*`, too."""
    for acl, name in product(Draws(random).acls(20), NAMES):
        of = acl.resource
        every = of.name == "*" and of.pattern is PatternType.LITERAL
        expected = every or is_about(of, of.type, name)
        assert AclFilter(of.type, name, PatternType.MATCH).matches(acl) == expected


@pytest.mark.parametrize(
    ("name", "pattern", "selects"),
    [
        ("logs", PatternType.LITERAL, True),
        ("log", PatternType.LITERAL, False),
        ("log", PatternType.PREFIXED, True),
        ("logs", PatternType.PREFIXED, True),
        ("logs2", PatternType.PREFIXED, False),
        ("*", PatternType.LITERAL, True),
        ("*", PatternType.PREFIXED, False),
    ],
)
def test_match_knows_prefixes_and_all_names(name: str, pattern: PatternType, selects: bool) -> None:
    """With MATCH, a filter for the resource `logs` selects rules for this name, for a prefix of it
    and for all names."""
    resource = ResourcePattern(ResourceType.TOPIC, name, pattern)
    acl = Acl(resource, "User:a", "*", Operation.READ, Permission.ALLOW)
    assert AclFilter(name="logs", pattern=PatternType.MATCH).matches(acl) is selects


@pytest.mark.parametrize("pattern", PatternType)
def test_without_a_name_the_pattern_selects(pattern: PatternType) -> None:
    """Without a name, ANY and MATCH select both kinds of patterns, and others only their own."""
    for own in (PatternType.LITERAL, PatternType.PREFIXED):
        resource = ResourcePattern(ResourceType.TOPIC, "a", own)
        acl = Acl(resource, "User:a", "*", Operation.READ, Permission.ALLOW)
        selects = pattern in (PatternType.ANY, PatternType.MATCH, own)
        assert AclFilter(pattern=pattern).matches(acl) is selects
