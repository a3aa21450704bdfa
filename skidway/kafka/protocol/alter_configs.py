"""AlterConfigs (key 33), versions 0-2: replaces all settings of a resource.

What is new in each version:

    1    the broker answers first, then throttles (KIP-219)
    2    flexible (KIP-482)

A setting that is missing in the request returns to its default. To change single settings, a client
uses `incremental_alter_configs`.
"""

from __future__ import annotations

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

VERSIONS = VersionRange(0, 2)


@structure
class AlterableConfig:
    """One setting. Brokers refuse the value None."""

    name: str
    value: str | None


@structure
class AlterConfigsResource:
    """A topic or broker and all its new settings. `resource_type` is a `ResourceType`."""

    resource_type: Int8
    resource_name: str
    configs: tuple[AlterableConfig, ...]


@structure
class AlterConfigsRequest(Request):
    """Resources whose settings are replaced."""

    API = ApiKey.ALTER_CONFIGS
    VERSIONS = VERSIONS

    resources: tuple[AlterConfigsResource, ...]
    validate_only: bool = False


@structure
class AlterConfigsResourceResponse:
    """The result for one resource."""

    error_code: Int16 = 0
    error_message: ErrorText = None
    resource_type: Int8
    resource_name: str


@structure
class AlterConfigsResponse(Response):
    """The result for each resource."""

    API = ApiKey.ALTER_CONFIGS
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    responses: tuple[AlterConfigsResourceResponse, ...]
