"""The fixtures of support.brokers, for the tests of this folder."""

from support.brokers import own_broker, skidway_broker

__all__ = ["own_broker", "skidway_broker"]
