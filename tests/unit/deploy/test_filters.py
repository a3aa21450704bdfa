"""Tests the list of filters that playbooks and roles use (deploy/ansible/plugins/filter)."""

from __future__ import annotations

import re

from deploy.ansible.plugins.filter import fleet
from deploy.variables import COLLECTION

_ASKED = re.compile(r"\|\s*skidway\.fleet\.(\w+)")


def test_every_filter_that_is_asked_for_is_there_and_none_is_for_nobody() -> None:
    """Every filter skidway.fleet.<name> that a role uses exists; a missing filter would stop a play
    half way. No filter is unused."""
    paths = [*COLLECTION.rglob("*.yml"), *COLLECTION.rglob("*.j2")]
    asked = {name for path in paths for name in _ASKED.findall(path.read_text())}
    assert set(fleet.FilterModule().filters()) == asked


def test_no_two_filters_have_one_name() -> None:
    """No two filters have the same name, because the filter that is loaded later would replace the
    other filter."""
    assert len(fleet.FilterModule().filters()) == len(fleet.FILTERS)
