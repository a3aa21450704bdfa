"""Makes tables and JSON documents from stories (a story is a line and its fate in each tier)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from skidway.audit.tracing.fates import first_without
from skidway.audit.tracing.lines import Fate
from skidway.audit.tracing.trace import Story
from skidway.cli.moments import shown

COLUMNS: Final = ("tier", "has_it", "time", "of", "where", "detail")
TEXT_CHARACTERS_MAX: Final = 160
Decode = Callable[[bytes], str]


def rows(story: Story) -> list[dict[str, Any]]:
    """The table of one story: a row for each fate."""
    return [_row(fate) for fate in story.fates]


def heading(story: Story, decode: Decode) -> Iterator[str]:
    """The lines above the table: which line it is, and its text if it was found."""
    name, length = story.name, story.length
    where = f"{name.host}:{name.path}" if name.path else f"file {name.file} of agent {name.agent}"
    size = "" if length is None else f", {length:,} bytes"
    ids = f" (file id {name.file}, agent {name.agent})" if name.path else ""
    yield f"{where}, byte {story.first:,}{size}{ids}"
    text = text_of(story, decode)
    if text:
        yield f"  {text}"


def sentence(story: Story) -> str:
    """Says in one sentence which of the searched tiers is the first without the line, or that all
    of them have it."""
    lacking = first_without(story.fates)
    if lacking is not None:
        return f"The first tier without the line is {lacking.tier}: {lacking.state.value}."
    unseen = sorted({x.tier for x in story.fates if x.state.value == "not looked at"} - {"host"})
    if unseen:
        return f"Every tier that was looked at has the line; not looked at: {', '.join(unseen)}."
    return "Every tier has the line."


def document(story: Story, decode: Decode) -> dict[str, Any]:
    """One story as JSON."""
    name, lacking = story.name, first_without(story.fates)
    return {
        "host": name.host,
        "path": name.path,
        "agent": name.agent,
        "file": name.file,
        "topic": None if name.source is None else f"{name.source.cluster}.{name.source.topic}",
        "first": story.first,
        "length": story.length,
        "text": text_of(story, decode, None),
        "tiers": [_document(fate) for fate in story.fates],
        "first_without": None if lacking is None else lacking.tier,
        "ok": story.is_everywhere,
    }


def text_of(story: Story, decode: Decode, limit: int | None = TEXT_CHARACTERS_MAX) -> str:
    """Returns the text of the story. If the story has no text, returns the value of the line's
    record, as `decode` returns it; "" if the record is not known either. limit: the greatest number
    of characters to return; characters that cannot be printed are replaced. None for the whole,
    unchanged text.
    """
    value = story.record.value if story.record is not None else None
    if story.text is not None:
        text = story.text.decode("utf-8", "replace").rstrip("\r\n")
    else:
        text = "" if value is None else decode(value)
    if limit is None:
        return text
    printable = "".join(x if x.isprintable() else "\N{REPLACEMENT CHARACTER}" for x in text)
    return printable[:limit]


def _row(fate: Fate) -> dict[str, Any]:
    return {
        "tier": fate.tier,
        "has_it": fate.state.value,
        "time": None if fate.time_ms is None else shown(fate.time_ms),
        "of": fate.clock or None,
        "where": fate.place or None,
        "detail": fate.detail,
    }


def _document(fate: Fate) -> dict[str, Any]:
    return {
        "tier": fate.tier,
        "state": fate.state.value,
        "place": fate.place,
        "time": fate.time_ms,
        "time_of": fate.clock,
        "detail": fate.detail,
    }
