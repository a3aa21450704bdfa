"""Live brokers of a catalog, for tests."""

from __future__ import annotations

from skidway.broker.catalog import Endpoint, LiveBroker
from skidway.kafka.types import PLAINTEXT


def live_broker(broker_id: int, host: str = "127.0.0.1", port: int = 9092) -> LiveBroker:
    """Returns a broker with one listener, without TLS."""
    return LiveBroker(broker_id, (Endpoint(PLAINTEXT, PLAINTEXT, host, port),))
