"""Asks programs of this machine for their /health and /metrics."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

TIMEOUT_S = 60.0


def health(port: int) -> tuple[int, dict[str, Any]]:
    """Returns the status and the document of /health, which a program that is not healthy has too.
    The status is 0, and the document empty, if there is no answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=TIMEOUT_S) as answer:
            return answer.status, dict(json.load(answer))
    except urllib.error.HTTPError as error:
        return error.code, dict(json.load(error))
    except OSError:
        return 0, {}


def is_healthy(port: int) -> bool:
    """Returns whether /health has status 200."""
    return health(port)[0] == 200


def metrics(port: int) -> dict[str, float]:
    """Returns the values in /metrics, each by its name with its labels."""
    url = f"http://127.0.0.1:{port}/metrics"
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
        lines = answer.read().decode().splitlines()
    rows = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in rows}
