"""The operations on the users and rules in ZooKeeper. All of them block, so the session's thread
does them. (See `store` for writes whose answer is lost: each of these can be repeated.)

What is changed or removed is what ZooKeeper has at that moment, whatever this broker has read
before: another broker may have added it just now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from skidway import log
from skidway.broker.coordination import access_documents, documents
from skidway.broker.coordination.answers import answered
from skidway.broker.coordination.documents import DocumentRefused
from skidway.coordination import Coordinator
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.acls.acl import Acl, ResourcePattern
from skidway.kafka.acls.filters import AclFilter
from skidway.security.scram_credential import ScramCredential

_ATTEMPTS_MAX: Final = 100
_log = log.get(__name__)

Rules = dict[Acl, None]
"""The rules of one resource pattern, in their order."""


class NoRoom(SkidwayError):
    """A node cannot take so many rules."""


class NoCredential(SkidwayError):
    """A credential that is to be removed is not there."""


def add_acls(
    coordinator: Coordinator, acls: Sequence[Acl]
) -> dict[ResourcePattern, SkidwayError | None]:
    """Adds rules, and does nothing for those that are there already. Returns for each resource
    pattern why its rules could not be added; None if they are there now. After Unreachable they may
    be there, too."""
    found: dict[ResourcePattern, SkidwayError | None] = {}
    for resource in dict.fromkeys(each.resource for each in acls):
        added = dict.fromkeys(each for each in acls if each.resource == resource)
        try:
            _change(coordinator, resource, lambda known, new=added: {**known, **new})  # type: ignore[misc]
        except SkidwayError as error:
            found[resource] = error
        else:
            found[resource] = None
    return found


def remove_acls(coordinator: Coordinator, filters: Iterable[AclFilter]) -> list[list[Acl]]:
    """Removes the rules that filters select. Returns what each filter has selected. Raises
    Unreachable, after which some of them may be removed."""
    wanted = list(filters)
    selected: list[list[Acl]] = [[] for _ in wanted]

    def left(known: Rules) -> Rules:
        chosen = [[acl for acl in known if each.matches(acl)] for each in wanted]
        for before, now in zip(selected, chosen, strict=True):
            before.extend(acl for acl in now if acl not in before)
        gone = {acl for each in chosen for acl in each}
        return {acl: None for acl in known if acl not in gone}

    _catch_up(coordinator)
    for resource in _resources(coordinator):
        if any(each.selects_resource(resource) for each in wanted):
            _change(coordinator, resource, left)
    return selected


def alter_user(
    coordinator: Coordinator, user: str, changes: Mapping[str, ScramCredential | None]
) -> None:
    """Changes a user's credentials, by mechanism; None removes one. Other settings of the user
    (Kafka's quotas) stay. A node without settings is removed; one that cannot be read counts as one
    with the credentials that are to be removed, and without others. Raises NoCredential,
    Unreachable."""
    path = access_documents.user_path(user)
    _catch_up(coordinator)
    for _ in range(_ATTEMPTS_MAX):
        found = coordinator.get(path)
        try:
            known = {} if found is None else documents.read_configs(path, found.data)
        except DocumentRefused as error:
            _log.error("user_refused", path=path, reason=str(error))
            known = dict.fromkeys(changes, "")
        for mechanism, each in changes.items():
            if each is None and mechanism not in known:
                raise NoCredential(f"the user has no credential for {mechanism}")
        wanted = {name: value for name, value in known.items() if name not in changes}
        wanted |= {name: each.text() for name, each in changes.items() if each is not None}
        content = documents.configs(wanted) if wanted else None
        if _put(coordinator, path, content, None if found is None else found.version):
            return
    raise Unreachable(f"ZooKeeper's node {path} changes too often to be written")


def _catch_up(coordinator: Coordinator) -> None:
    """Waits until the server that is asked has what all others have answered before."""
    with answered(coordinator) as client:
        client.sync(access_documents.USERS)


def _resources(coordinator: Coordinator) -> list[ResourcePattern]:
    """Returns the resource patterns that have rules."""
    return [
        ResourcePattern(kind, access_documents.decode_name(name), pattern)
        for pattern, root in access_documents.ROOTS.items()
        for kind, word in access_documents.TYPES.items()
        for name in coordinator.children(f"{root}/{word}")
    ]


def _change(
    coordinator: Coordinator, resource: ResourcePattern, change: Callable[[Rules], Rules]
) -> None:
    path = access_documents.acl_path(resource)
    for _ in range(_ATTEMPTS_MAX):
        found = coordinator.get(path)
        read = [] if found is None else access_documents.read_acls(path, resource, found.data)
        known = dict.fromkeys(read)
        wanted = change(known)
        if wanted == known:
            return
        content = access_documents.acls(wanted) if wanted else None
        if content is not None and len(content) > access_documents.NODE_BYTES_MAX:
            raise NoRoom(
                f"{len(wanted)} rules for {resource.name} do not fit into a node of ZooKeeper"
                f" ({access_documents.NODE_BYTES_MAX:,} bytes); use one principal for many hosts"
            )
        if _put(coordinator, path, content, None if found is None else found.version):
            return
    raise Unreachable(f"ZooKeeper's node {path} changes too often to be written")


def _put(coordinator: Coordinator, path: str, content: bytes | None, version: int | None) -> bool:
    """Writes a node, or removes it if content is None. version: what it had when it was read; None
    if it was missing. Returns False if it has changed since."""
    if version is None:
        return content is None or coordinator.create_if_absent(path, content)
    if content is None:
        return coordinator.delete(path, version=version)
    return coordinator.set_versioned(path, content, version)
