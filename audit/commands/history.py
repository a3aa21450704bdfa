"""`skidway audit report --history`: asks a collector since when buckets have had their verdicts,
and why the verdicts changed. Only the collector knows this, because the audit topics do not contain
verdicts."""

from __future__ import annotations

import argparse
import json
import urllib.error
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from skidway.audit.reports import history_report
from skidway.audit.settings import DASHBOARD_LISTENER
from skidway.cli.output import print_json, print_lines
from skidway.errors import Unreachable, UsageError
from skidway.http_client import open_url

ANSWER_WITHIN_S = 30
ANSWER_BYTES_MAX = 64 << 20


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds --history, --bucket and --collector."""
    parser.add_argument(
        "--history", action="store_true", help="how verdicts changed, and why; asks the collector"
    )
    parser.add_argument(
        "--bucket", metavar="TIME", help="with --history: the bucket with this time"
    )
    add_collector(parser, "with --history: ")


def add_collector(parser: argparse.ArgumentParser, when: str = "") -> None:
    """Adds --collector."""
    parser.add_argument(
        "--collector",
        metavar="URL",
        default=f"http://{DASHBOARD_LISTENER}",
        help=f"{when}the dashboard to ask for the history (http://{DASHBOARD_LISTENER})",
    )


def bucket_history(collector: str, topic: str, bucket: str) -> Mapping[str, Any] | None:
    """Asks the collector for the history of one bucket, and returns it as docs/audit.md describes
    it. bucket: the start of the bucket, as reports print it. Returns None if the history does not
    have the bucket. Raises Unreachable if the collector does not answer, and UsageError if it does
    not accept the request."""
    found = _asked(collector, {"topic": topic, "bucket": bucket})["buckets"]
    return next((x for x in found if x["bucket"] == bucket), None)


def print_history(args: argparse.Namespace) -> int:
    """Prints the history of the buckets that the arguments select. Returns the exit status. Raises
    Unreachable if the collector does not answer, and UsageError if it does not accept the request.
    """
    if len(args.topic or []) > 1:
        raise UsageError("--history takes one --topic.")
    asked = {"topic": (args.topic or [None])[0], "bucket": args.bucket, "since": args.since}
    document = _asked(args.collector, {k: v for k, v in asked.items() if v is not None})
    if args.json:
        print_json(document)
    else:
        print_lines(history_report.text(document))
    return 0


def _asked(collector: str, query: dict[str, str]) -> Any:
    if not collector.startswith(("http://", "https://")):
        raise UsageError(f"--collector {collector!r} is not a URL like http://host:8088.")
    url = f"{collector.rstrip('/')}/history.json?{urlencode(query)}"
    try:
        with open_url(url, ANSWER_WITHIN_S) as answer:
            return json.loads(answer.read(ANSWER_BYTES_MAX))
    except urllib.error.HTTPError as error:
        words = error.read(1_000).decode("utf-8", "replace").strip()
        if error.code == 400:
            raise UsageError(f"{words}.") from error
        raise Unreachable(f"The collector {collector} answered {error.code}: {words}") from error
    except (OSError, ValueError) as error:
        raise Unreachable(
            f"The collector {collector} cannot be asked for its history: {error}."
        ) from error
