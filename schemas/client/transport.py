"""Sends requests over HTTP, and repeats a request that fails."""

from __future__ import annotations

import http
import json
import random
import ssl
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import SplitResult, urljoin, urlsplit

from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused, SkidwayError, Unreachable
from skidway.http_answer import HttpAnswer
from skidway.schemas.client.security import Security
from skidway.schemas.client.urls import SETTING, USER_INFO, parsed
from skidway.security.contexts import Contexts

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
    """Raised if each URL of the registry gave no answer in time, an answer with a status in
    `RETRIABLE`, or an answer that no schema registry gives. statuses: what each URL gave to the
    last request: a status, or None if it gave no answer."""

    def __init__(self, message: str, statuses: Collection[int | None] = ()) -> None:
        super().__init__(message)
        self.statuses = frozenset(statuses)


class RegistryRefused(SkidwayError):
    """Raised if the registry refused a request. The error message is the registry's. `error_code`
    is the registry's error code, or 0 if the refusal concerns a version that the requested schema
    references."""

    def __init__(self, status: int, error_code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code

    def about(self, schema_id: int) -> RegistryRefused:
        """Returns this error with a message that names the schema id whose schema was requested."""
        return RegistryRefused(self.status, self.error_code, f"schema {schema_id}: {self}")


@dataclass(frozen=True, slots=True)
class Answer:
    """The status code and the body of an HTTP answer. location: the address to which the answer
    sends the client; "" if it names none."""

    status: int
    body: bytes
    location: str = ""


class Transport(Protocol):
    """Sends one request. Raises OSError or urllib3's `HTTPError` if there is no answer."""

    def send(self, method: str, url: SplitResult, target: str, body: bytes | None) -> Answer:
        """Sends one request for `target` (a path with its query) to the registry at `url`, and
        returns the answer."""


class _Connection(HTTPConnection):
    response_class = HttpAnswer


class _SecureConnection(HTTPSConnection):
    response_class = HttpAnswer


class HttpTransport:
    """Sends requests over HTTP. Keeps a connection to each registry open. `send` sends a request
    only once. If the request fails, `Requests` calls `send` again. A connection opens within
    `timeout_s`, and its whole answer arrives within `timeout_s` (`HttpAnswer`); otherwise `send`
    fails.

    Raises `ConfigurationRefused` if the file of user and password cannot be used. `send` raises the
    same error if the files for TLS cannot be used.
    """

    def __init__(self, timeout_s: float, security: Security | None = None) -> None:
        self._timeout_s = timeout_s
        self._security = security or Security()
        self._security.headers()
        self._pools: dict[tuple[str, str], HTTPConnectionPool] = {}
        self._contexts: Contexts | None = None
        self._context: ssl.SSLContext | None = None
        """That of the pools."""

    def send(self, method: str, url: SplitResult, target: str, body: bytes | None) -> Answer:
        """See `Transport`. If TLS fails, the error names the setting that may be wrong."""
        try:
            return self._send(method, url, target, body)
        except (OSError, HTTPError) as error:
            if isinstance(inner := _inner(error), ssl.SSLError):
                raise OSError(self._security.tls_reason(inner)) from None
            raise

    def _send(self, method: str, url: SplitResult, target: str, body: bytes | None) -> Answer:
        try:
            headers = {"Accept": f"{CONTENT_TYPE}, application/json", **self._security.headers()}
        except ConfigurationRefused as error:  # perhaps the file is just being replaced
            raise OSError(str(error)) from error
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
        return Answer(answer.status, content, answer.headers.get("Location", ""))

    def _body_of(self, answer: BaseHTTPResponse) -> bytes:
        content = bytearray()
        while piece := answer.read1(PIECE_BYTES):
            content += piece
            if len(content) > ANSWER_BYTES_MAX:
                answer.close()
                raise HTTPError(f"the answer is longer than {ANSWER_BYTES_MAX} bytes")
        return bytes(content)

    def _pool(self, url: SplitResult) -> HTTPConnectionPool:
        if url.scheme == "https":
            self._renew()
        key = (url.scheme, url.netloc)
        if key not in self._pools:
            host, timeout_s = url.hostname or "", self._timeout_s
            if url.scheme == "https":
                pool: HTTPConnectionPool = HTTPSConnectionPool(
                    host, url.port or 443, timeout=timeout_s, ssl_context=self._context
                )
                pool.ConnectionCls = _SecureConnection
            else:
                pool = HTTPConnectionPool(host, url.port or 80, timeout=timeout_s)
                pool.ConnectionCls = _Connection
            self._pools[key] = pool
        return self._pools[key]

    def _renew(self) -> None:
        """Forgets connections that were made with files for TLS that have been replaced."""
        if self._contexts is None:
            self._contexts = self._security.contexts()
        if (context := self._contexts.get()) is not self._context:
            self._context = context
            for each in self._pools.values():
                each.close()
            self._pools.clear()


class Requests:
    """Sends requests, and repeats failed requests. `urls`: one URL, or several separated by commas.
    Raises `ConfigurationRefused` for bad URLs."""

    def __init__(self, urls: str, transport: Transport, pause: Callable[[float], None]) -> None:
        self._urls = parsed(urls)
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
        result of `read`. Repeats the request if the answer's status is in `RETRIABLE`, or if the
        answer is none of a schema registry.

        Raises `RegistryUnreachable` or `RegistryRefused`.
        """
        body = None if document is None else json.dumps(document).encode()
        faults: list[_Fault] = []
        for attempt in range(ROUNDS_MAX):
            if attempt:
                limit = min(PAUSE_FIRST_S * 4 ** (attempt - 1), PAUSE_MAX_S)
                self._pause(limit * random.uniform(0.5, 1))  # noqa: S311
            faults.clear()
            for url in self._urls:
                try:
                    answer = self._transport.send(method, url, target, body)
                    return _value(answer, url.geturl() + target, read)
                except (OSError, HTTPError) as error:
                    faults.append(_Fault(url.geturl(), None, _reason(error)))
                except _NoAnswer as error:
                    faults.append(_Fault(url.geturl(), answer.status, str(error), error.is_foreign))
        raise _unreachable(faults)


class _NoAnswer(Exception):
    """Raised for an answer after which the client sends the request again: the registry reports an
    error that may pass, or another program has answered (is_foreign)."""

    def __init__(self, words: str, *, is_foreign: bool) -> None:
        super().__init__(words)
        self.is_foreign = is_foreign


@dataclass(frozen=True, slots=True)
class _Fault:
    """Why a URL gave no answer of use. status: the status of the answer, or None if there was no
    answer. is_foreign: whether the answer came from another program than a schema registry."""

    url: str
    status: int | None
    words: str
    is_foreign: bool = False


def _unreachable(faults: Sequence[_Fault]) -> RegistryUnreachable:
    told = "; ".join(f"{each.url}: {each.words}" for each in faults)
    advice = f"; look at {SETTING}" if any(each.is_foreign for each in faults) else ""
    statuses = [each.status for each in faults]
    return RegistryUnreachable(f"No schema registry answers ({told}){advice}.", statuses)


def _reason(error: BaseException) -> str:
    """Returns the operating system's message for the failure `error`, without the text of urllib3's
    errors around it."""
    error = _inner(error)
    return str(error.__cause__ or error).strip() or type(error).__name__


def _inner(error: BaseException) -> BaseException:
    while inner := [each for each in error.args if isinstance(each, Exception)]:
        error = inner[-1]
    return error


def _value(answer: Answer, asked: str, read: Callable[[Any], Value]) -> Value:
    """Returns the result of `read`. asked: the URL with the request's path.

    A registry answers in JSON, and gives each refusal an error code. Any other answer comes from a
    program in front of the registry or in its place, such as a proxy or a login page.
    """
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        document = None
    if answer.status >= 300:
        raise _refusal(answer, asked, document)
    try:
        return read(document)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        words = "not that of a schema registry" if document is not None else "no JSON"
        raise _NoAnswer(f"the answer is {words}", is_foreign=True) from None


def _refusal(answer: Answer, asked: str, document: Any) -> RegistryRefused | _NoAnswer:
    try:
        code, message = int(document["error_code"]), str(document["message"])
    except (ValueError, KeyError, OverflowError, TypeError):
        code, message = None, f"status {answer.status}{_redirection(answer, asked)}"
    if answer.status == http.HTTPStatus.UNAUTHORIZED:
        message = f"The schema registry does not accept our credentials ({USER_INFO}): {message}"
    if answer.status in RETRIABLE:
        return _NoAnswer(message, is_foreign=False)
    if code is None or code == http.HTTPStatus.NOT_FOUND:  # the code of an unknown path
        return _NoAnswer(message, is_foreign=True)
    return RegistryRefused(answer.status, code, message)


def _redirection(answer: Answer, asked: str) -> str:
    """Returns where the answer sends the client. Leaves out the query and credentials of this
    address, which may be secret, and the path of the request."""
    if not answer.location:
        return ""
    try:
        to = urlsplit(urljoin(asked, answer.location))
    except ValueError:
        return ", a redirect"
    path = to.path.removesuffix(urlsplit(asked).path)
    return f", a redirect to {to.scheme}://{to.netloc.rpartition('@')[2]}{path}"
