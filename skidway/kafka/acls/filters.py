"""Filters select rules, for DescribeAcls and DeleteAcls (KIP-140, KIP-290)."""

from __future__ import annotations

from skidway.dataclass import dataclass
from skidway.kafka.acls.acl import (
    ANY_NAME,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Selects the rules that agree in each field. None and ANY agree with everything. A filter
    compares texts as they are: the principal `User:*` selects rules for all users, and no others.

    pattern: with ANY and with the pattern of the rule, the rule must have this name. With MATCH,
    the rule must apply to the resource with this name, which LITERAL `*` and prefixes of the name
    do, too.
    """

    type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches(self, acl: Acl) -> bool:
        """Returns whether this filter selects a rule."""
        return (
            self.selects_resource(acl.resource)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def selects_resource(self, resource: ResourcePattern) -> bool:
        """Returns whether this filter may select rules with a resource pattern."""
        if self.type not in (ResourceType.ANY, resource.type):
            return False
        if self.pattern not in (PatternType.ANY, PatternType.MATCH, resource.pattern):
            return False
        if self.name is None:
            return True
        if self.pattern is not PatternType.MATCH:
            return self.name == resource.name
        if resource.pattern is PatternType.PREFIXED:
            return self.name.startswith(resource.name)
        return resource.name in (self.name, ANY_NAME)
