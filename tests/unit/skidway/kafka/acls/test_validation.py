"""Tests which rules are refused. Conformance tests ask Kafka the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skidway.kafka.acls.acl import (
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from skidway.kafka.acls.validation import refusal

TOPIC = ResourcePattern(ResourceType.TOPIC, "logs")
GOOD = Acl(TOPIC, "User:a", "*", Operation.READ, Permission.ALLOW)


@pytest.mark.parametrize(
    "acl",
    [
        GOOD,
        replace(GOOD, resource=replace(TOPIC, name="*")),
        replace(GOOD, resource=replace(TOPIC, pattern=PatternType.PREFIXED)),
        replace(GOOD, resource=ResourcePattern(ResourceType.CLUSTER, "kafka-cluster")),
        replace(GOOD, principal="Group:"),
        replace(GOOD, host="example.org"),
        replace(GOOD, host="192.0.2.0/24"),
        replace(GOOD, host="2001:db8::/32"),
        replace(GOOD, operation=Operation.ALL, permission=Permission.DENY),
        replace(GOOD, operation=Operation.CLUSTER_ACTION),
    ],
)
def test_good_rules_are_created(acl: Acl) -> None:
    """Rules that Kafka creates are not refused, even if their operation makes no sense for their
    resource, or their host is no address."""
    assert refusal(acl) is None


@pytest.mark.parametrize(
    ("acl", "names"),
    [
        (replace(GOOD, resource=replace(TOPIC, type=ResourceType.ANY)), "resource type"),
        (replace(GOOD, resource=replace(TOPIC, pattern=PatternType.ANY)), "pattern type"),
        (replace(GOOD, resource=replace(TOPIC, pattern=PatternType.MATCH)), "pattern type"),
        (replace(GOOD, resource=replace(TOPIC, name="")), "resource name"),
        (replace(GOOD, resource=replace(TOPIC, type=ResourceType.CLUSTER)), "kafka-cluster"),
        (replace(GOOD, principal="a"), "principal 'a'"),
        (replace(GOOD, host=""), "host"),
        (replace(GOOD, host="192.0.2.0/33"), "host '192.0.2.0/33'"),
        (replace(GOOD, host="2001:db8::/129"), "host '2001:db8::/129'"),
        (replace(GOOD, operation=Operation.ANY), "operation"),
        (replace(GOOD, permission=Permission.ANY), "permission"),
    ],
)
def test_a_refusal_names_what_is_wrong(acl: Acl, names: str) -> None:
    """Rules that Kafka does not create are refused, with a sentence that names what is wrong."""
    assert names in str(refusal(acl))
