"""Asks the agent of this host for its health."""

from __future__ import annotations

import argparse
import json
import urllib.error
from collections.abc import Mapping
from typing import Any

from skidway.errors import UsageError
from skidway.http_client import open_url

DEFAULT_URL = "http://127.0.0.1:9101/health"
ANSWER_WITHIN_S = 2
ANSWER_BYTES_MAX = 1 << 20


def add_option(parser: argparse.ArgumentParser) -> None:
    """Adds --agent-health."""
    parser.add_argument(
        "--agent-health", metavar="URL", default=DEFAULT_URL,
        help=f"/health of this host's agent, if there is one ({DEFAULT_URL})",
    )  # fmt: skip


def healths(url: str, here: str) -> Mapping[str, Mapping[str, Any]]:
    """Returns the JSON document that the agent of this host serves at /health. Its key is the name
    of this host that the agent tells the audit, or else `here`. Returns an empty mapping if no
    agent answers. Raises UsageError if `url` is not a URL."""
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"--agent-health {url!r} is not a URL like {DEFAULT_URL}.")
    try:
        with open_url(url, ANSWER_WITHIN_S) as answer:
            said = answer.read(ANSWER_BYTES_MAX)
    except urllib.error.HTTPError as error:  # an unhealthy agent answers 503
        said = error.read(ANSWER_BYTES_MAX)
    except OSError:
        return {}
    try:
        document = json.loads(said)
    except ValueError:
        return {}
    if not isinstance(document, dict):
        return {}
    return {str(document.get("host") or here): document}
