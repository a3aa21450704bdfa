"""Keeps the users and rules of the cluster: takes what ZooKeeper has, and changes it there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from skidway.broker.access.authorizer import Authorizer
from skidway.broker.access.logins import Logins
from skidway.broker.access.security_log import SecurityLog
from skidway.broker.coordination import access_store
from skidway.broker.coordination.access_documents import acl_path, user_path
from skidway.broker.coordination.access_reader import Granted
from skidway.broker.coordination.session import ZooKeeperSession
from skidway.broker.network.connection import Connection
from skidway.broker.network.loop import Loop
from skidway.coordination import Coordinator
from skidway.errors import SkidwayError
from skidway.kafka.acls.acl import Acl, ResourcePattern
from skidway.kafka.acls.filters import AclFilter
from skidway.security.sasl_server import LoginInvalid
from skidway.security.scram_credential import ScramCredential

T = TypeVar("T")
Added = dict[ResourcePattern, SkidwayError | None] | SkidwayError


class AccessControl:
    """Owns who may log in (`logins`) and who may do what (`authorizer`). Only the loop uses it.

    A change is answered when this broker follows it. The others follow as soon as ZooKeeper has
    told them.
    """

    def __init__(
        self, logins: Logins, authorizer: Authorizer, loop: Loop, session: ZooKeeperSession
    ) -> None:
        self.logins, self.authorizer = logins, authorizer
        self._loop, self._session = loop, session

    @property
    def log(self) -> SecurityLog:
        """The security log."""
        return self.authorizer.log

    def take(self, granted: Granted) -> None:
        """Takes what ZooKeeper now has. Closes the connections of users who are gone."""
        self.logins.users = granted.users
        self.authorizer.use(granted.acls)
        for connection in list(self._loop.connections.values()):
            user = connection.identity.user
            if user is not None and user not in granted.users:
                self._loop.drop(connection, "user_removed")
            else:
                connection.forget_access()

    def login_failed(self, connection: Connection, error: LoginInvalid) -> None:
        """Notes a login that has failed."""
        mechanism = "" if connection.login is None else connection.login.mechanism
        address, listener = connection.address, connection.listener
        self.log.login_failed(mechanism, address, listener, error.user, str(error))

    def add_acls(self, acls: Sequence[Acl], done: Callable[[Added], None]) -> None:
        """Adds rules, and calls `done` with why the rules of a resource pattern could not be added,
        None for those that are added; or with an error for all."""
        paths = {acl_path(each.resource) for each in acls}
        self._change(lambda coordinator: access_store.add_acls(coordinator, acls), paths, done)

    def remove_acls(
        self, filters: Sequence[AclFilter], done: Callable[[list[list[Acl]] | SkidwayError], None]
    ) -> None:
        """Removes the rules that filters select, and calls `done` with those of each filter."""

        def changed(outcome: list[list[Acl]]) -> Collection[str]:
            return {acl_path(each.resource) for some in outcome for each in some}

        self._change(
            lambda coordinator: access_store.remove_acls(coordinator, filters), changed, done
        )

    def alter_user(
        self,
        user: str,
        changes: Mapping[str, ScramCredential | None],
        done: Callable[[SkidwayError | None], None],
    ) -> None:
        """Changes a user's credentials, by mechanism; None removes one. Then calls `done`."""

        def change(coordinator: Coordinator) -> None:
            access_store.alter_user(coordinator, user, changes)

        self._change(change, {user_path(user)}, done)

    def _change(
        self,
        change: Callable[[Coordinator], T],
        paths: Collection[str] | Callable[[T], Collection[str]],
        done: Callable[[T | SkidwayError], None],
    ) -> None:
        """Makes a change in ZooKeeper, follows it, and calls `done` with its outcome. paths: of the
        nodes that it writes."""
        session = self._session

        def work(coordinator: Coordinator) -> tuple[T, Granted]:
            outcome = change(coordinator)
            return outcome, session.read_access(paths(outcome) if callable(paths) else paths)

        def changed(found: tuple[T, Granted] | SkidwayError) -> None:
            if isinstance(found, SkidwayError):
                done(found)
                return
            outcome, granted = found
            self.take(granted)
            done(outcome)

        session.submit(work, changed)
