"""Makes docs/promises.md from the list of promises and from the tests that are marked with
promises.

    python -m support.promises_page            writes the page
    python -m support.promises_page --check    exits with 1 if the page is not up to date

The program parses the test files and does not import them, so it takes only a second or two.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from support.promises import PROMISES, SECTIONS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "promises.md"

HEAD = """\
# What is promised, and the tests that keep it

This page is generated: `make docs-promises` makes it from `tests/support/promises.py` and from the
marks `@promise` in the tests. Do not edit it. Each rule of [delivery.md](delivery.md) has a name
here, and below the name the tests that carry it in their mark. These tests keep the rule.
"""


def kept() -> dict[str, list[str]]:
    """Returns, for the name of each promise, the pytest ids of the tests that are marked with this
    name, sorted. If a test is marked with a name that is not in the list of promises, the result
    contains this name too."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text()
        if "@promise(" in text:
            for test, name in _marks(ast.parse(text)):
                found.setdefault(name, []).append(f"{path.relative_to(ROOT)}::{test}")
    return found


def page() -> str:
    """Returns the text of the whole page. Raises LookupError if a promise has no test."""
    tests = kept()
    return "\n".join([HEAD, *(line for section in SECTIONS for line in _table(section, tests))])


def main(arguments: list[str]) -> int:
    """Writes the page. With --check, writes nothing and returns 1 if the page is out of date."""
    parser = argparse.ArgumentParser(prog="python -m support.promises_page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; 1 if it would")
    args = parser.parse_args(arguments)
    made = page()
    if args.check:
        return int(PAGE.read_text() != made)
    PAGE.write_text(made)
    return 0


def _marks(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yields the name of the test function and the name of the promise, for each `@promise` mark in
    the parsed test module `tree`."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for mark in function.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "promise":
                    yield from ((function.name, ast.literal_eval(each)) for each in mark.args)


def _table(section: str, tests: dict[str, list[str]]) -> Iterator[str]:
    number = f"{section}. " if section.isdigit() else ""
    yield from (
        f"## {number}{SECTIONS[section]}",
        "",
        "| name | promise | kept by |",
        "|---|---|---|",
    )
    for name, words in PROMISES.items():
        if name.partition(" ")[0] == section:
            yield f"| {name} | {words} | {', '.join(f'`{test}`' for test in tests[name])} |"
    yield ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
