"""DescribeCluster (60), versions 0-1. Answers with the part of Metadata that is about the cluster
and not about topics (KIP-700)."""

from __future__ import annotations

from dataclasses import replace

from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.describe_cluster import (
    BROKERS,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)


def handle(broker: Broker, exchange: Exchange) -> None:
    """Answers with what the catalog (the broker's snapshot of ZooKeeper) says about the cluster."""
    request = exchange.decode(DescribeClusterRequest)
    if request.endpoint_type != BROKERS:
        code, words = ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this is a broker, not a controller"
        exchange.reply(
            DescribeClusterResponse(error_code=code, error_message=words, cluster_id="", brokers=())
        )
        return
    catalog = broker.topics.catalog
    brokers = tuple(
        DescribeClusterBroker(
            broker_id=broker_id,
            host=each.host,
            port=each.port,
            rack=catalog.brokers[broker_id].rack,
        )
        for broker_id, each in catalog.reached_by(exchange.connection.listener).items()
    )
    response = DescribeClusterResponse(
        cluster_id=catalog.cluster_id, controller_id=catalog.controller_id, brokers=brokers
    )
    if request.include_cluster_authorized_operations:
        response = replace(response, cluster_authorized_operations=exchange.cluster_operations)
    exchange.reply(response)


API = Api(ApiKey.DESCRIBE_CLUSTER, handle)
