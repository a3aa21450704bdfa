"""Requests of APIs and versions that the broker does not offer, mostly from clients that are too
old or too new. All of them are counted by API. The log names each such client, API and version once
in `REPEAT_AFTER_S`, because clients repeat a refused request without end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from skidway import log

REPEAT_AFTER_S: Final = 600.0
REMEMBERED_MAX: Final = 1000
"""If more clients, APIs and versions are refused, the one that was named first is forgotten, and is
perhaps named again too early."""
CLIENT_ID_MAX: Final = 100
"""The log has at most this many characters of a client id."""
_log = log.get(__name__)


class Refused(NamedTuple):
    """What is refused: the host of the client without its port, and what it asks for. api: the
    API's name, or its number if the broker does not know the API."""

    host: str
    client_id: str | None
    api: str
    version: int


@dataclass(slots=True)
class _Named:
    at_s: float
    count: int = 0


class Refusals:
    """Counts and names refused requests. counts: by the name of the API; all APIs that the broker
    does not know have the name "unknown"."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.counts: dict[str, int] = {}
        self._monotonic = monotonic
        self._named: dict[Refused, _Named] = {}

    def note(self, peer: str, client_id: str | None, api: str, version: int) -> None:
        """Notes a refused request of the client at the address `peer` (host:port)."""
        kind = "unknown" if api.isdecimal() else api
        self.counts[kind] = self.counts.get(kind, 0) + 1
        name = None if client_id is None else client_id[:CLIENT_ID_MAX]
        refused = Refused(peer.rpartition(":")[0], name, api, version)
        now_s, known = self._monotonic(), self._named.get(refused)
        if known is not None and now_s - known.at_s < REPEAT_AFTER_S:
            known.count += 1
            return
        repeats = 0 if known is None else known.count
        self._named.pop(refused, None)
        self._named[refused] = _Named(now_s)
        if len(self._named) > REMEMBERED_MAX:
            del self._named[next(iter(self._named))]
        _log.warning("version_refused", **refused._asdict(), repeats=repeats)
