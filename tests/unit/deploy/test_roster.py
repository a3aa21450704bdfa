"""The audit's roster, from the inventory."""

from __future__ import annotations

from typing import Any

from deploy.ansible.plugins.plugin_utils import roster


def host(name: str, **variables: Any) -> dict[str, Any]:
    return {"inventory_hostname": name, **variables}


def test_a_host_that_left_the_inventory_is_retired_and_can_come_back() -> None:
    """The roster forgets nobody: the audit must know the difference between silent and gone."""
    app1 = host("app1", skidway_cluster="dc1", agent_sources=[{"topic": "b"}, {"topic": "a"}])
    app2 = host("app2", skidway_cluster="dc1", agent_settings={"sources": [{"topic": "c"}]})
    both = roster.roster(None, [app2, app1])
    assert both["hosts"] == [
        {"host": "app1", "cluster": "dc1", "topics": ["a", "b"]},
        {"host": "app2", "cluster": "dc1", "topics": ["c"]},
    ]
    one = roster.roster(both, [app1])
    assert one["hosts"][1] == {**both["hosts"][1], "retired": True}
    assert roster.roster(one, [app1]) == one
    assert roster.roster(one, [app1, app2]) == both


def many(count: int) -> list[dict[str, Any]]:
    return [host(f"app{n:02}", agent_sources=[{"topic": "a"}]) for n in range(count)]


def test_one_host_may_leave_a_small_inventory() -> None:
    """A tenth of the roster, and at least one, is retired without a question."""
    agents = many(12)
    before = roster.roster(None, agents)
    assert roster.retirement_problem(None, agents, "10%") == ""
    assert roster.retirement_problem(before, agents[1:], "10%") == ""
    assert roster.retirement_problem(roster.roster(None, many(20)), many(18), "10%") == ""
    assert roster.retirement_problem(roster.roster(None, many(20)), many(17), "10%") != ""
    assert roster.retirement_problem(roster.roster(None, many(1)), [], "10%") == ""


def test_an_inventory_that_is_not_whole_retires_nobody() -> None:
    """The sentence names hosts and how to say that it is meant; who is retired is not counted."""
    before = roster.roster(None, many(12))
    said = roster.retirement_problem(before, many(4), "10%")
    assert "8 of the 12 hosts" in said
    assert "app04, app05, app06, app07, app08 and 3 more" in said
    assert "-e skidway_retire_max=8" in said
    assert roster.retirement_problem(before, many(4), 8) == ""
    assert roster.retirement_problem(before, many(4), "8") == ""
    assert roster.retirement_problem(before, many(11), 0) != ""
    four = roster.roster(before, many(4))
    assert roster.retirement_problem(four, many(3), "10%") == ""
    assert "2 of the 4 hosts" in roster.retirement_problem(four, many(2), "10%")
