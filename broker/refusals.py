"""Requests of APIs and versions that the broker does not offer, mostly from clients that are too
old or too new. All of them are counted by API. The log names each such client, API and version once
in a while (see `RareLines`), because clients repeat a refused request without end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from skidway.rare_lines import RareLines

CLIENT_ID_MAX: Final = 100
"""The log has at most this many characters of a client id."""


class Refused(NamedTuple):
    """What is refused: the host of the client without its port, and what it asks for. api: the
    API's name, or its number if the broker does not know the API."""

    host: str
    client_id: str | None
    api: str
    version: int


class Refusals:
    """Counts and names refused requests. counts: by the name of the API; all APIs that the broker
    does not know have the name "unknown"."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.counts: dict[str, int] = {}
        self._lines = RareLines("version_refused", monotonic)

    def note(self, peer: str, client_id: str | None, api: str, version: int) -> None:
        """Notes a refused request of the client at the address `peer` (host:port)."""
        kind = "unknown" if api.isdecimal() else api
        self.counts[kind] = self.counts.get(kind, 0) + 1
        name = None if client_id is None else client_id[:CLIENT_ID_MAX]
        refused = Refused(peer.rpartition(":")[0], name, api, version)
        self._lines.tell(refused, **refused._asdict())
