"""Answers to requests that are refused before the application sees them: a JSON object with the
status and a sentence, which is the form of Confluent's registry."""

from __future__ import annotations

import json

from starlette.responses import Response

from skidway.http.counts import refused_requests


def refusal(reason: str, status: int, message: str, media_type: str) -> Response:
    """Returns the answer, and counts it under the reason, which is one of a fixed set."""
    refused_requests.labels(reason).inc()
    return Response(content(status, message), status, media_type=media_type)


def content(status: int, message: str) -> bytes:
    """Returns the body of a refusal."""
    return json.dumps({"error_code": status, "message": message}).encode()
