"""Every function, class and constant that a module defines is used somewhere."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("agent", "broker", "skidway", "loader", "schemas", "audit", "deploy", "bench", "tests")
FOUND_BY_NAME = {"pytestmark", "pytest_plugins", "API", "DOCUMENTATION", "EXAMPLES", "RETURN"}
"""Names that may be used nowhere else in the code: pytest, the broker and Ansible look them up."""
FOUND_BY_PREFIX = "test|Test|pytest_|register_"
"""Beginnings of function names that pytest and Skidway's command line look up in modules."""


def test_every_name_of_a_module_is_used() -> None:
    """Each constant of a module is used in this module, or another module imports it. The name of
    each function and class occurs a second time somewhere in the code."""
    words = {path: Counter(re.findall(r"\w+", path.read_text())) for path in _files()}
    modules = {path: ast.parse(path.read_text()) for path in words}
    everywhere: Counter[str] = Counter()
    for own in words.values():
        everywhere.update(own)
    imported = Counter(name for each in modules.values() for name in _taken_from_modules(each))
    dead = []
    for path, own in words.items():
        for name, is_constant in _names(modules[path]):
            elsewhere = imported[name] if is_constant else everywhere[name] - own[name]
            if own[name] == 1 and not elsewhere and name not in FOUND_BY_NAME:
                dead.append(f"{path.relative_to(ROOT)}: {name}")
    assert dead == []


def _files() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            if not any(part.is_symlink() for part in path.parents):
                yield path
    yield ROOT / "pyspark_skidway.py"


def _names(module: ast.Module) -> Iterator[tuple[str, bool]]:
    """Yields each name that a module defines, and whether it is the name of a constant. Leaves out
    functions and classes that have a decorator, and those whose names match FOUND_BY_PREFIX."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if not node.decorator_list and not re.match(FOUND_BY_PREFIX, node.name):
                yield node.name, False
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and not target.id.startswith("__"):
                    yield target.id, True


def _taken_from_modules(module: ast.Module) -> Iterator[str]:
    """Yields the names that a module imports from other modules, the names that it reads as
    attributes, and the last part of each string."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.rpartition(".")[2]  # a string may be the name of a function
