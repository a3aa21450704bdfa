"""`skidway agent guess FILE`: proposes how an unknown log is read."""

from __future__ import annotations

import glob
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml

from skidway.agent.commands import unnamed_formats
from skidway.agent.formats import catalog
from skidway.agent.parsing import containers, derived
from skidway.agent.parsing.byte_order import UTF_16BE, UTF_16LE, mark_of
from skidway.agent.parsing.containers import CRI, DOCKER
from skidway.agent.parsing.framing import READ_BYTES, LineFramer
from skidway.agent.parsing.lines import cut
from skidway.agent.parsing.replacing import MARK
from skidway.agent.settings import (
    MultilineSettings,
    ParserSettings,
    SourceSettings,
    TimestampSettings,
)
from skidway.agent.validation.excerpts import excerpt
from skidway.agent.validation.preview import SHOWN_CHARACTERS_MAX, Preview, preview
from skidway.errors import ConfigurationRefused, SkidwayError
from skidway.schemas.inference.inference import infer

SHARE_LEAST: Final = 0.5
"""A format is proposed only if at least this share of the bytes fits."""

NAMED_LEAST: Final = 0.95
"""If at least this share of the bytes fits a format with a name, the format is proposed."""

INDENTED_LEAST: Final = 0.05
"""If no format fits, and at least this share of the lines is indented, the proposal joins each
indented line to the line before it.
"""

TOPIC_CHARACTERS_MAX: Final = 100

TIMES: Final = ("time", "timestamp", "ts", "date", "datetime", "eventTime", "event_time", "t")
"""Names of JSON members that are tried as times, in this order."""

_POD = re.compile(
    r"(?P<root>.*/pods)/(?P<namespace>[^/_]+)_[^/_]+_[^/]*/(?P<container>[A-Za-z0-9._-]+)/[^/]+$"
)
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"(\xb5/\xfd")
_NOT_OF_A_TOPIC = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Guess:
    """A proposal. path: the file. what: what the log looks like, in words. block: the source, as it
    stands in agent.yml. schema: the schema of the rows, as JSON text; None if the agent derives the
    schema from the source.
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
        """The block for agent.yml."""
        text = yaml.safe_dump(
            {"sources": [dict(self.block)]}, sort_keys=False, default_flow_style=None, width=100
        )
        return str(text)


@dataclass(frozen=True, slots=True)
class _Sample:
    """The first lines of a file. texts: the lines that the source's parser gets. more: settings
    that every proposal for this file has.
    """

    path: Path
    data: bytes
    texts: list[bytes]
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def topic(self) -> str:
        if self.pod is not None:
            return self.pod["container"]
        name = _NOT_OF_A_TOPIC.sub("-", self.path.name.split(".")[0]).strip("-._")
        return name[:TOPIC_CHARACTERS_MAX] or "logs"

    @property
    def pod(self) -> re.Match[str] | None:
        """If the file is a container's log at a path that kubelet gives to such logs, the match
        with the path's namespace and container; otherwise None.
        """
        return _POD.search(str(self.path)) if self.more.get("container") == CRI else None

    @property
    def paths(self) -> list[str]:
        """The patterns for the setting `paths`. For a container's log, the pattern matches the logs
        of this container in all pods of its namespace.
        """
        pod = self.pod
        if pod is None:
            return [glob.escape(str(self.path))]
        return [f"{pod['root']}/{pod['namespace']}_*/{pod['container']}/*.log"]

    def source(self, **settings: Any) -> SourceSettings:
        return SourceSettings(topic=self.topic, paths=self.paths, **self.more, **settings)

    def block(self, **settings: Any) -> dict[str, Any]:
        return {"topic": self.topic, "paths": self.paths, **self.more, **settings}


def guess(path: Path, lines_max: int) -> Guess:
    """Proposes a source for a file from its first lines. Raises SkidwayError if the file cannot be
    read or is empty.
    """
    sample = _read(path.absolute(), lines_max)
    try:
        as_json = _as_json(sample)
    except (SkidwayError, RecursionError):  # the agent can fill no schema that fits the lines
        as_json = None
    found = [each for each in (as_json, _as_format(sample)) if each is not None]
    best = max(found, key=lambda each: each.preview.share, default=None)
    unnamed = _as_unnamed(sample)
    if unnamed is not None and (
        best is None
        or unnamed.what == _LEVEL  # syslog's format would read the level as the host
        or best.preview.share < min(NAMED_LEAST, unnamed.preview.share)
    ):
        best = unnamed
    if best is not None and best.preview.share >= SHARE_LEAST:
        return best
    return _as_raw(sample) if as_json is None else _with_reasons(as_json)


def _with_reasons(found: Guess) -> Guess:
    """The proposal, with a note that says for which reason most of the unfit lines do not fit."""
    reasons = Counter(each.detail for each in found.preview.rejects)
    ((reason, count),) = reasons.most_common(1)
    note = f"{count:,} lines do not fit the schema ({reason}). Change the schema, or these lines."
    return replace(found, notes=(*found.notes, note))


def _read(path: Path, lines_max: int) -> _Sample:
    try:
        with path.open("rb") as file:
            data = file.read(READ_BYTES)
    except OSError as error:
        raise SkidwayError(f"cannot read {path}: {error.strerror}") from error
    if not data:
        raise SkidwayError(f"{path} is empty; guess needs some lines")
    if data.startswith(_COMPRESSED):
        raise SkidwayError(f"{path} is compressed; decompress it for guess")
    if data.startswith((mark_of(UTF_16LE), mark_of(UTF_16BE))):
        raise SkidwayError(f"{path} is UTF-16, which guess cannot read; set encoding: utf-16")
    end = 0
    for _ in range(lines_max):
        found = data.find(b"\n", end)
        if found < 0:
            break
        end = found + 1
    data = data[:end] or data
    lines = cut(data, LineFramer().frame(data, np.array([len(data)])))
    for kind in (CRI, DOCKER):
        wrapped = containers.unwrap(kind, lines)
        if wrapped.is_good.mean() > SHARE_LEAST:
            texts = containers.whole_texts(wrapped).to_pylist()
            return _Sample(path, data, texts, {"container": kind, **_on_error(texts)})
    texts = lines.to_pylist()
    return _Sample(path, data, texts, _on_error(texts))


def _on_error(texts: list[bytes]) -> dict[str, str]:
    """If some of the texts are not UTF-8, the setting `on_error: replace`; otherwise no setting."""
    try:
        for each in texts:
            each.decode()
    except UnicodeDecodeError:
        return {"on_error": "replace"}
    return {}


def _as_json(sample: _Sample) -> Guess | None:
    """A proposal for a log whose lines are JSON objects; None if too few lines look so."""
    objects = sum(text.lstrip().startswith(b"{") for text in sample.texts)
    if objects < SHARE_LEAST * len(sample.texts):
        return None
    schema = infer(iter(sample.texts), name=derived.record_name(sample.topic))
    text = schema.text
    parser = ParserSettings(type="json")
    file = f"{sample.topic}.avsc"
    plain = sample.source(parser=parser, schema=file)
    schema_text = _with_further_fields(text, sample)
    for name, form in _times(sample.texts):
        time = TimestampSettings(fields=[name], format=form)
        source = replace(plain, timestamp=time)
        made = preview(source, sample.data, str(sample.path), schema=schema_text)
        if made.share >= SHARE_LEAST:
            block = sample.block(
                parser={"type": "json"}, schema=file,
                timestamp={"fields": [name], "format": form},
            )  # fmt: skip
            return Guess(sample.path, "JSON lines", source, block, made, schema_text, _SAVE)
    made = preview(plain, sample.data, str(sample.path), schema=schema_text)
    block = sample.block(parser={"type": "json"}, schema=file)
    return Guess(sample.path, "JSON lines without a time", plain, block, made, schema_text, _SAVE)


_SAVE: Final = ("Save the schema with `--schema` and name the file in `schema`.",)


def _with_further_fields(schema: str, sample: _Sample) -> str:
    """The schema, with the additional fields that do not come from members of the JSON objects."""
    further: list[tuple[str, str, object]] = []
    if sample.more.get("container") == CRI:
        further = [(name, "string", "") for name in ("namespace", "pod", "container")]
    if "on_error" in sample.more:
        further.append((MARK, "boolean", False))
    document = json.loads(schema)
    names = {each["name"] for each in document["fields"]}
    document["fields"] += [
        {"name": name, "type": kind, "default": default}
        for name, kind, default in further
        if name not in names
    ]
    return json.dumps(document, indent=2) + "\n"


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


def _as_format(sample: _Sample) -> Guess | None:
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
            notes = () if _names_zone(form) else (_ZONE,)
            block = sample.block(format=name)
            best = Guess(sample.path, f"{name} ({form.what})", source, block, made, None, notes)
    return best


def _is_of(form: catalog.Format, sample: _Sample) -> bool:
    """Whether a log has the key by which a logfmt format is recognized and its time, and whether
    all keys that most of its lines have are columns of the format. (Its parser accepts all lines
    with pairs.)
    """
    found = unnamed_formats.as_logfmt([text.decode("utf-8", "replace") for text in sample.texts])
    if found is None or form.time is None or "timestamp" not in found:
        return False
    columns = found["parser"]["columns"]
    has_time = found["timestamp"]["fields"] == form.time[0]
    return has_time and form.logfmt[0] in columns and set(columns) <= set(form.logfmt)


def _as_unnamed(sample: _Sample) -> Guess | None:
    """The best of the proposals for values with a delimiter, for key=value pairs, and for JSON
    objects behind a prefix; None if the log looks like none of these.
    """
    texts = [text.decode("utf-8", "replace") for text in sample.texts]
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
        if block is None:
            continue
        settings: dict[str, Any] = {"parser": ParserSettings(**block["parser"])}
        if "timestamp" in block:
            settings["timestamp"] = TimestampSettings(**block["timestamp"])
        try:
            source = sample.source(**settings)
            made = preview(source, sample.data, str(sample.path))
        except SkidwayError:  # for example, a column has the name of a container's field
            continue
        if best is None or made.share > best.preview.share:
            best = Guess(sample.path, what, source, sample.block(**block), made, None, _LOOK)
    return best


_LEVEL: Final = "JSON behind a time and a level"
_LOOK: Final = (
    "Look through the names and add types (`parser.types`). Fields without a name are in `_extra`, "
    "if the rows have it.",
)
_ZONE: Final = (
    "The times name no zone, so they count as UTC. If the host writes local times, add `timezone`, "
    "such as Europe/Berlin."
)


def _names_zone(form: catalog.Format) -> bool:
    return form.time is None or form.time[1] == "rfc3339" or "%z" in form.time[1]


def _as_raw(sample: _Sample) -> Guess:
    """The proposal for a log of unknown format. It does not parse the records."""
    indented = sum(text[:1] in (b" ", b"\t") for text in sample.texts)
    if indented >= INDENTED_LEAST * len(sample.texts):
        multiline = MultilineSettings(type="indented")
        source, block = sample.source(multiline=multiline), {"multiline": {"type": "indented"}}
    else:
        source, block = sample.source(), {}
    made = preview(source, sample.data, str(sample.path))
    notes = ("No known format fits. A regex parser makes fields of the lines.",)
    return Guess(sample.path, "text", source, sample.block(**block), made, None, notes)


def render(found: Guess, rows_max: int = 10) -> str:
    """The proposal for people."""
    notes = found.notes
    if "on_error" in found.block:
        notes += ("Some lines are not UTF-8. If they are in another encoding, set `encoding`.",)
    made = found.preview
    count = len(made.rows) + len(made.rejects)
    lines = [
        f"{found.path}: {found.what};",
        f"{len(made.rows):,} of {count:,} records fit ({made.share:.1%} of the bytes).",
        *notes,
        "",
        found.yaml.rstrip(),
        "",
        f"The first {min(rows_max, len(made.rows))} rows:",
    ]
    for each in made.rows[:rows_max]:
        lines.append(f"  {each.time.isoformat() if each.time else 'time of reading'}")
        for name, value in each.row.items():
            if value not in (None, ""):
                lines.append(f"    {name}: {excerpt(value, SHOWN_CHARACTERS_MAX)}")
    lines += made.notes
    if made.rejects:
        lines += ["", "Records that do not fit:"]
        for reject in made.rejects[:3]:
            text = reject.line.decode("utf-8", "replace")
            lines.append(
                f"  byte {reject.first}: {reject.reason}: {excerpt(text, SHOWN_CHARACTERS_MAX)}"
            )
    return "\n".join(lines) + "\n"


def document(found: Guess) -> dict[str, Any]:
    """The proposal for programs."""
    return {
        "what": found.what,
        "share": round(found.preview.share, 4),
        "source": dict(found.block),
        "schema": None if found.schema is None else json.loads(found.schema),
        "records": found.preview.document(),
    }
