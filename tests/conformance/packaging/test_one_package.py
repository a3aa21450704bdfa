"""Skidway installs a single package. So a file in the directory of a user's script, such as
schemas.py, is never imported in place of a module of Skidway."""

from __future__ import annotations

import os
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from support.packages import run

ROOT = Path(__file__).parents[3]
PARTS = ("agent", "audit", "broker", "loader", "schemas")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the content of the wheel that was built from the source distribution."""
    folder = tmp_path_factory.mktemp("built")
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder), "--target"]
    run([*build, "sdist"], cwd=ROOT)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as sources:
        sources.extractall(folder, filter="data")
    (unpacked,) = (found for found in folder.iterdir() if found.is_dir())
    run([*build, "wheel"], cwd=unpacked)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder / "site")
    return folder / "site"


def test_the_wheel_has_one_package_and_what_spark_looks_for(installed: Path) -> None:
    """The five programs and their data are in the package `skidway`. The only module outside of
    this package is `pyspark_skidway.py`."""
    top = {found.name for found in installed.iterdir() if not found.name.endswith(".dist-info")}
    assert top == {"skidway", "pyspark_skidway.py"}
    assert (installed / "skidway" / "schemas" / "audit.avsc").is_file()
    assert (installed / "skidway/audit/collector/web/templates/style.css").is_file()


EVERY_MODULE = """
import importlib, pkgutil, skidway
print(*skidway.__path__)
for module in pkgutil.walk_packages(skidway.__path__, "skidway."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def test_no_module_imports_a_file_of_the_same_name(installed: Path, tmp_path: Path) -> None:
    """If a user's directory contains files such as `agent.py`, `schemas.py` or `loader.py`, no
    module of the installed package imports them. (For Spark's workers, see
    tests/crash/loader/test_datasource.py.)"""
    for name in PARTS:
        (tmp_path / f"{name}.py").write_text("raise ImportError('this is the file of the user')\n")
    env = {**os.environ, "PYTHONPATH": str(installed)}
    said = run([sys.executable, "-c", EVERY_MODULE], cwd=tmp_path, env=env)
    assert said.splitlines()[0] == str(installed / "skidway")
    helped = run([sys.executable, "-m", "skidway", "--help"], cwd=tmp_path, env=env)
    assert set(PARTS) - {"loader"} <= set(helped.split())
