from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from skidway.consumer import Consumer
from skidway.consumer.settings import ConsumerOptions, ConsumerSettings
from skidway.errors import ConfigurationRefused, UsageError


def test_options_are_the_settings() -> None:
    """Every setting of a consumer can be given as an option, and there are no other options."""
    assert {each.name for each in fields(ConsumerSettings)} == set(ConsumerOptions.__annotations__)


@pytest.mark.parametrize(
    "wrong", [{"auto_offset_reset": "begin"}, {"session_timeout_ms": 5}, {"max_poll": 3}]
)
def test_settings_that_make_no_sense_are_refused(wrong: Any) -> None:
    """Invalid and unknown settings are refused with a usage error before the consumer opens a
    connection."""
    with pytest.raises(UsageError):
        Consumer("127.0.0.1:1", "g", "t", **wrong)


def test_addresses_and_groups_are_looked_at_first() -> None:
    """An invalid address or group name is refused before the consumer waits for any server."""
    with pytest.raises(ConfigurationRefused):
        Consumer("127.0.0.1:1", "g", "t", zookeeper_connect="nowhere")
    with pytest.raises(UsageError, match="cannot name a group"):
        Consumer("127.0.0.1:1", "a/b", "t")
    with pytest.raises(UsageError, match=r"bootstrap\.servers"):
        Consumer("", "g", "t")
