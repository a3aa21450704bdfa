"""`skidway registry run|validate` and `skidway schemas list|get|register|check`."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from schemas.avro_schema import SchemaInvalid, parse
from schemas.client import Registered, RegistryClient
from schemas.second_opinion import second_opinion
from skidway import service
from skidway.cli.options import add_config_options, add_json_option, load_settings
from skidway.cli.output import print_json, table
from skidway.errors import UsageError

REGISTRY_URL = "http://127.0.0.1:8081"


def register_registry(subparsers: Any) -> None:
    """Adds the noun `registry`."""
    from schemas.registry.program import RegistrySettings

    parser = subparsers.add_parser("registry", help="the schema registry")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    run = verbs.add_parser("run", help="run the registry in the foreground until SIGTERM")
    add_config_options(run, RegistrySettings)
    run.set_defaults(run=_run)
    validate = verbs.add_parser("validate", help="check the settings, and end")
    add_config_options(validate, RegistrySettings)
    validate.set_defaults(run=_validate)


def register_schemas(subparsers: Any) -> None:
    """Adds the noun `schemas`."""
    parser = subparsers.add_parser("schemas", help="schemas in a registry")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    _verb(verbs, "list", "subjects with their latest version and its id", _list)
    get = _verb(verbs, "get", "a schema: by subject, subject and version, or id", _get)
    get.add_argument("subject", nargs="?", help="subject, for example hdfs-logs-value")
    get.add_argument("--version", default="latest", help="number, or latest (latest)")
    get.add_argument("--id", type=int, help="schema id instead of a subject")
    for name, text, action in (
        ("register", "register a schema under a subject, and print its id", _register),
        ("check", "say whether a schema may follow; exit status 1 if not", _check),
    ):
        verb = _verb(verbs, name, text, action)
        verb.add_argument("subject", help="subject, for example hdfs-logs-value")
        verb.add_argument("file", help="the schema, JSON; - is standard input")
        if name == "check":
            verb.add_argument("--version", default="latest", help="number, or latest (latest)")


def _verb(verbs: Any, name: str, text: str, action: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text)
    parser.add_argument(
        "--registry", default=REGISTRY_URL, metavar="URL", help=f"registry ({REGISTRY_URL})"
    )
    add_json_option(parser)
    parser.set_defaults(run=action)
    return parser


def _run(args: argparse.Namespace) -> int:
    from schemas.registry import program

    def body(shutdown: service.Shutdown) -> int:
        return program.run(load_settings(program.RegistrySettings, args, "registry"), shutdown)

    return service.run("registry", body, level=args.log_level)


def _validate(args: argparse.Namespace) -> int:
    from schemas.registry.program import RegistrySettings

    settings = load_settings(RegistrySettings, args, "registry")
    print(f"good: {', '.join(settings.listeners)}, ZooKeeper {settings.zookeeper_connect}")
    return 0


def _list(args: argparse.Namespace) -> int:
    client = RegistryClient(args.registry)
    rows = []
    for subject in client.subjects():
        latest = client.latest(subject)
        rows.append({"subject": subject, "version": latest.version, "id": latest.id})
    if args.json:
        print_json(rows)
    else:
        table(rows, ["subject", "version", "id"])
    return 0


def _get(args: argparse.Namespace) -> int:
    if (args.subject is None) == (args.id is None):
        raise UsageError("Name a subject, or an id with --id.")
    client = RegistryClient(args.registry)
    if args.id is not None:
        text = client.schema(args.id)
        print_json({"id": args.id, "schema": text} if args.json else json.loads(text))
        return 0
    found = _version(client, args.subject, args.version)
    if args.json:
        print_json(_shown(found))
    else:
        print_json(json.loads(found.schema))
    return 0


def _register(args: argparse.Namespace) -> int:
    client, text = RegistryClient(args.registry), _schema_text(args.file)
    schema_id = client.register(args.subject, text)
    found = client.lookup(args.subject, text)
    version = None if found is None else found.version
    if args.json:
        print_json({"subject": args.subject, "version": version, "id": schema_id})
    else:
        print(f"{args.subject} version {version} has id {schema_id}")
    _say_second_opinion(text)
    return 0


def _check(args: argparse.Namespace) -> int:
    client, text = RegistryClient(args.registry), _schema_text(args.file)
    verdict = client.compatible(args.subject, text, _version_number(args.version))
    if args.json:
        print_json({"compatible": verdict.ok, "messages": verdict.messages})
    elif verdict.ok:
        print(f"compatible with {args.subject} version {args.version}")
    else:
        print(f"not compatible with {args.subject} version {args.version}:")
        for message in filter(None, map(_reason, verdict.messages)):
            print(f"  {message}")
    _say_second_opinion(text)
    return 0 if verdict.ok else 1


def _say_second_opinion(text: str) -> None:
    refusal = second_opinion(text)
    if refusal is not None:
        print(f"Apache Avro's Python library does not read it: {refusal}", file=sys.stderr)


def _version(client: RegistryClient, subject: str, version: str) -> Registered:
    number = _version_number(version)
    return client.latest(subject) if isinstance(number, str) else client.version(subject, number)


def _version_number(version: str) -> int | str:
    if version == "latest":
        return version
    if not version.isdigit():
        raise UsageError(f"--version: {version!r} is neither a number nor latest.")
    return int(version)


def _shown(found: Registered) -> dict[str, Any]:
    return {
        "subject": found.subject,
        "version": found.version,
        "id": found.id,
        "schema": found.schema,
    }


def _reason(message: str) -> str | None:
    """The sentence in a registry's message; None for one that repeats the old schema."""
    sentence = re.search(r"description:'(.*?)'\s*(, additionalInfo|\})", message)
    if sentence:
        return sentence[1]
    return None if message.startswith(("{oldSchema", "{validateFields")) else message


def _schema_text(file: str) -> str:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"Cannot read {file}: {why}.") from error
    except UnicodeDecodeError as error:
        raise SchemaInvalid(f"{file} is not UTF-8.") from error
    parse(text)  # says where it is wrong, before anybody is asked
    return text
