"""Formats explanations as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from skidway.audit.explanation.explanation import ByteRange, Explanation
from skidway.audit.explanation.next_command import NextCommand
from skidway.audit.explanation.offsets import OffsetRange
from skidway.audit.explanation.present_cause import PresentCause

SHOWN = 10
"""A text shows at most this many groups of explanations. For a group, it shows at most this many
explanations; for an explanation, at most this many byte ranges and offset ranges. Except for byte
ranges, the text says how many more there are."""

COVERS_ALL = "An acceptance covers all causes of the bucket: run the other commands first."


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The command that accepts a bucket. when: the words that say when to run the command: "next"
    if no cause of the bucket has a command of its own; "then" if some causes have one; "if nothing
    helps" if all causes have one. advice: a sentence to show before the command; "" for none.
    """

    when: str
    command: NextCommand
    advice: str = ""


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
        "from": found.command.since or None,
        "accept": None if found.accept is None else _command(found.accept),
    }


def document_of(found: PresentCause) -> dict[str, Any]:
    """Returns what holds up programs now as a JSON object."""
    return {
        "cause": found.cause.value,
        "meaning": found.cause.meaning,
        "words": found.words,
        "clusters": list(found.clusters),
        "since": found.since_ms,
        "command": _command(found.command),
    }


def sentence(found: PresentCause) -> str:
    """Returns what holds up programs now, and the command to run next, as one line."""
    return f"{found.words}. Next: {found.command}"


def text(found: Sequence[Explanation]) -> Iterator[str]:
    """Yields the explanations as indented lines. Explanations with the same cause, location and
    command form a group. The text has one line for each explanation of a group. After these lines
    the text says, once for the whole group, what the cause means, where it is, and which command
    helps. If the bucket can be accepted, the last line of the text is the command that accepts it.
    """
    groups: dict[tuple[object, ...], list[Explanation]] = {}
    for each in found:
        groups.setdefault((each.cause, _where(each), each.repair), []).append(each)
    for group in list(groups.values())[:SHOWN]:
        yield from _as_lines(group)
    if len(groups) > SHOWN:
        yield f"  and {len(groups) - SHOWN:,} more causes (--json has them)"
    last = acceptance(found)
    if last is not None:
        if last.advice:
            yield f"  {last.advice}"
        yield f"  {last.when}: {last.command}"


def acceptance(found: Sequence[Explanation]) -> Acceptance | None:
    """The command that accepts the bucket; None if the bucket cannot be accepted yet. The command
    covers all causes of the bucket. As the reason, the command states the first cause that can be
    accepted.
    """
    accepts = [x.accept for x in found if x.accept is not None]
    if not accepts:
        return None
    repairs = [x.repair for x in found if x.repair is not None]
    if not repairs:
        return Acceptance("next", accepts[0])
    has_several = len({(x.cause, x.repair) for x in found}) > 1
    when = "if nothing helps" if len(repairs) == len(found) else "then"
    return Acceptance(when, accepts[0], COVERS_ALL if has_several else "")


def _as_lines(group: Sequence[Explanation]) -> Iterator[str]:
    first = group[0]
    for each in group[:SHOWN]:
        yield f"  {each.cause.value}: {each.words}"
    if len(group) > SHOWN:
        yield f"  and {len(group) - SHOWN:,} more reasons (--json has them)"
    yield f"    {first.meaning}"
    if where := _where(first):
        yield f"    where: {where}"
    if first.repair is not None:
        yield f"    next:  {first.repair}"


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
    offsets = ", ".join(map(_offsets, found.offsets[:SHOWN]))
    if len(found.offsets) > SHOWN:
        offsets += f", and {len(found.offsets) - SHOWN} more partitions"
    if offsets and found.spans_buckets:
        offsets = f"not reached in the topic, not only of this bucket: {offsets}"
    return ", ".join([*parts, *filter(None, [offsets])])


def _bytes(range_: ByteRange) -> str:
    if range_.end is None:
        return f"from byte {range_.first} on"
    return f"bytes {range_.first} to {range_.end}"


def _offsets(range_: OffsetRange) -> str:
    return f"partition {range_.partition} offsets {range_.first} to {range_.end}"


def _command(command: NextCommand) -> dict[str, str]:
    return {"host": command.host, "line": command.line}
