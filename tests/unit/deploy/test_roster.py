"""Tests how the audit's roster (the list of the agents' hosts and their topics) is made from the
inventory."""

from __future__ import annotations

import json
from typing import Any

from deploy.ansible.plugins.plugin_utils import roster
from skidway import settings
from skidway.audit.judgement.roster import RosterDocument

CLUSTERS: dict[str, Any] = {"dc1": {}, "dc2": None}


def host(name: str, **variables: Any) -> dict[str, Any]:
    return {"inventory_hostname": name, **variables}


def test_a_host_that_left_the_inventory_is_retired_and_can_come_back() -> None:
    """The roster keeps every host. A host that is no longer in the inventory is marked as retired,
    because the audit must distinguish a retired host from a host that has stopped reporting."""
    app1 = host("app1", skidway_cluster="dc1", agent_sources=[{"topic": "b"}, {"topic": "a"}])
    app2 = host("app2", skidway_cluster="dc1", agent_settings={"sources": [{"topic": "c"}]})
    both = roster.roster(None, [app2, app1], CLUSTERS)
    assert both["hosts"] == [
        {"host": "app1", "cluster": "dc1", "topics": ["a", "b"]},
        {"host": "app2", "cluster": "dc1", "topics": ["c"]},
    ]
    one = roster.roster(both, [app1], CLUSTERS)
    assert one["hosts"][1] == {**both["hosts"][1], "retired": True}
    assert roster.roster(one, [app1], CLUSTERS) == one
    assert roster.roster(one, [app1, app2], CLUSTERS) == both


def many(count: int) -> list[dict[str, Any]]:
    return [host(f"app{n:02}", agent_sources=[{"topic": "a"}]) for n in range(count)]


def test_one_host_may_leave_a_small_inventory() -> None:
    """Without the operator's confirmation, a run of the playbook may retire at most a tenth of the
    roster's hosts. If a tenth is less than one host, the run may still retire one host."""
    agents = many(12)
    before = roster.roster(None, agents, CLUSTERS)
    assert roster.retirement_problem(None, agents, "10%") == ""
    assert roster.retirement_problem(before, agents[1:], "10%") == ""
    assert roster.retirement_problem(roster.roster(None, many(20), CLUSTERS), many(18), "10%") == ""
    assert roster.retirement_problem(roster.roster(None, many(20), CLUSTERS), many(17), "10%") != ""
    assert roster.retirement_problem(roster.roster(None, many(1), CLUSTERS), [], "10%") == ""


def test_an_inventory_that_is_not_whole_retires_nobody() -> None:
    """If more hosts of the roster are missing from the inventory than a run may retire, no host is
    retired. An error names the missing hosts and the option that confirms their retirement. Hosts
    that are retired already do not count as missing."""
    before = roster.roster(None, many(12), CLUSTERS)
    said = roster.retirement_problem(before, many(4), "10%")
    assert "8 of the 12 hosts" in said
    assert "app04, app05, app06, app07, app08 and 3 more" in said
    assert "-e skidway_retire_max=8" in said
    assert roster.retirement_problem(before, many(4), 8) == ""
    assert roster.retirement_problem(before, many(4), "8") == ""
    assert roster.retirement_problem(before, many(11), 0) != ""
    four = roster.roster(before, many(4), CLUSTERS)
    assert roster.retirement_problem(four, many(3), "10%") == ""
    assert "2 of the 4 hosts" in roster.retirement_problem(four, many(2), "10%")


def test_a_roster_of_nobody_is_one() -> None:
    """If the inventory has no agents, the roster is an empty list that the audit can read."""
    assert roster.roster(None, [], CLUSTERS) == {"hosts": []}
    assert roster.roster({"hosts": None}, [], CLUSTERS) == {"hosts": []}
    assert roster.retirement_problem(None, [], "10%") == ""


def test_hosts_are_known_by_their_whole_names() -> None:
    """Hosts keep their full names, even if a name is an address, or if several names differ only
    after the first dot."""
    names = ["app1.dc1.example.com", "app1.dc2.example.com", "app1", "10.0.0.1", "fd00::1"]
    agents = [host(n, agent_sources=[{"topic": "web.access"}]) for n in names]
    found = roster.roster(None, agents, CLUSTERS)["hosts"]
    assert [each["host"] for each in found] == sorted(names)
    assert found[0] == {"host": "10.0.0.1", "cluster": "dc1", "topics": ["web.access"]}
    assert "app1.dc1.example.com" in roster.retirement_problem({"hosts": found}, [], "0")
    entries = settings.load(RosterDocument, None, [f"hosts={json.dumps(found)}"]).hosts
    assert [each.host for each in entries] == sorted(names)  # the audit accepts all names


def test_a_host_without_a_cluster_is_of_the_first_one() -> None:
    """In the roster, a host without skidway_cluster belongs to the first cluster."""
    agents = [host("a"), host("b", skidway_cluster="dc2")]
    found = roster.roster(None, agents, CLUSTERS)["hosts"]
    assert [each["cluster"] for each in found] == ["dc1", "dc2"]
