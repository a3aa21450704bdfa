"""InitProducerId (22), versions 0-4. Gives an id to an idempotent producer. If the rules are
enforced, only the producer's principal may use the id (see `log.producer_id`).

Every request gets a new id with epoch 0, even if the request contains the producer's previous id
(KIP-360). A new id is always correct, and there are enough ids (they have 64 bits). If the broker
has no unused id and cannot get new ids from ZooKeeper, the answer is COORDINATOR_LOAD_IN_PROGRESS,
after which clients try again.

Transactions are not supported. A request with a transactional id is refused with an error after
which the client does not try again.
"""

from __future__ import annotations

from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.errors import SkidwayError
from skidway.kafka.acls.acl import Operation, ResourceType
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def handle(broker: Broker, exchange: Exchange) -> None:
    """Answers with a new producer id as soon as the broker has an unused one."""
    request = exchange.decode(InitProducerIdRequest)
    if request.transactional_id is not None:
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        exchange.reply(InitProducerIdResponse(error_code=code))
        return

    if not (exchange.access.may_any(Operation.WRITE, ResourceType.TOPIC) or exchange.may_cluster()):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        exchange.reply(InitProducerIdResponse(error_code=code))
        return

    def given(outcome: int | SkidwayError) -> None:
        if isinstance(outcome, int):
            exchange.reply(InitProducerIdResponse(producer_id=outcome, producer_epoch=0))
        else:
            code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            exchange.reply(InitProducerIdResponse(error_code=code))

    broker.producer_ids.give(exchange.connection.identity.principal, given)


API = Api(ApiKey.INIT_PRODUCER_ID, handle)
