"""Who a client of ZooKeeper is, and how it knows its server. The values are paths, never what the
files contain, so they may be shown.

ZooKeeper's scheme `digest` has no list of users: it takes every user with every password. What
protects a node is its ACL, which names the users that may use it by a hash of user and password.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kazoo.security import make_digest_acl

from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused
from skidway.security.secret_file import secret_lines

if TYPE_CHECKING:
    from skidway.security.contexts import Contexts

AUTH: Final = "zookeeper.auth.location"
SCHEME: Final = "digest"
_USER: Final = re.compile(r"([!-9;-~]+):([!-~]+)")
"""ASCII only: other characters mean to ZooKeeper what the locale of its Java says."""


@dataclass(frozen=True, slots=True)
class ZooKeeperSecurity:
    """is_tls: whether connections are encrypted. ca, certificate, key: see TlsFiles. auth: a file
    with the users that the client is, each on a line `user:password`."""

    is_tls: bool = False
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    auth: Path | None = None

    def check(self) -> None:
        """Raises ConfigurationRefused if a file cannot be used."""
        self.contexts()
        self.users()

    def contexts(self) -> Contexts | None:
        """Returns the TLS contexts of a client; None without TLS. Raises ConfigurationRefused."""
        if not self.is_tls:
            return None
        from skidway.security.contexts import Contexts, TlsFiles, client_context

        files = TlsFiles(self.certificate, self.key, self.ca)
        return Contexts(lambda: client_context(files), files)

    def users(self) -> tuple[tuple[str, str], ...]:
        """Returns user and password of each line of the file `auth`; nothing without the file.
        Raises ConfigurationRefused if the file cannot be used, or every user of the host can read
        it."""
        if self.auth is None:
            return ()
        found = []
        for line in secret_lines(self.auth, AUTH):
            user = _USER.fullmatch(line)
            if user is None:
                raise ConfigurationRefused(
                    f"{AUTH}: a line of {self.auth} is not user:password, in ASCII without spaces"
                )
            found.append((user[1], user[2]))
        return tuple(found)


OPEN: Final = ZooKeeperSecurity()
"""No TLS, and no user: for a ZooKeeper in which everybody may do everything."""


def acl_of(users: tuple[tuple[str, str], ...]) -> list[Any]:
    """Returns the ACL of a node that these users may use, and nobody else.

    Kazoo's CREATOR_ALL_ACL would also give the node to the name in the client's certificate, for
    ever: a broker that was retired could come back with it."""
    return [make_digest_acl(user, password, all=True) for user, password in users]
