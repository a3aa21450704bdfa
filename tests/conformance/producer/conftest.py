"""Fixtures: an Apache Kafka broker, one of our brokers, and a second broker of ours that a test may
kill."""

from __future__ import annotations

import pytest

from support.brokers import own_broker, skidway_broker

__all__ = ["own_broker", "skidway_broker"]


@pytest.fixture(params=["apache", "skidway"])
def bootstrap(request: pytest.FixtureRequest) -> str:
    """The address of the broker that the test uses. Each test runs once with Apache Kafka and once
    with our broker."""
    name = "apache_kafka" if request.param == "apache" else "skidway_broker"
    return str(request.getfixturevalue(name).address)
