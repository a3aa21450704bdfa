"""`skidway audit keys`: makes the master keys of the audit, and derives the keys of senders from
them. Runs where the master keys are.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from skidway.audit.commands import options
from skidway.audit.evidence.ledger import DATABASE, Ledger
from skidway.audit.settings import AuditSettings
from skidway.audit.signing.identity import FORMS, Identity, IdentityInvalid, Role
from skidway.audit.signing.key_file import KeyFile
from skidway.audit.signing.keys import (
    KeyRefused,
    MasterKey,
    master_keys_in,
    new_master_key,
    text_of,
)
from skidway.cli.options import add_config_options, add_json_option, load_settings
from skidway.cli.output import print_lines, print_rows
from skidway.errors import ConfigurationRefused, UsageError
from skidway.files import write_atomically

NAMED_MAX: Final = 20
"""Of an old key, the list names at most this many senders that still use it."""


def register(verbs: Any) -> None:
    """Adds the verb `keys` with its own verbs."""
    parser = verbs.add_parser("keys", help="make, derive and list the keys that sign messages")
    own = parser.add_subparsers(dest="keys_verb", metavar="VERB", required=True)
    rotate = own.add_parser(
        "rotate", help="add a master key: the first one, or the one that replaces it"
    )
    _add_common(rotate)
    rotate.set_defaults(run=_rotate)
    drop = own.add_parser("drop", help="forget an old master key, whose signatures then fail")
    drop.add_argument("number", type=int, metavar="NUMBER")
    drop.add_argument("--force", action="store_true", help="also if senders signed with it last")
    _add_common(drop)
    drop.set_defaults(run=_drop)
    derive = own.add_parser(
        "derive", help="print the file with the key of a sender: " + ", ".join(FORMS.values())
    )
    derive.add_argument("identity", metavar="IDENTITY")
    _add_out(derive)
    derive.set_defaults(run=_derive)
    person = own.add_parser("person", help="print the file with the key of a person")
    person.add_argument("name", metavar="NAME")
    _add_out(person)
    person.set_defaults(run=_person)
    listing = own.add_parser("list", help="list the master keys, and how many senders use each")
    _add_common(listing)
    add_json_option(listing)
    listing.set_defaults(run=_list)


def _add_common(parser: argparse.ArgumentParser) -> None:
    add_config_options(parser)


def _add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write it there, readable for its owner alone"
    )
    _add_common(parser)


def _rotate(args: argparse.Namespace) -> int:
    settings, path = _settings(args)
    known = _masters(path) if os.path.lexists(path) else []
    try:
        new = new_master_key(known)
    except KeyRefused as error:
        raise UsageError(str(error)) from error
    _write(path, [*known, new], settings)
    words = "Senders sign with it once they have keys that are derived from it."
    print_lines([f"{path} has the new master key {new.number}. {words}"])
    return 0


def _drop(args: argparse.Namespace) -> int:
    settings, path = _settings(args)
    known = _masters(path)
    left = [key for key in known if key.number != args.number]
    if len(left) == len(known):
        raise UsageError(f"{path} has no key {args.number}.")
    if not left:
        raise UsageError(f"{path} has no other key than {args.number}: make the new one first.")
    users = _users(settings).get(args.number, [])
    if users and not args.force:
        named = ", ".join(users[:NAMED_MAX]) + (", ..." if len(users) > NAMED_MAX else "")
        raise UsageError(
            f"{len(users)} senders signed with the key {args.number} last ({named}); what they sign"
            " with it afterwards is lost to the audit. Give them their new keys first, or drop it"
            " with --force if none of them will come back."
        )
    _write(path, left, settings)
    print_lines([f"The key {args.number} is dropped: what it has signed is refused from now on."])
    return 0


def _derive(args: argparse.Namespace) -> int:
    return _give(args, args.identity)


def _person(args: argparse.Namespace) -> int:
    return _give(args, f"{Role.PERSON.value}/{args.name.strip()}")


def _give(args: argparse.Namespace, name: str) -> int:
    """Prints or writes the file with the key of a sender."""
    try:
        identity = Identity.parse(name)
    except IdentityInvalid as error:
        raise UsageError(f"{error}.") from error
    _, path = _settings(args)
    text = text_of(key.sender_key(identity) for key in _masters(path))
    if args.out is None:
        print(text, end="")
    else:
        with _refusing(args.out):
            write_atomically(args.out, text.encode(), mode=0o600)
        print_lines([f"{args.out} has the key of {identity}."])
    return 0


def _list(args: argparse.Namespace) -> int:
    settings, path = _settings(args)
    known = _masters(path)  # who may read these may read the store
    users, has_store = _users(settings), (settings.store_dir / DATABASE).exists()
    rows: list[dict[str, Any]] = []
    for key in known:
        its = users.get(key.number, [])
        named = [] if key is known[-1] else its[:NAMED_MAX]
        count = len(its) if has_store else None
        rows.append({"key": key.number, "senders": count, "still": named})
    if not args.json:
        rows = [{**row, "still": ", ".join(row["still"])} for row in rows]
    print_rows(rows, ("key", "senders", "still"), as_json=args.json)
    return 0


def _users(settings: AuditSettings) -> dict[int, list[str]]:
    users: dict[int, list[str]] = {}
    if (settings.store_dir / DATABASE).exists():
        ledger = Ledger(settings.store_dir / DATABASE, only_read=True)
        for identity, number in ledger.signers().items():
            users.setdefault(number, []).append(identity)
        ledger.close()
    return users


def _settings(args: argparse.Namespace) -> tuple[AuditSettings, Path]:
    settings = load_settings(AuditSettings, args, options.PROGRAM)
    if settings.master_keys_location is None:
        raise ConfigurationRefused("audit.master.keys.location names no file")
    return settings, settings.master_keys_location


def _masters(path: Path) -> list[MasterKey]:
    try:
        return KeyFile(path, master_keys_in).changed() or []
    except KeyRefused as error:
        raise UsageError(f"The file of the master keys ({path}) {error}.") from error


def _write(path: Path, keys: list[MasterKey], settings: AuditSettings) -> None:
    """Writes the master keys. A new file of root is readable for the group of the store, so that
    the collector can read it."""
    mode, owner, group = 0o600, os.geteuid(), os.getegid()
    if os.path.lexists(path):
        known = path.lstat()
        mode, owner, group = known.st_mode & 0o640, known.st_uid, known.st_gid
    elif owner == 0 and settings.store_dir.exists():
        mode, group = 0o640, settings.store_dir.stat().st_gid
    with _refusing(path):
        write_atomically(path, text_of(keys).encode(), mode=mode)
        os.chown(path, owner, group, follow_symlinks=False)


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from error
