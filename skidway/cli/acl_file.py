"""The file of `skidway acls apply`: the rules that a cluster is to have, and the changes that this
takes.

    acls:
    - principal: User:agent-shop
      allow: [READ, WRITE, DESCRIBE, DESCRIBE_CONFIGS, CREATE]
      topics: [shop, shop.rejected]
    - principal: User:collector
      allow: [READ, DESCRIBE]
      topics: [_skidway_audit]
      topic.prefixes: [dc1.]
      hosts: [10.0.0.7]

An entry stands for a rule for each of its operations, resources and hosts. A file cannot have rules
of kinds that Skidway's programs do not need: about delegation tokens and users, for principals that
are no users. Such rules of a cluster stay as they are.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

from skidway import settings
from skidway.errors import ConfigurationRefused
from skidway.kafka.acls.acl import (
    ANY_NAME,
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from skidway.settings import setting

CLUSTER: Final = ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME)
TYPES: Final = (
    ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID,
)  # fmt: skip
OPERATIONS: Final = {each: (Operation.ALL, *sorted(SUPPORTED_OPERATIONS[each])) for each in TYPES}
WORDS: Final = tuple(sorted({each.name for some in OPERATIONS.values() for each in some}))
"""The names of all these operations."""


@dataclass(frozen=True, kw_only=True)
class AclEntry:
    """What one principal may do, or must not do."""

    principal: str = setting("principal", help="User:NAME, or User:* for every user.")
    allow: list[str] = setting("allow", [], choices=WORDS, help="Operations that are allowed.")
    deny: list[str] = setting("deny", [], choices=WORDS, help="Operations that are forbidden.")
    hosts: list[str] = setting("hosts", [ANY_NAME], at_least=1, help="From where; * is everywhere.")
    topics: list[str] = setting("topics", [], help="Names of topics; * is every topic.")
    topic_prefixes: list[str] = setting("topic.prefixes", [], help="How names of topics begin.")
    groups: list[str] = setting("groups", [], help="Names of groups; * is every group.")
    group_prefixes: list[str] = setting("group.prefixes", [], help="How names of groups begin.")
    transactional_ids: list[str] = setting("transactional.ids", [], help="* is every id.")
    transactional_id_prefixes: list[str] = setting(
        "transactional.id.prefixes", [], help="How transactional ids begin."
    )
    cluster: bool = setting("cluster", False, help="Whether it is about the cluster itself.")

    def check(self) -> None:
        """Raises ConfigurationRefused."""
        check_principal(self.principal)
        if bool(self.allow) == bool(self.deny):
            raise ConfigurationRefused("an entry has operations in either allow or deny")
        for host in self.hosts:
            check_host(host)
        resources = list(self._resources())
        if not resources:
            raise ConfigurationRefused("an entry names no topics, groups or other resources")
        for resource, name in product(resources, (*self.allow, *self.deny)):
            check_resource(resource)
            check_operation(resource, Operation[name])

    def rules(self) -> Iterator[Acl]:
        """Yields the entry's rules."""
        permission = Permission.ALLOW if self.allow else Permission.DENY
        names = (*self.allow, *self.deny)
        for resource, host, name in product(self._resources(), self.hosts, names):
            yield Acl(resource, self.principal, host, Operation[name], permission)

    def _resources(self) -> Iterator[ResourcePattern]:
        literal, prefixed = PatternType.LITERAL, PatternType.PREFIXED
        for type_, pattern, names in (
            (ResourceType.TOPIC, literal, self.topics),
            (ResourceType.TOPIC, prefixed, self.topic_prefixes),
            (ResourceType.GROUP, literal, self.groups),
            (ResourceType.GROUP, prefixed, self.group_prefixes),
            (ResourceType.TRANSACTIONAL_ID, literal, self.transactional_ids),
            (ResourceType.TRANSACTIONAL_ID, prefixed, self.transactional_id_prefixes),
        ):
            yield from (ResourcePattern(type_, name, pattern) for name in names)
        if self.cluster:
            yield CLUSTER


@dataclass(frozen=True, kw_only=True)
class AclFile:
    """The whole file. An empty one is a mistake: nobody but superusers could do anything."""

    acls: list[AclEntry] = setting("acls", at_least=1, help="What each principal may do.")


def read(path: Path) -> frozenset[Acl]:
    """Returns the rules of a file. Raises ConfigurationRefused with one sentence that names file
    and line."""
    return frozenset(acl for entry in settings.load(AclFile, path).acls for acl in entry.rules())


def plan(current: Collection[Acl], wanted: Collection[Acl]) -> tuple[list[Acl], list[Acl]]:
    """Returns the rules to add to the cluster's and those to remove, so that it has the wanted
    ones. Rules that a file cannot have stay."""
    to_add = sorted(set(wanted) - set(current), key=order)
    to_remove = sorted((x for x in set(current) - set(wanted) if is_of_a_file(x)), key=order)
    return to_add, to_remove


def is_of_a_file(acl: Acl) -> bool:
    """Returns whether a file can have the rule."""
    is_named = acl.resource.type in OPERATIONS and acl.principal.startswith("User:")
    is_cluster = acl.resource.type is ResourceType.CLUSTER
    return is_named and (not is_cluster or acl.resource == CLUSTER)


def order(acl: Acl) -> tuple[str | int, ...]:
    """Returns the key by which rules are sorted for people."""
    type_, name, pattern = acl.resource.type, acl.resource.name, acl.resource.pattern
    return acl.principal, type_, name, pattern, -acl.permission, acl.operation, acl.host


def check_principal(text: str) -> None:
    """Raises ConfigurationRefused if the text is not User:NAME."""
    if not text.startswith("User:") or text == "User:":
        raise ConfigurationRefused(f"the principal {text!r} is not User:NAME")


def check_host(text: str) -> None:
    """Raises ConfigurationRefused if the text is neither *, an address nor a network: Kafka
    compares addresses, so the rule would mean nothing."""
    if text != ANY_NAME:
        try:
            ipaddress.ip_network(text, strict=False)
        except ValueError:
            why = f"the host {text!r} is neither *, an address nor a network such as 10.0.0.0/8"
            raise ConfigurationRefused(why) from None


def check_resource(resource: ResourcePattern) -> None:
    """Raises ConfigurationRefused if no resource can have such a name."""
    if not resource.name:
        raise ConfigurationRefused("the name of a resource is empty")
    is_every = resource.name == ANY_NAME and resource.pattern is PatternType.LITERAL
    if resource.type is ResourceType.TOPIC and "*" in resource.name and not is_every:
        raise ConfigurationRefused(
            f"no topic has the name {resource.name!r}; for all that begin with a text, give the"
            " text without * as a prefix"
        )


def check_operation(resource: ResourcePattern, operation: Operation) -> None:
    """Raises ConfigurationRefused if the operation does not exist for this type of resource."""
    known = OPERATIONS[resource.type]
    if operation not in known:
        raise ConfigurationRefused(
            f"{operation.name} does not exist for a {resource.type.name}, only"
            f" {', '.join(each.name for each in known)}"
        )
