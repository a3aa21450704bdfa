"""Gives the nodes of an existing tree to the users of a client, or to everybody. ZooKeeper's ACLs
are not inherited: each node has its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field
from typing import Any, Final

from kazoo.exceptions import NoNodeError
from kazoo.security import ACL, ANYONE_ID_UNSAFE, OPEN_ACL_UNSAFE, Permissions

from skidway.coordination.client import UNANSWERED, AccessRefused
from skidway.coordination.session import Coordinator
from skidway.dataclass import dataclass
from skidway.errors import Unreachable

ASKED_AT_ONCE: Final = 200
_LOOK_AND_ADD: Final = ACL(Permissions.READ | Permissions.CREATE, ANYONE_ID_UNSAFE)


@dataclass(slots=True)
class Report:
    """How many nodes have got another ACL, how many had it already, and which belong to others, who
    alone may change them. (A node that vanishes meanwhile is in none of them.)"""

    changed: int = 0
    unchanged: int = 0
    foreign: list[str] = field(default_factory=list)


def give(
    coordinator: Coordinator, roots: Sequence[str], left_out: Collection[str] = (), *,
    to_everybody: bool = False,
) -> Report:  # fmt: skip
    """Gives the nodes `roots`, and all below them, to the users of the coordinator, and to nobody
    else. left_out: nodes that keep their ACL, with all below them. to_everybody: gives them to
    everybody instead. Each node is changed before its children are listed, so nobody else can add
    one meanwhile. Can be repeated. Raises Unreachable."""
    acl = list(OPEN_ACL_UNSAFE) if to_everybody else coordinator.acl
    report, level = Report(), list(roots)
    while level:
        mine = _give(coordinator, level, acl, report)
        names = _answers(coordinator, coordinator.client.get_children_async, mine)
        below = (
            f"{path.rstrip('/')}/{name}"
            for path, found in zip(mine, names, strict=True)
            if isinstance(found, list)
            for name in found
        )
        level = [path for path in below if path not in left_out]
    return report


def share_root(coordinator: Coordinator, report: Report, *, to_everybody: bool = False) -> None:
    """Gives ZooKeeper's root to the users of the coordinator, for a tree without a chroot: who may
    delete below the root, may delete the nodes of others there. Everybody may still look, and add a
    tree. Raises Unreachable."""
    acl = OPEN_ACL_UNSAFE if to_everybody else [*coordinator.acl, _LOOK_AND_ADD]
    _give(coordinator, ["/"], list(acl), report)


def _give(
    coordinator: Coordinator, paths: Sequence[str], acl: list[Any], report: Report
) -> list[str]:
    """Gives nodes an ACL. Returns those that have it now."""
    client = coordinator.client
    wanted = frozenset(acl)
    had: list[str] = []
    others: list[str] = []
    for path, found in zip(paths, _answers(coordinator, client.get_acls_async, paths), strict=True):
        if isinstance(found, AccessRefused):
            report.foreign.append(path)
        elif found is not None:
            (had if frozenset(found[0]) == wanted else others).append(path)
    changed = []
    answers = _answers(coordinator, lambda path: client.set_acls_async(path, acl), others)
    for path, done in zip(others, answers, strict=True):
        if isinstance(done, AccessRefused):
            report.foreign.append(path)
        elif done is not None:
            changed.append(path)
    report.changed += len(changed)
    report.unchanged += len(had)
    return [*had, *changed]


def _answers(
    coordinator: Coordinator, request: Callable[[str], Any], paths: Sequence[str]
) -> Iterator[Any]:
    """Yields the answer for each path: None for a node that is gone, AccessRefused for one of
    others. Raises Unreachable."""
    for start in range(0, len(paths), ASKED_AT_ONCE):
        for asked in [request(path) for path in paths[start : start + ASKED_AT_ONCE]]:
            try:
                yield asked.get()
            except NoNodeError:
                yield None
            except AccessRefused as error:
                yield error
            except UNANSWERED as error:
                raise Unreachable(f"ZooKeeper at {coordinator.connect} does not answer") from error
