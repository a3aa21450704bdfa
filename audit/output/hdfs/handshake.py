"""Asks a NameNode how its clients authenticate.

hdfs-native says only after 20 s that a connection is closed again and again, if the NameNode
requires Kerberos and nothing says so here. And if the NameNode does not, a client with Kerberos
sends it data nevertheless.
"""

from __future__ import annotations

import socket
import struct
import time
from enum import Enum, auto
from typing import Final

KERBEROS: Final = b"KERBEROS"
SIMPLE: Final = b"SIMPLE"
ANSWER_MAX: Final = 64 << 10
ASKED_S: Final = 2.0

_PREAMBLE: Final = b"hrpc" + bytes.fromhex("09 00 df")
"""Version 9, no service class, authentication by SASL."""
_HEADER: Final = bytes.fromhex("08 02  10 00  18 41  22 00  28 01")
"""Of hadoop.common.RpcRequestHeaderProto: a protocol buffer, the final packet, call -33, no client,
retry -1."""
_NEGOTIATE: Final = bytes.fromhex("10 01")
"""Of hadoop.common.RpcSaslProto: the state NEGOTIATE."""
_QUESTION: Final = bytes((len(_HEADER),)) + _HEADER + bytes((len(_NEGOTIATE),)) + _NEGOTIATE


class Answer(Enum):
    """What a NameNode answers. A frozen one is SILENT, and so is a host that drops packets."""

    REQUIRES_KERBEROS = auto()
    TAKES_ANYBODY = auto()
    SILENT = auto()
    NO_CONNECTION = auto()


def ask(place: str) -> Answer:
    """Asks the NameNode at host:port whether it offers Kerberos to its clients, and nothing less.
    See Hadoop's Server.java, `Connection` and its preamble."""
    host, _, port = place.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), ASKED_S) as connection:
            connection.sendall(_PREAMBLE + struct.pack(">i", len(_QUESTION)) + _QUESTION)
            until = time.monotonic() + ASKED_S
            (length,) = struct.unpack(">I", _received(connection, 4, until))
            answer = _received(connection, min(length, ANSWER_MAX), until)
    except TimeoutError:
        return Answer.SILENT
    except (OSError, struct.error, ValueError):
        return Answer.NO_CONNECTION
    is_required = KERBEROS in answer and SIMPLE not in answer
    return Answer.REQUIRES_KERBEROS if is_required else Answer.TAKES_ANYBODY


def _received(connection: socket.socket, count: int, until: float) -> bytes:
    """Returns `count` bytes of an answer, or fewer if it ends before. Raises TimeoutError."""
    data = b""
    while len(data) < count:
        connection.settimeout(max(until - time.monotonic(), 0.001))
        part = connection.recv(count - len(data))
        if not part:
            break
        data += part
    return data
