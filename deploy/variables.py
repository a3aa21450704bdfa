"""Makes the tables of variables in deploy/ansible/README.md from the argument specs of the roles
(the files meta/argument_specs.yml).

    python -m deploy.variables            writes the tables into the README
    python -m deploy.variables --check    exits with 1 if the tables are out of date
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

COLLECTION = Path(__file__).parent / "ansible"
README = COLLECTION / "README.md"
ROLES = ("common", "zookeeper", "broker", "registry", "agent", "audit", "loader", "monitoring")
BEGIN, END = "<!-- variables: begin -->", "<!-- variables: end -->"

_MARKUP = re.compile(r"\b[COV]\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_ESCAPED = re.compile(r"\{:\}")
MEANT_BY_EXPRESSION = "derived"


def specs(role: str) -> dict[str, Any]:
    """Returns the argument spec of a role's entry point `main`."""
    text = (COLLECTION / "roles" / role / "meta" / "argument_specs.yml").read_text()
    main: dict[str, Any] = yaml.safe_load(text)["argument_specs"]["main"]
    return main


def defaults(role: str) -> dict[str, Any]:
    """Returns a role's defaults."""
    text = (COLLECTION / "roles" / role / "defaults" / "main.yml").read_text()
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def tables() -> str:
    """Returns the tables of all variables, one table for each role."""
    return "\n".join(line for role in ROLES for line in _table(role))


def updated(readme: str) -> str:
    """Returns the README's text `readme` with new tables of variables between the lines BEGIN and
    END. Raises ValueError if one of these lines is missing."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{README.name} has no place between {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{tables()}\n{END}{after}"


def main(arguments: list[str]) -> int:
    """Writes the tables and returns 0. With --check, writes nothing, and returns 1 if the tables
    are out of date."""
    parser = argparse.ArgumentParser(prog="python -m deploy.variables", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; 1 if it would")
    args = parser.parse_args(arguments)
    before = README.read_text()
    after = updated(before)
    if args.check:
        return int(before != after)
    README.write_text(after)
    return 0


def _table(role: str) -> Iterator[str]:
    spec = specs(role)
    description = " ".join(_words(text) for text in spec["description"])
    title = "All hosts" if role == "common" else f"Role `{role}`"
    yield from (f"### {title}", "", description, "")
    yield from ("| variable | type | default | |", "|---|---|---|---|")
    for name, option in spec["options"].items():
        kind = option["type"]
        if "elements" in option:
            kind = f"{kind} of {option['elements']}"
        kind = " \\| ".join(f"`{each}`" for each in option.get("choices", [])) or kind
        yield f"| `{name}` | {kind} | {_default(option)} | {_words(option['description'])} |"
    yield ""


def _default(option: dict[str, Any]) -> str:
    if option.get("required"):
        return "required"
    if "default" not in option:
        return ""
    value = option["default"]
    if isinstance(value, str) and value.startswith("{{"):
        return MEANT_BY_EXPRESSION
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False)
    return f"`{text.strip().removesuffix('...').strip()}`"


def _words(text: Any) -> str:
    words = " ".join(text) if isinstance(text, list) else str(text)
    return _ESCAPED.sub(":", _MARKUP.sub(r"`\1`", words)).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
