"""Closes the nodes of ZooKeeper itself, which it leaves open to everybody: `/zookeeper` and
`/zookeeper/quota`.

Whoever may add quotas can end all servers for good: if a quota's `zookeeper_stats` is not what
ZooKeeper writes there, the next change below the quota's path ends the JVM (`StatsTrack` in
ZooKeeper 3.9), and so does each start, when the JVM repeats the changes in its log.
"""

from __future__ import annotations

import logging
import secrets
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import READ_ACL_UNSAFE, make_digest_acl_credential

from skidway import log

QUOTAS: Final = "/zookeeper/quota"
CLOSED: Final = (QUOTAS, "/zookeeper")
ANSWER_WITHIN_S: Final = 3.0
_SUPERUSER: Final = "super"

_log = log.get(__name__)
_kazoo_log = logging.getLogger(f"kazoo.{__name__}")
_kazoo_log.addHandler(logging.NullHandler())
_kazoo_log.propagate = False  # `close` says what is wrong; kazoo's lines may have the password


class SystemNodes:
    """Closes the nodes as ZooKeeper's superuser, who may change every node. This server alone knows
    the superuser, and the password is a new random one at each start."""

    def __init__(self) -> None:
        self._password = secrets.token_urlsafe(32)
        self._told = ""

    @property
    def jvm_option(self) -> str:
        """The option of the JVM that makes the superuser known. It has no password: others can see
        the command line."""
        digest = make_digest_acl_credential(_SUPERUSER, self._password)
        return f"-Dzookeeper.DigestAuthenticationProvider.superDigest={digest}"

    def close(self, address: str) -> bool:
        """Makes the nodes readable only, and removes all quotas. Returns whether that is done; if
        not, the log says why. address: HOST:PORT of this server's port without TLS."""
        client = KazooClient(
            address,
            auth_data=[("digest", f"{_SUPERUSER}:{self._password}")],
            logger=_kazoo_log,
        )
        try:
            client.start(ANSWER_WITHIN_S)
            for path in CLOSED:
                if client.get_acls(path)[0] != READ_ACL_UNSAFE:
                    client.set_acls(path, READ_ACL_UNSAFE)
            for name in client.get_children(QUOTAS):
                _log.warning("quota_removed", path=f"/{name}")
                client.delete(f"{QUOTAS}/{name}", recursive=True)
        except (KazooException, KazooTimeoutError) as error:
            reason = str(error) or type(error).__name__
            if reason != self._told:
                _log.error("system_nodes_open", reason=reason)
            self._told = reason
            return False
        finally:
            client.stop()
            client.close()
        return True
