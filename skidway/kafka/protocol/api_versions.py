"""ApiVersions (key 18), versions 0-3: the first request on a connection.

What is new in each version:

    1    throttle time
    2    the broker answers first, then throttles (KIP-219)
    3    flexible (KIP-482); client software name and version (KIP-511); features (KIP-584)

The client may ask in a version that the broker does not know. The broker then ignores the body of
the request. The broker answers with a body of version 0, which has error 35 (UNSUPPORTED_VERSION)
and the version ranges that the broker serves (KIP-511). So that the client can read this answer,
the *response header* has no tag section in any version; ``frames.response_frame`` takes care of
this.

Skidway's broker ignores features. Version 4 (in which a feature's lowest version may be 0) is not
supported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    Int16,
    Int32,
    Int64,
    Request,
    Response,
    encode,
    since,
    structure,
    tagged,
)

VERSIONS = VersionRange(0, 3)
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@structure
class ApiVersionsRequest(Request):
    """Asks which APIs the broker serves, and contains the name and version of the client's
    software."""

    API = ApiKey.API_VERSIONS
    VERSIONS = VERSIONS

    client_software_name: Annotated[str, since(3)] = ""
    client_software_version: Annotated[str, since(3)] = ""


@structure
class ApiVersion:
    """The range of versions of one API, including both ends."""

    api_key: Int16
    min_version: Int16
    max_version: Int16


@structure
class SupportedFeatureKey:
    """A feature and the levels that the broker supports."""

    name: str
    min_version: Int16
    max_version: Int16


@structure
class FinalizedFeatureKey:
    """A feature and the levels that the cluster has agreed on."""

    name: str
    max_version_level: Int16
    min_version_level: Int16


@structure
class ApiVersionsResponse(Response):
    """The APIs that the broker serves."""

    API = ApiKey.API_VERSIONS
    VERSIONS = VERSIONS

    error_code: Int16 = 0
    api_keys: tuple[ApiVersion, ...]
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    supported_features: Annotated[tuple[SupportedFeatureKey, ...], since(3), tagged(0)] = ()
    finalized_features_epoch: Annotated[Int64, since(3), tagged(1)] = -1
    finalized_features: Annotated[tuple[FinalizedFeatureKey, ...], since(3), tagged(2)] = ()
    zk_migration_ready: Annotated[bool, since(3), tagged(3)] = False

    def ranges(self) -> dict[int, VersionRange]:
        """Returns the version range of each API key, for `apis.choose`."""
        return {
            api.api_key: VersionRange(api.min_version, api.max_version) for api in self.api_keys
        }


def answer(
    version: int, ranges: Mapping[ApiKey, VersionRange], error: ErrorCode = ErrorCode.NONE
) -> bytes:
    """Returns the body of the answer to a request of any version. `ranges` has the range of
    versions that the broker serves, for each of its APIs.

    A version that this module does not know is answered in version 0 with UNSUPPORTED_VERSION
    (KIP-511).
    """
    if version not in VERSIONS:
        version, error = 0, ErrorCode.UNSUPPORTED_VERSION
    keys = tuple(
        ApiVersion(api_key=key, min_version=offered.lowest, max_version=offered.highest)
        for key, offered in sorted(ranges.items())
    )
    return encode(ApiVersionsResponse(error_code=error, api_keys=keys), version)


def valid_software(request: ApiVersionsRequest, version: int) -> bool:
    """Returns whether a request names the client's software as KIP-511 demands. Always True for
    versions below 3."""
    if version < 3:
        return True
    names = (request.client_software_name, request.client_software_version)
    return all(_SOFTWARE.fullmatch(name) for name in names)
