"""Makes answers: HTML, JSON and CSV, with the headers that all of them have."""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from skidway.audit.collector.pages.table import Table, csv_text
from skidway.audit.collector.web.rendering import SCRIPT, STYLE
from skidway.printable import printable

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_KEPT = HEADERS | {"Cache-Control": "max-age=300"}


def html(text: str) -> Response:
    """Returns the response with an HTML page."""
    return HTMLResponse(text, headers=HEADERS)


def json(document: dict[str, Any]) -> Response:
    """Returns the response with a JSON document."""
    text = printable(dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    return Response(text, media_type="application/json", headers=HEADERS)


def csv(tables: Sequence[Table], key: str | None) -> Response:
    """Returns the response with one table as CSV: the table with this key or, if `key` is None, the
    first table."""
    found = next((x for x in tables if key in (None, x.key)), None)
    if found is None:
        known = ", ".join(x.key for x in tables)
        raise HTTPException(400, f"table must be one of {known}")
    named = {"Content-Disposition": f'attachment; filename="{found.key}.csv"'}
    return Response(csv_text(found), media_type="text/csv", headers=HEADERS | named)


def style(request: Request) -> Response:
    """Returns the response with the style sheet of the pages."""
    return Response(STYLE, media_type="text/css", headers=_KEPT)


def script(request: Request) -> Response:
    """Returns the response with the script of the pages."""
    return Response(SCRIPT, media_type="text/javascript", headers=_KEPT)


def failure(request: Request, error: Exception) -> Response:
    """Returns the response with one sentence about the error. If the error is an HTTPException, the
    response has the status of this exception; for any other error, the status is 503.
    """
    words, status = str(error), 503
    if isinstance(error, HTTPException):
        words, status = str(error.detail), error.status_code
    return PlainTextResponse(printable(words) + "\n", status, headers=HEADERS)
