"""The commands of the guide (docs/operations.md), word for word, and a root shell that runs them.

Tests run the text of the guide itself. If a command of the guide changes, the test runs the changed
command. If the command is removed, the test gets a KeyError here. Only host names are changed: the
test's host names replace those of the guide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from support.hosts import Host

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"


def blocks(heading: str, page: Path = GUIDE) -> list[str]:
    """The blocks of commands below a heading, in order. Raises KeyError if the page has no such
    heading."""
    text = page.read_text()
    found = re.search(
        rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL
    )
    if found is None:
        raise KeyError(heading)
    listed = re.findall(r"\n\n((?: {4,}\S.*\n)+)", found[1].replace("\n\n", "\n\n\n"))
    if not listed:
        raise KeyError(f"{heading}: no commands")
    return ["".join(line.strip() + "\n" for line in each.splitlines()) for each in listed]


def recipe(heading: str, block: int = 0, names: Mapping[str, str] | None = None) -> str:
    """One block of commands below a heading, with some names replaced.

    names: maps each name in the guide to the name that replaces it. Raises KeyError if the block
    does not contain one of these names.
    """
    text = blocks(heading)[block]
    for name, ours in (names or {}).items():
        if name not in text:
            raise KeyError(f"{heading}: {name} is not in {text!r}")
        text = text.replace(name, ours)
    return text


def give(host: Host, program: str, commands: str, within_s: float = 90.0) -> str:
    """Runs commands in a root shell of the host: first the commands of the guide's section "Before
    all", then `commands`. Returns the output of all these commands. Raises AssertionError if a
    command fails."""
    begin = recipe("Before all", 0).replace("program=broker", f"program={program}")
    return host.run(
        "exec bash -e -s", given=f"cd /\n{begin}{commands}", within_s=within_s
    ).stdout.strip()
