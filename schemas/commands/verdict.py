"""Reports whether a schema is compatible. If it is not, reports why, and which schema would be
compatible. Each verdict has a text, and a JSON document for the option --json."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from skidway.schemas.advice import Advice, advise
from skidway.schemas.avro_schema import AvroType, SchemaInvalid, parse
from skidway.schemas.client import Reference, Registered, RegistryAdministration, RegistryRefused
from skidway.schemas.client.resolution import Resolver
from skidway.schemas.commands.arguments import LATEST
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
    """The result for one schema: as a text, and as a JSON document for the option --json. `notes`
    say what readers will not take as the author may expect."""

    is_good: bool
    document: dict[str, Any]
    text: str
    notes: tuple[str, ...] = ()


def verdict(client: RegistryAdministration, asked: Asked, version: Version) -> Verdict:
    """Returns the registry's verdict on a schema. If the schema is not compatible, adds Skidway's
    own advice."""
    found = client.compatible(asked.subject, asked.text, version, asked.takes)
    if found.ok:  # only notes are left to say, and they compare with one version
        earlier, level = _earlier(client, asked.subject, version or LATEST), Level.NONE
    else:
        earlier, level = _earlier(client, asked.subject, version), _level(client, asked.subject)
    advice = _advice(client, asked, earlier, level)
    which = asked.subject if version is None else f"{asked.subject} version {version}"
    return _verdict({"subject": asked.subject}, which, found.messages, advice, is_good=found.ok)


def local_verdict(name: str, old: AvroType, new: AvroType, level: Level) -> Verdict:
    """Returns the verdict on the schema `new` as the next version after `old`, without a registry.
    `name` is the name of the old schema's file. Raises `SchemaInvalid`."""
    advice = advise([(1, old)], new, level)
    return _verdict({"against": name}, name, [], advice, is_good=not advice.faults)


def notes(client: RegistryAdministration, asked: Asked) -> tuple[str, ...]:
    """Returns the notes on a schema that is compared with no other."""
    advice = _advice(client, asked, [], Level.NONE)
    return () if advice is None else advice.notes


def compatible_under(levels: list[str]) -> str:
    """Returns the sentence that names the levels at which a schema would be accepted."""
    return f"compatible under: {', '.join(levels) or '-'}"


def _advice(
    client: RegistryAdministration, asked: Asked, earlier: list[Registered], level: Level
) -> Advice | None:
    """Returns Skidway's own advice, or None if Skidway's parser refuses the schema. If it refuses
    an earlier version, or cannot compare with it, the schema is compared with none."""
    resolver = Resolver(client)
    try:
        known = resolver.types(asked.takes)
        new = parse(asked.text, known, check_defaults=False)
        return advise([(each.version, resolver.of(each)) for each in earlier], new, level, known)
    except (RegistryRefused, SchemaInvalid):
        return _advice(client, asked, [], level) if earlier else None


def _earlier(client: RegistryAdministration, subject: str, version: Version) -> list[Registered]:
    try:
        if version == LATEST:
            return [client.latest(subject)]
        numbers = client.versions(subject) if version is None else [int(version)]
        return [client.version(subject, each) for each in numbers]
    except RegistryRefused:
        return []  # a subject that is to get its first version


def _level(client: RegistryAdministration, subject: str) -> Level:
    """Returns the subject's level, or NONE if Skidway does not know the registry's level."""
    found = client.level(subject) or client.level(None) or {}
    return Level.__members__.get(str(found.get("compatibilityLevel")), Level.NONE)


def _verdict(
    of: dict[str, str], which: str, messages: list[str], advice: Advice | None, *, is_good: bool
) -> Verdict:
    document = {**of, "compatible": is_good, "messages": messages}
    said = () if advice is None else advice.notes
    if is_good:
        return Verdict(True, document, f"compatible with {which}\n", said)
    # the registry may have a rule that Skidway lacks
    if advice is None or not advice.faults:
        reasons = [f"  {each}" for each in filter(None, map(_reason, messages))]
    else:
        reasons = [*_reasons(advice)]
        document |= _document(advice)
    text = "\n".join([f"not compatible with {which}:", *reasons])
    return Verdict(False, document, f"{text}\n", said)


def _reasons(advice: Advice) -> Iterator[str]:
    yield from (f"  {each.sentence}" for each in advice.faults)
    levels = [each.value for each in advice.allowed_by]
    yield f"The level is {advice.level.value}; {compatible_under(levels)}"
    if advice.suggestion is not None:
        yield "A compatible schema near it:"
        yield from (f"  {edit}" for edit in advice.suggestion.edits)
        yield json.dumps(json.loads(advice.suggestion.schema), indent=2, ensure_ascii=False)


def _document(advice: Advice) -> dict[str, Any]:
    return {
        "level": advice.level.value,
        "faults": [asdict(each) for each in advice.faults],
        "allowed_by": [each.value for each in advice.allowed_by],
        "suggestion": advice.suggestion and asdict(advice.suggestion),
    }


def _reason(message: str) -> str | None:
    """Finds in `message`, one of the registry's messages, the sentence that says why the schema is
    incompatible. Returns None if the message gives no reason, but only repeats the old schema or
    the settings.
    """
    sentence = re.search(r"description:'(.*?)'\s*(, additionalInfo|\})", message)
    if sentence:
        return sentence[1]
    return None if message.startswith(("{oldSchema", "{validateFields")) else message
