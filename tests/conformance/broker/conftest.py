"""The fixtures of support.brokers, for these tests."""

from support.brokers import own_broker, skidway_broker

__all__ = ["own_broker", "skidway_broker"]
