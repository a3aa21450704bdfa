"""ApiVersions (18). Versions 0-3, and an answer to every other one (KIP-511).

The ranges are computed from what is registered. Left out: features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.api.exchange import Exchange
from broker.api.registration import Api
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol import api_versions
from skidway.kafka.protocol.api_versions import ApiVersionsRequest
from skidway.kafka.protocol.apis import ApiKey

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, exchange: Exchange) -> None:
    """Says what there is; never looks at the body of a version that is not known."""
    error = ErrorCode.NONE
    if exchange.version in api_versions.VERSIONS:
        request = exchange.decode(ApiVersionsRequest)
        if not api_versions.valid_software(request, exchange.version):
            error = ErrorCode.INVALID_REQUEST
    exchange.reply_body(api_versions.answer(exchange.version, broker.api_ranges, error))


API = Api(ApiKey.API_VERSIONS, handle)
