"""`skidway acls list|add|remove|apply|test`: the rules of access control of a cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from skidway.cli import acl_file
from skidway.cli.options import add_bootstrap_option, add_json_option
from skidway.cli.output import print_rows
from skidway.cli.topics import connect
from skidway.errors import ConfigurationRefused, SkidwayError, UsageError
from skidway.kafka.acls.acl import (
    ANY_NAME,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from skidway.kafka.acls.rules import Rules
from skidway.kafka.client.acls import Results, create_acls, delete_acls, describe_acls

COLUMNS = [
    "principal",
    "permission",
    "operation",
    "resource_type",
    "resource_name",
    "pattern_type",
    "host",
]

NAMED: Final = {
    "--topic": (ResourceType.TOPIC, "this topic; * is every topic"),
    "--group": (ResourceType.GROUP, "this group; * is every group"),
    "--transactional-id": (ResourceType.TRANSACTIONAL_ID, "this id; * is every id"),
}
"""The options that name a resource. Each has another one with -prefix."""


def register(subparsers: Any) -> None:
    """Adds the command `skidway acls`."""
    words = "list, add and remove rules of access control, or make them as a file says"
    parser = subparsers.add_parser("acls", help=words)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    listing = _verb(verbs, "list", _list, "rules, all or those of one principal or resource")
    words = "only rules that name it"
    listing.add_argument("--principal", type=_principal, metavar="User:NAME", help=words)
    _add_resource_options(listing, PatternType.MATCH)
    add = _verb(verbs, "add", _add, "add a rule for each operation")
    add.add_argument("--principal", required=True, type=_principal, metavar="User:NAME")
    _add_resource_options(add, PatternType.LITERAL, required=True)
    _add_operation_option(add, required=True)
    add.add_argument(
        "--host", type=_host, default=ANY_NAME, metavar="ADDRESS", help="from where (everywhere)"
    )
    add.add_argument("--deny", action="store_true", help="forbid, which outweighs what is allowed")
    remove = _verb(verbs, "remove", _remove, "remove the rules to which all options apply")
    words = "else of every principal"
    remove.add_argument("--principal", type=_principal, metavar="User:NAME", help=words)
    _add_resource_options(remove, PatternType.LITERAL)
    _add_operation_option(remove, required=False)
    remove.add_argument("--host", metavar="ADDRESS", help="else of every host")
    remove.add_argument("--deny", action="store_true", help="only rules that forbid")
    words = "add and remove rules, so that the cluster has exactly those of a file"
    apply = _verb(verbs, "apply", _apply, words)
    apply.add_argument("file", type=Path, metavar="FILE", help="YAML")
    apply.add_argument("--dry-run", action="store_true", help="show what would be changed")
    test = _verb(
        verbs, "test", _test, "whether the rules allow an operation, and which rule says so"
    )
    test.add_argument("--principal", required=True, type=_principal, metavar="User:NAME")
    _add_resource_options(test, PatternType.MATCH, required=True)
    test.add_argument(
        "--operation", type=str.upper, choices=acl_file.WORDS, required=True, metavar="NAME",
        help="READ, WRITE, ... (Kafka's names)",
    )  # fmt: skip
    test.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="from where (127.0.0.1)"
    )


def _verb(verbs: Any, name: str, run: Any, words: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=words, description=words)
    add_bootstrap_option(parser)
    add_json_option(parser)
    parser.set_defaults(run=run)
    return parser


def _add_resource_options(
    parser: argparse.ArgumentParser, pattern: PatternType, *, required: bool = False
) -> None:
    """Adds the options of which one gives a resource pattern. `list` asks what applies to a
    resource, so it has no prefixes."""
    group = parser.add_mutually_exclusive_group(required=required)
    for option, (type_, words) in NAMED.items():
        named = _resource(type_, pattern)
        group.add_argument(option, dest="resource", type=named, metavar="NAME", help=words)
        if pattern is PatternType.LITERAL:
            prefixed = _resource(type_, PatternType.PREFIXED)
            group.add_argument(
                f"{option}-prefix", dest="resource", type=prefixed, metavar="TEXT",
                help="all whose names begin so",
            )  # fmt: skip
    group.add_argument(
        "--cluster", dest="resource", action="store_const", const=acl_file.CLUSTER,
        help="the cluster itself",
    )  # fmt: skip


def _add_operation_option(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "--operation", action="append", type=str.upper, choices=acl_file.WORDS, required=required,
        metavar="NAME", help="READ, WRITE, ... (Kafka's names); may be repeated",
    )  # fmt: skip


def _resource(type_: ResourceType, pattern: PatternType) -> Callable[[str], ResourcePattern]:
    def resource(name: str) -> ResourcePattern:
        made = ResourcePattern(type_, name, pattern)
        _checked(acl_file.check_resource, made)
        return made

    return resource


def _principal(text: str) -> str:
    _checked(acl_file.check_principal, text)
    return text


def _host(text: str) -> str:
    _checked(acl_file.check_host, text)
    return text


def _checked(check: Callable[[Any], None], value: Any) -> None:
    """Calls a check of the file's values. In place of its error raises that of an argument."""
    try:
        check(value)
    except ConfigurationRefused as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _list(args: argparse.Namespace) -> int:
    with connect(args) as client:
        found = describe_acls(client, args.resource, args.principal)
    rows = map(_row, sorted(found, key=acl_file.order))
    print_rows(rows, COLUMNS, as_json=args.json)
    return 0


def _add(args: argparse.Namespace) -> int:
    permission = Permission.DENY if args.deny else Permission.ALLOW
    rules = []
    for operation in map(Operation.__getitem__, args.operation):
        try:
            acl_file.check_operation(args.resource, operation)
        except ConfigurationRefused as error:
            raise UsageError(f"--operation: {error}") from None
        rules.append(Acl(args.resource, args.principal, args.host, operation, permission))
    with connect(args) as client:
        results = create_acls(client, rules)
    return _show(results, args)


def _remove(args: argparse.Namespace) -> int:
    if args.resource is None and args.principal is None:
        raise UsageError("say which rules: --principal or a resource, such as --topic")
    with connect(args) as client:
        found = [x for x in describe_acls(client, args.resource, args.principal) if _fits(x, args)]
        if not found:
            raise SkidwayError("there is no such rule; `skidway acls list` shows all")
        results = delete_acls(client, sorted(found, key=acl_file.order))
    return _show(results, args)


def _fits(acl: Acl, args: argparse.Namespace) -> bool:
    return (
        (args.operation is None or acl.operation.name in args.operation)
        and (args.host is None or acl.host == args.host)
        and (not args.deny or acl.permission is Permission.DENY)
    )


def _apply(args: argparse.Namespace) -> int:
    wanted = acl_file.read(args.file)
    with connect(args) as client:
        current = describe_acls(client)
        to_add, to_remove = acl_file.plan(current, wanted)
        added, removed = to_add, to_remove
        if not args.dry_run:
            # First, so that nobody loses a right for a moment that one rule gives in place of
            # another. What could not be added may be meant to replace what is to be removed.
            added = _changed(create_acls(client, to_add))
            is_whole = len(added) == len(to_add)
            removed = _changed(delete_acls(client, to_remove)) if is_whole else []
    rows = [{"change": "add", **_row(acl)} for acl in added]
    rows += [{"change": "remove", **_row(acl)} for acl in removed]
    if rows or args.json:
        print_rows(rows, ["change", *COLUMNS], as_json=args.json)
    elif not to_add + to_remove:
        print("there is nothing to change")
    beyond = sum(not acl_file.is_of_a_file(acl) for acl in current)
    if beyond:
        sys.stderr.write(f"skidway acls: {beyond} rules stay, as no file can have them\n")
    return int(len(added) + len(removed) < len(to_add) + len(to_remove))


def _test(args: argparse.Namespace) -> int:
    resource, operation = args.resource, Operation[args.operation]
    with connect(args) as client:
        rules = Rules(describe_acls(client))
    decision = rules.view(args.principal, args.host).why(operation, resource.type, resource.name)
    row = {"allowed": decision.is_allowed, "reason": decision.reason.name}
    rule = {} if decision.rule is None else _row(decision.rule)
    print_rows([row | rule], ["allowed", "reason", *rule], as_json=args.json)
    return int(not decision.is_allowed)


def _show(results: Results, args: argparse.Namespace) -> int:
    """Prints the rules that were changed, and the errors of the others. Returns the exit status."""
    changed = _changed(results)
    if changed or args.json:
        print_rows(map(_row, changed), COLUMNS, as_json=args.json)
    return int(len(changed) < len(results))


def _changed(results: Results) -> list[Acl]:
    """Returns the rules without an error. Tells each error once, with the first of its rules."""
    told: dict[str, Acl] = {}
    for acl, error in results.items():
        if error is not None:
            told.setdefault(str(error), acl)
    for text, acl in told.items():
        row = _row(acl)
        rule = " ".join(str(row[name]) for name in COLUMNS[:5])
        sys.stderr.write(f"skidway acls: {rule}: {text}\n")
    return [acl for acl, error in results.items() if error is None]


def _row(acl: Acl) -> dict[str, Any]:
    return {
        "principal": acl.principal,
        "permission": acl.permission.name,
        "operation": acl.operation.name,
        "resource_type": acl.resource.type.name,
        "resource_name": acl.resource.name,
        "pattern_type": acl.resource.pattern.name,
        "host": acl.host,
    }
