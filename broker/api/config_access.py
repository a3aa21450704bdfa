"""Whether a client may see or alter the settings of a resource."""

from __future__ import annotations

from skidway.broker.api.exchange import Exchange
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.describe_configs import ResourceType


def denied(exchange: Exchange, kind: int, name: str) -> ErrorCode | None:
    """Returns the code for a client that may not; None if it may. kind: of DescribeConfigs and
    AlterConfigs, whose types are others than those of rules."""
    if kind == ResourceType.TOPIC:
        return None if exchange.may_topic(name) else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return None if exchange.may_cluster() else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
