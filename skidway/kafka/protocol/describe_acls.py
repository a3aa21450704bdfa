"""DescribeAcls (key 29), versions 1-3 (KIP-140): the rules of access control that a filter selects.

What is new in each version:

    1    pattern type (KIP-290); the broker answers first, then throttles (KIP-219)
    2    flexible (KIP-482)
    3    resource type USER (KIP-373)

Apache Kafka 4.0 removed version 0 (KIP-896). `skidway.kafka.acls` has the numbers of resource
types, pattern types, operations and permissions.
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
class DescribeAclsRequest(Request):
    """The filter. A field that is None, or ANY, selects every value."""

    API = ApiKey.DESCRIBE_ACLS
    VERSIONS = VERSIONS

    resource_type_filter: Int8
    resource_name_filter: str | None
    pattern_type_filter: Int8 = PatternType.LITERAL
    principal_filter: str | None
    host_filter: str | None
    operation: Int8
    permission_type: Int8


@structure
class AclDescription:
    """What one rule says about its resource."""

    principal: str
    host: str
    operation: Int8
    permission_type: Int8


@structure
class DescribeAclsResource:
    """A resource pattern and its rules."""

    resource_type: Int8
    resource_name: str
    pattern_type: Int8 = PatternType.LITERAL
    acls: tuple[AclDescription, ...]


@structure
class DescribeAclsResponse(Response):
    """The selected rules by resource pattern, or an error."""

    API = ApiKey.DESCRIBE_ACLS
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: ErrorText = None
    resources: tuple[DescribeAclsResource, ...] = ()
