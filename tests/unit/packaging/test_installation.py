from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from deploy.packaging.installation import Telling, locked

LOCKS = Path(__file__).parents[3] / "requirements"


def test_pip_becomes_one_line_for_each_distribution() -> None:
    """The installation prints one line for each wheel or source archive that pip downloads or takes
    from its cache, for each package that pip builds, and for the unpacking. pip's other lines are
    left out."""
    said = told(
        "Collecting kazoo>=2.10",
        "  Downloading kazoo-2.11.0-py2.py3-none-any.whl.metadata (1.2 kB)",
        "Downloading kazoo-2.11.0-py2.py3-none-any.whl (164 kB)",
        "  Downloading pyspark-4.3.0.tar.gz (434.1 MB)",
        "  Using cached pip/numpy-2.4.6-cp311-cp311-manylinux_2_17_x86_64.whl (16.5 MB)",
        "Requirement already satisfied: pip",
        "  Building wheel for pyspark (pyproject.toml): started",
        "  Building wheel for pyspark (pyproject.toml): finished with status 'done'",
        "Installing collected packages: kazoo, pyspark, numpy",
        "Successfully installed kazoo-2.11.0 numpy-2.4.6 pyspark-4.3.0",
    )
    assert said == [
        "   1 kazoo-2.11.0 (164 kB)",
        "   2 pyspark-4.3.0 (434.1 MB)",
        "   3 numpy-2.4.6 (from pip's cache)",
        "  builds pyspark",
        "  unpacks 3 distributions",
    ]


def test_silence_is_explained() -> None:
    """If pip prints nothing for some seconds, the installation prints what pip is doing, for
    example which package it downloads or builds."""
    telling = Telling()
    assert telling.silence(10) == "  ... pip starts (10 s)"
    telling.line("Collecting pyspark<4.4,>=4.1 (from skidway==0.1.0)")
    assert telling.silence(21) == "  ... looks for pyspark (21 s)"
    telling.line("  Downloading pyspark-4.3.0.tar.gz (434.1 MB)")
    assert telling.silence(31.2) == "  ... downloads pyspark-4.3.0 (434.1 MB) (31 s)"


@pytest.mark.parametrize(("lock", "extra"), [("demo", "demo"), ("test", "dev")])
def test_what_is_announced_is_what_is_needed(lock: str, extra: str) -> None:
    """A lock file lists all distributions that this machine needs for the build and for one extra
    (a list of optional dependencies in pyproject.toml)."""
    named = {_key(name) for name in locked((LOCKS / f"{lock}.txt").read_text())}
    wanted = set(needed("skidway", frozenset({extra, "build"}), {})) - {"skidway"}
    assert wanted <= named
    assert len(named - wanted) <= 3, "what other Pythons need"


def told(*lines: str) -> list[str]:
    telling = Telling()
    return [said for line in lines if (said := telling.line(line))]


def needed(
    name: str, extras: frozenset[str], found: dict[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    """Adds an installed distribution, and all distributions that it needs on this machine, to the
    dictionary `found`, and returns the dictionary. The dictionary maps each distribution's name to
    the names of the extras with which the distribution is needed."""
    key = _key(name)
    if key not in found or extras - found[key]:
        found[key] = extras | found.get(key, frozenset())
        for text in distribution(name).requires or ():
            each = Requirement(text)
            if each.marker is None or any(
                each.marker.evaluate({"extra": extra}) for extra in ("", *found[key])
            ):
                needed(each.name, frozenset(each.extras), found)
    return found


def _key(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
