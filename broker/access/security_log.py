"""The security log: logins that failed, what was denied, and what somebody has changed.

Anybody on the network can cause the first two kinds, so each of their lines comes once in a while
(see `RareLines`), and each principal has its own limit of denials; metrics count all. Changes need
a right, and all their names are written.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Final

from skidway import log
from skidway.kafka.acls.acl import Operation, ResourceType
from skidway.rare_lines import RareLines

NAMED_MAX: Final = 20
"""So many topics, groups, users or rules of a request are in one line; others follow in more."""
USERS_MAX: Final = 16
"""So many lines of failed logins an address has for each mechanism: users share them."""
FAILURES_MAX: Final = 1_000
DENIALS_MAX: Final = 50
PRINCIPALS_MAX: Final = 1_000
"""So many principals have limits of their own; the one that was denied something the longest ago
gives way."""
_NAME_CHARACTERS_MAX: Final = 249
NAME: Final = "security"
"""The value of the field `log` of these lines, by which they can be collected by themselves."""
_log = log.get("skidway.security")


class SecurityLog:
    """Writes the lines, and counts. Only the loop's thread uses it; metrics read the counts."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.logins: dict[tuple[str, str], int] = {}
        """How many, by mechanism and outcome."""
        self.denials: dict[str, int] = {}
        """How many, by operation."""
        self._failed = RareLines("login_failed", monotonic, _log.warning, FAILURES_MAX)
        self._denied: dict[tuple[str, bool], RareLines] = {}
        """The lines of each principal, enforced or not."""
        self._monotonic = monotonic

    def login(self, mechanism: str) -> None:
        """Counts a login."""
        self._count_login(mechanism, "ok")

    def login_failed(
        self, mechanism: str, address: str, listener: str, user: str, reason: str
    ) -> None:
        """Notes a login that failed. mechanism: one of the enabled ones, or empty."""
        self._count_login(mechanism or "unknown", "failed")
        self._failed.tell(
            (address, mechanism, zlib.crc32(user.encode()) % USERS_MAX),
            log=NAME,
            address=address,
            listener=listener,
            mechanism=mechanism,
            user=user[:_NAME_CHARACTERS_MAX],
            reason=reason,
        )

    def denied(
        self,
        principal: str,
        address: str,
        operation: Operation,
        kind: ResourceType,
        name: str,
        *,
        is_enforced: bool,
    ) -> None:
        """Notes that a client may not do something."""
        self.denials[operation.name] = self.denials.get(operation.name, 0) + 1
        self._lines(principal, is_enforced=is_enforced).tell(
            (operation, kind, name[:_NAME_CHARACTERS_MAX]),
            log=NAME,
            principal=principal,
            address=address,
            operation=operation.name,
            resource=kind.name,
            name=name[:_NAME_CHARACTERS_MAX],
        )

    def changed(
        self, principal: str, address: str, what: str, names: Sequence[str], *, is_sure: bool = True
    ) -> None:
        """Notes that a client has changed something. what: the API. is_sure: False if the change
        may not have been made."""
        for at in range(0, len(names), NAMED_MAX):
            _log.info(
                "changed" if is_sure else "perhaps_changed",
                log=NAME,
                principal=principal,
                address=address,
                what=what,
                names=list(names[at : at + NAMED_MAX]),
            )

    def _lines(self, principal: str, *, is_enforced: bool) -> RareLines:
        key, own = (principal, is_enforced), self._denied
        lines = own.pop(key, None)
        if lines is None:
            event = "denied" if is_enforced else "would_deny"
            lines = RareLines(event, self._monotonic, _log.warning, DENIALS_MAX)
            if len(own) >= PRINCIPALS_MAX:
                del own[next(iter(own))]
        own[key] = lines
        return lines

    def _count_login(self, mechanism: str, outcome: str) -> None:
        key = mechanism, outcome
        self.logins[key] = self.logins.get(key, 0) + 1
