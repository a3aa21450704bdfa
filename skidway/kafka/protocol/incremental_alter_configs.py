"""IncrementalAlterConfigs (key 44), versions 0-1 (KIP-339): changes single settings of a resource.

What is new in each version:

    1    flexible (KIP-482)

The operations append and subtract are only for settings that are lists.
"""

from __future__ import annotations

from enum import IntEnum

from skidway.kafka.protocol.alter_configs import AlterConfigsResourceResponse
from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    Int8,
    Int32,
    Request,
    Response,
    structure,
)

VERSIONS = VersionRange(0, 1)


class ConfigOperation(IntEnum):
    """The kind of change of a setting (Kafka's AlterConfigOp)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@structure
class AlterableConfig:
    """One change of one setting. `value` is None if the setting is deleted."""

    name: str
    config_operation: Int8
    value: str | None


@structure
class AlterConfigsResource:
    """A topic or broker and the changes to its settings. `resource_type` is a `ResourceType`."""

    resource_type: Int8
    resource_name: str
    configs: tuple[AlterableConfig, ...]


@structure
class IncrementalAlterConfigsRequest(Request):
    """Resources, and the changes to their settings."""

    API = ApiKey.INCREMENTAL_ALTER_CONFIGS
    VERSIONS = VERSIONS

    resources: tuple[AlterConfigsResource, ...]
    validate_only: bool = False


@structure
class IncrementalAlterConfigsResponse(Response):
    """The result for each resource."""

    API = ApiKey.INCREMENTAL_ALTER_CONFIGS
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    responses: tuple[AlterConfigsResourceResponse, ...]
