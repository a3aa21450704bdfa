"""Tests the order in which the servers of a ZooKeeper ensemble are started
(plugins/plugin_utils/ensemble.py)."""

from __future__ import annotations

from typing import Any

import pytest

from deploy.ansible.plugins.plugin_utils.ensemble import ensemble, servers_in

NEVER = {"runs": False, "has_data": False, "servers": 0}
ALONE = {"runs": True, "has_data": True, "servers": 0}
UNSEEN = None


def member(servers: int, runs: bool = True) -> dict[str, Any]:
    return {"runs": runs, "has_data": True, "servers": servers}


def ordered(*seen: Any) -> str:
    """Returns, for each of the servers z1, z2, ..., the name of the step in which the server
    starts. `seen` has what the role found on each server. If a start must be refused, returns the
    reason as a sentence instead."""
    names = [f"z{n}" for n in range(1, len(seen) + 1)]
    hosts = {
        n: {"zookeeper_seen": each} if each else {} for n, each in zip(names, seen, strict=True)
    }
    found = ensemble(names, hosts)
    return found["problem"] or " ".join(found["steps"][n] for n in names if n in found["steps"])


@pytest.mark.parametrize(
    ("seen", "steps"),
    [
        ([NEVER], "rest"),  # the only server of its ensemble
        ([NEVER] * 3, "second second new"),  # two servers form a quorum, then the third follows
        ([member(3), NEVER, NEVER], "rest second new"),  # an interrupted run is continued
        ([ALONE, NEVER, NEVER], "first second new"),  # the server with data first, then new ones
        ([NEVER, NEVER, ALONE], "second new first"),  # the last server has the data
        ([member(3)] * 3 + [NEVER] * 2, "rest rest rest new new"),  # new servers join a quorum
        ([member(3)] * 2 + [NEVER], "rest rest new"),  # one server has lost its disk
        ([member(3, runs=False)] * 2 + [NEVER], "first first new"),  # no server runs (a power cut)
        ([member(3)] * 3, "rest rest rest"),
        ([member(3), UNSEEN, UNSEEN], "rest"),  # `--limit` names one server, and it is healthy
        ([member(3, runs=False), UNSEEN, UNSEEN], "first"),
    ],
)
def test_servers_with_data_come_before_new_ones_and_as_many_as_a_quorum_at_once(
    seen: list[Any], steps: str
) -> None:
    """A ZooKeeper server is healthy only while a quorum runs. So a run of the playbook first starts
    enough servers for a quorum, and only then waits until the servers are healthy. If a server has
    data, servers without data never form a quorum among themselves."""
    assert ordered(*seen) == steps


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ([ALONE, ALONE, NEVER], "z1, z2 have data"),  # one server's data would be lost
        ([ALONE, member(3), NEVER], "only one server's data"),
        ([UNSEEN, NEVER, NEVER], "z1: not part of this run"),  # z1 may have the data
        ([ALONE, UNSEEN, NEVER], "z2: not part"),
        ([member(3)] * 3 + [NEVER] * 4, "too few for a quorum of 7"),
    ],
)
def test_what_could_lose_the_ensemble_s_data_is_refused(seen: list[Any], said: str) -> None:
    """The start of an ensemble is refused if this start could lose data. For example, if a server
    may have data but is not among the hosts of the playbook run, servers without data could form a
    quorum and continue without this data."""
    assert said in ordered(*seen)


def test_a_server_that_was_started_alone_is_known_by_its_zoo_cfg() -> None:
    """The zoo.cfg with which a server last started decides whether the server ran alone. The
    present zoo.cfg on disk does not count, because an interrupted run of the playbook may have
    changed this file."""
    assert servers_in("dataDir=/x\nclientPort=2181\n") == 0
    assert servers_in("dataDir=/x\nserver.1=a:2888:3888\nserver.2=b:2888:3888\n") == 2
