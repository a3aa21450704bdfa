"""Writes the tables of formats and settings in docs/agent.md from the agent's formats and its
settings classes.

    python -m support.agent_page            writes the tables
    python -m support.agent_page --check    exits with 1 if they are not up to date
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from skidway.agent.formats import catalog
from skidway.agent.settings import AgentSettings
from skidway.settings import SettingDoc, documented

PAGE = Path(__file__).parents[2] / "docs" / "agent.md"
BEGIN, END = "<!-- {}: begin -->", "<!-- {}: end -->"
SOURCE = "sources[]."
_TOPIC = re.compile(r"<topic>[.\w]*\w")


def main(arguments: list[str]) -> int:
    """Writes the tables of formats and settings into docs/agent.md. With --check, writes nothing,
    and returns 1 if the tables on the page are out of date."""
    parser = argparse.ArgumentParser(prog="python -m support.agent_page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; 1 if it would")
    args = parser.parse_args(arguments)
    before = PAGE.read_text()
    after = updated(before)
    if args.check:
        return int(before != after)
    PAGE.write_text(after)
    return 0


def updated(page: str) -> str:
    """Returns the text of `page` with new tables. Raises ValueError if the page lacks one of the
    two lines that enclose each table."""
    rows = documented(AgentSettings)
    of_source = [each for each in rows if each.key.startswith(SOURCE)]
    others = [each for each in rows if not each.key.startswith(SOURCE)]
    page = _replaced(page, "formats", _formats())
    page = _replaced(page, "settings of a source", _table(of_source))
    return _replaced(page, "settings of the agent", _table(others))


def _replaced(page: str, name: str, lines: Iterator[str]) -> str:
    begin, end = BEGIN.format(name), END.format(name)
    before, found, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found or not found_end:
        raise ValueError(f"{PAGE.name} has no place between {begin} and {end}")
    return f"{before}{begin}\n" + "".join(f"{line}\n" for line in lines) + f"{end}{after}"


def _formats() -> Iterator[str]:
    yield "| format | whose logs | fields |"
    yield "|---|---|---|"
    for each in catalog.formats().values():
        fields = ", ".join(each.fields)
        yield f"| `{each.name}` | {each.what} | {fields} |"


def _table(rows: list[SettingDoc]) -> Iterator[str]:
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
