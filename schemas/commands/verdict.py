"""Whether a schema may follow, why not, and what to write instead: for people and for programs."""

from __future__ import annotations

import argparse
import json
import re
from typing import Any

from schemas.advice import Advice, advise
from schemas.avro_schema import SchemaInvalid
from schemas.client import Reference, RegistryAdministration
from schemas.client.resolution import Resolver
from schemas.compatibility import Level
from skidway.cli.output import print_json

Version = int | str | None
"""A number; `latest`; None: all that the level compares, as a registration is measured."""


def verdict(
    client: RegistryAdministration,
    args: argparse.Namespace,
    text: str,
    takes: tuple[Reference, ...],
    version: Version,
) -> int:
    """Asks the registry, prints its answer with advice of our own, and gives the exit status."""
    found = client.compatible(args.subject, text, version, takes)
    advice = None if found.ok else _advice(client, args.subject, text, takes, version)
    if args.json:
        print_json({"compatible": found.ok, "messages": found.messages, **_document(advice)})
    elif found.ok:
        print(f"compatible with {_which(args.subject, version)}")
    else:
        print(f"not compatible with {_which(args.subject, version)}:")
        _print_reasons(found.messages, advice)
    return 0 if found.ok else 1


def _advice(
    client: RegistryAdministration,
    subject: str,
    text: str,
    takes: tuple[Reference, ...],
    version: Version,
) -> Advice | None:
    """None where our own check finds nothing (the registry judged by a rule that we do not have),
    or cannot read an earlier version."""
    resolver = Resolver(client)
    level = client.level(subject) or client.level(None) or {}
    try:
        if version is None:
            numbers = client.versions(subject)
            earlier = [client.version(subject, each) for each in numbers]
        else:
            earlier = [
                client.latest(subject)
                if isinstance(version, str)
                else client.version(subject, version)
            ]
        compared = [(e.version, resolver.parsed(e.schema, e.references)) for e in earlier]
        known = resolver.types(takes)
        new = resolver.parsed(text, takes)
        return advise(new, compared, Level(str(level.get("compatibilityLevel"))), known)
    except (SchemaInvalid, ValueError):
        return None


def _print_reasons(messages: list[str], advice: Advice | None) -> None:
    if advice is None:
        for message in filter(None, map(_reason, messages)):
            print(f"  {message}")
        return
    for fault in advice.faults:
        print(f"  {fault.sentence}")
    allowing = [each.value for each in advice.allowing if each is not Level.NONE]
    print(f"The level is {advice.level.value}; it might follow under: {', '.join(allowing) or '-'}")
    if advice.suggestion is not None:
        print("A schema near it that may follow:")
        for edit in advice.suggestion.edits:
            print(f"  {edit}")
        print(json.dumps(json.loads(advice.suggestion.schema), indent=2, ensure_ascii=False))


def _document(advice: Advice | None) -> dict[str, Any]:
    if advice is None:
        return {}
    suggestion = advice.suggestion
    return {
        "level": advice.level.value,
        "faults": [
            {"version": each.version, "place": each.place, "sentence": each.sentence}
            for each in advice.faults
        ],
        "allowed_by": [each.value for each in advice.allowing],
        "suggestion": None
        if suggestion is None
        else {"edits": list(suggestion.edits), "schema": suggestion.schema},
    }


def _which(subject: str, version: Version) -> str:
    return subject if version is None else f"{subject} version {version}"


def _reason(message: str) -> str | None:
    """The sentence in a registry's message; None for one that repeats the old schema."""
    sentence = re.search(r"description:'(.*?)'\s*(, additionalInfo|\})", message)
    if sentence:
        return sentence[1]
    return None if message.startswith(("{oldSchema", "{validateFields")) else message
