"""CreateAcls (key 30), versions 1-3 (KIP-140): adds rules of access control.

What is new in each version:

    1    pattern type (KIP-290); the broker answers first, then throttles (KIP-219)
    2    flexible (KIP-482)
    3    resource type USER (KIP-373)

Apache Kafka 4.0 removed version 0 (KIP-896). A rule that exists already is no error.
"""

from __future__ import annotations

from skidway.kafka.acls.acl import PatternType
from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    ErrorText,
    Int8,
    Int16,
    Int32,
    Request,
    Response,
    structure,
)

VERSIONS = VersionRange(1, 3)


@structure
class AclCreation:
    """A new rule. `skidway.kafka.acls` has the numbers."""

    resource_type: Int8
    resource_name: str
    resource_pattern_type: Int8 = PatternType.LITERAL
    principal: str
    host: str
    operation: Int8
    permission_type: Int8


@structure
class CreateAclsRequest(Request):
    """The new rules."""

    API = ApiKey.CREATE_ACLS
    VERSIONS = VERSIONS

    creations: tuple[AclCreation, ...]


@structure
class AclCreationResult:
    """The result for one rule."""

    error_code: Int16 = 0
    error_message: ErrorText = None


@structure
class CreateAclsResponse(Response):
    """The result for each rule, in the order of the request."""

    API = ApiKey.CREATE_ACLS
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    results: tuple[AclCreationResult, ...]
