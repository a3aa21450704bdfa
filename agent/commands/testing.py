"""`skidway agent test FILE`: shows which rows and rejects the lines of a file would become."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from skidway.agent.commands.samples import first_bytes
from skidway.agent.files.patterns import patterns_of
from skidway.agent.parsing.byte_order import UTF_16, order_of
from skidway.agent.parsing.framing import READ_BYTES, READ_LINES, LineFramer
from skidway.agent.parsing.parser import EXTRA
from skidway.agent.settings import AgentSettings, ReplaySource, SourceSettings
from skidway.agent.validation.checks import reserved_fields, schema_text
from skidway.agent.validation.excerpts import excerpt
from skidway.agent.validation.preview import SHOWN_CHARACTERS_MAX, Preview, preview
from skidway.agent.validation.report import of_reserved
from skidway.errors import ConfigurationRefused, SkidwayError
from skidway.schemas.client import no_pause
from skidway.schemas.consuming.values import plain


def source_of(settings: AgentSettings, path: str, topic: str | None) -> SourceSettings:
    """Returns the source that reads a file. If `topic` is given, returns the topic's source.
    Without `topic`, returns the first source with a pattern that matches the path, or the only
    source if there is just one. Raises ConfigurationRefused if there is no such source.
    """
    sources = [each for each in settings.sources if not isinstance(each, ReplaySource)]
    if topic is not None:
        found = [each for each in sources if each.topic == topic]
        if not found:
            raise ConfigurationRefused(f"no source has the topic {topic!r}")
        return found[0]
    for source in sources:
        if any(each.means(path) for each in patterns_of(source.paths, source.exclude)):
            return source
    if len(sources) == 1:
        return sources[0]
    if (idle := settings.idle_reason) is not None:
        raise ConfigurationRefused(idle)
    why = [unread(source, path) for source in sources if _excluding(source, path) is not None]
    raise ConfigurationRefused(
        " ".join([f"no source reads {path}; name one with --topic.", *filter(None, why)])
    )


def unread(source: SourceSettings, path: str) -> str | None:
    """Returns a sentence that says why the source does not read the file at a path; None if it
    reads the file."""
    if any(each.means(path) for each in patterns_of(source.paths, source.exclude)):
        return None
    what = f"The source of topic {source.topic} does not read this file:"
    if (by := _excluding(source, path)) is not None:
        return f"{what} exclude {by} matches it."
    return f"{what} no pattern of paths matches it."


def _excluding(source: SourceSettings, path: str) -> str | None:
    if not any(each.means(path) for each in patterns_of(source.paths)):
        return None
    by = (text for text in source.exclude if any(x.means(path) for x in patterns_of([text])))
    return next(by, None)


def tested(settings: AgentSettings, path: Path, topic: str | None) -> Preview:
    """Makes rows of the first bytes of a file: as many lines and bytes as one reading of the agent
    has. Raises SkidwayError, for example if the file cannot be read."""
    absolute = os.path.abspath(path)
    source = source_of(settings, absolute, topic)
    data = first_bytes(path, READ_BYTES + 1)
    lines = LineFramer(order_of(data) if source.encoding == UTF_16 else source.encoding)
    used = data[:READ_BYTES]
    if len(data) > READ_BYTES:
        used = used[: lines.whole_records_end(used)] or used
    size = len(used)
    used = used[: lines.first_lines_end(used)]
    most = f"{READ_LINES:,} lines of the file were" if len(used) < size else "MiB of the file was"
    schema = schema_text(source, settings.registry.client(pause=no_pause))
    why_not = unread(source, absolute)
    notes: tuple[str, ...] = () if why_not is None else (why_not,)
    if not used:
        return Preview([], [], notes)
    made = preview(source, used, absolute, schema=schema, batch_bytes=settings.batch_size)
    notes = (*notes, *made.notes, *of_reserved(reserved_fields(schema)))
    if len(used) < len(data):
        notes += (f"Only the first {most} tried.",)
    return replace(made, notes=notes)


def render(made: Preview, limit: int) -> str:
    """Returns the rows, rejects and filtered records as a text for people, in the order of the
    file. limit: how many of them, together, are shown.
    """
    lines = []
    results = made.document()
    for each in results[:limit]:
        place = f"byte {each['first']:,}"
        if "row" in each:
            lines.append(f"{place}  {each['time'] or 'time of reading'}")
            lines += [
                f"    {name}: {excerpt(value, SHOWN_CHARACTERS_MAX)}"
                for name, value in each["row"].items()
                if not (name == EXTRA and not value)
            ]
        elif "filtered" in each:
            lines.append(f"{place}  filtered by {each['filtered']}")
        else:
            lines.append(f"{place}  rejected, {each['rejected']}: {each['detail']}")
            lines.append(f"    {excerpt(each['line'], SHOWN_CHARACTERS_MAX)}")
    if (more := len(results) - limit) > 0:
        lines.append(f"{more:,} more (--limit {len(results)} shows all)")
    left_out = f", {len(made.filtered):,} filtered" if made.filtered else ""
    lines.append(f"{len(made.rows):,} rows, {len(made.rejects):,} rejected{left_out}")
    lines += [f"    {count:,} by {rule}" for rule, count in sorted(made.by_rule.items())]
    lines += made.notes
    return "\n".join(lines) + "\n"


def as_lines(made: Preview) -> list[str]:
    """Returns one line of JSON for each row, for each reject, and for each record that a rule
    leaves out. People can store these lines as a file of expected results (see `difference`).
    """
    return [json.dumps(plain(each), sort_keys=True) for each in made.document()]


def difference(made: Preview, expected: Sequence[str]) -> str | None:
    """Returns a text that names the first difference between the lines that `as_lines` returns and
    the expected lines; None if there is no difference. Raises SkidwayError if an expected line is
    not JSON."""
    found = [_parsed(line) for line in as_lines(made)]
    wanted = [_parsed(line) for line in expected if line.strip()]
    for number, (one, other) in enumerate(zip(found, wanted, strict=False), 1):
        if one != other:
            return f"result {number} is {json.dumps(one)}, expected was {json.dumps(other)}"
    if len(found) != len(wanted):
        return f"there are {len(found)} results, expected were {len(wanted)}"
    return None


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise SkidwayError(f"the expected results are not lines of JSON: {error}") from error
