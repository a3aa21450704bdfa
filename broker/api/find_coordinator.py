"""FindCoordinator (10), versions 0-3. Answers which broker coordinates a group.

A request asks about one group; versions with several groups in one request are not supported.
Transactions are not supported either. A request about a transaction is refused with
TRANSACTIONAL_ID_AUTHORIZATION_FAILED, after which clients do not try again. If the answer said
instead that no coordinator is available, clients would repeat the request for a minute.
"""

from __future__ import annotations

from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.find_coordinator import (
    GROUP,
    TRANSACTION,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)


def handle(broker: Broker, exchange: Exchange) -> None:
    """Answers with the coordinator's address."""
    request = exchange.decode(FindCoordinatorRequest)
    if request.key_type == TRANSACTION:
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        words = "transactions are not offered by this broker"
        exchange.reply(FindCoordinatorResponse(error_code=code, error_message=words))
        return
    if request.key_type != GROUP:
        code, words = ErrorCode.INVALID_REQUEST, f"there is no key type {request.key_type}"
        exchange.reply(FindCoordinatorResponse(error_code=code, error_message=words))
        return
    if not exchange.may_group(request.key):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        exchange.reply(FindCoordinatorResponse(error_code=code))
        return
    coordinator = broker.groups.coordinator_of(request.key)
    found = broker.topics.catalog.reached_by(exchange.connection.listener).get(coordinator)
    if found is None:
        words = "the controller, which coordinates all groups, is not there"
        exchange.reply(
            FindCoordinatorResponse(
                error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, error_message=words
            )
        )
        return
    exchange.reply(FindCoordinatorResponse(node_id=coordinator, host=found.host, port=found.port))


API = Api(ApiKey.FIND_COORDINATOR, handle)
