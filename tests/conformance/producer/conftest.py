"""The fixtures of support.brokers, for the tests of this folder."""

from support.brokers import bootstrap, own_broker, skidway_broker

__all__ = ["bootstrap", "own_broker", "skidway_broker"]
