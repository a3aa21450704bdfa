"""The registry client keeps its connections to the registry, and survives a registry that dies
while it answers."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Sequence

import pytest

from skidway.schemas.client import (
    ROUNDS_MAX,
    RegistryClient,
    RegistryUnreachable,
)
from support.processes import WITHIN_S

ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"id": 7}'
BODY_AT = len(ANSWER) - 9


def _serve(listener: socket.socket, answers: Sequence[bytes], requests: list[bytes]) -> None:
    for answer in answers:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(WITHIN_S)
            requests.append(_request(connection))
            connection.sendall(answer)


def _request(connection: socket.socket) -> bytes:
    """Reads one whole request, and returns its body. The request's head says how long the body
    is."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65_536)
    head, _, body = received.partition(b"\r\n\r\n")
    (length,) = re.findall(rb"(?i)content-length: (\d+)", head)
    while len(body) < int(length):
        body += connection.recv(65_536)
    return body


@pytest.mark.parametrize("sent", [0, 20, BODY_AT, BODY_AT + 1, len(ANSWER) - 1])
def test_an_answer_cut_short_is_none_and_asked_for_again(sent: int) -> None:
    """If the connection ends before an answer is complete, the client discards the answer and sends
    the request again."""
    requests: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(WITHIN_S)
        answers = (ANSWER[:sent], ANSWER)
        server = threading.Thread(target=_serve, args=(listener, answers, requests))
        server.start()
        try:
            client = RegistryClient(
                f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_s=WITHIN_S
            )
            assert client.register("orders-value", '"string"') == 7
        finally:
            server.join()
    assert len(requests) == 2


def _serve_each(
    listener: socket.socket, answers: Sequence[bytes], requests: list[bytes] | None = None
) -> None:
    """Accepts connections one after the other. On each connection, answers the first request with
    the first element of `answers`, the second request with the second element, and so on. If
    `requests` is given, appends each request to `requests`. Ends when the listener is shut down."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection, contextlib.suppress(OSError):
            connection.settimeout(WITHIN_S)
            for answer in answers:
                asked = connection.recv(65_536)
                if not asked:
                    break
                if requests is not None:
                    requests.append(asked)
                connection.sendall(answer)


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (
            (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", ANSWER),
            "interim answer",
        ),
        (
            (b"HTTP/1.1 401 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",),
            "does not accept our credentials",
        ),
        (
            (
                b"HTTP/1.1 301 Moved\r\nLocation: /elsewhere\r\nConnection: close\r\n"
                b"Content-Length: 0\r\n\r\n",
            ),
            r"status 301, a redirect to http://127\.0\.0\.1:\d+/elsewhere",
        ),
    ],
)
def test_an_answer_that_is_none_is_named_and_the_next_one_is_not_taken_for_it(
    pieces: Sequence[bytes], words: str
) -> None:
    """If a refusal has no body, the client raises the error for the status of the refusal. After an
    interim answer (status 1xx), the client closes the connection. Otherwise the client would
    mistake the final answer, which comes later, for the answer to its next request."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=_serve_each, args=(listener, pieces))
        server.start()
        try:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            client = RegistryClient(url, timeout_s=WITHIN_S, pause=lambda _: None)
            for _ in range(2):
                with pytest.raises(RegistryUnreachable, match=words):
                    client.schema(7)
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            server.join()


def test_a_host_has_a_connection_for_each_scheme() -> None:
    """If the list of URLs contains a host both with http and with https, the client never sends
    https requests over the http connection. Otherwise the credentials would not be encrypted."""
    requests: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))
    broken = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
    server = threading.Thread(target=_serve_each, args=(listener, (broken,), requests))
    server.start()
    try:
        where = f"127.0.0.1:{listener.getsockname()[1]}"
        client = RegistryClient(
            f"http://{where},https://{where}", timeout_s=WITHIN_S, pause=lambda _: None
        )
        with pytest.raises(RegistryUnreachable):
            client.subjects()
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        server.join()
        listener.close()
    assert sum(each.startswith(b"GET ") for each in requests) == ROUNDS_MAX
    assert sum(each.startswith(b"\x16\x03") for each in requests) == ROUNDS_MAX


def test_a_connection_is_kept_for_the_next_request() -> None:
    """The client keeps a connection and sends its next request over it."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(WITHIN_S)
        server = threading.Thread(target=_serve_twice, args=(listener, asked))
        server.start()
        try:
            client = RegistryClient(
                f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_s=WITHIN_S
            )
            for subject in ("orders-value", "clicks-value"):
                assert client.register(subject, '"string"') == 7
        finally:
            server.join()
    assert len(asked) == 2


def _serve_twice(listener: socket.socket, requests: list[bytes]) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(WITHIN_S)
        for _ in range(2):
            requests.append(_request(connection))
            connection.sendall(ANSWER)
