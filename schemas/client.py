"""Client of a schema registry (ours, Confluent's, or any with the same REST API).

Requests are few: schemas by id never change and are kept. Each call tries every URL, at most
`ROUNDS_MAX` times with growing pauses in between, then raises `RegistryUnreachable`; so no call
takes longer than `timeout_s` per try and the pauses. What a registry refuses for good is
`RegistryRefused`, at once. Safe to use from several threads.
"""

from __future__ import annotations

import http.client
import json
import random
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar, cast
from urllib.parse import SplitResult, quote, urlsplit

from skidway.errors import ConfigurationRefused, SkidwayError, Unreachable

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
ROUNDS_MAX: Final = 4
PAUSE_FIRST_S: Final = 0.2
PAUSE_MAX_S: Final = 5.0
CACHED_MAX: Final = 1000
ANSWER_BYTES_MAX: Final = 16 << 20
RETRIABLE: Final = frozenset({408, 429, 500, 502, 503, 504})
SUBJECT_UNKNOWN: Final = 40401
SCHEMA_UNKNOWN: Final = 40403

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
class Registered:
    """One version of a subject."""

    subject: str
    version: int
    id: int
    schema: str


@dataclass(frozen=True, slots=True)
class Compatibility:
    """Whether a schema may follow, and why not."""

    ok: bool
    messages: list[str]


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
    """One connection per request: the next one finds a restarted registry without surprise."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s

    def send(self, method: str, url: SplitResult, target: str, body: bytes | None) -> Answer:
        """See `Transport`."""
        connection = self._connection(url)
        headers = {"Accept": f"{CONTENT_TYPE}, application/json", "Connection": "close"}
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
        return Answer(answer.status, content)

    def _connection(self, url: SplitResult) -> http.client.HTTPConnection:
        host, timeout_s = url.hostname or "", self._timeout_s
        if url.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(
                host, url.port or 443, timeout=timeout_s, context=context
            )
        return http.client.HTTPConnection(host, url.port or 80, timeout=timeout_s)


class RegistryClient:
    """`urls`: one or several, separated by commas. Raises `ConfigurationRefused` for bad ones.

    Every method raises `RegistryUnreachable` or `RegistryRefused`.
    """

    def __init__(
        self,
        urls: str,
        *,
        timeout_s: float = 10,
        transport: Transport | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._urls = [_checked(each.strip()) for each in urls.split(",")]
        self._transport = transport or HttpTransport(timeout_s)
        self._pause = pause
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()

    def register(self, subject: str, schema: str) -> int:
        """The id of `schema` under `subject`, registered now if it was not there."""
        return self._once(
            ("register", subject, schema),
            lambda: self._json(
                "POST", _versions(subject), lambda found: int(found["id"]), {"schema": schema}
            ),
        )

    def schema(self, schema_id: int) -> str:
        """The schema of that id, as JSON text."""
        return self._once(
            ("schema", schema_id),
            lambda: self._json(
                "GET", f"/schemas/ids/{schema_id}", lambda found: str(found["schema"])
            ),
        )

    def latest(self, subject: str) -> Registered:
        """The newest version of the subject."""
        return self._json("GET", f"{_versions(subject)}/latest", _registered)

    def version(self, subject: str, version: int) -> Registered:
        """That version of the subject."""
        return self._json("GET", f"{_versions(subject)}/{version}", _registered)

    def lookup(self, subject: str, schema: str) -> Registered | None:
        """The version under which the subject has `schema`, or None."""
        try:
            return self._json(
                "POST", f"/subjects/{_quoted(subject)}", _registered, {"schema": schema}
            )
        except RegistryRefused as refused:
            if refused.error_code in (SUBJECT_UNKNOWN, SCHEMA_UNKNOWN):
                return None
            raise

    def compatible(self, subject: str, schema: str, version: int | str = "latest") -> Compatibility:
        """Whether `schema` may follow that version. A subject without schemas takes any."""
        target = f"/compatibility{_versions(subject)}/{version}?verbose=true"
        return self._json("POST", target, _compatibility, {"schema": schema})

    def subjects(self) -> list[str]:
        """All subjects."""
        return self._json("GET", "/subjects", lambda found: list(map(str, found)))

    def versions(self, subject: str) -> list[int]:
        """The versions of a subject, ascending."""
        return self._json("GET", _versions(subject), lambda found: list(map(int, found)))

    def _once(self, key: Hashable, ask: Callable[[], Value]) -> Value:
        """What never changes, from memory; the least used are forgotten."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return cast("Value", self._kept[key])
        value = ask()
        with self._lock:
            self._kept[key] = value
            if len(self._kept) > CACHED_MAX:
                self._kept.popitem(last=False)
        return value

    def _json(
        self, method: str, target: str, read: Callable[[Any], Value], document: Any = None
    ) -> Value:
        """What `read` makes of the answer's document."""
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


def subject_of(topic: str) -> str:
    """The subject of a topic's values (Confluent's TopicNameStrategy)."""
    return f"{topic}-value"


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


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def _versions(subject: str) -> str:
    return f"/subjects/{_quoted(subject)}/versions"


def _registered(answer: Any) -> Registered:
    return Registered(
        str(answer["subject"]), int(answer["version"]), int(answer["id"]), str(answer["schema"])
    )


def _compatibility(answer: Any) -> Compatibility:
    messages = [str(each) for each in answer.get("messages", [])]
    return Compatibility(bool(answer["is_compatible"]), messages)


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
    return RegistryRefused(answer.status, code, message)
