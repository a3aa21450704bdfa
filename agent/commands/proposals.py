"""A proposal of `guess`, and how it is tried on the first lines of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from skidway.agent.batches.rejected import RejectedLine
from skidway.agent.commands.samples import Sample
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.parsing.parser import TIMESTAMP
from skidway.agent.parsing.parser import ZONE as ZONE_LETTERS
from skidway.agent.settings import MultilineSettings, SourceSettings, TimestampSettings
from skidway.agent.unknown_logs import written_times
from skidway.agent.unknown_logs.time_neighbours import names_zone, rest_beside
from skidway.agent.validation.excerpts import counted, excerpt
from skidway.agent.validation.preview import SHOWN_CHARACTERS_MAX, Preview, preview
from skidway.errors import SkidwayError
from skidway.settings.document import yaml_text

SHARE_LEAST: Final = 0.5
"""A format is proposed only if at least this share of the file's first bytes fits it."""

ZONE: Final = (
    "The times name no zone, so they count as UTC. If the host writes local times, add the zone, "
    "such as Europe/Berlin, as `timezone`; beside `timestamp`, as `timestamp.timezone`."
)
_LETTERS_TRIED_MAX: Final = 20
_SECTIONS: Final = {
    "parser": ParserSettings, "timestamp": TimestampSettings, "multiline": MultilineSettings,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Guess:
    """A proposal. path: the file. what: what the log looks like, in words. source, block: the
    proposed source, as an object and as in agent.yml. preview: the rows and rejects that this
    source makes of the first lines. schema: the schema of the rows, as JSON text; None if the agent
    derives the schema from the source. notes: sentences for the reader of the proposal.
    """

    path: Path
    what: str
    source: SourceSettings
    block: Mapping[str, Any]
    preview: Preview
    schema: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def yaml(self) -> str:
        """The proposed source as YAML text for agent.yml."""
        sources = {"sources": [dict(self.block)]}
        return yaml_text(sources, default_flow_style=None, width=1_000, allow_unicode=True)


def time_notes(
    time: tuple[Sequence[str], str] | None, made: Preview, timezone: str | None = None
) -> tuple[str, ...]:
    """Returns notes for the reader of the proposal about its times, for example that they count as
    UTC because they name no zone. time: the fields that contain the time (if a field contains the
    zone, it is the last one), and the format of the time; None if the records have no time. made:
    the rows that the proposal makes. timezone: the zone of the times; None if the proposal sets
    none.
    """
    if time is None:
        return ()
    values = [each.row.get(time[0][-1]) for each in made.rows]
    texts = [each for each in values if isinstance(each, str)]
    zone = () if names_zone(time[1], texts) else (ZONE,)
    whole = texts if len(time[0]) == 1 else []
    return (*zone, *written_times.notes(time[1], whole, timezone))


def letter_notes(made: Preview) -> tuple[str, ...]:
    """Returns a note if records are rejected because of the letters of their zone. It names the
    zones that would read the first of them."""
    lines = [each.line.decode("utf-8", "replace") for each in made.rejects if _has_letters(each)]
    if not lines:
        return ()
    readings = map(written_times.leading, ([line] for line in lines[:_LETTERS_TRIED_MAX]))
    zones = dict.fromkeys(each.timezone for each in readings if each and each.timezone)
    hint = f"; {' or '.join(zones)} would read some of them" if zones else ""
    return (
        f"{counted(len(lines), 'record', 'is')} rejected because clocks of the `timezone` do not "
        f"show the letters of their zone{hint}.",
    )


def _has_letters(line: RejectedLine) -> bool:
    return line.reason == ZONE_LETTERS


def cuts_times(sample: Sample, time: tuple[Sequence[str], str] | None, made: Preview) -> bool:
    """Whether something that belongs to a time stands beside it in a line, and so would be a part
    of the message."""
    if time is None or len(time[0]) > 1:
        return False
    texts = (each.row.get(time[0][0]) for each in made.rows)
    lines = iter(sample.strings)
    for text in texts:
        line = next((each for each in lines if isinstance(text, str) and text in each), "")
        begin = line.find(str(text)) if line else -1
        if begin >= 0 and rest_beside(line, begin, begin + len(str(text)), time[1]):
            return True
    return False


def tried(sample: Sample, what: str, block: dict[str, Any]) -> Guess | None:
    """Returns the proposal whose source has the settings in `block`; None if these settings cannot
    be used for this file. If most of the file fits, but the times of some records cannot be read,
    the proposal gives these records the time of reading (`on_error: read_time`).
    """
    made = _made(sample, what, block)
    if made is None or not misses_times(made):
        return made
    time = block["timestamp"] | {"on_error": "read_time"}
    lenient = _made(sample, what, block | {"timestamp": time})
    if lenient is None:
        return made
    unread = next(each for each in made.preview.rejects if _has_unread_time(each))
    text = excerpt(unread.line.decode("utf-8", "replace"), SHOWN_CHARACTERS_MAX)
    return replace(lenient, notes=(*lenient.notes, f"No format reads the time of: {text}"))


def misses_times(made: Guess) -> bool:
    """Whether the proposal fits most records, but rejects some because their time cannot be
    read."""
    unread = any(map(_has_unread_time, made.preview.rejects))
    return unread and made.preview.share >= SHARE_LEAST


def _has_unread_time(line: RejectedLine) -> bool:
    return line.reason in (TIMESTAMP, ZONE_LETTERS)


def _made(sample: Sample, what: str, block: dict[str, Any]) -> Guess | None:
    settings: dict[str, Any] = {}
    for name, kind in _SECTIONS.items():
        if name in block:
            settings[name] = kind(**block[name])
    try:
        source = sample.source(**settings)
        made = preview(source, sample.data, str(sample.path))
    except SkidwayError:  # a column and a container's field may share a name
        return None
    stamp = block.get("timestamp", {})
    time = (stamp["fields"], stamp["format"]) if stamp else None
    if not source.parser.kind.is_separated and cuts_times(sample, time, made):
        return None
    notes = time_notes(time, made, stamp.get("timezone"))
    return Guess(sample.path, what, source, sample.block(**block), made, None, notes)
