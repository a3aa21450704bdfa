from __future__ import annotations

import pytest

from skidway.broker.groups import subscription

GOOD = b"\x00\x01\x00\x00\x00\x02\x00\x01a\x00\x04logs\xff\xff\xff\xff"


def test_the_topics_of_a_consumer() -> None:
    """The broker reads the topics in the subscription of a consumer, whatever bytes follow the
    topics."""
    assert subscription.topics(GOOD) == {"a", "logs"}
    assert subscription.topics(b"\x00\x00\x00\x00\x00\x00") == frozenset()


@pytest.mark.parametrize("end", range(15))
def test_what_is_cut_short_is_no_subscription(end: int) -> None:
    """The broker refuses a subscription whose last bytes are missing, and does not guess its
    topics."""
    assert subscription.topics(GOOD[:end]) is None


@pytest.mark.parametrize(
    "metadata",
    [
        b"\0\1\x7f\xff\xff\xff\0\1a",
        b"\0\1\0\0\0\1\xff\xffa",
        b"\0\1\0\0\0\1\0\1\xff",
        b"\0\1\xff\xff\xff\xff",
    ],
)
def test_nonsense_is_no_subscription(metadata: bytes) -> None:
    """A subscription with impossible counts or lengths, or with bytes that are not text, is
    refused."""
    assert subscription.topics(metadata) is None
