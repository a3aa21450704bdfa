"""What the roles derive from the inventory (deploy/ansible/plugins/filter/fleet.py)."""

from __future__ import annotations

from typing import Any

import pytest

from deploy.ansible.plugins.filter import fleet

CLUSTERS: dict[str, Any] = {"dc1": {}, "dc2": None, "offline": {"mirrors": ["dc1", "dc2"]}}
SERVERS = {"dc1": "b1:9092", "dc2": "b2:9092", "offline": "b3:9092"}


def host(name: str, **variables: Any) -> dict[str, Any]:
    return {"inventory_hostname": name, **variables}


def test_filters_have_the_names_of_their_functions() -> None:
    """A role asks for skidway.fleet.<name>, and a name that is missing stops a play half way."""
    filters = fleet.FilterModule().filters()
    assert {name: function.__name__ for name, function in filters.items()} == {
        name: name for name in filters
    }


def test_brokers_are_found_by_cluster_and_reached_by_the_address_they_have() -> None:
    """An agent is told the brokers of its own cluster only, by the names that others reach them."""
    brokers = [
        host("b1", skidway_cluster="dc1"),
        host("b2", skidway_cluster="dc1", ansible_host="10.0.0.2", broker_port=9192),
        host("b3", skidway_cluster="dc2", ansible_host="10.0.0.3", skidway_address="b3.internal"),
    ]
    assert fleet.bootstrap_servers(CLUSTERS, brokers) == {
        "dc1": "b1:9092,10.0.0.2:9192",
        "dc2": "b3.internal:9092",
    }


def test_an_existing_kafka_stands_in_for_brokers() -> None:
    """`bootstrap_servers` of a cluster in the inventory is used as it is."""
    clusters = {"dc1": {"bootstrap_servers": "k1:9092,k2:9092"}}
    assert fleet.bootstrap_servers(clusters, []) == {"dc1": "k1:9092,k2:9092"}


def test_one_zookeeper_is_no_ensemble_and_three_are() -> None:
    """server.N keys are written for several servers, under the numbers that the inventory gives."""
    alone = [host("z1")]
    three = [host(f"z{n}", zookeeper_id=n * 10) for n in (1, 2, 3)]
    assert fleet.zookeeper_servers(alone) == {}
    assert fleet.zookeeper_servers(three)["server.20"] == "z2:2888:3888"
    assert fleet.zookeeper_connect(three) == "z1:2181,z2:2181,z3:2181"


def test_the_offline_cluster_mirrors_what_the_inventory_says() -> None:
    """mirror.sources come from skidway_clusters, one for each cluster that is mirrored."""
    assert fleet.mirror_sources(CLUSTERS, "offline", SERVERS) == [
        {"cluster": "dc1", "bootstrap.servers": "b1:9092"},
        {"cluster": "dc2", "bootstrap.servers": "b2:9092"},
    ]
    assert fleet.mirror_sources(CLUSTERS, "dc1", SERVERS) == []


def test_a_mirrored_cluster_without_brokers_is_refused() -> None:
    """A mirror of nothing would be silence."""
    with pytest.raises(ValueError, match="dc2"):
        fleet.mirror_sources(CLUSTERS, "offline", {"dc1": "b1:9092"})


def test_every_cluster_has_a_counter_of_its_own() -> None:
    """What was mirrored is counted where it was mirrored to; ports and directories differ."""
    counters = fleet.counters(CLUSTERS, SERVERS, 9114)
    assert {name: each["tier"] for name, each in counters.items()} == {
        "dc1": "broker",
        "dc2": "broker",
        "offline": "mirror",
    }
    assert len({each["metrics.listener"] for each in counters.values()}) == 3
    assert counters["dc2"]["state.dir"] == "/var/lib/skidway/audit-count-dc2"


def test_a_cluster_that_mirrors_and_has_agents_is_counted_twice() -> None:
    """Else nobody would count what its own agents publish; other counters keep their ports."""
    agents = [host("a", skidway_cluster="offline"), host("b", skidway_cluster="dc1")]
    before, after = (fleet.counters(CLUSTERS, SERVERS, 9114, each) for each in ([], agents))
    second = after.pop("offline.broker")
    assert after == before
    assert second == {
        "bootstrap.servers": "b3:9092",
        "cluster.name": "offline",
        "tier": "broker",
        "state.dir": "/var/lib/skidway/audit-count-offline.broker",
        "metrics.listener": "127.0.0.1:9117",
    }


def test_given_settings_win_whichever_way_they_are_written() -> None:
    """`log: {dirs: x}` replaces a derived `log.dirs`; a program would refuse the key twice."""
    derived = {"log.dirs": ["/a"], "broker.id": 1}
    assert fleet.over({"log": {"dirs": ["/b"]}}, derived) == {"broker.id": 1, "log.dirs": ["/b"]}


@pytest.mark.parametrize(
    ("settings", "secret"),
    [
        ({"schema.registry.basic.auth.user.info": "u:p"}, True),
        ({"schema": {"registry": {"basic": {"auth": {"user": {"info": "u:p"}}}}}}, True),
        ({"sources": [{"topic": "a", "key": "user"}], "state.dir": "/x"}, False),
    ],
)
def test_settings_with_a_password_are_known_as_such(settings: Any, secret: bool) -> None:
    """Only they are kept out of Ansible's output: the difference of all others can be read."""
    assert fleet.holds_secret(settings) is secret


def test_health_is_asked_where_the_settings_say() -> None:
    """A metrics.listener of the inventory moves the question; a wildcard is asked on loopback."""
    assert fleet.health_of(host("b"), "broker") == "http://127.0.0.1:9102/health"
    moved = host("b", broker_settings={"metrics": {"listener": "0.0.0.0:9999"}})
    assert fleet.health_of(moved, "broker") == "http://127.0.0.1:9999/health"


WHEELS = ["/w/skidway-0.2.0-py3-none-any.whl", "/w/PyYAML-6.0.3-cp311-x.whl", "/w/pip-26.3-x.whl"]
REQUIREMENTS = (
    "# what an agent needs\nskidway==0.2.0 --hash=sha256:aa\npyyaml==6.0.3 \\\n  --hash=sha256:bb\n"
)


def test_only_the_wheels_that_are_missing_are_carried() -> None:
    """What another program of the host has brought, is there; pip itself always comes along."""
    assert fleet.wheels_for(REQUIREMENTS, [*WHEELS, "/w/numpy-2-x.whl"]) == sorted(WHEELS)
    there = ["pyyaml==6.0.3 --hash=sha256:bb\n"]
    assert fleet.wheels_for(REQUIREMENTS, WHEELS, there) == [WHEELS[2], WHEELS[0]]


def test_a_wheel_that_is_not_there_is_named() -> None:
    """A folder of wheels that is not whole is found out before anything is copied."""
    with pytest.raises(ValueError, match=r"pyyaml==6\.0\.3"):
        fleet.wheels_for(REQUIREMENTS, WHEELS[::2])


def test_other_content_under_the_same_version_is_refused() -> None:
    """pip would take it for installed and leave the old code there."""
    with pytest.raises(ValueError, match=r"skidway==0\.2\.0 .* new version"):
        fleet.wheels_for(REQUIREMENTS, WHEELS, ["skidway==0.2.0 --hash=sha256:cc\n"])


def test_a_host_that_left_the_inventory_is_retired_and_can_come_back() -> None:
    """The roster forgets nobody: the audit must know the difference between silent and gone."""
    app1 = host("app1", skidway_cluster="dc1", agent_sources=[{"topic": "b"}, {"topic": "a"}])
    app2 = host("app2", skidway_cluster="dc1", agent_settings={"sources": [{"topic": "c"}]})
    both = fleet.roster(None, [app2, app1])
    assert both["hosts"] == [
        {"host": "app1", "cluster": "dc1", "topics": ["a", "b"]},
        {"host": "app2", "cluster": "dc1", "topics": ["c"]},
    ]
    one = fleet.roster(both, [app1])
    assert one["hosts"][1] == {**both["hosts"][1], "retired": True}
    assert fleet.roster(one, [app1]) == one
    assert fleet.roster(one, [app1, app2]) == both


def many(count: int) -> list[dict[str, Any]]:
    return [host(f"app{n:02}", agent_sources=[{"topic": "a"}]) for n in range(count)]


def test_one_host_may_leave_a_small_inventory() -> None:
    """A tenth of the roster, and at least one, is retired without a question."""
    agents = many(12)
    before = fleet.roster(None, agents)
    assert fleet.retirement_problem(None, agents, "10%") == ""
    assert fleet.retirement_problem(before, agents[1:], "10%") == ""
    assert fleet.retirement_problem(fleet.roster(None, many(20)), many(18), "10%") == ""
    assert fleet.retirement_problem(fleet.roster(None, many(20)), many(17), "10%") != ""
    assert fleet.retirement_problem(fleet.roster(None, many(1)), [], "10%") == ""


def test_an_inventory_that_is_not_whole_retires_nobody() -> None:
    """The sentence names hosts and how to say that it is meant; who is retired is not counted."""
    before = fleet.roster(None, many(12))
    said = fleet.retirement_problem(before, many(4), "10%")
    assert "8 of the 12 hosts" in said
    assert "app04, app05, app06, app07, app08 and 3 more" in said
    assert "-e skidway_retire_max=8" in said
    assert fleet.retirement_problem(before, many(4), 8) == ""
    assert fleet.retirement_problem(before, many(4), "8") == ""
    assert fleet.retirement_problem(before, many(11), 0) != ""
    four = fleet.roster(before, many(4))
    assert fleet.retirement_problem(four, many(3), "10%") == ""
    assert "2 of the 4 hosts" in fleet.retirement_problem(four, many(2), "10%")


MANIFEST = {"version": "1.0", "python": "3.11", "implementation": "CPython", "platform": "linux-x"}


@pytest.mark.parametrize(
    ("found", "good"),
    [
        ("3.11 CPython linux-x\n", True),
        ("3.13 CPython linux-x", False),
        ("3.11 PyPy linux-x", False),
        ("3.11 CPython linux-aarch64", False),
    ],
)
def test_wheels_for_another_python_are_refused(found: str, good: bool) -> None:
    """Before anything is changed, in place of what pip says when it finds no wheel."""
    said = fleet.python_problem(found, MANIFEST, "/usr/bin/python3")
    assert (said == "") is good
    assert good or f"/usr/bin/python3 here is {found}" in said


def status(state: str = "active") -> dict[str, str]:
    return {"ActiveState": state, "ExecMainStartTimestamp": "Fri 2026-11-20 20:44:43 UTC"}


BEGAN = 1795207483.0


def files(*times: float) -> list[dict[str, Any]]:
    return [{"stat": {"exists": True, "mtime": t}} for t in times] + [{"stat": {"exists": False}}]


def test_a_restart_is_due_when_a_file_is_newer_than_the_process() -> None:
    """By times, so that a run that broke off between writing and restarting is made up for."""
    assert fleet.started_before(status(), files(BEGAN - 60, BEGAN + 1))
    assert not fleet.started_before(status(), files(BEGAN - 60, BEGAN))
    assert not fleet.started_before(status("inactive"), files(BEGAN + 1))


def test_a_service_that_cannot_come_up_is_restarted_from_newer_files() -> None:
    """systemd's `start` does nothing while one is starting: the old program would stay."""
    assert fleet.started_before(status("activating"), files(BEGAN + 1))
    assert not fleet.started_before(status("activating"), files(BEGAN - 1))


def test_a_roll_back_leaves_a_service_alone_that_was_not_stopped() -> None:
    """It is the version before still; where the others are sick, stopping it would end a quorum."""
    assert fleet.runs_since_before(status(), BEGAN + 60.5)
    assert not fleet.runs_since_before(status(), BEGAN)  # started since, from what is taken back
    assert not fleet.runs_since_before(status("activating"), BEGAN + 60)
    assert not fleet.runs_since_before(status("failed"), BEGAN + 60)
    assert not fleet.runs_since_before({"ActiveState": "active"}, BEGAN)  # a timer


def test_a_restart_that_was_done_is_not_done_again() -> None:
    """A rolling restart that is taken up leaves alone what was restarted since it began."""
    assert fleet.started_before(status(), files(), "2026-11-20T20:44:44Z")
    assert not fleet.started_before(status(), files(), "2026-11-20T20:44:43Z")


def test_a_drop_in_has_what_the_role_derives_and_what_was_given_over_it() -> None:
    """Lists are the same key several times, empty values are left out, other sections stay."""
    sections = fleet.drop_in(
        {"Service": {"MemoryMax": "1G"}, "Unit": {"After": ["a", "b"]}},
        MemoryMax="512M",
        PrivateTmp=False,
        SupplementaryGroups=[],
    )
    assert fleet.unit_text(sections).strip().splitlines() == [
        *("[Service]", "MemoryMax=1G", "PrivateTmp=no", ""),
        *("[Unit]", "After=a", "After=b"),
    ]


def test_a_directory_is_made_once() -> None:
    """One that the settings in use have, in whichever form, is never made again: where it is
    missing its disk is not mounted, and records must not go to the disk below."""
    given = ["/disk1", "/disk2/skidway"]
    assert fleet.not_named_by(given, {}) == given
    assert fleet.not_named_by(given, {"log.dirs": ["/disk1"], "broker.id": 1}) == given[1:]
    assert fleet.not_named_by(given, {"log": {"dirs": "/disk1, /disk2/skidway"}}) == []
    assert fleet.not_named_by(given, {"log.dirs": "/disk1/skidway"}) == given


def test_versions_in_use_stay_and_the_newest_of_the_others() -> None:
    """A roll-back by hand needs no wheels: the version before is kept, older ones go."""
    versions = [{"path": f"/opt/skidway/{v}", "mtime": v} for v in ("1", "2", "3", "4")]
    assert fleet.superfluous(versions, ["../4", "../4"], 2) == ["/opt/skidway/2", "/opt/skidway/1"]
    assert fleet.superfluous(versions, ["../4", "../1"], 1) == ["/opt/skidway/3", "/opt/skidway/2"]


@pytest.mark.parametrize("name", ["0.1.0", "0.2.0.dev3", "9.8.7rc1", "1.0+site.2"])
def test_only_what_is_named_as_a_version_is_removed(name: str) -> None:
    """What an operator has put beside the versions is not ours to delete."""
    others = [{"path": f"/opt/skidway/{n}", "mtime": 1} for n in ("jdk-21", "backup", "1.0.old")]
    version = {"path": f"/opt/skidway/{name}", "mtime": 0}
    assert fleet.superfluous([*others, version], ["../2.0"], 1) == [version["path"]]


def problems(groups: dict[str, list[str]], hosts: list[dict[str, Any]], **clusters: Any) -> str:
    by_name = {each["inventory_hostname"]: each for each in hosts}
    return " ".join(fleet.inventory_problems(clusters, groups, by_name))


def test_a_good_inventory_has_no_problems() -> None:
    """Two clusters may each have a broker 1."""
    brokers = [host("b1", skidway_cluster="dc1", broker_id=1)]
    brokers.append(host("b2", skidway_cluster="dc2", broker_id=1))
    assert problems({"brokers": ["b1", "b2"]}, brokers, dc1={}, dc2={"mirrors": ["dc1"]}) == ""
    same = {"host.name": "a", "cluster.name": "dc1", "metrics.listener": "0.0.0.0:9999"}
    agent = host("a", skidway_cluster="dc1", agent_settings=same, agent_sources=[{"topic": "t"}])
    assert problems({"agents": ["a"], "audit": ["m"]}, [agent, host("m")], dc1={}) == ""


@pytest.mark.parametrize(
    ("group", "hosts", "clusters", "said"),
    [
        ("agents", [], {}, "skidway_clusters is empty"),
        ("agents", [], {"d.c": {}}, "is no name"),
        ("agents", [], {"dc1": {"mirrors": ["dc9"]}}, "mirrors dc9"),
        ("agents", [host("a", skidway_cluster="dcl")], {"dc1": {}}, "must be one of dc1"),
        ("agents", [host("a", skidway_cluster="dc1")], {"dc1": {}}, "no agent_sources"),
        ("brokers", [host("b", skidway_cluster="dc1")], {"dc1": {}}, "no broker_id"),
        (
            "brokers",
            [host(n, skidway_cluster="dc1", broker_id=1) for n in ("b1", "b2")],
            {"dc1": {}},
            "given to 2 brokers",
        ),
        (
            "brokers",
            [host("b", skidway_cluster="dc1", broker_id=1)],
            {"dc1": {"bootstrap_servers": "k:9092"}},
            "one or the other",
        ),
        ("zookeeper", [host("z1"), host("z2")], {"dc1": {}}, "zookeeper_id of its own"),
        ("audit", [host("m1"), host("m2")], {"dc1": {}}, "audit has 2 hosts (m1, m2)"),
        (
            "brokers",
            [
                host(
                    "b",
                    skidway_cluster="dc1",
                    broker_id=1,
                    broker_settings={"metrics.listener": ""},
                )
            ],
            {"dc1": {}},
            "b: broker_settings sets metrics.listener to nothing",
        ),
        (
            "agents",
            [host("a", skidway_cluster="dc1", agent_settings={"host": {"name": "x"}})],
            {"dc1": {}},
            "a: agent_settings sets host.name to x",
        ),
        (
            "agents",
            [host("a", skidway_cluster="dc1", agent_settings={"cluster.name": "dc2"})],
            {"dc1": {}},
            "a: agent_settings sets cluster.name to dc2",
        ),
        (
            "zookeeper",
            [host("z1", zookeeper_id=1), host("z2", zookeeper_id=1)],
            {"dc1": {}},
            "the same zookeeper_id",
        ),
    ],
)
def test_a_mistake_in_the_inventory_is_one_sentence(
    group: str, hosts: list[dict[str, Any]], clusters: dict[str, Any], said: str
) -> None:
    """Nothing is installed then; the sentence names the host and the variable."""
    assert said in problems({group: [h["inventory_hostname"] for h in hosts]}, hosts, **clusters)
