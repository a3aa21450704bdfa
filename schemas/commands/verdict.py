"""Reports whether a schema is compatible. If it is not, reports why, and which schema would be
compatible. Each verdict has a text, and a JSON document for the option --json."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from skidway.schemas.advice import Advice, advise
from skidway.schemas.avro_schema import AvroType, SchemaInvalid
from skidway.schemas.client import Reference, RegistryAdministration
from skidway.schemas.client.resolution import Resolver
from skidway.schemas.compatibility import Level

Version = int | str | None
"""A version's number, or `latest`. None means all versions with which the registry compares a new
schema; the subject's compatibility level decides which versions these are."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A schema that is to become a subject's next version."""

    subject: str
    text: str
    takes: tuple[Reference, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result for one schema: as a text, and as a JSON document for the option --json."""

    is_good: bool
    document: dict[str, Any]
    text: str


def verdict(client: RegistryAdministration, asked: Asked, version: Version) -> Verdict:
    """Returns the registry's verdict on a schema. If the schema is not compatible, adds Skidway's
    own advice."""
    found = client.compatible(asked.subject, asked.text, version, asked.takes)
    advice = None
    if not found.ok:
        advice = _advice(client, asked.subject, asked.text, asked.takes, version)
    which = _which(asked.subject, version)
    return _verdict({"subject": asked.subject}, which, found.messages, advice, is_good=found.ok)


def local_verdict(name: str, old: AvroType, new: AvroType, level: Level) -> Verdict:
    """Returns the verdict on the schema `new` as the next version after `old`, without a registry.
    `name` is the name of the old schema's file. Raises `SchemaInvalid`."""
    advice = advise(new, [(1, old)], level)
    return _verdict({"against": name}, name, [], advice, is_good=advice is None)


def _verdict(
    of: dict[str, str], which: str, messages: list[str], advice: Advice | None, *, is_good: bool
) -> Verdict:
    document = {**of, "compatible": is_good, "messages": messages}
    if is_good:
        return Verdict(True, document, f"compatible with {which}\n")
    lines = [f"not compatible with {which}:", *_reasons(messages, advice)]
    return Verdict(False, document | _document(advice), "\n".join(lines) + "\n")


def _advice(
    client: RegistryAdministration,
    subject: str,
    text: str,
    takes: tuple[Reference, ...],
    version: Version,
) -> Advice | None:
    """Returns Skidway's own advice on a schema that the registry calls incompatible. Returns None
    if Skidway's parser refuses the schema or an earlier version, or if Skidway does not know the
    registry's level. Also returns None if Skidway's own check calls the schema compatible, because
    then the registry has a rule that Skidway lacks."""
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
        compared = [(e.version, resolver.of(e)) for e in earlier]
        known = resolver.types(takes)
        new = resolver.parsed(text, takes)
        return advise(new, compared, Level(str(level.get("compatibilityLevel"))), known)
    except (SchemaInvalid, ValueError):
        return None


def _reasons(messages: list[str], advice: Advice | None) -> Iterator[str]:
    if advice is None:
        yield from (f"  {each}" for each in filter(None, map(_reason, messages)))
        return
    for fault in advice.faults:
        yield f"  {fault.sentence}"
    allowing = [each.value for each in advice.allowing if each is not Level.NONE]
    yield f"The level is {advice.level.value}; compatible under: {', '.join(allowing) or '-'}"
    if advice.suggestion is not None:
        yield "A compatible schema near it:"
        yield from (f"  {edit}" for edit in advice.suggestion.edits)
        yield json.dumps(json.loads(advice.suggestion.schema), indent=2, ensure_ascii=False)


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
    """Finds in `message`, one of the registry's messages, the sentence that says why the schema is
    incompatible. Returns None if the message gives no reason, but only repeats the old schema or
    the settings.
    """
    sentence = re.search(r"description:'(.*?)'\s*(, additionalInfo|\})", message)
    if sentence:
        return sentence[1]
    return None if message.startswith(("{oldSchema", "{validateFields")) else message
