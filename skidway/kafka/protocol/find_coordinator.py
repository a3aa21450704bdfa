"""FindCoordinator (key 10), versions 0-3: the broker that coordinates a group.

What is new in each version:

    1    key type (0 group, 1 transaction), error message, throttle time
    2    the broker answers first, then throttles (KIP-219)
    3    flexible (KIP-482)

Versions from 4 on (several keys in one request, KIP-699) are not supported.
"""

from __future__ import annotations

from typing import Annotated

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    REFUSED_IF_ABSENT,
    ErrorText,
    Int8,
    Int16,
    Int32,
    Request,
    Response,
    since,
    structure,
)

VERSIONS = VersionRange(0, 3)
GROUP = 0
TRANSACTION = 1


@structure
class FindCoordinatorRequest(Request):
    """Asks for the coordinator of a group id or of a transactional id."""

    API = ApiKey.FIND_COORDINATOR
    VERSIONS = VERSIONS

    key: str
    key_type: Annotated[Int8, since(1), REFUSED_IF_ABSENT] = GROUP


@structure
class FindCoordinatorResponse(Response):
    """The address of the coordinator. If there is an error, node and port are -1 and the host is
    empty."""

    API = ApiKey.FIND_COORDINATOR
    VERSIONS = VERSIONS

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
    error_message: Annotated[ErrorText, since(1)] = None
    node_id: Int32 = -1
    host: str = ""
    port: Int32 = -1
