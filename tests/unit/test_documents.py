"""What the documents name is there: tests, files, commands."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_test_that_the_rules_name_exists() -> None:
    """docs/delivery.md says for each rule which test keeps it; none of them is a dead name."""
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs/delivery.md").read_text())
    assert len(named) > 60
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not (ROOT / file).exists() or name not in names_in(ROOT / file)
    ]
    assert not missing


def test_links_between_documents_lead_somewhere() -> None:
    """A link of README, CONTRIBUTING or docs/ to a file of the repository finds that file."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    dead = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in pages
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert not dead
