"""`skidway users list|add|remove`: who can log in to a cluster with a password.

Brokers and Apache Kafka are asked by requests. The first user of a cluster of ours is written into
ZooKeeper (`add --zookeeper`): before, nobody can log in to ask a broker.
"""

from __future__ import annotations

import argparse
import getpass
import secrets
import sys
import unicodedata
from pathlib import Path
from typing import Any

from skidway.broker.coordination.access_store import alter_user
from skidway.cli.options import add_bootstrap_option, add_config_options, add_json_option
from skidway.cli.output import print_rows
from skidway.cli.topics import connect
from skidway.errors import SkidwayError, UsageError
from skidway.kafka.client.scram_credentials import (
    delete_credentials,
    describe_credentials,
    set_password,
)
from skidway.security.sasl import SCRAM
from skidway.security.scram_credential import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    SALT_BYTES,
    of_salted_password,
    salt_password,
)
from skidway.security.secret_file import secret_of
from skidway.settings import load_part
from skidway.zookeeper_settings import ZooKeeperSettings

MECHANISM = "SCRAM-SHA-512"


def register(subparsers: Any) -> None:
    """Adds the command `skidway users`."""
    parser = subparsers.add_parser("users", help="list, add and remove users with passwords")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    listing = _verb(verbs, "list", _list, "every user who can log in by SCRAM")
    add_json_option(listing)
    words = "let a user log in, or replace the user's password"
    add = _verb(verbs, "add", _add, words)
    add.add_argument("user", metavar="NAME")
    add.add_argument("--mechanism", choices=SCRAM, default=MECHANISM, help=f"({MECHANISM})")
    words = f"how often the password is hashed ({ITERATIONS_MIN})"
    add.add_argument(
        "--iterations", type=_iterations, default=ITERATIONS_MIN, metavar="N", help=words
    )
    words = "the password is its first line; else it is asked for, or read from standard input"
    add.add_argument("--password-file", type=Path, metavar="FILE", help=words)
    words = "write the user into ZooKeeper, as the broker's configuration names it"
    add.add_argument("--zookeeper", action="store_true", help=words)
    add_config_options(add)
    remove = _verb(verbs, "remove", _remove, "let a user no longer log in")
    remove.add_argument("user", metavar="NAME")
    remove.add_argument("--mechanism", choices=SCRAM, help="only by this one (by all)")


def _verb(verbs: Any, name: str, run: Any, words: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=words, description=words)
    add_bootstrap_option(parser)
    parser.set_defaults(run=run)
    return parser


def _iterations(text: str) -> int:
    if not text.isdecimal() or not ITERATIONS_MIN <= int(text[:9]) <= ITERATIONS_MAX:
        raise argparse.ArgumentTypeError(
            f"{text} is not between {ITERATIONS_MIN} and {ITERATIONS_MAX}"
        )
    return int(text)


def _list(args: argparse.Namespace) -> int:
    with connect(args) as client:
        found = describe_credentials(client)
    rows = [
        {"user": user, "mechanism": mechanism, "iterations": iterations}
        for user, credentials in sorted(found.items())
        for mechanism, iterations in sorted(credentials.items())
    ]
    print_rows(rows, ["user", "mechanism", "iterations"], as_json=args.json)
    return 0


def _add(args: argparse.Namespace) -> int:
    _require_plain(args.user, "the name")
    password = _password(args.password_file)
    _require_plain(password, "the password")
    user, mechanism = args.user, args.mechanism
    if args.zookeeper:
        return _write(args, password)
    with connect(args) as client:
        before = describe_credentials(client, [user]).get(user, {})
        set_password(client, user, password, mechanism, args.iterations)
    if mechanism in before:
        print(f"replaced the password of {user} for {mechanism}")
    else:
        print(f"{user} can log in by {mechanism}")
    for other in sorted(set(before) - {mechanism}):
        print(f"{user} can still log in by {other} with the password of before")
    return 0


def _write(args: argparse.Namespace, password: str) -> int:
    user, mechanism, iterations = args.user, args.mechanism, args.iterations
    settings = load_part(ZooKeeperSettings, args.config, args.set, program="broker")
    salt = secrets.token_bytes(SALT_BYTES)
    salted = salt_password(mechanism, password, salt, iterations)
    credential = of_salted_password(mechanism, salted, salt, iterations)
    with settings.zookeeper.open() as coordinator:
        alter_user(coordinator, user, {mechanism: credential})
    print(f"{user} can log in by {mechanism}")
    return 0


def _remove(args: argparse.Namespace) -> int:
    user = args.user
    with connect(args) as client:
        before = describe_credentials(client, [user]).get(user, {})
        doomed = sorted(before) if args.mechanism is None else [args.mechanism]
        if not before or not set(doomed) <= set(before):
            by = "" if args.mechanism is None else f" by {args.mechanism}"
            raise SkidwayError(f"there is no user {user} who can log in{by}")
        delete_credentials(client, user, doomed)
    print(f"{user} can no longer log in by {', '.join(doomed)}")
    for other in sorted(set(before) - set(doomed)):
        print(f"{user} can still log in by {other}")
    return 0


def _password(path: Path | None) -> str:
    """Returns the password. No argument has it, because every user of the host can read those."""
    if path is not None:
        return secret_of(path, "--password-file")
    if sys.stdin is None:
        raise UsageError("Standard input is closed; the password is read from there.")
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass()
    if password != getpass.getpass("Password again: "):
        raise UsageError("The two passwords differ.")
    return password


def _require_plain(text: str, what: str) -> None:
    """Raises UsageError for a text that one client changes before a login, and another does not:
    some follow RFC 4013 (SASLprep), and Kafka's own do not."""
    if not text:
        raise UsageError(f"{what} is empty")
    if not text.isprintable() or unicodedata.normalize("NFKC", text) != text:
        raise UsageError(f"{what} has characters that not every client sends alike")
