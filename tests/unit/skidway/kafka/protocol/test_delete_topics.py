"""A DeleteTopics request has the topics' names in different fields, depending on the version. In
every version the names can be read."""

from __future__ import annotations

import pytest

from skidway.kafka.errors import UnsupportedVersion
from skidway.kafka.protocol import decode, encode
from skidway.kafka.protocol.delete_topics import DeleteTopicsRequest


@pytest.mark.parametrize("version", range(1, 7))
def test_by_name(version: int) -> None:
    """Topic names are read as they were written, in every version."""
    sent = DeleteTopicsRequest.by_name(["a", "b"], version, timeout_ms=5)
    received = decode(DeleteTopicsRequest, encode(sent, version), version)
    assert [state.name for state in received.states()] == ["a", "b"]
    assert received.timeout_ms == 5


def test_the_other_versions_field() -> None:
    """If a DeleteTopics request has the topics' names in a field that its version lacks, `encode`
    raises an error. Otherwise the request would be sent without names."""
    with pytest.raises(UnsupportedVersion, match="topic_names"):
        encode(DeleteTopicsRequest(topic_names=("a",)), 6)
    with pytest.raises(UnsupportedVersion, match="topics"):
        encode(DeleteTopicsRequest.by_name(["a"], 6), 5)
