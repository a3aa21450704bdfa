from __future__ import annotations

import prometheus_client
import pytest
from prometheus_client.parser import text_string_to_metric_families

from skidway.errors import ConfigurationRefused
from skidway.telemetry import _metrics, host_and_port


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


def test_no_control_character_of_a_label_reaches_a_terminal() -> None:
    """Labels of metrics have escapes in place of control characters, and Prometheus can read
    them."""
    gauge = prometheus_client.Gauge("skidway_test_names", "Names.", ["name"])
    gauge.labels('a\x1b[31m\r\n"\\').set(1)
    try:
        text = _metrics().decode()
    finally:
        prometheus_client.REGISTRY.unregister(gauge)
    assert "\x1b" not in text
    [found] = [x for x in text_string_to_metric_families(text) if x.name == "skidway_test_names"]
    assert found.samples[0].labels == {"name": 'a\\u001b[31m\\u000d\n"\\'}
