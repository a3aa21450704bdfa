"""Reads the users and rules of the cluster from ZooKeeper: first all, and then only the nodes that
have changed (see `watched_nodes`).

Nobody gets in because a node is damaged: a user whose credential cannot be read cannot log in, and
a resource whose rules cannot be read is closed to all but super users.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from skidway import log
from skidway.broker.coordination import access_documents, documents
from skidway.broker.coordination.documents import DocumentRefused
from skidway.broker.coordination.watched_nodes import WatchedNodes
from skidway.coordination import Coordinator
from skidway.dataclass import dataclass
from skidway.kafka.acls.acl import Acl, ResourcePattern
from skidway.security.scram_credential import ScramCredential

_LISTS = "/"  # stands for the lists of nodes; no path is that short
_log = log.get(__name__)


@dataclass(frozen=True, slots=True)
class Granted:
    """The credentials of each user, by mechanism, and the rules of the cluster."""

    users: Mapping[str, Mapping[str, ScramCredential]]
    acls: tuple[Acl, ...]


class AccessReader:
    """Reads on the session's thread. When a node has changed, calls `changed` on kazoo's thread, so
    that it is read again."""

    def __init__(self, coordinator: Coordinator, changed: Callable[[], None]) -> None:
        self._nodes = WatchedNodes(coordinator, changed)
        self._users: dict[str, Mapping[str, ScramCredential]] = {}
        self._acls: dict[str, list[Acl]] = {}
        self._last: Granted | None = None

    def forget(self) -> None:
        """Forgets everything, so that the next `read` reads all. Called at the beginning of a new
        session, because a new session has no watches."""
        self._users, self._acls, self._last = {}, {}, None

    def read(self, written: Collection[str] = ()) -> Granted:
        """Returns what the cluster has now: the same object as before if nothing has changed.
        written: the paths of nodes that this broker itself has written; their watches may fire only
        later. Raises Unreachable."""
        self._nodes.note((_LISTS, *written) if written else ())
        with self._nodes.reading() as (client, stale):
            if self._last is not None and not stale:
                return self._last
            self._last = None
            users = self._read_users(client, stale)
            acls = self._read_acls(client, stale)
        self._users, self._acls = users, acls
        self._last = Granted(users, tuple(each for found in acls.values() for each in found))
        return self._last

    def _read_users(self, client: Any, stale: set[str]) -> dict[str, Mapping[str, ScramCredential]]:
        found = {}
        for name in self._nodes.children(client, access_documents.USERS, _LISTS):
            path = f"{access_documents.USERS}/{name}"
            user = access_documents.decode_name(name)
            known = None if path in stale else self._users.get(user)
            credentials = self._user(client, path) if known is None else known
            if credentials:
                found[user] = credentials
        return found

    def _user(self, client: Any, path: str) -> Mapping[str, ScramCredential]:
        content = self._nodes.get(client, path, path)
        if content is None:
            return {}
        try:
            return access_documents.read_user(path, documents.read_configs(path, content[0]))
        except DocumentRefused as error:
            _log.error("user_refused", path=path, reason=str(error))
            return {}

    def _read_acls(self, client: Any, stale: set[str]) -> dict[str, list[Acl]]:
        found = {}
        for pattern, root in access_documents.ROOTS.items():
            for kind, word in access_documents.TYPES.items():
                for name in self._nodes.children(client, f"{root}/{word}", _LISTS):
                    path = f"{root}/{word}/{name}"
                    resource = ResourcePattern(kind, access_documents.decode_name(name), pattern)
                    known = None if path in stale else self._acls.get(path)
                    found[path] = self._rules(client, path, resource) if known is None else known
        return found

    def _rules(self, client: Any, path: str, resource: ResourcePattern) -> list[Acl]:
        content = self._nodes.get(client, path, path)
        return [] if content is None else access_documents.read_acls(path, resource, content[0])
