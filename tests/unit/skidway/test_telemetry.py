from __future__ import annotations

import pytest

from skidway.errors import ConfigurationRefused
from skidway.telemetry import host_and_port


@pytest.mark.parametrize(
    ("listen", "expected"),
    [
        ("0.0.0.0:9101", ("0.0.0.0", 9101)),
        ("9101", ("127.0.0.1", 9101)),
        (":0", ("127.0.0.1", 0)),
        ("[::1]:9101", ("::1", 9101)),
    ],
)
def test_address_without_host_is_loopback(listen: str, expected: tuple[str, int]) -> None:
    """A listener's address without a host means loopback, so that other machines cannot connect by
    default."""
    assert host_and_port(listen) == expected


@pytest.mark.parametrize("listen", ["", "host", "host:", "host:port", "host:65536", "host:-1"])
def test_bad_address_is_refused(listen: str) -> None:
    """An invalid listener's address is refused with an error that names its configuration key."""
    with pytest.raises(ConfigurationRefused, match=r"metrics\.listener"):
        host_and_port(listen)
