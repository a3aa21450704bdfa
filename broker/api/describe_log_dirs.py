"""DescribeLogDirs (35), versions 1-4. Describes this broker's log directories and their partitions.

The answer contains every directory, with KAFKA_STORAGE_ERROR if the directory is offline.
Partitions that this broker does not have are left out. Partitions that this broker does not serve,
for example because their logs are damaged, are left out, too. A background thread asks the
operating system for the sizes of the directories' volumes, because a slow disk would make the loop
wait.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.broker.log.log_directory import LogDirectory
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.describe_log_dirs import (
    UNKNOWN_BYTES,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from skidway.kafka.types import TopicPartition

Space = tuple[int, int]
"""The total and the usable bytes of a log directory's volume."""


def handle(broker: Broker, exchange: Exchange) -> None:
    """Describes each directory as soon as the sizes of the volumes are known."""
    request = exchange.decode(DescribeLogDirsRequest)
    if not exchange.may_cluster():
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        exchange.reply(DescribeLogDirsResponse(error_code=code, results=()))
        return
    wanted = None
    if request.topics is not None:
        wanted = {TopicPartition(row.topic, n) for row in request.topics for n in row.partitions}

    def measured(spaces: Mapping[Path, Space]) -> None:
        results = tuple(
            _directory(broker, home, wanted, spaces) for home in broker.logs.directories
        )
        exchange.reply(DescribeLogDirsResponse(results=results))

    broker.logs.measure(_space, measured)


def _space(path: Path) -> Space:
    status = os.statvfs(path)
    return status.f_frsize * status.f_blocks, status.f_frsize * status.f_bavail


def _directory(
    broker: Broker,
    home: LogDirectory,
    wanted: set[TopicPartition] | None,
    spaces: Mapping[Path, Space],
) -> DescribeLogDirsResult:
    if home.offline is not None:
        return DescribeLogDirsResult(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=str(home.path)
        )
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition, each in sorted(broker.logs.logs.items()):
        if broker.logs.home_of(partition) is home and (wanted is None or partition in wanted):
            row = DescribeLogDirsPartition(
                partition_index=partition.partition, partition_size=each.size_bytes
            )
            topics.setdefault(partition.topic, []).append(row)
    total, usable = spaces.get(home.path, (UNKNOWN_BYTES, UNKNOWN_BYTES))
    return DescribeLogDirsResult(
        log_dir=str(home.path),
        topics=tuple(
            DescribeLogDirsTopic(name=name, partitions=tuple(rows)) for name, rows in topics.items()
        ),
        total_bytes=total,
        usable_bytes=usable,
    )


API = Api(ApiKey.DESCRIBE_LOG_DIRS, handle)
