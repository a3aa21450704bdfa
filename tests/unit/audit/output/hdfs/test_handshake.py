"""Tests how the answer of a NameNode is read. A small server gives the answers."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from skidway.audit.output.hdfs import handshake
from skidway.audit.output.hdfs.handshake import Answer, ask


@contextlib.contextmanager
def answering(
    *parts: bytes, pause_s: float = 0.0, sent: list[bytes] | None = None
) -> Iterator[str]:
    """Runs a server that answers its only client with these parts, and yields its address. sent:
    gets the parts that the client has let the server send."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError), server.accept()[0] as client:
                client.recv(4096)
                for part in parts:
                    client.sendall(part)
                    if sent is not None:
                        sent.append(part)
                    threading.Event().wait(pause_s)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def framed(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text


@pytest.mark.parametrize(
    ("parts", "answer"),
    [
        ((framed(b"\x0aTOKEN..\x08KERBEROS\x06GSSAPI"),), Answer.REQUIRES_KERBEROS),
        (
            (framed(b"TOKEN..KERBEROS")[:6], framed(b"TOKEN..KERBEROS")[6:]),
            Answer.REQUIRES_KERBEROS,
        ),
        ((framed(b"\x06SIMPLE"),), Answer.TAKES_ANYBODY),
        ((framed(b"\x06SIMPLE\x08KERBEROS"),), Answer.TAKES_ANYBODY),
        ((framed(b""),), Answer.TAKES_ANYBODY),
        ((b"HTTP/1.1 400 Bad Request\r\n\r\n",), Answer.TAKES_ANYBODY),
        ((b"\x00\x00",), Answer.NO_CONNECTION),
        ((), Answer.NO_CONNECTION),
    ],
)
def test_an_answer_names_the_ways_to_authenticate(parts: tuple[bytes, ...], answer: Answer) -> None:
    """Only a server that offers Kerberos, and does not let others in without, requires it."""
    with answering(*parts) as address:
        assert ask(address) is answer


def test_an_answer_without_end_takes_no_longer_than_a_silent_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that sends a byte now and then is left after the same time as one that sends
    nothing."""
    monkeypatch.setattr(handshake, "ASKED_S", 0.2)
    sent: list[bytes] = []
    parts = [struct.pack(">I", 60_000), *[b"x"] * 400]
    with answering(*parts, pause_s=0.05, sent=sent) as address:
        assert ask(address) is Answer.SILENT
    assert len(sent) < len(parts)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:port", "nowhere.invalid:8020", ""])
def test_an_address_without_a_server_does_not_answer(address: str) -> None:
    """An address at which nobody listens, or that is none, gives no answer."""
    assert ask(address) is Answer.NO_CONNECTION
