"""Reads the commands of the guide docs/operations.md word for word, and runs them in a root shell
of a host.

Tests run the text of the guide itself. If a command of the guide changes, the test runs the changed
command. If the guide no longer has a heading that a test needs, or the commands below this heading,
or a name that the test replaces, this module raises KeyError. The only difference from the guide is
that the test's host names replace the guide's host names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from support.hosts import Host

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"


def blocks(heading: str, page: Path = GUIDE) -> list[str]:
    """Returns the blocks of commands below a heading, in order. Raises KeyError if the page does
    not have the heading, or has no commands below it."""
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
    """Returns one block of commands below a heading, with some names replaced.

    `names` maps each name in the guide to the name that replaces it. Raises KeyError if one of the
    guide's names is not in the block, and IndexError if there is no such block.
    """
    text = blocks(heading)[block]
    for name, ours in (names or {}).items():
        if name not in text:
            raise KeyError(f"{heading}: {name} is not in {text!r}")
        text = text.replace(name, ours)
    return text


def give(host: Host, program: str, commands: str, within_s: float = 90.0) -> str:
    """Runs commands in a root shell of the host: first the commands of the guide's section "Before
    all", which prepare the shell for commands about `program`, and then `commands`. Returns the
    output of all these commands. Raises AssertionError if a command fails."""
    begin = recipe("Before all", 0).replace("program=broker", f"program={program}")
    return host.run(
        "exec bash -e -s", given=f"cd /\n{begin}{commands}", within_s=within_s
    ).stdout.strip()
