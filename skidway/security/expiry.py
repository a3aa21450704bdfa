"""Shows when the certificates expire that this program shows to others. Imported only for such
programs, because prometheus_client takes time."""

from __future__ import annotations

import time
from pathlib import Path

from prometheus_client import Gauge

_ends = Gauge(
    "skidway_certificate_expires_seconds",
    "Seconds until a certificate of this program expires.",
    ["file"],
)


def show_end(certificate: Path, ends_s: float) -> None:
    """Shows the end of a certificate in the program's metrics, instead of what was shown before for
    this file. ends_s: in seconds since 1970."""
    _ends.labels(str(certificate)).set_function(lambda: ends_s - time.time())
