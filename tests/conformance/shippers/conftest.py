"""Makes the fixtures of support.brokers available to the tests of this folder."""

from support.brokers import own_broker, skidway_broker

__all__ = ["own_broker", "skidway_broker"]
