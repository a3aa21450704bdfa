"""ZooKeeper, as all programs use it.

security    who a client is, and how it knows its server
client      kazoo's client, with bounded waits, TLS and users
session     `Coordinator`: a session, its state, and nodes with versions
acls        gives the nodes of an existing tree to the users of a client
"""

from __future__ import annotations

from skidway.coordination.client import UNANSWERED, AccessRefused
from skidway.coordination.security import OPEN, ZooKeeperSecurity
from skidway.coordination.session import (
    Coordinator,
    SessionState,
    Versioned,
    Watch,
    ZooKeeperConnection,
    check_connect,
)

__all__ = [
    "OPEN",
    "UNANSWERED",
    "AccessRefused",
    "Coordinator",
    "SessionState",
    "Versioned",
    "Watch",
    "ZooKeeperConnection",
    "ZooKeeperSecurity",
    "check_connect",
]
