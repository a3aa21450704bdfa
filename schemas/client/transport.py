"""Sends requests over HTTP, and repeats a request that fails."""

from __future__ import annotations

import http
import json
import random
import time
from collections.abc import Callable, Collection
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import SplitResult, urlsplit

from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError

from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused, SkidwayError, Unreachable
from skidway.schemas.client.security import Security

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
ROUNDS_MAX: Final = 4
PAUSE_FIRST_S: Final = 0.2
PAUSE_MAX_S: Final = 5.0
ANSWER_BYTES_MAX: Final = 16 << 20
PIECE_BYTES: Final = 1 << 16
_LENGTH_HEADERS: Final = ("Content-Length", "Transfer-Encoding")
RETRIABLE: Final = frozenset({408, 429, 500, 502, 503, 504})
SUBJECT_UNKNOWN: Final = 40401
SCHEMA_UNKNOWN: Final = 40403
LEVEL_UNSET: Final = 40408
MODE_UNSET: Final = 40409

Value = TypeVar("Value")


class RegistryUnreachable(Unreachable):
    """Raised if each URL of the registry gave no answer in time, or an answer with a status in
    `RETRIABLE`. statuses: what each URL gave to the last request: a status, or None if it gave no
    answer."""

    def __init__(self, message: str, statuses: Collection[int | None] = ()) -> None:
        super().__init__(message)
        self.statuses = frozenset(statuses)


class RegistryRefused(SkidwayError):
    """Raised if the registry refused a request, or gave an answer that no schema registry gives. If
    the registry explains its refusal, the error message contains this explanation. `error_code` is
    the registry's error code, or 0 if its answer has no error code, or if the refusal concerns a
    version that the requested schema references."""

    def __init__(self, status: int, error_code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code

    def about(self, schema_id: int) -> RegistryRefused:
        """Returns this error with a message that names the schema id whose schema was requested."""
        return RegistryRefused(self.status, self.error_code, f"schema {schema_id}: {self}")


@dataclass(frozen=True, slots=True)
class Answer:
    """The status code and the body of an HTTP answer."""

    status: int
    body: bytes


class Transport(Protocol):
    """Sends one request. Raises OSError or urllib3's `HTTPError` if there is no answer."""

    def send(self, method: str, url: SplitResult, target: str, body: bytes | None) -> Answer:
        """Sends one request for `target` (a path with its query) to the registry at `url`, and
        returns the answer."""


class HttpTransport:
    """Sends requests over HTTP. Keeps a connection to each registry open. `send` sends a request
    only once. If the request fails, `Requests` calls `send` again.

    Raises `ConfigurationRefused` if `user_info` is not `user:password`. `send` raises the same
    error if the files for TLS cannot be used.
    """

    def __init__(
        self,
        timeout_s: float,
        security: Security | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._timeout_s = timeout_s
        self._monotonic = monotonic
        self._security = security or Security()
        self._headers = {
            "Accept": f"{CONTENT_TYPE}, application/json",
            **self._security.headers(),
        }
        self._pools: dict[tuple[str, str], HTTPConnectionPool] = {}

    def send(self, method: str, url: SplitResult, target: str, body: bytes | None) -> Answer:
        """See `Transport`."""
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = CONTENT_TYPE
        answer = self._pool(url).urlopen(
            method,
            url.path.rstrip("/") + target,
            body=body,
            headers=headers,
            retries=False,
            redirect=False,
            preload_content=False,
        )
        # A status below 200 means that the registry has sent an interim answer (1xx), and that the
        # final answer follows. If the connection stayed open, the next request on it would get this
        # final answer, so the connection is closed.
        if answer.status < http.HTTPStatus.OK:
            answer.close()
            raise HTTPError(f"an interim answer (status {answer.status})")
        content = self._body_of(answer)
        if not content and not any(each in answer.headers for each in _LENGTH_HEADERS):
            answer.close()
            raise HTTPError("the answer ends in its head")  # http.client accepts such an answer
        answer.release_conn()
        return Answer(answer.status, content)

    def _body_of(self, answer: BaseHTTPResponse) -> bytes:
        """Returns the body of `answer`. Gives up if the whole body has not arrived within
        `timeout_s`, even if the registry still sends bytes."""
        end_at, content = self._monotonic() + self._timeout_s, bytearray()
        while piece := answer.read1(PIECE_BYTES):
            content += piece
            if len(content) > ANSWER_BYTES_MAX:
                answer.close()
                raise HTTPError(f"the answer is longer than {ANSWER_BYTES_MAX} bytes")
            if self._monotonic() > end_at:
                answer.close()
                raise HTTPError(f"the answer did not end within {self._timeout_s:g} s")
        return bytes(content)

    def _pool(self, url: SplitResult) -> HTTPConnectionPool:
        key = (url.scheme, url.netloc)
        if key not in self._pools:
            host, timeout_s = url.hostname or "", self._timeout_s
            self._pools[key] = (
                HTTPSConnectionPool(
                    host, url.port or 443, timeout=timeout_s, ssl_context=self._security.context()
                )
                if url.scheme == "https"
                else HTTPConnectionPool(host, url.port or 80, timeout=timeout_s)
            )
        return self._pools[key]


class Requests:
    """Sends requests, and repeats failed requests. `urls`: one URL, or several separated by commas.
    Raises `ConfigurationRefused` for bad URLs."""

    def __init__(self, urls: str, transport: Transport, pause: Callable[[float], None]) -> None:
        self._urls = [_checked(each.strip()) for each in urls.split(",")]
        self._transport = transport
        self._pause = pause

    def json(
        self,
        method: str,
        target: str,
        read: Callable[[Any], Value],
        document: Any = None,
    ) -> Value:
        """Sends a request. Calls `read` with the JSON document in the answer, and returns the
        result of `read`. Repeats the request if the answer's status is in `RETRIABLE`.

        Raises `RegistryUnreachable` or `RegistryRefused`.
        """
        body = None if document is None else json.dumps(document).encode()
        faults: list[str] = []
        statuses: list[int | None] = []
        for attempt in range(ROUNDS_MAX):
            if attempt:
                limit = min(PAUSE_FIRST_S * 4 ** (attempt - 1), PAUSE_MAX_S)
                self._pause(limit * random.uniform(0.5, 1))  # noqa: S311
            faults.clear()
            statuses.clear()
            for url in self._urls:
                try:
                    answer = self._transport.send(method, url, target, body)
                except (OSError, HTTPError) as error:
                    faults.append(f"{url.geturl()}: {_reason(error)}")
                    statuses.append(None)
                    continue
                if answer.status not in RETRIABLE:
                    return _document(answer, read)
                faults.append(f"{url.geturl()}: {_refusal(answer)}")
                statuses.append(answer.status)
        raise RegistryUnreachable(f"No schema registry answers ({'; '.join(faults)}).", statuses)


def check_urls(urls: str) -> None:
    """Checks one or more URLs of a registry, separated by commas. Raises `ConfigurationRefused` if
    they are not valid."""
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


def _reason(error: BaseException) -> str:
    """Returns the operating system's message for the failure `error`, without the text of urllib3's
    errors around it."""
    while inner := [each for each in error.args if isinstance(each, Exception)]:
        error = inner[-1]
    return str(error.__cause__ or error).strip() or type(error).__name__


def _document(answer: Answer, read: Callable[[Any], Value]) -> Value:
    if answer.status >= 300:
        raise _refusal(answer)
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        raise RegistryRefused(answer.status, 0, "The registry's answer is no JSON.") from None
    try:
        return read(document)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        raise RegistryRefused(
            answer.status, 0, "The registry's answer is not that of a schema registry."
        ) from None


def _refusal(answer: Answer) -> RegistryRefused:
    try:
        document = json.loads(answer.body)
        code, message = int(document["error_code"]), str(document["message"])
    except (ValueError, KeyError, OverflowError, TypeError, RecursionError):
        code, message = 0, f"The registry answers with status {answer.status}."
    if answer.status == http.HTTPStatus.UNAUTHORIZED:
        message = (
            "The schema registry does not accept our credentials "
            f"(schema.registry.basic.auth.user.info): {message}"
        )
    return RegistryRefused(answer.status, code, message)
