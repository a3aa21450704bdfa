"""Each program runs if it is installed with its own extra alone (an extra is a list of optional
dependencies in pyproject.toml)."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAMS = {
    "agent": ("skidway.agent",),
    "audit": ("skidway.audit", "skidway.schemas.client", "skidway.schemas.consuming"),
    "broker": ("skidway.broker",),
    "loader": ("skidway.loader", "skidway.audit"),
    "registry": ("skidway.schemas",),
}
"""For each extra (a list of optional dependencies in pyproject.toml): the packages that the
commands of its program may import. A host of the loader also runs a command of the audit, for the
nightly recount."""

ELSEWHERE = {"jinja2", "starlette", "uvicorn"}
"""Packages that only the collector's dashboard imports. No host of a loader runs the dashboard."""

IMPORTS = """
import importlib, importlib.metadata as metadata, pkgutil, sys
from packaging.requirements import Requirement

extra, packages = sys.argv[1], sys.argv[2:]
plain = lambda name: name.lower().replace("_", "-").replace(".", "-")
allowed, left = set(), [("skidway", extra)]
while left:
    name, of = left.pop()
    allowed.add((name, of))
    for text in metadata.requires(name) or ():
        wanted = Requirement(text)
        if wanted.marker is None or wanted.marker.evaluate({"extra": of}):
            for each in ("", *wanted.extras):
                key = (plain(wanted.name), each)
                if key not in allowed:
                    left.append(key)
names = {name for name, _ in allowed}
tops = metadata.packages_distributions()

class Refuses:
    def find_spec(self, fullname, path, target=None):
        owners = {plain(each) for each in tops.get(fullname, ())}
        if owners and not owners & names:
            raise ModuleNotFoundError(fullname, name=fullname)

sys.meta_path.insert(0, Refuses())
for package in packages:
    top = importlib.import_module(package)
    for module in pkgutil.walk_packages(top.__path__, package + "."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            print(module.name, error.name)
"""


@pytest.mark.parametrize("extra", sorted(PROGRAMS))
def test_a_program_imports_no_package_that_its_extra_lacks(extra: str) -> None:
    """All modules of a program can be imported where only the packages of its extra are installed.
    So a program also runs on a host where no other program is installed."""
    run = [sys.executable, "-c", IMPORTS, extra, *PROGRAMS[extra]]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    missing = {tuple(line.split()) for line in said.splitlines()}
    elsewhere = ELSEWHERE if extra == "loader" else set()
    assert {x for x in missing if x[1] not in elsewhere} == set()
