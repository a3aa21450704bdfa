"""Shows when the certificates expire that this program shows to others, and the revocation lists
that it uses. Imported only for such programs, because prometheus_client takes time."""

from __future__ import annotations

import time
from pathlib import Path

from prometheus_client import Gauge

_ends = Gauge(
    "skidway_certificate_expires_seconds",
    "Seconds until a certificate of this program expires.",
    ["file"],
)
_ends_of_lists = Gauge(
    "skidway_revocation_list_expires_seconds",
    "Seconds until a revocation list that this program uses expires.",
    ["file"],
)


def show_end(certificate: Path, ends_s: float) -> None:
    """Shows the end of a certificate in the program's metrics, instead of what was shown before for
    this file. ends_s: in seconds since 1970."""
    _ends.labels(str(certificate)).set_function(lambda: ends_s - time.time())


def show_end_of_lists(crl: Path, ends_s: float) -> None:
    """Shows the end of the lists in a file; see `show_end`."""
    _ends_of_lists.labels(str(crl)).set_function(lambda: ends_s - time.time())
