"""Every client can read the answer to ApiVersions, whatever version of the request the client has
sent."""

from __future__ import annotations

import pytest

from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol import ApiKey, VersionRange, decode
from skidway.kafka.protocol.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    answer,
    valid_software,
)

RANGES = {ApiKey.FETCH: VersionRange(4, 12), ApiKey.API_VERSIONS: VersionRange(0, 3)}


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_answer(version: int) -> None:
    """In each version of ApiVersions, the answer lists the APIs that the broker offers, each with
    its range of versions."""
    response = decode(ApiVersionsResponse, answer(version, RANGES), version)
    assert response.error_code == ErrorCode.NONE
    assert response.ranges() == RANGES


@pytest.mark.parametrize("version", [4, 5, 99, -1])
def test_unsupported_version(version: int) -> None:
    """An ApiVersions request in an unknown version is answered in version 0. The answer has error
    35 (UNSUPPORTED_VERSION) and the versions of ApiVersions that the broker supports."""
    response = decode(ApiVersionsResponse, answer(version, RANGES), 0)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert response.ranges()[ApiKey.API_VERSIONS] == VersionRange(0, 3)


@pytest.mark.parametrize(
    ("name", "software_version", "valid"),
    [
        ("librdkafka", "2.16.0", True),
        ("apache-kafka-java", "4.4.0", True),
        ("a", "1", True),
        ("", "1", False),
        ("-a", "1", False),
        ("a", "1.", False),
        ("a b", "1", False),
        ("a\n", "1", False),
    ],
)
def test_software_names(name: str, software_version: str, valid: bool) -> None:
    """If KIP-511 forbids a name or version of the client's software, it is recognised as invalid.
    Requests before version 3 have no software name."""
    request = ApiVersionsRequest(
        client_software_name=name, client_software_version=software_version
    )
    assert valid_software(request, 3) is valid
    assert valid_software(ApiVersionsRequest(), 2)
