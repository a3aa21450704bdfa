"""The fixtures of support.brokers, for the tests of this folder."""

from support.brokers import bootstrap, skidway_broker

__all__ = ["bootstrap", "skidway_broker"]
