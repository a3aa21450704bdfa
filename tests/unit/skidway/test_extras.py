from __future__ import annotations

import sys

import pytest

from skidway import extras


def test_a_hint_names_packages_that_an_index_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint on how to install a pip extra lists the packages of the extra that are not
    installed. It does not name Skidway itself, which no package index has."""
    monkeypatch.setattr(extras, "_is_installed", lambda name: not name.startswith("watchdog"))
    assert extras.how("agent") == f"{sys.executable} -m pip install 'watchdog>=6'"
    monkeypatch.setattr(extras, "_is_installed", lambda _: False)
    assert extras.lacking("agent") == extras.needed("agent")
    assert "skidway" not in extras.how("zookeeper").partition("install")[2]
    assert extras.lacking("broker") == []
