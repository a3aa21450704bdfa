"""Tests when a wave (agents that are upgraded together) counts as successful, and when the wave is
rolled back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deploy.ansible.plugins.plugin_utils import waves


class Reads(Mapping[str, Mapping[str, Any]]):
    """The variables of several hosts, some of which have failed. This mapping counts how often the
    variables of each host are read."""

    def __init__(self, **failures: list[str]) -> None:
        self.failures = failures
        self.reads = 0

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        self.reads += 1
        return {"agent_failure": self.failures.get(name, [])}

    def __iter__(self) -> Iterator[str]:
        return iter(self.failures)

    def __len__(self) -> int:
        return len(self.failures)


def test_a_wave_in_which_all_went_well_is_good() -> None:
    """A wave (agents that are upgraded together) succeeds if no host failed, no host became
    unreachable, and the audit reports no problem."""
    assert waves.wave_problems(Reads(), ["a", "b"], ["a", "b"], []) == []
    assert waves.wave_problems({"a": {}}, ["a"], ["a"]) == []


def test_a_wave_goes_back_for_each_of_its_hosts_and_for_the_audit() -> None:
    """A wave (agents that are upgraded together) is rolled back if a host failed, if a host became
    unreachable, or if a host's lines did not arrive. The report names all these hosts."""
    hosts = Reads(b=["b: no space left", "b: last lines"])
    found = waves.wave_problems(hosts, ["a", "b", "c"], ["a", "b"], ["a: bucket 10:05 is open"])
    assert found == [
        "b: no space left",
        "b: last lines",
        "c: cannot be reached any more",
        "a: bucket 10:05 is open",
    ]


def test_a_fleet_that_fails_as_a_whole_is_told_in_a_screen() -> None:
    """If all hosts of a large wave (agents that are upgraded together) fail, the report shows at
    most as many problems as fit on one screen. The variables of each host that can be reached are
    read only once."""
    names = [f"h{n}" for n in range(3000)]
    hosts = Reads(**{name: [f"{name}: failed"] for name in names})
    found = waves.wave_problems(hosts, names, names[:2900], [])
    assert found[0] == "h0: failed"
    assert len(found) == waves.NAMED + 1
    assert found[-1] == f"and {3000 - waves.NAMED} more"
    assert hosts.reads == 2900


def test_nothing_is_said_of_more_where_there_is_none() -> None:
    """The line "and N more" is added only if there are more problems than the report shows."""
    for count in (waves.NAMED, waves.NAMED + 1):
        found = waves.wave_problems({}, [], [], [f"sentence {n}" for n in range(count)])
        assert found[waves.NAMED :] == ([] if count == waves.NAMED else ["and 1 more"])
