"""Finds what rules say about a resource, without a look at each rule.

Rules name a resource itself, a prefix of its name, or all resources (LITERAL `*`). So the prefixes
of a name that have the length of a rule's prefix are looked up, and no others.

What rules say is a number (`bits`): bit n if a rule allows operation n, bit DENIED + n if a rule
denies operation n.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from skidway.kafka.acls.acl import (
    ANY_NAME,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)

DENIED: Final = 16
"""The number of the bit that stands for a denied operation, less the operation's number."""
ALL_OPERATIONS: Final = sum(1 << each for each in Operation if each is not Operation.ANY)


class Patterns:
    """What some rules say about the resources of one type."""

    __slots__ = ("_by_name", "_by_prefix", "_lengths")

    def __init__(self, acls: Iterable[Acl]) -> None:
        """acls: rules about resources of one type."""
        self._by_name: dict[str, int] = {}
        self._by_prefix: dict[str, int] = {}
        for acl in acls:
            is_prefix = acl.resource.pattern is PatternType.PREFIXED
            of = self._by_prefix if is_prefix else self._by_name
            of[acl.resource.name] = (
                of.get(acl.resource.name, 0) | _BITS[acl.permission, acl.operation]
            )
        self._lengths = tuple({len(prefix) for prefix in self._by_prefix})

    def bits(self, name: str) -> int:
        """Returns what the rules say about a resource; 0 if no rule is about it."""
        found = self._by_name.get(name, 0)
        if _has_any_name(name):
            found |= self._by_name.get(ANY_NAME, 0)
        for length in self._lengths:
            found |= self._by_prefix.get(name[:length], 0)
        return found


def by_type(acls: Iterable[Acl]) -> dict[ResourceType, Patterns]:
    """Returns the patterns of each resource type that rules name."""
    sorted_acls: dict[ResourceType, list[Acl]] = {}
    for acl in acls:
        sorted_acls.setdefault(acl.resource.type, []).append(acl)
    return {each: Patterns(of_type) for each, of_type in sorted_acls.items()}


def is_about(resource: ResourcePattern, type: ResourceType, name: str) -> bool:
    """Returns whether a rule with this pattern is about a resource."""
    if resource.type is not type:
        return False
    if resource.pattern is PatternType.PREFIXED:
        return name.startswith(resource.name)
    return resource.name == name or (resource.name == ANY_NAME and _has_any_name(name))


def speaks_of(acl: Acl, operation: Operation) -> bool:
    """Returns whether a rule allows or denies an operation."""
    bit = operation + (DENIED if acl.permission is Permission.DENY else 0)
    return _BITS[acl.permission, acl.operation] >> bit & 1 == 1


def allow_any(acls: Iterable[Acl]) -> bool:
    """Returns whether rules about one operation and one type allow the operation on any resource of
    the type. As in Authorizer.authorizeByResourceType, an allowed name or prefix counts unless
    rules deny this name, a prefix of it, or all names."""
    names: dict[tuple[Permission, PatternType], set[str]] = {
        (permission, pattern): set() for permission in Permission for pattern in PatternType
    }
    for acl in acls:
        names[acl.permission, acl.resource.pattern].add(acl.resource.name)
    denied = names[Permission.DENY, PatternType.LITERAL]
    denied_prefixes = names[Permission.DENY, PatternType.PREFIXED]
    allowed = names[Permission.ALLOW, PatternType.LITERAL]
    if ANY_NAME in denied or ANY_NAME in allowed:
        return ANY_NAME not in denied
    lengths = {len(prefix) for prefix in denied_prefixes}
    return any(
        all(name[:length] not in denied_prefixes for length in lengths)
        for name in (allowed - denied) | names[Permission.ALLOW, PatternType.PREFIXED]
    )


def _has_any_name(name: str) -> bool:
    """Returns whether rules for all resources (LITERAL `*`) are about a resource with this name. In
    Kafka they are not if the name only begins with `*`, as names of groups and transactional ids
    may: StandardAuthorizerData.checkSection then takes the rule's `*` for a part of a name."""
    return not name.startswith(ANY_NAME)


def _bits(permission: Permission, operation: Operation) -> int:
    bits = ALL_OPERATIONS if operation is Operation.ALL else 1 << operation
    if permission is Permission.DENY:
        return bits << DENIED
    return bits | sum(1 << each for each, by in _IMPLYING.items() if operation in by)


_IMPLYING: Final[Mapping[Operation, frozenset[Operation]]] = {
    Operation.DESCRIBE: frozenset(
        {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
"""A rule that allows one of these operations also allows the operation before the colon. A rule
that denies one of them does not deny it."""
_BITS: Final = {
    (permission, operation): _bits(permission, operation)
    for permission in (Permission.DENY, Permission.ALLOW)
    for operation in Operation
}
"""What a rule with this permission and this operation says."""
