"""Formats explanations as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from skidway.audit.explanation.explanation import ByteRange, Explanation
from skidway.audit.explanation.next_command import NextCommand
from skidway.audit.explanation.offsets import OffsetRange

SHOWN = 10
"""A text shows at most this many explanations and offset ranges, and says how many more there
are."""


def document(found: Explanation) -> dict[str, Any]:
    """Returns one explanation as a JSON object. docs/audit.md describes the fields."""
    return {
        "cause": found.cause.value,
        "meaning": found.meaning,
        "verdict": found.status.word,
        "words": found.words,
        "tier": None if found.tier is None else found.tier.value.lower(),
        "place": found.place,
        "host": found.host,
        "agent": found.agent,
        "file": found.file,
        "path": found.path,
        "ranges": [{"first": x.first, "end": x.end} for x in found.ranges],
        "offsets": [x._asdict() for x in found.offsets],
        "command": _command(found.command),
        "accept": None if found.accept is None else _command(found.accept),
    }


def text(found: Sequence[Explanation]) -> Iterator[str]:
    """The explanations as indented lines. If several explanations have the same cause, location and
    command, the text lists the words of all of them, and then what the cause means, the location
    and the command once.
    """
    groups: dict[tuple[object, ...], list[Explanation]] = {}
    for each in found:
        command = None if each.command == each.accept else each.command
        key = (each.cause, _where(each), each.words if command is None else command)
        groups.setdefault(key, []).append(each)
    for group in list(groups.values())[:SHOWN]:
        yield from _as_lines(group)
    if len(groups) > SHOWN:
        yield f"  and {len(groups) - SHOWN:,} more causes (--json has them)"
    firsts = [x for x, *_ in groups.values()]
    has_others = any(x.command != x.accept for x in firsts)
    if has_others and sum(x.accept is not None for x in firsts) > 1:
        yield "  An acceptance covers all causes of the bucket: run the other commands first."


def _as_lines(group: Sequence[Explanation]) -> Iterator[str]:
    first = group[0]
    for each in group[:SHOWN]:
        yield f"  {each.cause.value}: {each.words}"
    if len(group) > SHOWN:
        yield f"  and {len(group) - SHOWN:,} more reasons (--json has them)"
    yield f"    {first.meaning}"
    if where := _where(first):
        yield f"    where: {where}"
    yield f"    next:  {first.command}"
    if first.accept is not None and first.accept != first.command:
        yield f"    if nothing helps: {first.accept}"


def _where(found: Explanation) -> str:
    parts = []
    if found.tier is not None:
        parts.append(f"tier {found.tier.value.lower()} {found.place}".rstrip())
    if found.host:
        parts.append(f"host {found.host}")
    if found.path:
        parts.append(found.path)
    if found.file is not None:
        parts.append(f"file {found.file}")
    parts += map(_bytes, found.ranges[:SHOWN])
    parts += map(_offsets, found.offsets[:SHOWN])
    if len(found.offsets) > SHOWN:
        parts.append(f"and {len(found.offsets) - SHOWN} more partitions")
    return ", ".join(parts)


def _bytes(range_: ByteRange) -> str:
    if range_.end is None:
        return f"from byte {range_.first} on"
    return f"bytes {range_.first} to {range_.end}"


def _offsets(range_: OffsetRange) -> str:
    return f"partition {range_.partition} offsets {range_.first} to {range_.end}"


def _command(command: NextCommand) -> dict[str, str]:
    return {"host": command.host, "line": command.line}
