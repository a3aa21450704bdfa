"""ApiVersions (18), versions 0-3. A request of any other version also gets an answer, in the form
of version 0 (KIP-511).

The answer has a range of versions for each API. The ranges are computed from the registered APIs.
Features are not supported.

Nearly every connection begins with this request, and after a restart of the broker all clients
connect at the same time. So the broker stores encoded answers: a request with the version and body
of an earlier request is answered with the same bytes.
"""

from __future__ import annotations

from typing import Final

from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol import api_versions
from skidway.kafka.protocol.api_versions import ApiVersionsRequest
from skidway.kafka.protocol.apis import ApiKey

_UNREAD: Final = memoryview(b"")
_UNKNOWN_VERSION: Final = -1


def handle(broker: Broker, exchange: Exchange) -> None:
    """Answers with the versions of all APIs. The body of a request of an unknown version is never
    read."""
    answers, version, body = broker.api_versions_answers, exchange.version, exchange.body
    if version not in api_versions.VERSIONS:
        version, body = _UNKNOWN_VERSION, _UNREAD  # one answer for unknown versions
    kept = answers.get(version, body)
    if kept is None:
        kept = api_versions.answer(version, broker.api_ranges, _refusal(exchange))
        answers.keep(version, body, kept)
    exchange.reply_body(kept)


def _refusal(exchange: Exchange) -> ErrorCode:
    version = exchange.version
    if version not in api_versions.VERSIONS:
        return ErrorCode.UNSUPPORTED_VERSION
    request = exchange.decode(ApiVersionsRequest)
    is_valid = api_versions.valid_software(request, version)
    return ErrorCode.NONE if is_valid else ErrorCode.INVALID_REQUEST


API = Api(ApiKey.API_VERSIONS, handle)
