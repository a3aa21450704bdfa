"""`skidway agent guess FILE`: proposes how an unknown log is read."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from skidway.agent.commands import (
    json_schemas,
    leading_texts,
    samples,
    secret_texts,
    unnamed_formats,
)
from skidway.agent.commands.json_schemas import JsonSchema
from skidway.agent.commands.proposals import (
    SHARE_LEAST,
    Guess,
    misses_times,
    tried,
    zone_notes,
)
from skidway.agent.commands.samples import Sample
from skidway.agent.formats import catalog
from skidway.agent.parsing import derived
from skidway.agent.parsing.containers import CRI
from skidway.agent.parsing.parser import TIME_MARK
from skidway.agent.parsing.replacing import MARK
from skidway.agent.settings import ParserSettings, TimestampSettings
from skidway.agent.validation.preview import preview
from skidway.errors import ConfigurationRefused, SkidwayError

NAMED_LEAST: Final = 0.95
"""If at least this share of the bytes fits a format with a name, the format is proposed."""

TIMES: Final = (
    "time", "timestamp", "@timestamp", "ts", "date", "datetime", "eventTime", "event_time", "t",
    "@t",
)  # fmt: skip
"""Names of JSON members that are tried as times, in this order."""


def guess(path: Path, lines_max: int, encoding: str | None = None) -> Guess:
    """Proposes a source for a file from its first lines. encoding: how the lines are encoded; None
    if nobody knows. Raises SkidwayError if the file cannot be read or is empty.
    """
    sample = samples.read(path.absolute(), lines_max, encoding)
    try:
        as_json = _as_json(sample)
    except (SkidwayError, RecursionError):  # the agent can fill no schema that fits the lines
        as_json = None
    if as_json is not None and as_json.preview.share >= NAMED_LEAST:
        return _with_notes(as_json, sample, encoding)
    found = [each for each in (as_json, _as_format(sample)) if each is not None]
    best = max(found, key=lambda each: each.preview.share, default=None)
    unnamed = _as_unnamed(sample)
    if unnamed is not None and (
        best is None
        or unnamed.what == _LEVEL  # syslog's format would read the level as the host
        or best.preview.share < min(NAMED_LEAST, unnamed.preview.share)
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
    """The proposal for programs."""
    return {
        "what": found.what,
        "share": round(found.preview.share, 4),
        "source": dict(found.block),
        "schema": None if found.schema is None else json.loads(found.schema),
        "records": found.preview.document(),
    }


def _with_notes(found: Guess, sample: Sample, encoding: str | None) -> Guess:
    """The proposal, with sentences about its paths, about texts that look like secrets, and about
    the encoding of the lines if they are not UTF-8.
    """
    notes = list(sample.notes)
    if masks := secret_texts.rules([each.row for each in found.preview.rows]):
        words = " and ".join(f"`{each}`" for each in masks)
        notes.append(f"Some rows contain what looks like secrets. In `shape`, {words} masks them.")
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


# --- JSON lines -------------------------------------------------------------------------------


def _as_json(sample: Sample) -> Guess | None:
    """A proposal for a log whose lines are JSON objects; None if too few lines look so."""
    objects = sum(text.lstrip().startswith(b"{") for text in sample.texts)
    if objects < SHARE_LEAST * len(sample.texts):
        return None
    name = derived.record_name(sample.topic)
    schema = json_schemas.proposed([*sample.texts, *sample.further], name)
    notes = [_SAVE]
    if schema.mixed:
        names = ", ".join(schema.mixed[:10])
        notes.append(f"The values of {names} have several types; _extra has those that do not fit.")
    for member, form in _times(sample.texts):
        time: dict[str, Any] = {"fields": [schema.field_of(member)], "format": form}
        made = _with_schema(sample, schema, time)
        if misses_times(made):
            made = _with_schema(sample, schema, time | {"on_error": "read_time"})
        if made.preview.share >= SHARE_LEAST:
            notes += zone_notes((time["fields"], form), made.preview)
            return replace(made, notes=tuple(notes))
    return replace(_with_schema(sample, schema, None), notes=tuple(notes))


_SAVE: Final = (
    "Save the schema, which `--schema` prints, and write the absolute path of its file into "
    "`schema`."
)


def _with_schema(sample: Sample, schema: JsonSchema, time: dict[str, Any] | None) -> Guess:
    """The proposal with one of the members as the time, or without a time."""
    further: list[tuple[str, str, object]] = []
    if sample.more.get("container") == CRI:
        further = [(name, "string", "") for name in ("namespace", "pod", "container")]
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


def _times(texts: list[bytes]) -> list[tuple[str, str]]:
    """Members that may contain the time of a line, each with the format of this time."""
    found = []
    for text in texts[:10]:
        try:
            members = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if not isinstance(members, dict):
            continue
        for name in TIMES:
            value = members.get(name)
            if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d[T ]", value):
                found.append((name, "rfc3339"))
            elif isinstance(value, int | float) and 10**8 < value < 10**11:
                found.append((name, "epoch"))
            elif isinstance(value, int) and 10**11 < value < 10**14:
                found.append((name, "epoch_ms"))
        if found:
            break
    return found


# --- formats with a name ----------------------------------------------------------------------


def _as_format(sample: Sample) -> Guess | None:
    """The proposal with the named format that fits best; None if no named format can be used with
    this file's other settings.
    """
    best: Guess | None = None
    for name, form in catalog.formats().items():
        if form.logfmt and not _is_of(form, sample):
            continue
        try:
            source = catalog.of_source(sample.source(format=name))
            made = preview(source, sample.data, str(sample.path))
        except ConfigurationRefused:  # for example, a group has the name of a container's field
            continue
        if best is None or made.share > best.preview.share:
            notes = zone_notes(form.time, made)
            block = sample.block(format=name)
            best = Guess(sample.path, f"{name} ({form.what})", source, block, made, None, notes)
    return best


def _is_of(form: catalog.Format, sample: Sample) -> bool:
    """Whether a log has the key by which a logfmt format is recognized and its time, and whether
    all keys that most of its lines have are columns of the format. (Its parser accepts all lines
    with pairs.)
    """
    found = unnamed_formats.as_logfmt(sample.strings)
    if found is None or form.time is None or "timestamp" not in found:
        return False
    columns = found["parser"]["columns"]
    has_time = found["timestamp"]["fields"] == form.time[0]
    return has_time and form.logfmt[0] in columns and set(columns) <= set(form.logfmt)


# --- others -----------------------------------------------------------------------------------


def _as_unnamed(sample: Sample) -> Guess | None:
    """The best of the proposals for values with a delimiter, for key=value pairs, and for JSON
    objects behind a prefix; None if the log looks like none of these.
    """
    texts = sample.strings
    proposals = [
        *zip(
            (_LEVEL, "JSON behind a time", "JSON behind a prefix"),
            unnamed_formats.as_prefixed_json(texts),
            strict=False,
        ),
        ("logfmt (key=value)", unnamed_formats.as_logfmt(texts)),
        ("values with a delimiter (csv)", unnamed_formats.as_csv(texts)),
    ]
    best: Guess | None = None
    for what, block in proposals:
        made = None if block is None else tried(sample, what, block)
        if made is not None and (best is None or made.preview.share > best.preview.share):
            best = made
    return best and replace(best, notes=(*_about_names(best), *best.notes))


def _about_names(found: Guess) -> list[str]:
    """What to say about the names of the fields, and about the header in which they stand."""
    parser = found.block["parser"]
    notes = [_LOOK if parser["type"] == "csv" else f"{_LOOK} {_OTHERS}"]
    has_names = not any(each.startswith("column_") for each in parser.get("columns", ()))
    if parser["type"] == "csv" and has_names and found.preview.rejects:
        notes.append("The header is no row: each header goes to `<topic>.rejected`.")
    return notes


def _as_timed(sample: Sample) -> Guess | None:
    """The proposal for text whose records begin with a time, or have one behind a short text: the
    most exact proposal that fits nearly as well as the best one. None if they have no time.
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


_LEVEL: Final = "JSON behind a time and a level"
_LOOK: Final = "Look through the names and add types (`parser.types`)."
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
    "No known format fits, so each record is one field and has the time of reading. "
    f"{_PATTERN} a parser of type regex makes fields of the lines, and `timestamp` names those "
    "with the time."
)


def _as_raw(sample: Sample) -> Guess:
    """The proposal for a log of unknown format. It does not parse the records."""
    found = tried(sample, "text", leading_texts.joined(sample.strings))
    assert found is not None  # a raw parser takes all lines
    notes = (_UNKNOWN,)
    return replace(found, notes=notes)
