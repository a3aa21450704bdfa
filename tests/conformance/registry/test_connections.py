"""The client's connections to the registry: kept, or broken by a registry that dies while it
answers."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Sequence

import pytest

from skidway.schemas.client import RegistryClient

ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"id": 7}'
BODY_AT = len(ANSWER) - 9


def _serve(listener: socket.socket, answers: Sequence[bytes], requests: list[bytes]) -> None:
    for answer in answers:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(5)
            requests.append(_request(connection))
            connection.sendall(answer)


def _request(connection: socket.socket) -> bytes:
    """Reads one whole request: its head, and the body that the head announces."""
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
    """If an answer has status and headers but not the whole body, it does not count, and the client
    registers again."""
    requests: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        answers = (ANSWER[:sent], ANSWER)
        server = threading.Thread(target=_serve, args=(listener, answers, requests))
        server.start()
        try:
            client = RegistryClient(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_s=5)
            assert client.register("orders-value", '"string"') == 7
        finally:
            server.join()
    assert len(requests) == 2


def test_a_connection_is_kept_for_the_next_request() -> None:
    """The client sends two requests over one connection."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        server = threading.Thread(target=_serve_twice, args=(listener, asked))
        server.start()
        try:
            client = RegistryClient(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_s=5)
            for subject in ("orders-value", "clicks-value"):
                assert client.register(subject, '"string"') == 7
        finally:
            server.join()
    assert len(asked) == 2


def _serve_twice(listener: socket.socket, requests: list[bytes]) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(5)
        for _ in range(2):
            requests.append(_request(connection))
            connection.sendall(ANSWER)
