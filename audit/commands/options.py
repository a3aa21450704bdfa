"""The common options of the commands. The options say where to read evidence, and what the audit
expects: which hosts and tiers must report, and how soon.

If there is a collector's store, evidence comes from this store. If there is no store, the command
reads the audit topics of a cluster into a ledger in memory.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from dataclasses import replace
from pathlib import Path

from skidway import invocation, settings
from skidway.audit.evidence.admission import Mode, Signatures
from skidway.audit.evidence.collection import collect_all
from skidway.audit.evidence.ledger import DATABASE, Ledger
from skidway.audit.explanation.next_command import Access
from skidway.audit.judgement import roster
from skidway.audit.judgement.policy import Policy
from skidway.audit.output import Output, OutputConnection
from skidway.audit.output.hadoop_client import NO_SETTINGS
from skidway.audit.settings import TIERS, AuditSettings, check_tiers
from skidway.audit.signing.keys import KeyRefused
from skidway.audit.signing.master_file import MasterFile
from skidway.audit.topic.messages import Tier
from skidway.cli.connection import cluster_settings, connection, for_a_person
from skidway.clock import Clock
from skidway.errors import ConfigurationRefused, UsageError
from skidway.host_name import host_name, installed_host_name
from skidway.kafka.client import Client
from skidway.telemetry import host_and_port

PROGRAM = "audit"
DIRECTORY = settings.DEFAULT_DIRECTORY
STALE_AFTER_MS = 180_000
LISTENS_WITHIN_S = 2.0


def add_where(parser: argparse.ArgumentParser) -> None:
    """Adds --bootstrap-server and --store."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--bootstrap-server", metavar="HOST:PORT", help="read the audit topics of this cluster"
    )
    where.add_argument(
        "--store", type=Path, metavar="DIR", help="read the collector's store in this directory"
    )


def add_expected(parser: argparse.ArgumentParser) -> None:
    """Adds --tiers and --lateness-ms."""
    parser.add_argument(
        "--tiers", metavar="LIST", help=f"which must agree, without exemptions ({','.join(TIERS)})"
    )
    parser.add_argument(
        "--lateness-ms", type=int, metavar="MS", help="allowed after a bucket's end"
    )


def add_topic(parser: argparse.ArgumentParser) -> None:
    """Adds --topic."""
    words = "with its rejects; may be repeated"
    parser.add_argument("--topic", action="append", metavar="TOPIC", help=words)


def settings_of(args: argparse.Namespace) -> AuditSettings | None:
    """Returns the collector's settings, from the options (--config, --set) and from a file. If
    --config names no file, reads the settings file that is installed on this host. Returns None if
    the options give no settings and no file is installed. If --bootstrap-server or --store says
    where to read the evidence, an installed file that this user cannot read counts as not
    installed. Raises ConfigurationRefused if the settings have a mistake."""
    elsewhere = args.bootstrap_server is not None or args.store is not None
    file = _installed()
    installed = os.access(file, os.R_OK) if elsewhere else file.exists()
    if args.config or args.set or installed:
        path = args.config or (file if installed else None)
        return settings.load(AuditSettings, path, _brokers(args, path) + args.set)
    return None


def _brokers(args: argparse.Namespace, path: Path | None) -> list[str]:
    """If there is no file with settings, returns the settings with which commands without settings
    reach brokers, because AuditSettings requires them."""
    return [] if path is not None else cluster_settings(args)


def _installed() -> Path:
    return DIRECTORY / f"{PROGRAM}.yml"


def output_of(args: argparse.Namespace, settings: AuditSettings | None) -> Output:
    """Opens the loader's output that --output names. Raises UsageError if it is refused,
    StoreFailed and StoreUnreachable."""
    hadoop = NO_SETTINGS if settings is None else settings.hadoop
    try:
        return OutputConnection(args.output, hadoop).output()
    except ConfigurationRefused as error:
        raise UsageError(f"{error}.") from error


def policy_of(args: argparse.Namespace, given: AuditSettings | None) -> Policy:
    """Returns the policy (what the audit expects), from settings, roster and options. Prints a note
    if there are no settings. Raises ConfigurationRefused if the roster's file has a mistake, and
    UsageError if an option has a mistake."""
    if given is not None:
        policy = given.policy(listed(given))
    else:
        policy = Policy()
    if args.tiers is not None:
        policy = replace(policy, tiers=tiers_of(args.tiers), exemptions=())
    if args.lateness_ms is not None:
        if args.lateness_ms < 0:
            raise UsageError("--lateness-ms must not be negative.")
        policy = replace(policy, lateness_ms=args.lateness_ms)
    if given is None:
        print(f"note: {_defaults(policy)}", file=sys.stderr)
    return policy


def _defaults(policy: Policy) -> str:
    why = "cannot be read" if os.path.exists(_installed()) else "is not here"
    tiers = ", ".join(tier.value.lower() for tier in policy.tiers)
    return (
        f"{_installed()} {why}, so default settings apply: tiers {tiers}, no roster, nothing exempt"
        " or retired by settings, signatures not verified; --config FILE names others"
    )


def listed(given: AuditSettings) -> tuple[roster.RosterEntry, ...]:
    """Returns the entries of the roster's file; none if the settings name no file. Raises
    ConfigurationRefused if the file has a mistake."""
    return () if given.roster_file is None else roster.read_file(given.roster_file)


def tiers_of(text: str) -> tuple[Tier, ...]:
    """Parses comma-separated names of tiers. Raises UsageError if a name is not the name of a tier,
    or if the text does not name at least two different tiers.
    """
    names = [name.strip().lower() for name in text.split(",")]
    try:
        check_tiers(names)
    except ConfigurationRefused as error:
        raise UsageError(f"--{error}.") from error
    return tuple(Tier(name.upper()) for name in names)


def ledger_of(args: argparse.Namespace, given: AuditSettings | None, clock: Clock) -> Ledger:
    """Returns the ledger in the collector's store if there is a store. If there is no store,
    returns a ledger in memory, filled from the audit topics."""
    folder = store_of(args, given)
    if folder is not None:
        return _stored(folder / DATABASE, clock)
    ledger = Ledger(signatures=signatures_of(given, clock))
    with client_of(args, given) as client:
        collect_all(client, ledger, clock)
    return ledger


def signatures_of(given: AuditSettings | None, clock: Clock) -> Signatures:
    """Returns how a command judges the signatures of messages that it reads itself. Prints a note
    if it should, but cannot verify them. Without settings, it assumes that signatures are required
    if there are any."""
    if given is None:
        return Signatures(Mode.WARN)
    if given.mode is Mode.OFF:
        return Signatures()
    path, why = given.master_keys_location, "audit.master.keys.location names no file."
    try:
        verifier = None if path is None else MasterFile(path, clock).verifier
    except KeyRefused as error:
        verifier, why = None, str(error)
    if verifier is None:
        print(f"note: not verified: {why} The collector's own host has the keys.", file=sys.stderr)
        if given.mode is Mode.WARN:
            return Signatures()
    return Signatures(given.mode, verifier)


def access_of(args: argparse.Namespace, given: AuditSettings | None) -> Access:
    """A report prints commands to run next. Returns what these commands need to read the same
    evidence as this command: its options, and the addresses of brokers."""
    brokers = args.bootstrap_server or ("" if given is None else given.bootstrap_servers)
    named = (("--config", args.config), ("--store", args.store))
    options = [word for name, value in named if value is not None for word in (name, str(value))]
    options += [word for each in args.set for word in ("--set", each)]
    if args.bootstrap_server is not None:
        options += ["--bootstrap-server", args.bootstrap_server]
    if args.tiers is not None:  # every command of the audit takes the setting
        options += ["--set", f"tiers=[{args.tiers}]"]
    if args.lateness_ms is not None:
        options += ["--set", f"lateness.ms={args.lateness_ms}"]
    return Access(
        here(given),
        brokers,
        tuple(options),
        invocation.of_this_process().call,
        starts={} if given is None else given.start_commands,
        stopped=_stopped(args, given),
    )


def here(given: AuditSettings | None) -> str:
    """The name of this host. given: the settings of the audit, if this command has them."""
    return installed_host_name(DIRECTORY) if given is None else host_name(given.host_name)


def _stopped(args: argparse.Namespace, given: AuditSettings | None) -> str:
    """If this command reads the store of a collector that does not run, returns a sentence that
    says so; otherwise "". A collector that runs listens at the address of its dashboard."""
    if args.store is not None or given is None or store_of(args, given) is None:
        return ""
    if listens(*host_and_port(given.listener, key="listener")):
        return ""
    return f"The collector does not run: nothing listens at {given.listener}"


def listens(host: str, port: int) -> bool:
    """Whether a program listens at an address; also true if the address cannot be tried."""
    try:
        socket.create_connection((host, port), timeout=LISTENS_WITHIN_S).close()
    except ConnectionRefusedError:
        return False
    except OSError:
        pass  # only a refusal says that nobody listens
    return True


def store_of(args: argparse.Namespace, given: AuditSettings | None) -> Path | None:
    """Returns the directory of the store to read; None if the command reads the audit topics of a
    cluster. Raises UsageError if an option names a store that does not exist."""
    folder: Path | None = args.store
    if folder is None and args.bootstrap_server is None and given is not None:
        return given.store_dir if (given.store_dir / DATABASE).exists() else None
    if folder is not None and not (folder / DATABASE).exists():
        raise UsageError(f"There is no store of an audit collector in {folder}.")
    return folder


def client_of(args: argparse.Namespace, given: AuditSettings | None) -> Client:
    """Returns a client of the cluster whose audit topics are read."""
    if args.bootstrap_server is None and given is not None:
        return for_a_person(given.kafka).client()
    return connection(args).client()


def _stored(path: Path, clock: Clock) -> Ledger:
    ledger = Ledger(path, only_read=True)
    note_staleness(ledger, clock)
    return ledger


def note_staleness(ledger: Ledger, clock: Clock) -> None:
    """Prints a note if the collector that writes this ledger has never read a record, or has read
    no record for a while.
    """
    words = staleness(ledger.taken_ms, clock.time_ms())
    if words:
        print(f"note: {words}", file=sys.stderr)


def staleness(taken_ms: int, now_ms: int) -> str:
    """Returns a note that says how long ago a collector last read a record; empty if this was a
    short time ago. taken_ms: the time of this last read; 0 if the collector never read a record."""
    if not taken_ms:
        return "the collector has not read anything yet"
    stale_ms = now_ms - taken_ms
    if stale_ms <= STALE_AFTER_MS:
        return ""
    return f"the collector last read something {stale_ms // 1000} s ago by this host's clock"
