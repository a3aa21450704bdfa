"""The options of `skidway audit trace` that say where to look for lines: in
which files, clusters and output.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa

from skidway.audit.commands import options
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.output import Output
from skidway.audit.settings import AuditSettings
from skidway.audit.tracing import host_files, logs
from skidway.audit.tracing.host_files import HostState
from skidway.audit.tracing.logs import SiteCluster
from skidway.audit.tracing.site import Site
from skidway.cli import profile
from skidway.cli.connection import for_a_person
from skidway.cli.options import add_config_options, add_json_option
from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.security import KafkaSecurity
from skidway.schemas.consuming.asking import add_registry_option, registry
from skidway.schemas.consuming.values import Values

AGENT_CONFIG = options.DIRECTORY / "agent.yml"


def add_where(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say where to look (--bootstrap-server, --store, --cluster, --output,
    --agent-config, --topic, --registry), and the options --config, --set and --json."""
    add_config_options(parser)
    add_json_option(parser)
    options.add_where(parser)
    parser.add_argument(
        "--cluster",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="also look into this cluster, the source or a mirror; may be repeated",
    )
    parser.add_argument(
        "--output", metavar="DIR|hdfs://HOST:PORT/DIR", help="also look into the loader's output"
    )
    add_agent_config(parser)
    options.add_topic(parser)
    add_registry_option(parser)


def add_agent_config(parser: argparse.ArgumentParser) -> None:
    """Adds --agent-config, which `host_state` reads."""
    parser.add_argument(
        "--agent-config",
        type=Path,
        metavar="FILE",
        help=f"settings of the agent of this host ({AGENT_CONFIG}, if it can be read)",
    )


@contextmanager
def opened(
    args: argparse.Namespace,
    clock: Clock,
    host: str | None,
    topics_of: Callable[[Ledger], Collection[str]],
) -> Iterator[Site]:
    """Opens everything that the options name, and yields it as a `Site` (everything in which the
    command looks for lines). host: the host from which the line came. Files are read if the command
    runs on that host, or if --agent-config is given. topics_of: a function that gets the ledger,
    and returns the names of the source topics whose partitions must be read.
    """
    settings = options.settings_of(args)
    output = None if args.output is None else options.output_of(args, settings)
    with ExitStack() as stack:
        ledger = options.ledger_of(args, settings, clock)
        stack.callback(ledger.close)
        wanted = topics_of(ledger)
        security = profile.read().security if settings is None else settings.security
        addresses = _addresses(args, settings)
        clusters = [_cluster(stack, each, security, wanted) for each in addresses]
        yield Site(
            ledger.lines,
            _distinct(clusters),
            output,
            _tiers(settings, clusters, output),
            host_state(args, settings, host),
        )


def decoder(args: argparse.Namespace) -> Callable[[bytes], str]:
    """Returns a function that turns a record's value into text: into JSON if its schema is known,
    otherwise into plain text."""
    client, is_named = registry(args)
    values = Values(client, _note, is_named=is_named)

    def decode(value: bytes) -> str:
        return values.read(pa.array([value], pa.binary()))[0].line.decode("utf-8", "replace")

    return decode


def _note(sentence: str) -> None:
    print(f"note: {sentence}", file=sys.stderr)


def _addresses(args: argparse.Namespace, settings: AuditSettings | None) -> list[str]:
    named: list[str] = list(args.cluster)
    if args.bootstrap_server is not None:
        named.insert(0, args.bootstrap_server)
    elif settings is not None:
        named.insert(0, settings.bootstrap_servers)
    return list(dict.fromkeys(named))


def _cluster(
    stack: ExitStack, address: str, security: KafkaSecurity, wanted: Collection[str]
) -> SiteCluster:
    kafka = for_a_person(KafkaConnection(address, security=security))
    client = stack.enter_context(kafka.client())
    return logs.look(client, wanted)


def _distinct(clusters: list[SiteCluster]) -> list[SiteCluster]:
    """Returns each cluster once: two options may name different brokers of the same cluster."""
    return list({each.name: each for each in reversed(clusters)}.values())


def _tiers(
    settings: AuditSettings | None, clusters: list[SiteCluster], output: Output | None
) -> tuple[str, ...]:
    if settings is not None:
        return tuple(tier for tier in settings.tiers if tier != "agent")
    return () if output is None else (logs.BROKER, "hdfs")


def host_state(
    args: argparse.Namespace, settings: AuditSettings | None, host: str | None
) -> HostState | None:
    """Returns what this host's agent knows of its files, if `host` is this host or --agent-config
    is given. Otherwise, or if there is no agent, returns None."""
    config: Path | None = args.agent_config
    if config is None:
        if host != options.here(settings) or not os.access(AGENT_CONFIG, os.R_OK):
            return None
        config = AGENT_CONFIG
    try:
        return host_files.ask(config)
    except SkidwayError as error:
        if args.agent_config is not None:
            raise
        _note(f"this host's agent was not asked: {error}")
        return None
