"""DeleteAcls (key 31), versions 1-3 (KIP-140): deletes the rules of access control that filters
select.

What is new in each version:

    1    pattern type (KIP-290); the broker answers first, then throttles (KIP-219)
    2    flexible (KIP-482)
    3    resource type USER (KIP-373)

Apache Kafka 4.0 removed version 0 (KIP-896). A filter that selects no rule is no error.
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
class DeleteAclsFilter:
    """A filter. A field that is None, or ANY, selects every value. `skidway.kafka.acls` has the
    numbers."""

    resource_type_filter: Int8
    resource_name_filter: str | None
    pattern_type_filter: Int8 = PatternType.LITERAL
    principal_filter: str | None
    host_filter: str | None
    operation: Int8
    permission_type: Int8


@structure
class DeleteAclsRequest(Request):
    """The filters. What one of them selects is deleted."""

    API = ApiKey.DELETE_ACLS
    VERSIONS = VERSIONS

    filters: tuple[DeleteAclsFilter, ...]


@structure
class DeleteAclsMatchingAcl:
    """A selected rule. It is deleted if it has no error."""

    error_code: Int16 = 0
    error_message: ErrorText = None
    resource_type: Int8
    resource_name: str
    pattern_type: Int8 = PatternType.LITERAL
    principal: str
    host: str
    operation: Int8
    permission_type: Int8


@structure
class DeleteAclsFilterResult:
    """The result for one filter."""

    error_code: Int16 = 0
    error_message: ErrorText = None
    matching_acls: tuple[DeleteAclsMatchingAcl, ...] = ()


@structure
class DeleteAclsResponse(Response):
    """The result for each filter, in the order of the request."""

    API = ApiKey.DELETE_ACLS
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    filter_results: tuple[DeleteAclsFilterResult, ...]
