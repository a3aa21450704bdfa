"""Drop-ins of systemd."""

from __future__ import annotations

from deploy.ansible.plugins.plugin_utils import units


def test_a_drop_in_has_what_the_role_derives_and_what_was_given_over_it() -> None:
    """Lists are the same key several times, empty values are left out, other sections stay."""
    sections = units.drop_in(
        {"Service": {"MemoryMax": "1G"}, "Unit": {"After": ["a", "b"]}},
        MemoryMax="512M",
        PrivateTmp=False,
        SupplementaryGroups=[],
    )
    assert units.unit_text(sections).strip().splitlines() == [
        *("[Service]", "MemoryMax=1G", "PrivateTmp=no", ""),
        *("[Unit]", "After=a", "After=b"),
    ]
