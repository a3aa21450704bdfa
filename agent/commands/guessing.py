"""`skidway agent guess FILE`: proposes settings with which the agent can read an unknown log."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from skidway.agent.commands import (
    json_schemas,
    leading_texts,
    samples,
    secret_texts,
)
from skidway.agent.commands.json_schemas import JsonSchema
from skidway.agent.commands.proposals import (
    SHARE_LEAST,
    Guess,
    cuts_times,
    letter_notes,
    misses_times,
    time_notes,
    tried,
)
from skidway.agent.commands.samples import Sample
from skidway.agent.formats import catalog
from skidway.agent.parsers import BY_NAME, kind_of
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.parsing import derived
from skidway.agent.parsing.containers import STREAM, TIME
from skidway.agent.parsing.left_out import BLANK, CSV_HEADER
from skidway.agent.parsing.parser import TIME_MARK
from skidway.agent.parsing.regex import anchored
from skidway.agent.parsing.replacing import MARK
from skidway.agent.parsing.runtimes import CRI
from skidway.agent.settings import TimestampSettings
from skidway.agent.unknown_logs import written_times
from skidway.agent.unknown_logs.prefixed_json import LEVEL
from skidway.agent.unknown_logs.written_times import Reading
from skidway.agent.validation.preview import Preview, preview
from skidway.errors import ConfigurationRefused, SkidwayError

NAMED_LEAST: Final = 0.95
"""If JSON lines or a format of the catalog (such as `access`) fit at least this share of the bytes,
`guess` proposes them, even if another proposal fits more bytes."""

SIGNS_LEAST: Final = 0.25
"""`guess` proposes a format of the catalog only if at least this share of the rows has its sign."""

TIMES: Final = (
    "time", "timestamp", "@timestamp", "ts", "date", "datetime", "eventTime", "event_time", "t",
    "@t", "timeMillis", "time_ms", "ts_ms", "timestamp_ms", "epochSecond",
)  # fmt: skip
"""`guess` looks for a record's time in the JSON members with these names, in this order."""

DEPTH_MAX: Final = 3
"""`guess` looks for times in members up to this depth. For example, `a.b.time` has depth 3."""

LOOKED_AT_MAX: Final = 200
"""`guess` looks for times in at most this many lines."""


def guess(path: Path, lines_max: int, encoding: str | None = None) -> Guess:
    """Proposes a source for a file from its first lines. encoding: how the lines are encoded; None
    if `guess` has to find this out. Raises SkidwayError if the file cannot be read, is empty or
    compressed, or if the encoding is unknown.
    """
    sample = samples.read(Path(os.path.abspath(path)), lines_max, encoding)
    try:
        as_json = _as_json(sample)
    except (SkidwayError, RecursionError):  # there is no schema that the agent could fill
        as_json = None
    if as_json is not None and as_json.preview.share >= NAMED_LEAST:
        return _with_notes(as_json, sample, encoding)
    found = [each for each in (as_json, _as_format(sample)) if each is not None]
    best = max(found, key=lambda each: each.preview.share, default=None)
    unnamed = _as_unnamed(sample)
    if unnamed is not None and _has_untimed_values(unnamed):
        timed = _as_timed(sample)
        if timed is not None and timed.preview.share >= NAMED_LEAST:
            unnamed = timed
    if unnamed is not None and (
        best is None or best.preview.share < min(NAMED_LEAST, unnamed.preview.share)
    ):
        best = unnamed
    if best is None or best.preview.share < NAMED_LEAST:
        timed = _as_timed(sample)
        if timed is not None and (best is None or best.preview.share < timed.preview.share):
            best = timed
    if best is None or best.preview.share < SHARE_LEAST:
        best = _as_raw(sample)
    return _with_notes(best, sample, encoding)


def document(found: Guess) -> dict[str, Any]:
    """Returns the proposal as the object that `guess --json` prints as JSON."""
    return {
        "what": found.what,
        "share": round(found.preview.share, 4),
        "source": dict(found.block),
        "schema": None if found.schema is None else json.loads(found.schema),
        "records": found.preview.document(),
    }


def _with_notes(found: Guess, sample: Sample, encoding: str | None) -> Guess:
    """Returns the proposal with further notes, which are sentences for its reader: about the paths,
    about texts that look like secrets, and about the encoding of lines that are not UTF-8.
    """
    notes = list(sample.notes)
    if "timestamp" not in found.block and "format" not in found.block and found.schema is None:
        doubts = (list(written_times.doubts(texts)) for texts in _beginnings(found, sample))
        notes += next(filter(None, doubts), [])
    if found.preview.by_rule.get(BLANK):
        notes.append(f"Blank lines are left out, and counted as filtered by `{BLANK}`.")
    notes += letter_notes(found.preview)
    secrets = secret_texts.secrets([each.row for each in found.preview.rows])
    if secrets.rules:
        words = " and ".join(f"`{each}`" for each in secrets.rules)
        shown = " and ".join(f'"{each}"' for each in secrets.examples)
        notes.append(
            f"Some rows contain what looks like secrets. In `shape`, {words} masks them. "
            f"With it, a text becomes: {shown}."
        )
    notes += secrets.notes
    found = replace(found, notes=(*found.notes, *notes))
    note = ""
    if "on_error" in sample.more:
        note = "Some lines are not UTF-8. If they are in another encoding, name it: --encoding."
    elif encoding is None and sample.more.get("encoding") == samples.WINDOWS:
        note = (
            "Some lines are not UTF-8; they look like windows-1252. If letters in the rows are "
            "wrong, name the encoding: --encoding."
        )
    return replace(found, notes=(*found.notes, note)) if note else found


def _has_untimed_values(found: Guess) -> bool:
    return found.source.parser.kind.is_separated and "timestamp" not in found.block


def _beginnings(found: Guess, sample: Sample) -> list[list[str]]:
    """Returns texts that may begin with the times of a log: the lines or, of values with a
    delimiter, the first row from each of its columns on."""
    columns = found.block.get("parser", {}).get("columns", ())
    if not columns or not found.preview.rows:
        return [sample.strings]
    values = [str(found.preview.rows[0].row[name]).strip() for name in columns]
    return [[" ".join(values[first:])] for first in range(len(values))]


# --- JSON lines -------------------------------------------------------------------------------


def _as_json(sample: Sample) -> Guess | None:
    """Returns a proposal for a log whose lines are JSON objects; None if too few lines look like
    objects."""
    texts = sample.filled
    objects = sum(text.lstrip().startswith(b"{") for text in texts)
    if objects < SHARE_LEAST * len(texts):
        return None
    name = derived.record_name(sample.topic)
    schema = json_schemas.proposed([*texts, *sample.further], name)
    notes = [_SAVE]
    if schema.mixed:
        names = ", ".join(schema.mixed[:10])
        notes.append(f"The values of {names} have several types; _extra has those that do not fit.")
    if schema.numbered:
        names = ", ".join(schema.numbered[:3])
        notes.append(f"Members such as {names} have numbers in their names; _extra has them.")
    for member, found in _times(texts):
        time = found.settings([schema.field_of(member)])
        timed = schema.with_optional(member)
        try:
            made = _with_schema(sample, timed, time)
        except ConfigurationRefused:  # the time is in `_extra`, so it has no field
            continue
        if misses_times(made):
            made = _with_schema(sample, timed, time | {"on_error": "read_time"})
        if made.preview.share >= SHARE_LEAST:
            notes += time_notes((time["fields"], found.format), made.preview, found.timezone)
            return replace(made, notes=tuple(notes))
    return replace(_with_schema(sample, schema, None), notes=tuple(notes))


_SAVE: Final = (
    "Save the schema, which `--schema` prints, beside the file with this block, or write the path "
    "of its file into `schema`."
)


def _with_schema(sample: Sample, schema: JsonSchema, time: dict[str, Any] | None) -> Guess:
    """Returns the proposal with this schema. time: the setting `timestamp`, which names the member
    with the time; None for a proposal without a time."""
    further: list[tuple[str, object, object]] = []
    if "container" in sample.more:
        moment = {"type": "long", "logicalType": "timestamp-millis"}
        further = [(STREAM, "string", ""), (TIME, ["null", moment], None)]
    if sample.more.get("container") == CRI:
        further += [(name, "string", "") for name in ("namespace", "pod", "container")]
    if "on_error" in sample.more:
        further.append((MARK, "boolean", False))
    if time is not None and "on_error" in time:
        further.append((TIME_MARK, "boolean", False))
    text = schema.with_fields(further)
    file = f"{sample.topic}.avsc"
    stamp = None if time is None else TimestampSettings(**time)
    source = sample.source(parser=ParserSettings(type="json"), schema=file, timestamp=stamp)
    made = preview(source, sample.data, str(sample.path), schema=text)
    block = sample.block(parser={"type": "json"}, schema=file)
    what = "JSON lines without a time"
    if time is not None:
        block, what = block | {"timestamp": time}, "JSON lines"
    return Guess(sample.path, what, source, block, made, text)


def _times(texts: list[bytes]) -> list[tuple[str, Reading]]:
    """Returns the JSON members that may contain the time of a line, each with how this time is
    read. Members of the outermost object come first, then members of the objects inside it. A
    nested member is named by its path, for example `a.time`.
    """
    values: dict[tuple[str, ...], list[object]] = {}
    for text in texts[:LOOKED_AT_MAX]:
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(line, dict):
            for path, value in _time_members(line):
                values.setdefault(path, []).append(value)
    paths = sorted(values, key=lambda path: (len(path), TIMES.index(path[-1])))
    readings = ((path, written_times.of_value(values[path])) for path in paths)
    return [(".".join(path), found) for path, found in readings if found is not None]


def _time_members(
    value: dict[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], object]]:
    for name, each in value.items():
        path = (*above, name)
        if isinstance(each, dict) and len(path) < DEPTH_MAX and "." not in name:
            yield from _time_members(each, path)
        elif name in TIMES and each is not None:
            yield path, each


# --- formats with a name ----------------------------------------------------------------------


def _as_format(sample: Sample) -> Guess | None:
    """Returns the proposal with the format of the catalog that fits best. Returns None if no format
    can be used together with the other settings that this file needs (such as `container`).
    """
    best: Guess | None = None
    times = written_times.leading(sample.strings)
    zone = {"timezone": times.timezone} if times is not None and times.timezone else {}
    for name, form in catalog.formats().items():
        if form.parser.kind.fills_by_name and not _is_of(form, sample):
            continue
        if not _begins_a_record(form, sample):
            continue  # trying a format takes far longer than looking whether its pattern ever fits
        try:
            source = catalog.of_source(sample.source(format=name, **zone))
            made = preview(source, sample.data, str(sample.path))
        except ConfigurationRefused:  # a group and a container's field may share a name
            continue
        if cuts_times(sample, form.time, made) or _is_mistaken(form, made):
            continue
        if best is None or made.share > best.preview.share:
            notes = time_notes(form.time, made, zone.get("timezone"))
            block = sample.block(format=name, **zone)
            best = Guess(sample.path, f"{name} ({form.what})", source, block, made, None, notes)
    return best


def _is_mistaken(form: catalog.Format, made: Preview) -> bool:
    """Whether the rows show that the log is in another format, although its lines fit: few rows
    have the format's sign, or a level is where the format has a host.
    """
    rows = [each.row for each in made.rows]
    signs = sum(bool(row[form.sign]) for row in rows) if form.sign else len(rows)
    levels = sum(_LEVEL.fullmatch(row.get("host") or "") is not None for row in rows)
    return signs < SIGNS_LEAST * len(rows) or 2 * levels > len(rows)


_LEVEL: Final = re.compile(LEVEL)


def _begins_a_record(form: catalog.Format, sample: Sample) -> bool:
    if form.pattern is None or r"\n" in form.pattern:  # one line may be a part of a record
        return True
    lines = pa.array(sample.strings, pa.string())
    return bool(pc.any(pc.match_substring_regex(lines, anchored(form.pattern))).as_py())


def _is_of(form: catalog.Format, sample: Sample) -> bool:
    """Whether a log is in this format, whose parser finds the fields' names in the line: most lines
    have the format's first key and the keys of its time, and the format has every key that most
    lines have. (The share of lines that the parser accepts shows nothing, because the parser
    accepts every line with keys.)
    """
    for _, found in form.parser.kind.proposals(samples.strings(sample.filled)):
        if form.time is None or "timestamp" not in found:
            continue
        columns = found["parser"]["columns"]
        has_time = found["timestamp"]["fields"] == form.time[0]
        if has_time and form.columns[0] in columns and set(columns) <= set(form.columns):
            return True
    return False


# --- others -----------------------------------------------------------------------------------


def _as_unnamed(sample: Sample) -> Guess | None:
    """Returns the best of the proposals of all types of parsers; None if there is none."""
    texts = samples.strings(sample.filled)
    best: Guess | None = None
    for what, block in (each for kind in BY_NAME.values() for each in kind.proposals(texts)):
        made = tried(sample, what, block)
        if made is not None and (best is None or made.preview.share > best.preview.share):
            best = made
    return best and replace(best, notes=(*_about_names(best), *best.notes))


def _about_names(found: Guess) -> list[str]:
    parser = found.source.parser
    has_others = kind_of(parser.type, parser.json_field).fills_by_name
    notes = [f"{_LOOK} {_OTHERS}" if has_others else _LOOK]
    if _has_untimed_values(found):
        notes.append(_UNTIMED)
    if found.preview.by_rule.get(CSV_HEADER):
        notes.append(f"Each header is left out, and counted as filtered by `{CSV_HEADER}`.")
    return notes


def _as_timed(sample: Sample) -> Guess | None:
    """Returns the proposal for text whose records begin with a time, or have a time after a short
    text; None if the records have no time. Several proposals may fit. Then the function considers
    those that fit at least NAMED_LEAST times as many bytes as the proposal that fits most, and
    returns the most exact of them.
    """
    texts = sample.strings
    proposals = [("text behind a time", each) for each in leading_texts.timed(texts)]
    if not proposals:
        proposals = [("text around a time", each) for each in leading_texts.behind(texts)]
    found = [
        replace(made, notes=(*made.notes, _AROUND)) if what == "text around a time" else made
        for what, block in proposals
        if (made := tried(sample, what, block)) is not None
    ]
    most = max((each.preview.share for each in found), default=0.0)
    return next((each for each in found if each.preview.share >= NAMED_LEAST * most), None)


_LOOK: Final = "Look through the names and add types (`parser.types`)."
_UNTIMED: Final = (
    "No columns are read as times. If some have the time of a record, name them in "
    "`timestamp.fields`, and set `timestamp.format`."
)
_OTHERS: Final = "Keys or members without a field are in the map `_extra`."


_PATTERN: Final = (
    "If you know the program's pattern for lines (log4j, Logback, Python's logging), set it as "
    "`parser.pattern` of a parser of type log4j or python. Otherwise"
)
_AROUND: Final = (
    f"No known format fits; this proposal finds only the time. {_PATTERN} make fields of the texts "
    "before and behind the time by further named groups."
)
_UNKNOWN: Final = (
    "No known format fits, so each record is {what}. "
    f"{_PATTERN} a parser of type regex makes fields of the lines, and `timestamp` names those "
    "with the time."
)


def _as_raw(sample: Sample) -> Guess:
    found = tried(sample, "text", leading_texts.joined(sample.strings))
    assert found is not None  # a raw parser takes all lines
    what = "one field and has the time of reading"
    if "container" in sample.more:
        what = "one field beside those of the container, and has the time that its runtime wrote"
    return replace(found, notes=(_UNKNOWN.format(what=what),))
