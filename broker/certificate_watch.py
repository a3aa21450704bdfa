"""Looks whether the files for TLS were replaced. New connections use new files at once; this module
does what else a replaced file asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from skidway import log
from skidway.broker.network.listener_tls import ListenerTls
from skidway.security.x509 import SerialOf

LOOK_MS: Final = 10_000
_log = log.get(__name__)


class CertificateWatch:
    """Knows what the files said when it last looked. drop_revoked: closes the connections of
    clients whose certificates are revoked."""

    def __init__(
        self, tls: ListenerTls, drop_revoked: Callable[[frozenset[SerialOf]], None]
    ) -> None:
        self._tls, self._drop_revoked = tls, drop_revoked
        self._revoked, self._problem, self._ends_s = tls.revoked, tls.problem, tls.ends_s

    def look(self) -> None:
        """Called every `LOOK_MS`."""
        tls = self._tls
        tls.look()
        if tls.problem and tls.problem != self._problem:
            _log.warning("certificates_refused", reason=tls.problem)
        if tls.ends_s != self._ends_s:
            _log.info("certificate_replaced", ends_s=tls.ends_s)
        if tls.revoked is not self._revoked:
            _log.info("revocations_replaced", revoked=len(tls.revoked))
            self._drop_revoked(tls.revoked)
        self._revoked, self._problem, self._ends_s = tls.revoked, tls.problem, tls.ends_s
