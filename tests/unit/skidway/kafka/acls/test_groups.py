"""Tests which rules of a principal apply to a host."""

from __future__ import annotations

import pytest

from skidway.kafka.acls.acl import Acl, Operation, Permission, ResourcePattern, ResourceType
from skidway.kafka.acls.groups import PrincipalRules

HOSTS = [
    "10.0.0.0/8", "10.0.0.1", "10.0.0.0/24", "2001:db8::/32", "2001:db8:0:0:0:0:0:1",
    "2001:db8::1", "10.0.0.0/33", "*",
]  # fmt: skip


def rule(host: str, operation: Operation = Operation.READ) -> Acl:
    resource = ResourcePattern(ResourceType.TOPIC, "logs")
    return Acl(resource, "User:me", host, operation, Permission.ALLOW)


@pytest.mark.parametrize(
    ("host", "apply"),
    [
        ("10.0.0.1", ["*", "10.0.0.1", "10.0.0.0/8", "10.0.0.0/24"]),
        ("::ffff:10.0.0.1", ["*", "10.0.0.1", "10.0.0.0/8", "10.0.0.0/24"]),
        ("10.1.0.1", ["*", "10.0.0.0/8"]),
        ("11.0.0.1", ["*"]),
        ("2001:db8::1", ["*", "2001:db8:0:0:0:0:0:1", "2001:db8::/32"]),
        ("2001:db8::2%eth0", ["*", "2001:db8::/32"]),
        ("somewhere", ["*"]),
    ],
)
def test_rules_apply_to_hosts_and_ranges(host: str, apply: list[str]) -> None:
    """To a client apply the rules for its host, for ranges with its host, and for all hosts, in
    the same order at each call. A rule whose host has another form than Java's applies to no
    client."""
    rules = PrincipalRules(map(rule, HOSTS))
    assert [[acl.host for acl in group.acls] for group in rules.at(host)] == [[x] for x in apply]
    assert rules.at(host) == rules.at(host)


def test_rules_with_the_same_host_are_one_group() -> None:
    """Rules with the same host are together, however many there are."""
    acls = [rule("*", operation) for operation in (Operation.READ, Operation.WRITE)]
    (group,) = PrincipalRules([*acls, rule("10.0.0.1")]).at("10.0.0.2")
    assert group.acls == acls
    assert [*group.patterns] == [ResourceType.TOPIC]
