"""`skidway schemas level|mode`: shows or changes the compatibility level or the mode of a subject.
If no subject is given, shows or changes the global level or mode, which applies to all subjects
without a level or mode of their own."""

from __future__ import annotations

import argparse
from typing import Any

from skidway.cli.output import print_rows
from skidway.errors import UsageError
from skidway.schemas.client import RegistryAdministration
from skidway.schemas.commands.connection import add_verb, connect
from skidway.schemas.compatibility import Level
from skidway.schemas.registry.modes import Mode

LEVEL = "compatibilityLevel"


def register(verbs: Any) -> None:
    """Adds the verbs `level` and `mode`."""
    words = "show, set or reset the compatibility level: how schemas may change"
    level = add_verb(verbs, "level", words, _level)
    _add(level, "level", [each.value for each in Level])
    words = "show, set or reset the mode: what may be changed in the registry"
    mode = add_verb(verbs, "mode", words, _mode)
    _add(mode, "mode", [each.value for each in Mode])
    mode.add_argument(
        "--force", action="store_true", help="set IMPORT or FORWARD even if there are schemas"
    )


def _add(verb: argparse.ArgumentParser, what: str, values: list[str]) -> None:
    verb.add_argument(
        "value", nargs="?", type=str.upper, choices=values, metavar=what.upper(),
        help=f"set it: {', '.join(values)}",
    )  # fmt: skip
    verb.add_argument("--subject", metavar="S", help=f"the {what} of this subject (of all)")
    verb.add_argument("--reset", action="store_true", help="remove it: the one above holds")


def _level(args: argparse.Namespace) -> int:
    client, subject = _asked(args), args.subject
    if args.reset:
        client.reset_level(subject)
    elif args.value is not None:
        client.set_level(subject, {"compatibility": args.value})
    own = (client.level(subject) or {}).get(LEVEL)
    above = own if subject is None else (client.level(None) or {}).get(LEVEL)
    _show(args, "level", own, above)
    return 0


def _mode(args: argparse.Namespace) -> int:
    client, subject = _asked(args), args.subject
    if args.reset:
        client.reset_mode(subject)
    elif args.value is not None:
        client.set_mode(subject, args.value, force=args.force)
    own = client.mode(subject)
    _show(args, "mode", own, own if subject is None else client.mode(None))
    return 0


def _asked(args: argparse.Namespace) -> RegistryAdministration:
    if args.reset and args.value is not None:
        raise UsageError("--reset takes away what is set: name no value beside it.")
    return connect(args)


def _show(args: argparse.Namespace, what: str, own: str | None, above: str | None) -> None:
    """Prints the level or mode that applies. The printed field `set_for` says whether this value is
    set for the subject itself or for all subjects."""
    is_own = own is not None and args.subject is not None
    row = {
        "subject": args.subject,
        what: own if own is not None else above,
        "set_for": args.subject if is_own else "all",
    }
    print_rows([row], ["subject", what, "set_for"], as_json=args.json)
