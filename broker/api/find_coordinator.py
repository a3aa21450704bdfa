"""FindCoordinator (10). Versions 0-3.

There are no groups and no transactions yet, so the answer is COORDINATOR_NOT_AVAILABLE, which
clients try again. It is offered because librdkafka takes its absence for a very old broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.api.exchange import Exchange
from broker.api.registration import Api
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.find_coordinator import (
    TRANSACTION,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(_broker: Broker, exchange: Exchange) -> None:
    """Says that there is none."""
    request = exchange.decode(FindCoordinatorRequest)
    what = "transactions" if request.key_type == TRANSACTION else "consumer groups"
    exchange.reply(
        FindCoordinatorResponse(
            error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE,
            error_message=f"this broker does not coordinate {what}; assign partitions instead",
        )
    )


API = Api(ApiKey.FIND_COORDINATOR, handle)
