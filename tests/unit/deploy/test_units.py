"""Tests the drop-ins for systemd that the roles write."""

from __future__ import annotations

import pytest

from deploy.ansible.plugins.plugin_utils import units


def test_a_drop_in_has_what_the_role_derives_and_what_was_given_over_it() -> None:
    """In a systemd drop-in, values that the operator gives override values of [Service] that the
    role derives. The operator's other sections are in the drop-in, too. A value that is a list
    becomes one line for each element, with the key and the element. Empty values are left out."""
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


def test_variables_reach_a_service_as_they_are() -> None:
    """Environment variables reach a service unchanged: blanks, quotes, backslashes and percent
    signs are escaped for systemd."""
    assert units.environment({"OUTPUT": "hdfs://nn:8020/logs", "SINCE": "26h"}) == [
        '"OUTPUT=hdfs://nn:8020/logs"',
        '"SINCE=26h"',
    ]
    assert units.environment({"A": 'my "lake" 100%\\'}) == ['"A=my \\"lake\\" 100%%\\\\"']


def test_a_service_has_the_given_variables_beside_the_derived_ones() -> None:
    """Environment variables that an operator gives do not remove the variables that the role
    derives. The operator's variables come last, so that systemd uses the operator's value if the
    role derives the same variable."""
    for given in ("A=1", ["A=1"]):
        sections = units.drop_in({"Service": {"Environment": given}}, Environment=["B=2"])
        assert sections == {"Service": {"Environment": ["B=2", "A=1"]}}


@pytest.mark.parametrize(
    ("named", "wanted"),
    [
        ([["/var/log/*.log"], ["/srv/home/a.log", "/homes/x/*.log", "/rooted"]], ""),
        ([["/var/log/a.log", "/home/ada/*.log"]], "read-only"),
        (["/root/x.log"], "read-only"),
        (["/run/user/1/x.log"], "read-only"),
        (["/**/app.log"], "read-only"),
        (["/{srv,home}/app.log"], "read-only"),
        (["/h*/x/app.log"], "read-only"),
        ([[], [], {"shop.avsc": '{"doc": "of /srv/x"}', "a.yml": "paths: [/opt/*/a.log]"}], ""),
        ([[], [], {"a.yml": "sources:\n- paths: [/x/a.log, /home/x/*.log]\n"}], "read-only"),
        ([[], [], {"a.yml": "sources:\n- paths:\n  - /root/x\n"}], "read-only"),
        ([None, []], ""),
    ],
)
def test_home_directories_are_hidden_unless_logs_are_there(
    named: list[object], wanted: str
) -> None:
    """The unit of the agent hides home directories, unless the inventory names a path there, or a
    pattern that matches such paths."""
    assert units.protect_home(named) == wanted
    assert units.drop_in({}, ProtectHome=wanted) == (
        {"Service": {"ProtectHome": "read-only"}} if wanted else {}
    )
