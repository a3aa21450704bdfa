"""Writes the tables of pages in docs/ that come from the code: formats, settings, columns, codecs.

python -m support.generated_tables            writes the tables
python -m support.generated_tables --check    exits with 1 if they are not up to date
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from skidway.agent.formats import catalog
from skidway.agent.settings import AgentSettings
from skidway.kafka.codecs import BY_NUMBER
from skidway.loader.settings import LoaderSettings
from skidway.row_columns import columns
from skidway.settings import SettingDoc, documented

DOCS = Path(__file__).parents[2] / "docs"
BEGIN, END = "<!-- {}: begin -->", "<!-- {}: end -->"
SOURCE = "sources[]."
_TOPIC = re.compile(r"<topic>[.\w]*\w")
_TYPES = {
    "timestamp": "timestamp in ms, UTC", "place": "string", "headers": "array of `key` and `value`"
}  # fmt: skip


def main(arguments: list[str]) -> int:
    """Writes the tables. With --check, writes nothing, and returns 1 if a table is out of date."""
    parser = argparse.ArgumentParser(prog="python -m support.generated_tables", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; 1 if it would")
    args = parser.parse_args(arguments)
    changed = False
    for name in TABLES:
        page = DOCS / name
        before = page.read_text()
        after = updated(name, before)
        changed |= before != after
        if not args.check:
            page.write_text(after)
    return int(args.check and changed)


def updated(name: str, page: str) -> str:
    """Returns the text of a page with new tables. Raises ValueError if the page lacks one of the
    two lines that enclose each table."""
    for table, lines in TABLES[name].items():
        page = _replaced(name, page, table, lines())
    return page


def _replaced(file: str, page: str, name: str, lines: Iterator[str]) -> str:
    begin, end = BEGIN.format(name), END.format(name)
    before, found, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found or not found_end:
        raise ValueError(f"{file} has no place between {begin} and {end}")
    return f"{before}{begin}\n" + "".join(f"{line}\n" for line in lines) + f"{end}{after}"


def _formats() -> Iterator[str]:
    yield "| format | whose logs | fields |"
    yield "|---|---|---|"
    for each in catalog.formats().values():
        fields = ", ".join(each.fields)
        yield f"| `{each.name}` | {each.what} | {fields} |"


def _agent_settings(*, of_sources: bool) -> Iterator[str]:
    rows = documented(AgentSettings)
    return _settings([each for each in rows if each.key.startswith(SOURCE) == of_sources])


def _settings(rows: list[SettingDoc]) -> Iterator[str]:
    yield "| setting | default | |"
    yield "|---|---|---|"
    for each in rows:
        words = _TOPIC.sub(r"`\g<0>`", " ".join(each.help.split()).replace("|", "\\|"))
        yield f"| `{each.key.removeprefix(SOURCE)}` | {_shown(each)} | {words} |"


def _shown(setting: SettingDoc) -> str:
    value = setting.default
    if setting.required:
        return "(needed)"
    if value is None or value == [] or value == {} or not isinstance(value, str | int | float):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _columns(*, in_files: bool) -> Iterator[str]:
    yield "| column | type | content |"
    yield "|---|---|---|"
    for each in columns(in_files=in_files):
        yield f"| `{each.name}` | {_TYPES.get(each.type, each.type)} | {each.help} |"


def _codecs() -> Iterator[str]:
    yield "| codec | number in Kafka's batches | |"
    yield "|---|---|---|"
    for each in BY_NUMBER.values():
        since = f"Produce {each.since_produce} or newer" if each.since_produce else ""
        yield f"| `{each.name}` | {each.number} | {since} |"


TABLES: Mapping[str, Mapping[str, Callable[[], Iterator[str]]]] = {
    "agent.md": {
        "formats": _formats,
        "settings of a source": lambda: _agent_settings(of_sources=True),
        "settings of the agent": lambda: _agent_settings(of_sources=False),
    },
    "client.md": {"codecs": _codecs},
    "loader.md": {
        "columns": lambda: _columns(in_files=True),
        "settings of the loader": lambda: _settings(documented(LoaderSettings)),
    },
    "spark.md": {"columns": lambda: _columns(in_files=False)},
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
