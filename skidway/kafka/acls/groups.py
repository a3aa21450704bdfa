"""The rules of one principal, in groups that apply to the same hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from skidway.kafka.acls.acl import ANY_NAME, Acl, ResourceType
from skidway.kafka.acls.hosts import as_java_writes, pack, parse_range
from skidway.kafka.acls.patterns import Patterns, by_type


class Group:
    """Rules with the same principal and the same host. A group equals no other group."""

    __slots__ = ("acls", "patterns")

    def __init__(self, acls: list[Acl]) -> None:
        self.acls = acls
        self.patterns: Mapping[ResourceType, Patterns] = by_type(acls)


class PrincipalRules:
    """The rules of one principal."""

    __slots__ = ("_groups", "_ranges")

    def __init__(self, acls: Iterable[Acl]) -> None:
        by_host: dict[str, list[Acl]] = {}
        for acl in acls:
            by_host.setdefault(acl.host, []).append(acl)
        self._groups = {host: Group(own) for host, own in by_host.items()}
        self._ranges = [
            (parsed, group)
            for host, group in self._groups.items()
            if (parsed := parse_range(host)) is not None
        ]

    def at(self, host: str) -> list[Group]:
        """Returns the groups that apply to a client at an address, always in the same order."""
        hosts = (ANY_NAME, as_java_writes(host))
        groups = [self._groups[each] for each in hosts if each in self._groups]
        if self._ranges and (packed := pack(host.partition("%")[0])) is not None:
            groups += [group for parsed, group in self._ranges if parsed.covers(packed)]
        return groups
