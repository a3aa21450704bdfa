"""All rules of a cluster, and what they allow to a client, as Kafka's StandardAuthorizer decides
(KIP-11, KIP-290, KIP-679, KIP-1276).

A rule applies to a client if it names the client's principal or all users, and the client's host, a
range with this host, or all hosts. Of the rules that apply and are about a resource, one that
denies an operation wins. Otherwise the operation needs a rule that allows it. If no rule of anybody
is about the resource, `allow.everyone.if.no.acl.found` decides. Super users may do everything.

`Rules` never changes. A change of the cluster's rules makes another `Rules`, so the broker need not
drop any decision. What is kept here is kept only because it is asked often:

    client      its view. All clients to whom the same rules apply have one view
    view        the operations that it allows on a resource

Both have limits. If a limit is reached, all is dropped, and decided again when somebody asks. Only
one thread may use a `Rules` and its views.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum, auto
from typing import Final
from weakref import WeakValueDictionary

from skidway.dataclass import dataclass
from skidway.kafka.acls.acl import (
    ANY_USER,
    SUPPORTED_OPERATIONS,
    Acl,
    Operation,
    Permission,
    ResourceType,
)
from skidway.kafka.acls.groups import Group, PrincipalRules
from skidway.kafka.acls.patterns import (
    ALL_OPERATIONS,
    DENIED,
    Patterns,
    allow_any,
    by_type,
    is_about,
    speaks_of,
)

CLIENTS_MAX: Final = 20_000
"""For how many clients `Rules` keeps the view."""
DECISIONS_MAX: Final = 100_000
"""For how many resources all views of one `Rules` together keep the decision. With names of 20
characters this needs 11 MB of memory, with the longest names 35 MB."""
NAME_LENGTH_MAX: Final = 249
"""The decisions for resources with longer names are not kept. Topics have no longer names, but
somebody may ask for any group."""


class Reason(Enum):
    """What decides, by the names in the audit log of Kafka's authorizer."""

    MATCHING_ACL = auto()
    SUPER_USER = auto()
    DEFAULT_ALLOW = auto()
    """No rule is about the resource, and `allow.everyone.if.no.acl.found` is set."""
    DEFAULT_DENY = auto()
    """No rule that applies to the client allows the operation."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether an operation is allowed, and why. rule: a rule that decides; None if no rule does."""

    is_allowed: bool
    reason: Reason
    rule: Acl | None = None


class View:
    """What the clients may do to whom the same rules apply. groups: these rules."""

    __slots__ = ("__weakref__", "_any", "_groups", "_operations")

    def __init__(self, groups: tuple[Group, ...], shared: _Shared) -> None:
        self._groups = groups
        self._operations = _OperationsByType(groups, shared)
        self._any: dict[tuple[Operation, ResourceType], bool] = {}

    def may(self, operation: Operation, type: ResourceType, name: str) -> bool:
        """Returns whether an operation on a resource is allowed."""
        return self._operations[type][name] >> operation & 1 == 1

    def may_any(self, operation: Operation, type: ResourceType) -> bool:
        """Returns whether an operation is allowed on at least one resource of a type, that exists
        or not (Authorizer.authorizeByResourceType, KIP-679)."""
        found = self._any.get((operation, type))
        if found is None:
            found = self.may(operation, type, _ANY_RESOURCE) or allow_any(
                acl
                for acl in self._acls()
                if acl.resource.type is type and acl.operation in (operation, Operation.ALL)
            )
            self._any[operation, type] = found
        return found

    def operations(self, type: ResourceType, name: str) -> int:
        """Returns the operations on a resource that are allowed and that make sense for its type:
        bit n stands for operation n, as in the fields `..._authorized_operations` (KIP-430)."""
        return self._operations[type][name] & _SUPPORTED[type]

    def why(self, operation: Operation, type: ResourceType, name: str) -> Decision:
        """Returns what decides whether an operation on a resource is allowed."""
        rules = [
            acl
            for acl in self._acls()
            if is_about(acl.resource, type, name) and speaks_of(acl, operation)
        ]
        for permission in (Permission.DENY, Permission.ALLOW):
            for acl in rules:
                if acl.permission is permission:
                    return Decision(permission is Permission.ALLOW, Reason.MATCHING_ACL, acl)
        if self.may(operation, type, name):
            return Decision(True, Reason.DEFAULT_ALLOW)
        return Decision(False, Reason.DEFAULT_DENY)

    def forget(self) -> None:
        """Drops all decisions that this view keeps."""
        for each in self._operations.values():
            each.clear()

    def _acls(self) -> Iterator[Acl]:
        for group in self._groups:
            yield from group.acls


class _Everything(View):
    """Allows everything, whatever the rules are."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__((), _Shared((), False))

    def may(self, operation: Operation, type: ResourceType, name: str) -> bool:
        return True

    def may_any(self, operation: Operation, type: ResourceType) -> bool:
        return True

    def operations(self, type: ResourceType, name: str) -> int:
        return _SUPPORTED[type]

    def why(self, operation: Operation, type: ResourceType, name: str) -> Decision:
        return Decision(True, Reason.SUPER_USER)


class Rules:
    """All rules of a cluster, and the settings that decide with them.

    acls: rules that `skidway.kafka.acls.validation.refusal` does not refuse, in any order. A rule
    that is given twice counts once. super_users: principals, as in the setting `super.users`.
    """

    def __init__(
        self,
        acls: Iterable[Acl],
        super_users: Collection[str] = (),
        allow_everyone_if_no_acl_found: bool = False,
    ) -> None:
        self.acls: Final = tuple(acls)
        self._super_users = frozenset(super_users)
        self._acls_of: dict[str, list[Acl]] = {}
        for acl in self.acls:
            self._acls_of.setdefault(acl.principal, []).append(acl)
        self._of_principals: dict[str, PrincipalRules] = {}
        self._shared = _Shared(self.acls, allow_everyone_if_no_acl_found)
        self._clients: dict[tuple[str, str], View] = {}

    def view(self, principal: str, host: str) -> View:
        """Returns what a client may do. All clients to whom the same rules apply get the same
        object, and all super users get EVERYTHING. principal: `User:NAME`. host: the client's
        address, as sockets give it."""
        found = self._clients.get((principal, host))
        if found is None:
            found = self._view(principal, host)
            if len(self._clients) >= CLIENTS_MAX:
                self._clients.clear()
            self._clients[principal, host] = found
        return found

    def _view(self, principal: str, host: str) -> View:
        if principal in self._super_users:
            return EVERYTHING
        groups: list[Group] = []
        for each in dict.fromkeys((principal, ANY_USER)):
            if each in self._acls_of:
                groups += self._of_principal(each).at(host)
        return self._shared.view(tuple(groups))

    def _of_principal(self, principal: str) -> PrincipalRules:
        found = self._of_principals.get(principal)
        if found is None:
            found = self._of_principals[principal] = PrincipalRules(self._acls_of[principal])
        return found


class _OperationsByType(dict[ResourceType, "_Operations"]):
    """The operations that a view allows. Most clients ask for one or two types, so the dictionary
    for a type is made when it is needed."""

    __slots__ = ("_groups", "_shared")

    def __init__(self, groups: tuple[Group, ...], shared: _Shared) -> None:
        self._groups = groups
        self._shared = shared

    def __missing__(self, type: ResourceType) -> _Operations:
        made = self[type] = _Operations(type, self._groups, self._shared)
        return made


class _Operations(dict[str, int]):
    """The operations that a view allows on each resource of one type. Decides when it is asked for
    a name for the first time."""

    __slots__ = ("_patterns", "_shared", "_type")

    def __init__(self, type: ResourceType, groups: Iterable[Group], shared: _Shared) -> None:
        self._type = type
        self._patterns = [each.patterns[type] for each in groups if type in each.patterns]
        self._shared = shared

    def __missing__(self, name: str) -> int:
        bits = 0
        for each in self._patterns:
            bits |= each.bits(name)
        operations = bits & ALL_OPERATIONS & ~(bits >> DENIED)
        if not bits and self._shared.allows_unnamed(self._type, name):
            operations = ALL_OPERATIONS
        if len(name) <= NAME_LENGTH_MAX:
            self._shared.make_room()
            self[name] = operations
        return operations


class _Shared:
    """What all views of one `Rules` have in common."""

    __slots__ = ("_acls", "_allow_everyone", "_decision_count", "_patterns", "_views")

    def __init__(self, acls: Iterable[Acl], allow_everyone: bool) -> None:
        self._acls = acls
        self._allow_everyone = allow_everyone
        self._patterns: Mapping[ResourceType, Patterns] | None = None
        self._views: WeakValueDictionary[tuple[Group, ...], View] = WeakValueDictionary()
        self._decision_count = 0

    def view(self, groups: tuple[Group, ...]) -> View:
        """Returns the one view of the clients to whom these groups of rules apply."""
        found = self._views.get(groups)
        if found is None:
            found = self._views[groups] = View(groups, self)
        return found

    def allows_unnamed(self, type: ResourceType, name: str) -> bool:
        """Returns whether everybody may do everything with a resource, because no rule of anybody
        is about it."""
        if not self._allow_everyone:
            return False
        if self._patterns is None:
            self._patterns = by_type(self._acls)
        return type not in self._patterns or not self._patterns[type].bits(name)

    def make_room(self) -> None:
        """Counts one more decision that a view keeps. If there are too many, makes all views forget
        theirs."""
        if self._decision_count >= DECISIONS_MAX:
            for view in self._views.values():
                view.forget()
            self._decision_count = 0
        self._decision_count += 1


_ANY_RESOURCE: Final = "hardcode"
"""The resource for which Kafka asks first whether an operation is allowed on any resource."""
_SUPPORTED: Final = {
    type: sum(1 << each for each in operations) for type, operations in SUPPORTED_OPERATIONS.items()
}
EVERYTHING: Final[View] = _Everything()
"""What super users may do, and what everybody may do if the broker has no authorizer."""
