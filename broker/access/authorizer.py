"""What a client may do, by the rules of the cluster (see `skidway.kafka.acls.rules`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

from skidway.broker.access.security_log import SecurityLog
from skidway.kafka.acls.acl import Acl
from skidway.kafka.acls.rules import EVERYTHING, Rules, View

Mode = Literal["off", "warn", "enforce"]


class Authorizer:
    """Owns the rules. Only the loop's thread uses it."""

    def __init__(
        self,
        mode: Mode,
        super_users: Collection[str],
        allow_everyone_if_no_acl_found: bool,
        log: SecurityLog,
    ) -> None:
        """mode: off allows everything; warn too, and says what enforce would deny."""
        self.mode, self.log = mode, log
        self._super_users = frozenset(super_users)
        self._allow_everyone = allow_everyone_if_no_acl_found
        self.rules = self._of(())

    def use(self, acls: Iterable[Acl]) -> None:
        """Takes the rules that the cluster now has."""
        self.rules = self._of(acls)

    def view(self, principal: str, host: str) -> View:
        """Returns what a client may do, until `use`."""
        return EVERYTHING if self.mode == "off" else self.rules.view(principal, host)

    def _of(self, acls: Iterable[Acl]) -> Rules:
        return Rules(acls, self._super_users, self._allow_everyone)
