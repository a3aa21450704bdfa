"""DescribeLogDirs (key 35), versions 1-4 (KIP-113): the log directories of one broker.

What is new in each version:

    1    the broker answers first, then throttles (KIP-219); KIP-896 removed version 0
    2    flexible (KIP-482)
    3    an error for the whole answer
    4    bytes of the volume (KIP-827)
"""

from __future__ import annotations

from typing import Annotated

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    Int16,
    Int32,
    Int64,
    Request,
    Response,
    since,
    structure,
)

VERSIONS = VersionRange(1, 4)
UNKNOWN_BYTES = -1


@structure
class DescribableLogDirTopic:
    """A topic, and those of its partitions that the request asks for."""

    topic: str
    partitions: tuple[Int32, ...]


@structure
class DescribeLogDirsRequest(Request):
    """Asks for a broker's log directories. `topics` has the partitions to describe; None means all
    partitions."""

    API = ApiKey.DESCRIBE_LOG_DIRS
    VERSIONS = VERSIONS

    topics: tuple[DescribableLogDirTopic, ...] | None = None


@structure
class DescribeLogDirsPartition:
    """A partition. `partition_size` is the size of its segments in bytes. `offset_lag` is the
    number of records between the high watermark and the log end."""

    partition_index: Int32
    partition_size: Int64
    offset_lag: Int64 = 0
    is_future_key: bool = False


@structure
class DescribeLogDirsTopic:
    """The partitions of one topic in one directory."""

    name: str
    partitions: tuple[DescribeLogDirsPartition, ...]


@structure
class DescribeLogDirsResult:
    """One directory. `error_code` is KAFKA_STORAGE_ERROR if the directory is offline."""

    error_code: Int16 = 0
    log_dir: str
    topics: tuple[DescribeLogDirsTopic, ...] = ()
    total_bytes: Annotated[Int64, since(4)] = UNKNOWN_BYTES
    usable_bytes: Annotated[Int64, since(4)] = UNKNOWN_BYTES


@structure
class DescribeLogDirsResponse(Response):
    """The directories of the broker that received the request."""

    API = ApiKey.DESCRIBE_LOG_DIRS
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(3)] = 0
    results: tuple[DescribeLogDirsResult, ...]
