"""InitProducerId (key 22), versions 0-4: a producer id and epoch for idempotent producers (KIP-98).

What is new in each version:

    1    the broker answers first, then throttles (KIP-219)
    2    flexible (KIP-482)
    3    a producer may send its present id and epoch, to get the next epoch (KIP-360)
    4    may answer PRODUCER_FENCED

Versions 5 (a new error code for transactions, KIP-890) and 6 (two-phase commit, KIP-939) are not
supported.
"""

from __future__ import annotations

from typing import Annotated

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    REFUSED_IF_ABSENT,
    Int16,
    Int32,
    Int64,
    Request,
    Response,
    since,
    structure,
)

VERSIONS = VersionRange(0, 4)


@structure
class InitProducerIdRequest(Request):
    """Asks for a producer id. Without a transactional id, the producer id is only for an idempotent
    producer."""

    API = ApiKey.INIT_PRODUCER_ID
    VERSIONS = VERSIONS

    transactional_id: str | None = None
    transaction_timeout_ms: Int32 = -1
    producer_id: Annotated[Int64, since(3), REFUSED_IF_ABSENT] = -1
    producer_epoch: Annotated[Int16, since(3), REFUSED_IF_ABSENT] = -1


@structure
class InitProducerIdResponse(Response):
    """The producer id and epoch that the producer uses from now on."""

    API = ApiKey.INIT_PRODUCER_ID
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = -1
