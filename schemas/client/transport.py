"""One request over HTTP, and the patience around it."""

from __future__ import annotations

import http.client
import json
import random
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import SplitResult, urlsplit

from skidway.errors import ConfigurationRefused, SkidwayError, Unreachable
from skidway.schemas.client.security import Security

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
ROUNDS_MAX: Final = 4
PAUSE_FIRST_S: Final = 0.2
PAUSE_MAX_S: Final = 5.0
ANSWER_BYTES_MAX: Final = 16 << 20
RETRIABLE: Final = frozenset({408, 429, 500, 502, 503, 504})
SUBJECT_UNKNOWN: Final = 40401
VERSION_UNKNOWN: Final = 40402
SCHEMA_UNKNOWN: Final = 40403
LEVEL_UNSET: Final = 40408
MODE_UNSET: Final = 40409

Value = TypeVar("Value")


class RegistryUnreachable(Unreachable):
    """No registry answered in time."""


class RegistryRefused(SkidwayError):
    """The registry's own sentence, with its HTTP status and error code (0: none given)."""

    def __init__(self, status: int, error_code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body of an HTTP answer."""

    status: int
    body: bytes


class Transport(Protocol):
    """Sends one request; raises OSError or `http.client.HTTPException` when there is no answer."""

    def send(self, method: str, url: SplitResult, target: str, body: bytes | None) -> Answer:
        """The answer to one request for `target` at the registry of that URL."""


class HttpTransport:
    """One connection per request: the next one finds a restarted registry without surprise.

    Raises `ConfigurationRefused` when made with files for TLS that cannot be used.
    """

    def __init__(self, timeout_s: float, security: Security | None = None) -> None:
        self._timeout_s = timeout_s
        self._security = security or Security()
        self._headers = {
            "Accept": f"{CONTENT_TYPE}, application/json",
            "Connection": "close",
            **self._security.headers(),
        }
        self._context: ssl.SSLContext | None = None

    def send(self, method: str, url: SplitResult, target: str, body: bytes | None) -> Answer:
        """See `Transport`."""
        connection = self._connection(url)
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = CONTENT_TYPE
        try:
            connection.request(method, url.path.rstrip("/") + target, body, headers)
            answer = connection.getresponse()
            content = answer.read(ANSWER_BYTES_MAX + 1)
        finally:
            connection.close()
        if len(content) > ANSWER_BYTES_MAX:
            raise http.client.HTTPException(f"the answer is longer than {ANSWER_BYTES_MAX} bytes")
        _check_whole(answer, content)
        return Answer(answer.status, content)

    def _connection(self, url: SplitResult) -> http.client.HTTPConnection:
        host, timeout_s = url.hostname or "", self._timeout_s
        if url.scheme == "https":
            self._context = self._context or self._security.context()
            return http.client.HTTPSConnection(
                host, url.port or 443, timeout=timeout_s, context=self._context
            )
        return http.client.HTTPConnection(host, url.port or 80, timeout=timeout_s)


def _check_whole(answer: http.client.HTTPResponse, content: bytes) -> None:
    """Raises `IncompleteRead` for an answer whose sender died in its middle.

    A bounded read of a body that ends early says nothing of it, and headers that end early are
    taken for whole ones: then no length is declared, and there is no body.
    """
    unannounced = answer.length is None and not answer.chunked
    if answer.length or (unannounced and not content):
        raise http.client.IncompleteRead(content, answer.length)


class Requests:
    """`urls`: one or several, separated by commas. Raises `ConfigurationRefused` for bad ones."""

    def __init__(self, urls: str, transport: Transport, pause: Callable[[float], None]) -> None:
        self._urls = [_checked(each.strip()) for each in urls.split(",")]
        self._transport = transport
        self._pause = pause

    def json(
        self, method: str, target: str, read: Callable[[Any], Value], document: Any = None
    ) -> Value:
        """What `read` makes of the answer's document.

        Raises `RegistryUnreachable` or `RegistryRefused`.
        """
        body = None if document is None else json.dumps(document).encode()
        faults: list[str] = []
        for attempt in range(ROUNDS_MAX):
            if attempt:
                limit = min(PAUSE_FIRST_S * 4 ** (attempt - 1), PAUSE_MAX_S)
                self._pause(limit * random.uniform(0.5, 1))  # noqa: S311
            faults.clear()
            for url in self._urls:
                try:
                    answer = self._transport.send(method, url, target, body)
                except (OSError, http.client.HTTPException) as error:
                    faults.append(f"{url.geturl()}: {error or type(error).__name__}")
                    continue
                if answer.status not in RETRIABLE:
                    return _document(answer, read)
                faults.append(f"{url.geturl()}: {_refusal(answer)}")
        raise RegistryUnreachable(f"No schema registry answers ({'; '.join(faults)}).")


def check_urls(urls: str) -> None:
    """Raises `ConfigurationRefused` for what is no URL, or no list of them, of a registry."""
    for each in urls.split(","):
        _checked(each.strip())


def _checked(url: str) -> SplitResult:
    parts = urlsplit(url)
    try:
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if "@" in parts.netloc:
        raise ConfigurationRefused("A URL of a schema registry takes no user and password.")
    if not good or parts.query or parts.fragment:
        raise ConfigurationRefused(f"{url!r} is no URL of a schema registry (http://host:port).")
    return parts


def _document(answer: Answer, read: Callable[[Any], Value]) -> Value:
    if answer.status >= 300:
        raise _refusal(answer)
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        raise RegistryRefused(answer.status, 0, "The registry's answer is no JSON.") from None
    try:
        return read(document)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise RegistryRefused(
            answer.status, 0, "The registry's answer is not that of a schema registry."
        ) from None


def _refusal(answer: Answer) -> RegistryRefused:
    try:
        document = json.loads(answer.body)
        code, message = int(document["error_code"]), str(document["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        code, message = 0, f"The registry answers with status {answer.status}."
    if answer.status == http.HTTPStatus.UNAUTHORIZED:
        message = (
            "The schema registry does not accept who we are "
            f"(schema.registry.basic.auth.user.info): {message}"
        )
    return RegistryRefused(answer.status, code, message)
