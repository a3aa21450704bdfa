"""`skidway mirror status`: how the mirrors of a running broker follow their sources.

Mirrors run inside a broker, so this command gets everything from the broker's /health. The exit
status is 0 if there is no problem. The exit status is 1 if a partition, a topic or a whole source
is stopped and waits for an operator, or if the broker does not serve a mirrored partition. The exit
status is 3 if the broker or one of its sources cannot be reached.
"""

from __future__ import annotations

import argparse
import http.client
import json
import urllib.error
from collections.abc import Mapping, Sequence
from typing import Any, Final

from skidway.broker.own_status import away
from skidway.broker.settings import BrokerSettings
from skidway.cli.options import add_config_options, add_json_option, load_settings
from skidway.cli.output import print_json, table
from skidway.errors import ConfigurationRefused, Unreachable, UsageError
from skidway.http_client import open_url
from skidway.telemetry import host_and_port

NOUN: Final = "mirror"
ASK_TIMEOUT_S: Final = 10.0
COLUMNS: Final = (
    "source",
    "reachable",
    "partitions",
    "lag",
    "checking",
    "waiting",
    "stopped",
    "unserved",
    "gaps",
    "last_failure",
)
STOPPED, AWAY = 1, 3

Source = Mapping[str, Any]


def register(subparsers: Any) -> None:
    """Adds the noun `mirror`."""
    parser = subparsers.add_parser(NOUN, help="how a broker's mirrors follow their sources")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    words = "lag, stopped partitions with reasons, gaps; exit status 1 if stopped, 3 if away"
    status = verbs.add_parser("status", help=words, description=words)
    add_config_options(status)
    status.add_argument(
        "--url", metavar="URL", help="http://host:port of the broker, instead of its settings"
    )
    add_json_option(status)
    status.set_defaults(run=_status)


def _status(args: argparse.Namespace) -> int:
    url = _url(args)
    sources = with_unserved(health(url))
    if args.json:
        print_json(sources)
    elif not sources:
        print(
            f"the broker at {url} mirrors nothing: it has no mirror.sources; --config names the"
            " settings of another broker of this host"
        )
    else:
        table(map(row, sources), COLUMNS)
        for line in details(sources):
            print(line)
    return exit_status(sources)


def with_unserved(document: Mapping[str, Any]) -> list[Source]:
    """Returns the mirrors in a /health document, and adds to each the key `unserved`: those
    partitions of the mirror that the broker does not serve, each with the reason. A broker does not
    serve a partition, for example, after the loss of a disk. /health does not call these partitions
    stopped, because copying continues as soon as the broker serves them again."""
    unserved = document.get("stopped_partitions", {})
    return [
        {
            **source,
            "unserved": {n: why for n, why in unserved.items() if n.startswith(_prefix(source))},
        }
        for source in document.get("mirrors", [])
    ]


def _prefix(source: Source) -> str:
    return f"{source['cluster']}."


def exit_status(sources: Sequence[Source]) -> int:
    """Returns the command's exit status: 0 if there is no problem, otherwise the status of the
    worst problem.
    """
    if any(each["stopped_count"] or each["unserved"] for each in sources):
        return STOPPED
    return 0 if all(each["reachable"] for each in sources) else AWAY


def details(sources: Sequence[Source]) -> list[str]:
    """Returns the lines to print below the table: one for each source that does not answer, and one
    for each topic or partition that is stopped, is not served, waits, is left out, cannot be
    compared with the source, or has gaps.
    """
    lines = [f"away: {each.sentence}" for x in sources if (each := away(x)) is not None]
    for source in sources:
        cluster = source["cluster"]
        for name, reason in source["stopped"].items():
            lines.append(f"stopped: {cluster}: {name}: {reason}")
            if name in source["missed"]:
                count = source["missed"][name]
                lines.append(f"missed: {cluster}: {name}: up to {count} records of {cluster}")
            if name in source["begin_again"]:
                command = source["begin_again"][name]
                lines.append(
                    f"to begin again: {cluster}: {name}: load what is here, then `{command}`"
                )
        for what in ("unserved", "waiting", "left_out"):
            words = what.replace("_", " ")
            lines += [f"{words}: {cluster}: {n}: {reason}" for n, reason in source[what].items()]
        for name, offset in source["unverifiable"].items():
            lines.append(f"unverifiable: {cluster}: {name}: below offset {offset}")
        for name, named in source["gaps"].items():
            lines.append(f"gaps: {cluster}: {name}: {', '.join(named)}")
    return lines


def health(url: str) -> dict[str, Any]:
    """Returns the broker's /health, even if its HTTP status is 503. Raises Unreachable."""
    try:
        with open_url(url, ASK_TIMEOUT_S) as answer:
            return _document(url, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return _document(url, error.read())
    except http.client.HTTPException as error:
        raise Unreachable(f"what answers at {url} is no broker of ours") from error
    except OSError as error:
        raise Unreachable(f"no broker answers at {url}; is it running?") from error


def _url(args: argparse.Namespace) -> str:
    if args.url:
        if not args.url.startswith(("http://", "https://")):
            raise UsageError(f"--url: {args.url!r} is not http://host:port")
        return f"{str(args.url).rstrip('/').removesuffix('/health')}/health"
    settings = load_settings(BrokerSettings, args, "broker")
    if not settings.metrics_listener:
        raise ConfigurationRefused("metrics.listener is empty, so this broker cannot be asked")
    host, port = host_and_port(settings.metrics_listener)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/health"


def _document(url: str, body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise Unreachable(f"what answers at {url} is no broker of ours")
    return document


def row(source: Source) -> dict[str, Any]:
    """Returns the row of the table for one source."""
    lag: int | str = source["lag"]
    if source["reachable"] is False:
        lag = "unknown"  # nobody knows what the source has by now
    elif source["lag_unknown"]:
        lag = f"{lag}+"
    return {
        "source": source["cluster"],
        "reachable": source["reachable"],
        "partitions": source["partitions"],
        "lag": lag,
        "checking": source["checking"],
        "waiting": source["waiting_count"],
        "stopped": source["stopped_count"],
        "unserved": len(source["unserved"]),
        "gaps": source["gap_count"],
        "last_failure": source["last_failure"] or None,
    }
