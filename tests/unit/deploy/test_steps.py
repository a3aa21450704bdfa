"""The tags with which an operator runs a playbook (`--tags`) decide which programs the run may
change."""

from __future__ import annotations

import pytest

from deploy.ansible.plugins.plugin_utils import steps
from deploy.packaging.third_party import PROGRAMS


@pytest.mark.parametrize(
    ("tags", "touched"),
    [
        ("all", PROGRAMS),
        ("tagged", PROGRAMS),
        ("audit_roster", ()),  # this tag is allowed even while hosts wait for their upgrade
        ("audit_keys", ()),  # this one, too: keys belong to no version
        ("agent_run", ("agent",)),
        ("agent_configure audit_roster", ("agent",)),
        ("broker_install common_install registry_run", ("broker", "registry")),
        ("theirs", PROGRAMS),  # a tag that an operator's own playbook has given to a role
        ("theirs audit_roster", PROGRAMS),
    ],
)
def test_a_run_touches_the_programs_whose_steps_it_may_do(
    tags: str, touched: tuple[str, ...]
) -> None:
    """The tags of a playbook run say which programs the run may change. The run checks the
    installed versions of these programs only, because the upgrade of another program may still be
    due."""
    assert {p for p in PROGRAMS if steps.touches(tags.split(), p)} == set(touched)
