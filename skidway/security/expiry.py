"""When the certificates expire that this program shows to others, for its metrics."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Any

from skidway.errors import ConfigurationRefused
from skidway.security.x509 import Malformed, first_end_s


def end_of(certificate: Path) -> float:
    """Returns when the first certificate of a PEM file expires, in seconds since 1970. Raises
    ConfigurationRefused."""
    try:
        return first_end_s(certificate.read_bytes())
    except (OSError, Malformed) as error:
        raise ConfigurationRefused(
            f"ssl.certificate.location: {certificate} cannot be read: {error}"
        ) from error


def show_end(certificate: Path, ends_s: float) -> None:
    """Shows the end of a certificate in the program's metrics, instead of what was shown before for
    this file."""
    _gauge().labels(str(certificate)).set_function(lambda: ends_s - time.time())


@cache
def _gauge() -> Any:
    from prometheus_client import Gauge  # imported here: most commands have no certificate

    return Gauge(
        "skidway_certificate_expires_seconds",
        "Seconds until a certificate of this program expires.",
        ["file"],
    )
