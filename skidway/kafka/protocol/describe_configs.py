"""DescribeConfigs (key 32), versions 1-4: the settings of topics and brokers.

What is new in each version:

    1    source and synonyms in place of "is default" (KIP-896 removed version 0)
    2    the broker answers first, then throttles (KIP-219)
    3    type and documentation (KIP-569)
    4    flexible (KIP-482)

Clients expect every setting in the answer, including defaults.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    ErrorText,
    Int8,
    Int16,
    Int32,
    Request,
    Response,
    since,
    structure,
)

VERSIONS = VersionRange(1, 4)


class ResourceType(IntEnum):
    """The kind of thing that has settings."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8


class ConfigSource(IntEnum):
    """The source of a setting's value (Kafka's DescribeConfigsResponse.ConfigSource)."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6


class ConfigType(IntEnum):
    """The type of a setting's value (KIP-569)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@structure
class DescribeConfigsResource:
    """A topic, given by its name, or a broker, given by its id. If `configuration_keys` is None,
    all settings are requested."""

    resource_type: Int8
    resource_name: str
    configuration_keys: tuple[str, ...] | None = None


@structure
class DescribeConfigsRequest(Request):
    """Asks for settings."""

    API = ApiKey.DESCRIBE_CONFIGS
    VERSIONS = VERSIONS

    resources: tuple[DescribeConfigsResource, ...]
    include_synonyms: bool = False
    include_documentation: Annotated[bool, since(3)] = False


@structure
class DescribeConfigsSynonym:
    """One of the sources from which a setting can get its value, and the value that this source
    gives."""

    name: str
    value: str | None
    source: Int8


@structure
class DescribeConfigsResourceResult:
    """One setting."""

    name: str
    value: str | None
    read_only: bool = False
    config_source: Int8 = ConfigSource.UNKNOWN
    is_sensitive: bool = False
    synonyms: tuple[DescribeConfigsSynonym, ...] = ()
    config_type: Annotated[Int8, since(3)] = ConfigType.UNKNOWN
    documentation: Annotated[ErrorText, since(3)] = None


@structure
class DescribeConfigsResult:
    """The settings of one resource, or its error."""

    error_code: Int16 = 0
    error_message: ErrorText = None
    resource_type: Int8
    resource_name: str
    configs: tuple[DescribeConfigsResourceResult, ...] = ()


@structure
class DescribeConfigsResponse(Response):
    """The settings of each resource."""

    API = ApiKey.DESCRIBE_CONFIGS
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    results: tuple[DescribeConfigsResult, ...]
