"""The loop of every driver in Python: it reads the commands of tests and writes the answers. A
driver is a program that carries out these commands with one Kafka client."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Final

TLS: Final = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")
LOGIN: Final = ("sasl.mechanism", "sasl.username", "sasl.password")


def serve(driver: object) -> None:
    """Reads commands from standard input. For each command, calls the driver's method that has the
    command's name."""
    # Text that a library prints to standard output must not get between the answers. So the answers
    # go to a copy of the descriptor of standard output. This descriptor itself is then redirected
    # to standard error.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        command: dict[str, Any] = json.loads(line)
        try:
            answer = {"ok": getattr(driver, command.pop("do"))(**command) or {}}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")


def tls() -> dict[str, str]:
    """Returns the PEM files for TLS, named as librdkafka's settings are; empty without TLS."""
    return dict(zip(TLS, sys.argv[2:3] if login() else sys.argv[2:], strict=False))


def login() -> dict[str, str]:
    """Returns mechanism, user and password, named as librdkafka's settings are; empty without a
    login."""
    return dict(zip(LOGIN, sys.argv[3:], strict=True)) if len(sys.argv) == 6 else {}


def protocol() -> str:
    """Returns what the listener speaks to which the client connects."""
    return "SASL_SSL" if login() else "SSL" if tls() else "PLAINTEXT"


def text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
