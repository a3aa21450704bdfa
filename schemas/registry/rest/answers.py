"""Makes answers: JSON documents, and errors, which are objects with a code and a sentence."""

from __future__ import annotations

import contextlib
import http
import json
from dataclasses import dataclass
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from skidway import log
from skidway.http.bounds import NoTurn
from skidway.schemas.registry.refusals import Refusal
from skidway.schemas.registry.rest.headers import CONTENT_TYPE, produced

STORE_ERROR: Final = 50001

_log = log.get(__name__)


@dataclass(frozen=True, slots=True)
class Text:
    """A document that is already JSON text. The registry sends it unchanged."""

    text: str


def good(document: Any, request: Request) -> Response:
    """Returns the answer to a request that succeeded."""
    return _as_accepted(_response(200, document), request)


def refused(refusal: Refusal) -> Response:
    """Returns the answer to a request that was refused."""
    return error(refusal.status, refusal.error_code, str(refusal))


def error(status: int, error_code: int, message: str) -> Response:
    """Returns an answer with an error, in the form that every client can read."""
    # A message may quote the refused text, which may contain half of a surrogate pair. UTF-8 cannot
    # encode such a half, so a question mark replaces it.
    sound = message.encode("utf-8", "replace").decode()
    return _response(status, {"error_code": error_code, "message": sound})


def of_status(status: int) -> Response:
    """Returns an answer with an error for an HTTP status for which Confluent defines no error
    code."""
    return error(status, status, f"HTTP {status} {http.HTTPStatus(status).phrase}")


async def on_http_error(request: Request, raised: Exception) -> Response:
    """Returns the answer to a request whose path or method has no route. Starlette calls this
    function."""
    status = raised.status_code if isinstance(raised, HTTPException) else 500
    return _as_accepted(of_status(status), request)


async def on_skidway_error(request: Request, raised: Exception) -> Response:
    """Returns the answer to a request that raised one of Skidway's own errors: a refusal, or 503 if
    the request did not run. Any other error is logged, and the answer has status 500. Starlette
    calls this function."""
    if isinstance(raised, Refusal):
        return _as_accepted(refused(raised), request)
    if isinstance(raised, NoTurn):
        return _as_accepted(raised.answer(CONTENT_TYPE), request)
    _log.error("registry_request_failed", reason=str(raised))
    return _as_accepted(error(500, STORE_ERROR, str(raised)), request)


async def on_unexpected(request: Request, raised: Exception) -> Response:
    """Returns the answer to a request that raised an unexpected exception. The exception is a bug
    in Skidway, so the status is 500. Starlette calls this function."""
    _log.error("registry_request_failed", exc=raised)
    return _as_accepted(of_status(500), request)


def _response(status: int, document: Any) -> Response:
    if isinstance(document, Text):
        content = document.text
    else:
        content = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return Response(content.encode(), status, media_type=CONTENT_TYPE)


def _as_accepted(response: Response, request: Request) -> Response:
    """Gives the answer the media type that the client prefers. If the client accepts none of our
    media types, the answer keeps the registry's own media type."""
    with contextlib.suppress(Refusal):
        response.headers["content-type"] = produced(request.headers.get("accept"))
    return response
