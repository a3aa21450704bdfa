"""Tests that the roles make each key for the identity under which the program signs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2.nativetypes import NativeEnvironment

from deploy import variables
from deploy.ansible.plugins.plugin_utils.clusters import counters
from deploy.ansible.plugins.plugin_utils.identities import identity
from skidway.audit.output.hdfs.address import address_of
from skidway.audit.output.hdfs.configuration import Configuration
from skidway.audit.output.local import LocalOutput
from skidway.audit.settings import AuditSettings, CounterSettings
from skidway.audit.signing.identity import Identity, Role
from skidway.audit.topic.claims import sender_overclaim
from skidway.audit.topic.messages import Sender, Tier
from skidway.settings import load
from support.role_variables import RoleVariables

ROLES = variables.COLLECTION / "roles"
CLUSTERS: dict[str, Any] = {"dc1": {}, "offline": {"mirrors": ["dc1"]}}
GROUPS = {"agents": ["app1"], "audit": ["m"], "loaders": ["m"]}


def settings(role: str, name: str, **given: Any) -> RoleVariables:
    said = {"inventory_hostname": name, "skidway_clusters": CLUSTERS, **given}
    hosts = {each: {"inventory_hostname": each} for each in ("app1", "m")}
    known = {"loader_known_units": {"stdout": ""}}
    return RoleVariables(role, said | known, hosts, given.get("groups", GROUPS))


def test_an_agent_may_sign_with_the_key_that_it_gets() -> None:
    """The key of an agent is made for the cluster and the host that the agent's settings name."""
    found = settings("agent", "app1", skidway_cluster="dc1", agent_sources=[])["common_settings"]
    assert identity(found, "agent") == "agent/dc1/app1"
    sender = Sender(Tier.AGENT, found["cluster.name"], "17", found["host.name"], 1)
    assert sender_overclaim(Identity.parse(identity(found, "agent")), sender) is None
    assert found["audit.key.location"] == "/etc/skidway/agent/audit.key"


@pytest.mark.parametrize("more", [{}, {"producer": "second"}, {"producer": "a/b"}])
def test_a_counter_may_sign_with_the_key_that_it_gets(more: dict[str, str]) -> None:
    """The key of a counter is made for its tier, its cluster and, if it has one, its name."""
    for each in counters(CLUSTERS, dict.fromkeys(CLUSTERS, "b:1"), 9114).values():
        given = CounterSettings(
            bootstrap_servers="b:1", cluster_name=each["cluster.name"], tier=each["tier"],
            state_dir=Path("/s"), **more,
        )  # fmt: skip
        sender = Sender(Tier(given.tier.upper()), given.cluster, given.producer_name, "m", 1)
        assert sender_overclaim(Identity.parse(identity(each | more, "counter")), sender) is None


@pytest.mark.parametrize("written", ["/srv/lake", "/srv/lake/", "/srv//lake", "file:///srv/lake/"])
def test_a_loader_may_sign_with_the_key_that_it_gets(written: str) -> None:
    """The key of a loader is made for its output, however the inventory writes its path."""
    found = settings("loader", "m", skidway_cluster="offline", loader_output=written)
    own = Identity.parse(identity(found["common_settings"], "loader"))
    url = LocalOutput(written.removeprefix("file://")).url
    assert own == Identity(Role.LOADER, ("offline", url))
    assert found["common_settings"]["audit.key.location"] == "/etc/skidway/loader/audit.key"


@pytest.mark.parametrize(
    "written", ["hdfs://nn:8020/logs", "hdfs://nn:8020/logs/", "viewfs://site/a/b", "hdfs:///logs"]
)
def test_an_output_in_hdfs_has_the_name_that_the_loader_gives_it(written: str) -> None:
    """The key of a loader into HDFS is made for the URL by which the loader names its output."""
    found = identity({"cluster.name": "offline", "output": written}, "loader")
    known = {
        "fs.defaultFS": "hdfs://nn:8020",
        "fs.viewfs.mounttable.site.linkFallback": "hdfs://nn:8020/",
    }
    address = address_of(written, Configuration(None, "", known))
    assert found == f"loader/offline/{address.server}{address.root}"


def test_the_recount_signs_with_a_key_of_its_host() -> None:
    """The recount's unit names the key of its host, and the host under which it signs."""
    found = settings("loader", "m", skidway_cluster="offline", loader_output="/srv/lake")
    assert identity(found["common_settings"], "recount") == "recount/m"
    unit = found["common_overrides"]["skidway-recount.service"]["Service"]["Environment"]
    (given,) = (each for each in unit if "RECOUNT_SETTINGS" in each)
    assert given == (
        '"RECOUNT_SETTINGS=--set audit.signatures=require'
        ' --set audit.key.location=/etc/skidway/loader/recount.key --set host.name=m"'
    )
    _, *sets = given.strip('"').partition("=")[2].split("--set ")
    read = load(AuditSettings, None, ["bootstrap.servers=b:1", *map(str.strip, sets)])
    assert (read.host_name, read.signatures) == ("m", "require")
    assert read.audit_key_location == Path("/etc/skidway/loader/recount.key")


@pytest.mark.parametrize(
    ("role", "given", "missing"),
    [
        ("agent", {"host.name": "a"}, "cluster.name"),
        ("agent", {"cluster.name": "", "host.name": "a"}, "cluster.name"),
        ("counter", {"tier": "mirror"}, "cluster.name"),
        ("loader", {"cluster.name": "dc1", "output": None}, "output"),
    ],
)
def test_what_a_key_needs_is_named(role: str, given: dict[str, Any], missing: str) -> None:
    """If the settings do not say for whom a key is, the play ends with a sentence that names the
    setting."""
    with pytest.raises(ValueError, match=rf"the settings of the {role} have no {missing}"):
        identity(given, role)


@pytest.mark.parametrize("mode", ["off", False])
def test_without_signatures_no_setting_names_a_key(mode: object) -> None:
    """With `skidway_signatures: off`, which YAML reads as false if it is not quoted, and without a
    host in the group audit, the settings are those of a version that signs nothing."""
    alone = {"agents": ["app1"], "loaders": ["m"]}
    for more in ({"skidway_signatures": mode}, {"groups": alone}):
        assert settings("agent", "app1", agent_sources=[], **more)["common_signs"] is False
        for role in ("agent", "audit", "loader"):
            found = settings(role, "m", loader_output="/srv/lake", agent_sources=[], **more)
            keys = [key for key in found["common_settings"] if "signatures" in key or "key" in key]
            assert keys == []
            assert role != "loader" or "RECOUNT_SETTINGS" not in str(found["common_overrides"])


def test_the_audit_requires_what_the_fleet_signs() -> None:
    """By default the audit requires signatures, and its master keys are in a file that the agents'
    and loaders' settings do not name."""
    found = settings("audit", "m")["common_settings"]
    assert found["audit.signatures"] == "require"
    assert found["audit.master.keys.location"] == "/etc/skidway/audit.master.keys"
    assert (
        settings("audit", "m", skidway_signatures="warn")["common_settings"]["audit.signatures"]
        == "warn"
    )


def test_no_output_of_a_play_has_a_key() -> None:
    """The tasks that handle the text of a key keep it out of Ansible's output and logs, and write
    it for the program's group alone. A run that derives keys changes nothing by that."""
    derive, _, _, place = yaml.safe_load((ROLES / "common/tasks/key.yml").read_text())
    _, write = place["block"]
    assert derive["no_log"] is write["no_log"] is True
    assert derive["changed_when"] is False
    assert (write["ansible.builtin.copy"]["owner"], write["ansible.builtin.copy"]["mode"]) == (
        "root", "0640",
    )  # fmt: skip


def test_a_fleet_without_an_audit_needs_none_for_a_key() -> None:
    """The key is derived on the audit's host. Ansible looks for this host even if it skips the
    task, so an inventory without such a host still gives a name."""
    derive, *_ = yaml.safe_load((ROLES / "common/tasks/key.yml").read_text())
    host = NativeEnvironment().from_string(derive["delegate_to"])
    assert host.render(groups={"audit": ["m"]}, inventory_hostname="app1") == "m"
    for groups in ({}, {"audit": []}):
        assert host.render(groups=groups, inventory_hostname="app1") == "app1"
