"""Records of TLS 1.3 that no library sends, sealed with the keys of a connection (RFC 8446)."""

from __future__ import annotations

import contextlib
import hmac
import socket
import ssl
import threading
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

HANDSHAKE, DATA = 22, 23
_HASH, _HASH_BYTES, _KEY_BYTES = "sha384", 48, 32


class Sealer:
    """Seals the records of one side. It takes over from OpenSSL after the handshake, before that
    side has sent any data."""

    def __init__(self, key_log: Path, side: str) -> None:
        """key_log: `keylog_filename` of the context of this side or the other. side: CLIENT or
        SERVER."""
        name = f"{side}_TRAFFIC_SECRET_0"
        lines = [each.split() for each in reversed(key_log.read_text().splitlines())]
        self._take(next(bytes.fromhex(each[2]) for each in lines if each[0] == name))

    def seal(self, kind: int, data: bytes) -> bytes:
        """Returns a record."""
        body = data + bytes([kind])
        head = b"\x17\x03\x03" + (len(body) + 16).to_bytes(2)
        nonce = (self._iv ^ self._number).to_bytes(12)
        self._number += 1
        return head + self._cipher.encrypt(nonce, body, head)

    def key_update(self, *, requested: bool) -> bytes:
        """Returns a record after which this side has new keys. requested: whether the other side is
        asked to answer with such a record."""
        record = self.seal(HANDSHAKE, b"\x18\x00\x00\x01" + bytes([requested]))
        self._take(self._derived(self._secret, b"traffic upd", _HASH_BYTES))
        return record

    def _take(self, secret: bytes) -> None:
        self._secret, self._number = secret, 0
        self._cipher = AESGCM(self._derived(secret, b"key", _KEY_BYTES))
        self._iv = int.from_bytes(self._derived(secret, b"iv", 12))

    @staticmethod
    def _derived(secret: bytes, label: bytes, size: int) -> bytes:
        full = b"tls13 " + label
        info = size.to_bytes(2) + bytes([len(full)]) + full + b"\x00"
        return hmac.digest(secret, info + b"\x01", _HASH)[:size]


def logs_keys(context: ssl.SSLContext, key_log: Path) -> ssl.SSLContext:
    """Returns the context, whose next connection can be given to a Sealer."""
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.keylog_filename = str(key_log)
    return context


class Flood:
    """A client that sends a server nothing but updates of keys that it has to answer, reads the
    answers, and connects again when it is closed. is_closed: whether it was closed once."""

    def __init__(self, port: int, context: ssl.SSLContext, key_log: Path) -> None:
        self._port, self._context, self._key_log = port, logs_keys(context, key_log), key_log
        self.is_closed = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Flood:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self._port), timeout=60) as sock,
            ):
                sealed = self._context.wrap_socket(sock, server_hostname="localhost")
                with socket.socket(fileno=sealed.detach()) as raw:
                    self._send(raw, Sealer(self._key_log, "CLIENT"))

    def _send(self, raw: socket.socket, sealer: Sealer) -> None:
        raw.settimeout(60)
        answers = bytearray(1 << 20)
        try:
            while not self._ended.is_set():
                raw.sendall(b"".join(sealer.key_update(requested=True) for _ in range(500)))
                with contextlib.suppress(BlockingIOError):
                    raw.recv_into(answers, 0, socket.MSG_DONTWAIT)
        except ConnectionError:
            self.is_closed.set()
