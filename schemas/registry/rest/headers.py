"""Checks a request's headers: the media types of body and answer, and the origin of the request.

The media types are those of Confluent's registry. If a body has another media type, the registry
refuses the request with 415. If the client accepts none of these media types for the answer, the
registry refuses the request with 406. The registry reads a body without a media type, as
Confluent's registry does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from skidway.schemas.registry.refusals import foreign_origin, not_acceptable, unsupported_media_type

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
PRODUCED: Final = (CONTENT_TYPE, "application/vnd.schemaregistry+json", "application/json")
"""The media types of answers. If the client accepts several of these media types with the same
quality, the answer has the media type that comes first in this tuple."""
CONSUMED: Final = frozenset({*PRODUCED, "application/octet-stream"})
RANGES_MAX: Final = 100
"""The registry reads at most this many media ranges (such as `text/*;q=0.5`) of an Accept
header."""


def check_headers(method: str, headers: Mapping[str, str]) -> None:
    """Raises the refusal with status 403, 406 or 415 for headers that are not allowed."""
    if method not in ("GET", "HEAD"):
        _check_origin(headers)
    produced(headers.get("accept"))
    if method in ("POST", "PUT"):
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind and kind not in CONSUMED:
            raise unsupported_media_type()


def produced(accept: str | None) -> str:
    """Returns the media type that the answer to a request with this Accept header gets. Raises the
    refusal with status 406 if the client accepts none of the media types in `PRODUCED`."""
    if accept is None or not accept.strip():
        return CONTENT_TYPE
    ranges = [_media_range(each) for each in accept.lower().split(",")[:RANGES_MAX]]
    liked = {each: _quality(each, ranges) for each in PRODUCED}
    best = max(PRODUCED, key=lambda each: liked[each])
    if liked[best] <= 0:
        raise not_acceptable()
    return best


def _check_origin(headers: Mapping[str, str]) -> None:
    """Refuses changes that web pages of other sites request. Without this check, a web page in an
    operator's browser could change a registry that the page's author cannot reach. Browsers send
    the page's site in the header Origin. The site must be the Host of the request, for which the
    server has checked that it is one of `allowed.hosts`."""
    origin, host = headers.get("origin"), headers.get("host")
    if origin is not None and (not host or urlsplit(origin).netloc.lower() != host.lower()):
        raise foreign_origin(origin)


def _media_range(text: str) -> tuple[str, float]:
    kind, *parameters = (each.strip() for each in text.split(";"))
    quality = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    try:
        return kind, float(quality)
    except ValueError:
        return kind, 0.0


def _quality(kind: str, ranges: list[tuple[str, float]]) -> float:
    for wanted in (kind, "application/*", "*/*"):
        for named, quality in ranges:
            if named == wanted:
                return quality
    return 0.0
