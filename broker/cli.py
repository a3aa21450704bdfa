"""`skidway broker run|validate` and `skidway mirror status`."""

from __future__ import annotations

import argparse
import json
import urllib.error
import urllib.request
from typing import Any

from broker import program
from broker.settings import BrokerSettings
from skidway import service
from skidway.cli.options import add_config_options, add_json_option, load_settings
from skidway.cli.output import print_json, table
from skidway.errors import ConfigurationRefused, Unreachable
from skidway.telemetry import host_and_port

PROGRAM = "broker"
MIRROR = "mirror"
ASK_TIMEOUT_S = 10.0
COLUMNS = ("cluster", "reachable", "partitions", "lag", "stopped_count")


def register(subparsers: Any) -> None:
    """Adds the noun `broker`."""
    parser = subparsers.add_parser(PROGRAM, help="take, keep and hand out record batches")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    run = verbs.add_parser("run", help="run the broker in the foreground until SIGTERM")
    add_config_options(run, BrokerSettings)
    run.set_defaults(run=_run)
    validate = verbs.add_parser("validate", help="check the settings, and end")
    add_config_options(validate, BrokerSettings)
    validate.set_defaults(run=_validate)


def register_mirror(subparsers: Any) -> None:
    """Adds the noun `mirror`; mirrors run inside a broker, so it only asks."""
    parser = subparsers.add_parser(MIRROR, help="how a broker's mirrors follow their sources")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    status = verbs.add_parser(
        "status", help="ask the broker with these settings; 1 if something is stopped or away"
    )
    add_config_options(status)
    add_json_option(status)
    status.set_defaults(run=_mirror_status)


def _run(args: argparse.Namespace) -> int:
    def body(shutdown: service.Shutdown) -> int:
        return program.run(load_settings(BrokerSettings, args, PROGRAM), shutdown)

    return service.run(PROGRAM, body, level=args.log_level)


def _validate(args: argparse.Namespace) -> int:
    settings = load_settings(BrokerSettings, args, PROGRAM)
    directories = ", ".join(map(str, settings.log_dirs))
    print(
        f"good: broker {settings.broker_id} of cluster {settings.cluster_name} on "
        f"{', '.join(settings.listeners)}, logs in {directories}"
    )
    return 0


def _mirror_status(args: argparse.Namespace) -> int:
    settings = load_settings(BrokerSettings, args, PROGRAM)
    if not settings.metrics_listener:
        raise ConfigurationRefused("metrics.listener is empty, so this broker cannot be asked")
    sources = _health(settings.metrics_listener).get("mirrors", [])
    if args.json:
        print_json(sources)
    elif not sources:
        print("this broker mirrors nothing: it has no mirror.sources")
    else:
        table(sources, COLUMNS)
        for source in sources:
            for name, reason in source.get("stopped", {}).items():
                print(f"stopped: {source['cluster']} {name}: {reason}")
    good = all(each["reachable"] and not each["stopped_count"] for each in sources)
    return 0 if good else 1


def _health(listener: str) -> dict[str, Any]:
    """What the broker's /health says, also when it says 503. Raises Unreachable."""
    host, port = host_and_port(listener, key="metrics.listener")
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/health"
    try:
        with urllib.request.urlopen(url, timeout=ASK_TIMEOUT_S) as answer:
            return dict(json.load(answer))
    except urllib.error.HTTPError as error:
        with error:
            return dict(json.load(error))
    except (OSError, ValueError) as error:
        raise Unreachable(f"no broker answers at {url}; is it running?") from error
