from __future__ import annotations

import pytest

from skidway.coordination import check_connect
from skidway.errors import ConfigurationRefused


@pytest.mark.parametrize(
    ("connect", "expected"),
    [
        ("127.0.0.1:2181", ("127.0.0.1:2181", "")),
        ("a:1,b:2/dc1/x", ("a:1,b:2", "/dc1/x")),
        ("[::1]:2181/c", ("[::1]:2181", "/c")),
    ],
)
def test_connect_string_is_split(connect: str, expected: tuple[str, str]) -> None:
    """ZooKeeper's connect string is split into the addresses and the chroot."""
    assert check_connect(connect) == expected


@pytest.mark.parametrize(
    "connect",
    [
        "", "host", "host:", ":2181", "h:0", "h:65536", "h:x", "h:1,", "h:1/", "h:1//a", "h:²",
        "h:٣", "::1:2181", "a b:1", "a:1/dc1,b:1", "a:1/dc1/../x", "a:1/x\0",
    ],
)  # fmt: skip
def test_bad_connect_string_is_refused(connect: str) -> None:
    """An invalid connect string of ZooKeeper is refused at once, with an error that names its
    configuration key."""
    with pytest.raises(ConfigurationRefused, match=r"zookeeper\.connect"):
        check_connect(connect)
